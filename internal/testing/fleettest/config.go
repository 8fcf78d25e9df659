package fleettest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// dimension is a label with one value in an assignment. Priorities differ, so nothing is ambiguous.
type dimension struct {
	key    string
	values int
	value  func(int) string
	share  int // containers for a hundred values
}

// containers adds two containers for each workload. An assignment matches seven or eight.
func (g *reference) containers() {
	g.container("platform", nil, 0, 0)
	dimensions := []dimension{
		{"region", g.regions, regionName, 200},
		{"workspace", g.workspaceCount(), workspaceName, 200},
		{"purpose", len(targetNames), func(i int) string { return targetNames[i].name }, 100},
		{"cluster-type", g.groups, clusterTypeName, 75},
		{"workload", g.groups, workloadName, 75},
	}
	left := g.groups*2 - 1
	for i, d := range dimensions {
		count := min(left, d.values*d.share/100)
		left -= count
		for j := range count {
			value := d.value(j % d.values)
			name := fmt.Sprintf("%s-%s-%d", d.key, value, j/d.values)
			g.container(name, fleet.Labels{d.key: value}, i+1, j/d.values)
		}
	}
	for i := range left { // in the region of its first policy
		labels := fleet.Labels{"workload": workloadName(i), "region": regionName(2 * i % g.regions)}
		g.container(fmt.Sprintf("special-%s", workloadName(i)), labels, len(dimensions)+1, 0)
	}
	slices.SortFunc(g.fleet.ConfigContainers, func(a, b fleet.ConfigContainer) int { return cmp.Compare(a.Name, b.Name) })
}

// container adds a container that shares keys only with other priorities.
func (g *reference) container(name string, labels fleet.Labels, priority, copies int) {
	container := fleet.ConfigContainer{Name: name, Labels: labels}
	if priority > 0 {
		container.Priority = json.Number(fmt.Sprint(priority))
	}
	g.fleet.ConfigContainers = append(g.fleet.ConfigContainers, container)

	data := map[string]any{
		fmt.Sprintf("SETTING_%d_%d", priority, copies): fmt.Sprintf("value-%08x", g.random.Uint32()),
	}
	if copies == 0 {
		data["DATABASE_URL"] = fmt.Sprintf("postgres://%s.example.com:5432/app", name)
		data["REPLICAS"] = json.Number(fmt.Sprint(1 + g.random.IntN(9)))
		data["FEATURES"] = map[string]any{
			fmt.Sprintf("feature-%d", g.random.IntN(5)): g.random.IntN(2) == 0,
			"rollout": map[string]any{"percent": json.Number(fmt.Sprint(g.random.IntN(100))), "owner": name},
		}
	}
	if labels == nil {
		data["EMERGENCY"] = "0911"
		data["ENDPOINTS"] = []any{
			map[string]any{"name": "metrics", "url": "https://metrics.example.com"},
			map[string]any{"name": "traces", "url": "https://traces.example.com"},
		}
	}
	text, err := fleet.CanonicalJSON(data)
	if err != nil {
		panic(err) // never
	}
	g.config[name] = text
}

const targetSchema = `{"type":"object","required":["DATABASE_URL"],"properties":{"DATABASE_URL":{"type":"string","pattern":"^postgres://"}}}`

func (g *reference) schemas() {
	g.fleet.ConfigSchemas = []fleet.ConfigSchema{
		{Name: "database", Labels: fleet.Labels{"purpose": "live"}, Schema: targetSchema},
		{Name: "platform", Schema: `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
			`"required":["REPLICAS","EMERGENCY","FEATURES"],"properties":{` +
			`"REPLICAS":{"type":"integer","minimum":1,"maximum":9},` +
			`"EMERGENCY":{"type":"string","minLength":3},` +
			`"FEATURES":{"type":"object","properties":{"rollout":{"type":"object","properties":{` +
			`"percent":{"type":"integer","minimum":0,"maximum":100},"owner":{"type":"string"}}}}},` +
			`"ENDPOINTS":{"type":"array","items":{"type":"object","required":["name","url"]}}}}`},
	}
}
