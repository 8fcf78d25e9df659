package hydrate_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// The functions with the prefix kalypso hydrate like Kalypso, container by container, without the defects that the guide
// "Coming from Kalypso" lists.

// configMap is a ConfigMap of a control plane.
type configMap struct {
	name   string
	labels labels
	data   map[string]string
}

func (c configMap) document() string {
	text, err := fleet.CanonicalJSON(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": toAny(c.data),
		"metadata": map[string]any{"name": c.name, "labels": toAny(c.labels)},
	})
	if err != nil {
		panic(err) // texts have a JSON form
	}
	return text
}

func toAny(texts map[string]string) map[string]any {
	values := make(map[string]any, len(texts))
	for key, text := range texts {
		values[key] = text
	}
	return values
}

func kalypsoMatches(wanted labels, assignment *schedule.Assignment) bool {
	for key, value := range wanted {
		isMet := assignment.Host.Labels[key] == value || assignment.Target.Labels[key] == value
		switch key {
		case "platform-config", "kustomize.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/namespace":
			isMet = true
		case "cluster-type":
			isMet = value == assignment.Host.ClusterType.Name
		case "deployment-target":
			isMet = value == assignment.Target.Name
		case "workload":
			isMet = value == assignment.Target.Workload.Name
		}
		if !isMet {
			return false
		}
	}
	return true
}

func kalypsoMerge(into, from any) any {
	switch target := into.(type) {
	case []any:
		list, ok := from.([]any)
		if !ok {
			return from
		}
		merged := slices.Clone(target)
		for _, element := range list {
			object, _ := element.(map[string]any)
			i := slices.IndexFunc(merged, func(other any) bool {
				existing, ok := other.(map[string]any)
				return ok && object["name"] != nil && existing["name"] == object["name"]
			})
			if i < 0 {
				merged = append(merged, element)
			} else {
				merged[i] = kalypsoMerge(merged[i], element)
			}
		}
		return merged
	case map[string]any:
		object, ok := from.(map[string]any)
		if !ok {
			return from
		}
		merged := maps.Clone(target)
		for key, value := range object {
			if _, ok := merged[key]; ok {
				value = kalypsoMerge(merged[key], value)
			}
			merged[key] = value
		}
		return merged
	}
	return from
}

func kalypsoValue(text string) any {
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "'") && strings.HasSuffix(trimmed, "'") {
		return strings.Trim(trimmed, "'")
	}
	value, err := fleet.ParseYAML(text)
	if err != nil {
		return text
	}
	switch value.(type) {
	case map[string]any, []any:
		return value
	}
	return text
}

func kalypsoHydrate(configMaps []configMap, assignment *schedule.Assignment) map[string]any {
	values := map[string]any{}
	add := func(key, text string) {
		value := kalypsoValue(text)
		if existing, ok := values[key]; ok {
			value = kalypsoMerge(existing, value)
		}
		values[key] = value
	}
	sorted := slices.SortedFunc(slices.Values(configMaps), func(a, b configMap) int { return cmp.Compare(a.name, b.name) })
	for _, one := range sorted {
		if one.labels["platform-config"] != "true" || !kalypsoMatches(one.labels, assignment) {
			continue
		}
		for key, text := range one.data {
			add(key, text)
		}
	}
	for _, one := range sorted {
		if !strings.HasPrefix(one.name, "azure-app-config") {
			continue
		}
		keys := slices.SortedFunc(maps.Keys(one.data), func(a, b string) int {
			return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
		})
		for _, key := range keys {
			parts, wanted := strings.Split(key, "."), labels{}
			for i := 1; i < len(parts)-1; i += 2 {
				wanted[parts[i-1]] = parts[i]
			}
			if kalypsoMatches(wanted, assignment) {
				add(parts[len(parts)-1], one.data[key])
			}
		}
	}
	return values
}

// randomControlPlane uses few labels, keys and values, so that many coincide.
func randomControlPlane(random *rand.Rand) (documents string, configMaps []configMap) {
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	label := func() (key, value string) {
		switch key = pick("region", "size", "purpose", "cluster-type", "workload", "deployment-target"); key {
		case "cluster-type":
			return key, pick("drone", "large")
		case "workload":
			return key, pick("app", "other")
		case "deployment-target":
			return key, pick("app-test", "app-live")
		}
		return key, pick("a", "b")
	}
	var value func(depth int) string
	value = func(depth int) string {
		if depth > 0 && random.IntN(2) == 0 {
			switch random.IntN(3) {
			case 0:
				return fmt.Sprintf("{%s: %s, %s: %s}", pick("x", "y"), value(depth-1), pick("z", "name"), value(depth-1))
			case 1:
				return fmt.Sprintf("[{name: %s, %s: %s}, %s]", pick("n", "m"), pick("x", "y"), value(depth-1), value(0))
			}
			return fmt.Sprintf("[%s]", value(depth-1))
		}
		return pick("0123", "1.50", "'quoted'", "yes", "plain text", "''", "7", `"0"`)
	}
	for i := range 1 + random.IntN(5) {
		one := configMap{name: fmt.Sprint(pick("a", "b", "z"), i), labels: labels{}, data: map[string]string{}}
		one.labels["platform-config"] = pick("true", "true", "true", "false")
		for range random.IntN(3) {
			key, value := label()
			one.labels[key] = value
		}
		if random.IntN(3) == 0 {
			one.labels["kustomize.toolkit.fluxcd.io/name"] = "dev-configs"
		}
		isPrefixed := random.IntN(3) == 0
		if isPrefixed {
			one.name = fmt.Sprint("azure-app-config-", i)
		}
		for range random.IntN(4) {
			key := pick("A", "B", "C")
			for range random.IntN(3) {
				if isPrefixed {
					name, value := label()
					key = name + "." + value + "." + key
				}
			}
			if isPrefixed && random.IntN(6) == 0 {
				key = "odd." + key
			}
			one.data[key] = value(2)
		}
		configMaps = append(configMaps, one)
	}
	const header = "\n---\napiVersion: scheduler.kalypso.io/v1alpha1\nkind: "
	documents = fmt.Sprintf(header+"ClusterType\nmetadata: {name: drone, labels: {region: %s, size: %s}}\nspec: {}"+
		header+"ClusterType\nmetadata: {name: large, labels: {region: %s}}\nspec: {}"+
		header+"WorkloadRegistration\nmetadata: {name: app}\nspec: {workload: {repo: 'https://x'}, workspace: team}"+
		header+"Workload\nmetadata: {name: app}\nspec: {deploymentTargets: ["+
		"{name: test, environment: dev, labels: {purpose: %s}, manifests: {repo: 'https://x'}}, "+
		"{name: live, environment: dev, labels: {purpose: %s, size: %s}, manifests: {repo: 'https://x'}}]}"+
		header+"SchedulingPolicy\nmetadata: {name: everywhere}\nspec: {deploymentTargetSelector: {workspace: team}, clusterTypeSelector: {}}",
		pick("a", "b"), pick("a", "b"), pick("a", "b"), pick("a", "b"), pick("a", "b"), pick("a", "b"))
	for _, one := range configMaps {
		documents += "\n---\n" + one.document()
	}
	return documents, configMaps
}

func TestRandomControlPlanesAreHydratedAsByKalypso(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(8, 8))
	hydrated := 0
	for number := range randomFleets / 5 {
		documents, configMaps := randomControlPlane(random)
		decoded, findings := fleet.DecodeControlPlane("dev", []any{documents})
		if len(findings) > 0 {
			t.Fatalf("control plane %d: %s\n%s", number, findings.Error(), documents)
		}
		scheduled, findings := schedule.Schedule(decoded.Fleet)
		if len(findings) > 0 || len(scheduled.Assignments) != 4 {
			t.Fatalf("control plane %d: %d assignments, %s", number, len(scheduled.Assignments), findings.Error())
		}
		g := &fleetBuilder{*decoded.Fleet, decoded.Config, scheduled.Assignments}
		result := g.hydrate(t)
		for i, assignment := range g.assignments {
			want := canonical(t, kalypsoHydrate(configMaps, assignment))
			if got := result.All[i].JSON; got != want {
				t.Fatalf("control plane %d, %s\n got: %s\nwant: %s\n%s", number, assignment.Key(), got, want, documents)
			}
			if want != "{}" {
				hydrated++
			}
		}
	}
	if hydrated < randomFleets/4 {
		t.Errorf("only %d assignments have values", hydrated)
	}
}
