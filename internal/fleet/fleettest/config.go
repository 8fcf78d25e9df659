package fleettest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// dimension is what a config container is about. An assignment matches one value of a dimension, and
// no two dimensions have the same priority: so nothing is ambiguous.
type dimension struct {
	key    string
	values int
	value  func(int) string
	share  int // of the containers, in percent
}

// containers makes two for each workload. An assignment matches about six of them.
func (g *reference) containers() {
	g.container("platform", nil, 0, 0)
	total := g.groups*2 - 1
	left := total
	for priority, d := range []dimension{
		{"region", g.regions, regionName, 10},
		{"workspace", g.workspaceCount(), workspaceName, 10},
		{"purpose", len(targetNames), func(i int) string { return targetNames[i].name }, 2},
		{"cluster-type", g.groups, clusterTypeName, 38},
		{"workload", g.groups, workloadName, 40},
	} {
		count := min(left, (total*d.share+99)/100)
		left -= count
		for i := range count {
			value := d.value(i % d.values)
			name := fmt.Sprintf("%s-%s-%d", d.key, value, i/d.values)
			g.container(name, fleet.Labels{d.key: value}, priority+1, i/d.values)
		}
	}
	for i := range left {
		labels := fleet.Labels{"workload": workloadName(i % g.groups), "region": regionName(i % g.regions)}
		g.container(fmt.Sprintf("special-%05d", i), labels, 10+i/g.groups, i)
	}
	slices.SortFunc(g.fleet.ConfigContainers, func(a, b fleet.ConfigContainer) int { return cmp.Compare(a.Name, b.Name) })
}

// container makes one whose keys overlap with those of other priorities only.
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
		panic(err) // the data above has a JSON form
	}
	g.config[name] = text
}

// targetSchema is a deployment target's own; all values of a reference fleet satisfy it.
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
