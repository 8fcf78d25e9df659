package fleet_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

func TestAnythingMayBeUnknown(t *testing.T) {
	count, whole := 0, input(t, everything)
	walk("", whole, func(string, any, func(any)) { count++ })
	for i := range count {
		changed := clone(whole)
		position := 0
		walk("", changed, func(path string, _ any, replace func(any)) {
			if position == i && replace != nil {
				replace(fleet.Unknown{})
				t.Logf("%d: %s", i, path)
			}
			position++
		})
		if _, findings := fleet.Decode(changed); len(findings) > 0 {
			t.Errorf("value %d: %s", i, findings.Error())
		}
	}
	if _, findings := fleet.Decode(fleet.Unknown{}); len(findings) > 0 {
		t.Error(findings)
	}
}

func TestUnknownValuesAffectOnlyTheirEntries(t *testing.T) {
	const before = "environment: dev\nworkspaces: [{name: team}]\n"
	for name, test := range map[string]struct {
		input                          string
		known, containers, environment bool
		pending                        []string // entries of containers, and deployment targets with unknown manifests
	}{
		"nothing unknown": {"config_containers: [{name: a, data: {}}]", true, true, true, nil},
		"a container's value": {
			"config_containers: [{name: a, data: {x: (known after apply)}}, {name: b, data: (known after apply)}, {name: c, data: {}}]",
			true, true, true, []string{"a", "b"},
		},
		"a container's reference":               {"config_containers: [{name: a, secrets: {X: {store: s, key: k, version: (known after apply)}}}]", true, true, true, []string{"secrets/a"}},
		"a container's encrypted file":          {"config_containers: [{name: a, encrypted: [(known after apply)]}]", true, true, true, []string{"secrets/a"}},
		"allow_plain of a container":            {"config_containers: [{name: a, data: {}, allow_plain: (known after apply)}]", true, true, true, nil},
		"a cluster type's store":                {"cluster_types: [{name: a, secret_stores: {v: {name: (known after apply)}}}]", false, true, true, nil},
		"a container's computed attribute":      {"config_containers: [{name: a, data: {}, json: (known after apply)}]", true, true, true, nil},
		"a container's label":                   {"config_containers: [{name: a, data: {}, labels: {x: (known after apply)}}]", false, true, true, nil},
		"a container's priority":                {"config_containers: [{name: a, data: {}, priority: (known after apply)}]", false, true, true, nil},
		"a container's name":                    {"config_containers: [{name: (known after apply), data: {}}]", false, false, true, nil},
		"a container's environment":             {"config_containers: [{name: a, environment: (known after apply), data: {}}]", false, false, true, nil},
		"a container":                           {"config_containers: [(known after apply)]", false, false, true, nil},
		"all containers":                        {"config_containers: (known after apply)", false, false, true, nil},
		"the environment":                       {"environment: (known after apply)", false, false, false, nil},
		"a cluster type's label":                {"cluster_types: [{name: a, labels: {x: (known after apply)}}]", false, true, true, nil},
		"a cluster type of another environment": {"cluster_types: [{name: (known after apply), environment: prod, labels: (known after apply)}]", true, true, true, nil},
		"a container of another environment":    {"config_containers: [{name: (known after apply), environment: prod, data: {x: (known after apply)}}]", true, true, true, nil},
		"a workload of another environment":     {"workloads: [{name: (known after apply), workspace: (known after apply), deployment_targets: {a: {environment: prod, manifests: (known after apply)}}}]", true, true, true, nil},
		"a target of another environment":       {"workloads: [{name: a, workspace: team, deployment_targets: {a: {environment: dev, manifests: {repo: 'https://x'}}, b: {environment: prod, manifests: {repo: (known after apply)}}}}]", true, true, true, nil},
		"a target":                              {"workloads: [{name: a, workspace: team, deployment_targets: {a: (known after apply)}}]", false, true, true, nil},
		"a target's environment":                {"workloads: [{name: a, workspace: team, deployment_targets: {a: {environment: (known after apply), manifests: {repo: 'https://x'}}}}]", false, true, true, nil},
		"all targets":                           {"workloads: [{name: a, workspace: team, deployment_targets: (known after apply)}]", false, true, true, nil},
		"the list of environments":              {"environments: (known after apply)", true, true, true, nil},
		"a name among the environments":         {"environments: [dev, {name: (known after apply)}]", true, true, true, nil},
		"hydration":                             {"hydration: {lists: (known after apply)}", false, true, true, nil},
		"a parameter deep inside":               {"workloads: [{name: a, workspace: team, deployment_targets: {a: {environment: dev, manifests: {repo: 'https://x', parameters: {a: [{b: (known after apply)}]}}}}}]", true, true, true, []string{"a-a"}},
		"a tag":                                 {"workloads: [{name: a, workspace: team, deployment_targets: {a: {environment: dev, manifests: {repo: 'https://x', tag: (known after apply)}}, b: {environment: dev, manifests: {repo: 'https://x'}}}}]", true, true, true, []string{"a-a"}},
		"the forms of configuration":            {"workloads: [{name: a, workspace: team, deployment_targets: {a: {environment: dev, config_as: (known after apply), manifests: {repo: 'https://x'}}}}]", true, true, true, []string{"a-a"}},
		"a form of configuration":               {"workloads: [{name: a, workspace: team, deployment_targets: {a: {environment: dev, config_as: [values, (known after apply)], manifests: {repo: 'https://x'}}}}]", true, true, true, []string{"a-a"}},
		"the storage":                           {"workloads: [{name: a, workspace: team, deployment_targets: {a: {environment: dev, manifests: {storage: (known after apply), repo: 'https://x', version: '1'}}}}]", true, true, true, []string{"a-a"}},
		"all manifests":                         {"workloads: [{name: a, workspace: team, deployment_targets: {a: {environment: dev, manifests: (known after apply)}}}]", true, true, true, []string{"a-a"}},
		"a target's label":                      {"workloads: [{name: a, workspace: team, deployment_targets: {a: {environment: dev, labels: {x: (known after apply)}, manifests: {repo: 'https://x'}}}}]", false, true, true, nil},
		"the base fleet":                        {"base: (known after apply)", false, false, true, nil},
		"the base fleet's model":                {"base: {environment: dev, model: (known after apply), format: '1', config: {known: '{}'}, manifests: {known: '{}'}}", false, false, true, nil},
		"all of the base fleet's config":        {`base: {environment: dev, model: '{"environment":"dev","config_containers":[{"name":"a"}]}', config: (known after apply), format: '1', manifests: {known: '{}'}}`, true, true, true, []string{"a"}},
		"a value of the base fleet":             {`base: {environment: dev, model: '{"environment":"dev","config_containers":[{"name":"a"}]}', config: {known: '{}', pending: {a: (known after apply)}}, format: '1', manifests: {known: '{}'}}`, true, true, true, []string{"a"}},
		"the types of two templates":            {"templates: [{name: mine, type: (known after apply), manifests: [x]}, {name: mine, type: (known after apply), manifests: [x]}]\ncluster_types: [{name: a, reconciler: mine}]", false, true, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			value := input(t, before).(map[string]any)
			maps.Copy(value, input(t, test.input).(map[string]any))
			decoded, findings := fleet.Decode(value)
			wantFindings(t, findings)
			if decoded.Known != test.known || decoded.ContainersKnown != test.containers || decoded.EnvironmentKnown != test.environment {
				t.Errorf("known = %t, containers known = %t, environment known = %t, want %t, %t, %t",
					decoded.Known, decoded.ContainersKnown, decoded.EnvironmentKnown, test.known, test.containers, test.environment)
			}
			if pending := slices.Concat(decoded.Pending, decoded.PendingManifests); !slices.Equal(pending, test.pending) {
				t.Errorf("pending %q, want %q", pending, test.pending)
			}
		})
	}
}

// A mistake between two objects may disappear when their environments are known.
func TestUnknownValuesCauseNoPrematureFindings(t *testing.T) {
	for name, text := range map[string]string{
		"duplicate names in an unknown environment":    "environment: (known after apply)\ncluster_types: [{name: a, environment: dev}, {name: a, environment: prod}]",
		"duplicate names, perhaps in two environments": "environment: dev\ncluster_types: [{name: a, environment: dev}, {name: a, environment: (known after apply)}]",
		"a cluster type in another environment":        "environment: (known after apply)\nclusters: [{name: a, environment: dev, cluster_type: b}]",
		"a cluster, perhaps in another environment":    "environment: dev\nclusters: [{name: a, environment: (known after apply), cluster_type: b}]",
		"full names in two environments": "environment: (known after apply)\nworkspaces: [{name: t}]\nworkloads:\n- {name: a-b, workspace: t, deployment_targets: {c: {environment: dev, manifests: {repo: 'https://x'}}}}\n" +
			"- {name: a, workspace: t, deployment_targets: {b-c: {environment: prod, manifests: {repo: 'https://x'}}}}",
		"a circle through unknown names": "environment: dev\nworkspaces: [{name: t}]\nworkloads:\n- {name: (known after apply), workspace: t, requires: [a], deployment_targets: {t: {environment: dev, manifests: {repo: 'https://x'}}}}\n" +
			"- {name: a, workspace: t, requires: [(known after apply)], deployment_targets: {t: {environment: dev, manifests: {repo: 'https://x'}}}}",
		"a circle through another environment": "environment: (known after apply)\nworkspaces: [{name: t}]\nworkloads:\n- {name: b, workspace: t, requires: [a], deployment_targets: {t: {environment: dev, manifests: {repo: 'https://x'}}}}\n" +
			"- {name: a, workspace: t, requires: [b], deployment_targets: {t: {environment: prod, manifests: {repo: 'https://x'}}}}",
		"a target that may exist": "environment: dev\nworkspaces: [{name: t}]\ncluster_types: [{name: a}]\nworkloads: [{name: w, workspace: t, deployment_targets: (known after apply)}]\n" +
			"assignments: [{cluster_type: a, deployment_target: w-x}]",
		"a host that may be null":      "environment: dev\nworkspaces: [{name: t}]\ncluster_types: [{name: a}]\nworkloads: [{name: w, workspace: t, deployment_targets: {x: {environment: dev, manifests: {repo: 'https://x'}}}}]\nassignments: [{cluster_type: a, cluster: (known after apply), deployment_target: w-x}]",
		"assignments that may be null": "environment: dev\nassignments: (known after apply)\ntarget_policies: []",
		"policies that may be null":    "environment: dev\nassignments: []\ntarget_policies: (known after apply)",
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := fleet.Decode(input(t, text))
			wantFindings(t, findings)
		})
	}
}

// TestKnownFactsStayUnchanged checks that known facts do not change when unknown inputs become known.
func TestKnownFactsStayUnchanged(t *testing.T) {
	rounds := acceptancetest.Count(60, 2_000)
	known, pending, manifests := 0, 0, 0
	for seed := range uint64(rounds) {
		random := rand.New(rand.NewPCG(seed, 7))
		full := randomInput(seed, random)
		hidden, substitutes := hideValues(full, random)
		decoded, findings := fleet.Decode(hidden)
		if len(findings) > 0 {
			t.Fatalf("seed %d: %s", seed, findings.Error())
		}
		if decoded.Known {
			known++
		}
		pending += len(decoded.Pending)
		if decoded.Known {
			manifests += len(decoded.PendingManifests)
		}
		for i, substitute := range append([]any{full}, substitutes...) {
			later, findings := fleet.Decode(substitute)
			if len(findings) > 0 {
				if i == 0 {
					t.Fatalf("seed %d: %s", seed, findings.Error())
				}
				continue
			}
			if problem := findContradiction(t, decoded, later); problem != "" {
				t.Fatalf("seed %d, substitute %d: %s\ninput %v\nlater %v", seed, i, problem, hidden, substitute)
			}
		}
	}
	if known < rounds/10 || pending < rounds/10 || manifests < rounds/10 {
		t.Errorf("too few cases in %d inputs: %d known models, %d pending containers, %d pending targets",
			rounds, known, pending, manifests)
	}
}

// findContradiction describes a known fact of the earlier input that differs in the later one. It returns "" if there is none.
func findContradiction(t *testing.T, earlier, later *fleet.Decoded) string {
	if earlier.Known {
		if before, after := model(t, earlier.Fleet), model(t, later.Fleet); before != after {
			return fmt.Sprintf("the model was known as\n%s\nand is\n%s", before, after)
		}
	}
	if earlier.EnvironmentKnown && earlier.Environment != later.Environment {
		return "the environment differs"
	}
	if earlier.TargetsKnown {
		before, after := manifestsOf(t, earlier), manifestsOf(t, later)
		names := slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(before)), earlier.PendingManifests)))
		now := slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(after)), later.PendingManifests)))
		if !slices.Equal(names, now) {
			return fmt.Sprintf("the deployment targets were known as %q and are %q", names, now)
		}
		for name, text := range before {
			if after[name] != text {
				return fmt.Sprintf("manifests of %q were known as %s and are %s", name, text, after[name])
			}
		}
	}
	if !earlier.ContainersKnown {
		return ""
	}
	names := slices.Sorted(slices.Values(slices.Concat(containerNames(slices.Collect(maps.Keys(earlier.Config))), containerNames(earlier.Pending))))
	if now := slices.Sorted(slices.Values(containerNames(slices.Collect(maps.Keys(later.Config))))); !slices.Equal(names, now) {
		return fmt.Sprintf("the containers were known as %q and are %q", names, now)
	}
	for name := range later.Config {
		container, isSecrets := strings.CutPrefix(name, "secrets/")
		if _, known := earlier.Config[container]; isSecrets && known && earlier.Config[name] == "" {
			return fmt.Sprintf("container %q was known without secrets and has some", container)
		}
	}
	for name, text := range earlier.Config {
		if later.Config[name] != text && text != fleet.UnknownEntry {
			return fmt.Sprintf("config of container %q was known as %s and is %s", name, text, later.Config[name])
		}
	}
	return ""
}

// containerNames returns the entries that are names of containers.
func containerNames(entries []string) []string {
	return slices.DeleteFunc(slices.Clone(entries), func(name string) bool { return strings.HasPrefix(name, "secrets/") })
}

func manifestsOf(t *testing.T, decoded *fleet.Decoded) map[string]string {
	t.Helper()
	value, err := decoded.Value()
	if err != nil {
		t.Fatal(err)
	}
	return value.Manifests
}

// randomInput returns a small random fleet, with objects of another environment and sometimes with a base fleet.
func randomInput(seed uint64, random *rand.Rand) map[string]any {
	f, config := fleettest.Small(seed)
	value := fleettest.Input(f, config)
	other := fleettest.Input(fleettest.Small(seed + 1<<32))
	for _, collection := range []string{"cluster_types", "clusters", "target_policies", "config_containers"} {
		if value["assignments"] != nil && collection == "target_policies" {
			continue
		}
		list, _ := value[collection].([]any)
		others, _ := other[collection].([]any)
		for _, object := range others {
			object.(map[string]any)["environment"] = "prod"
			list = append(list, object)
		}
		if list != nil {
			value[collection] = list
		}
	}
	if workloads, ok := value["workloads"].([]any); ok {
		for _, workload := range workloads {
			for _, target := range workload.(map[string]any)["deployment_targets"].(map[string]any) {
				if random.IntN(4) == 0 && value["assignments"] == nil {
					target.(map[string]any)["environment"] = "prod"
				}
			}
		}
	}
	if containers, ok := value["config_containers"].([]any); ok {
		for _, container := range containers {
			if random.IntN(3) == 0 {
				maps.Copy(container.(map[string]any), map[string]any{
					"secrets":   map[string]any{"SECRET": map[string]any{"store": "vault", "key": "dev/db", "version": "3"}, "NONE": nil},
					"encrypted": []any{fleettest.Sealed("tls", "shop")},
				})
			}
		}
	}
	if random.IntN(3) == 0 {
		moveToBase(value)
	}
	if random.IntN(2) == 0 {
		value["environments"] = []any{"dev", map[string]any{"name": "prod"}, "stage"}
	}
	return value
}

// moveToBase moves hosts and containers into a base fleet.
func moveToBase(value map[string]any) {
	base := map[string]any{"environment": value["environment"]}
	for _, collection := range []string{"workspaces", "cluster_types", "config_containers"} {
		if value[collection] != nil {
			base[collection] = value[collection]
			delete(value, collection)
		}
	}
	decoded, findings := fleet.Decode(base)
	if len(findings) > 0 {
		panic(findings)
	}
	value["base"] = valueOf(decoded)
}

// hideValues replaces random values by Unknown. It also returns inputs with other values in their place.
func hideValues(full any, random *rand.Rand) (hidden any, substitutes []any) {
	hidden = clone(full)
	substitutes = []any{clone(full), clone(full), clone(full), clone(full)}
	targets := map[int]bool{}
	count, values := 0, []int(nil)
	walk("", full, func(path string, _ any, _ func(any)) {
		if strings.HasPrefix(path, ".config_containers[].data") || strings.HasPrefix(path, ".config_containers[].secrets") ||
			strings.HasPrefix(path, ".config_containers[].encrypted") ||
			strings.HasPrefix(path, ".base.config.") ||
			strings.HasPrefix(path, ".base.manifests.") ||
			strings.Contains(path, ".manifests.") {
			values = append(values, count)
		}
		count++
	})
	for range 1 + random.IntN(3) {
		if len(values) > 0 && random.IntN(2) == 0 {
			targets[values[random.IntN(len(values))]] = true
		} else {
			targets[1+random.IntN(count-1)] = true
		}
	}
	replaceAt(hidden, targets, func(string, any) any { return fleet.Unknown{} })
	for _, substitute := range substitutes {
		replaceAt(substitute, targets, func(path string, value any) any { return otherValue(path, value, random) })
	}
	return hidden, substitutes
}

// replaceAt replaces the values with the given positions in a walk.
func replaceAt(root any, targets map[int]bool, with func(path string, value any) any) {
	type replacement struct {
		path    string
		value   any
		replace func(any)
	}
	var replacements []replacement
	position := 0
	walk("", root, func(path string, value any, replace func(any)) {
		if targets[position] && replace != nil {
			replacements = append(replacements, replacement{path, value, replace})
		}
		position++
	})
	for _, r := range slices.Backward(replacements) { // inner ones first: outer ones win
		r.replace(with(r.path, r.value))
	}
}

// otherValue returns another value for a path.
func otherValue(path string, value any, random *rand.Rand) any {
	if random.IntN(6) == 0 {
		return nil
	}
	switch value := value.(type) {
	case string:
		others := []string{"x", "other", "true", "type-0", "app-0", "Exists", "team-0"}
		if strings.HasSuffix(path, "environment") || strings.HasSuffix(path, "environments[]") {
			others = []string{"dev", "prod", "stage"}
		}
		return others[random.IntN(len(others))]
	case []any:
		if len(value) > 0 && random.IntN(2) == 0 {
			return value[1:]
		}
		return []any{}
	case map[string]any:
		smaller := maps.Clone(value)
		for key := range smaller {
			if random.IntN(2) == 0 {
				delete(smaller, key)
			}
		}
		return smaller
	}
	return "7"
}
