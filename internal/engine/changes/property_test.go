package changes_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// mutation changes one object of a fleet, and returns the kind and name of the cause, or "" without such an object.
type mutation struct {
	name   string
	change func(random *rand.Rand, f *fleet.Fleet, config fleet.Config) string
}

func causeName(kind changes.CauseKind, name string) string { return string(kind) + ":" + name }

// pick returns a random element, or false if there is none.
func pick[T any](random *rand.Rand, from []T) (*T, bool) {
	if len(from) == 0 {
		return nil, false
	}
	return &from[random.IntN(len(from))], true
}

var mutations = []mutation{
	{"a value", func(random *rand.Rand, f *fleet.Fleet, config fleet.Config) string {
		container, ok := pick(random, f.ConfigContainers)
		if !ok {
			return ""
		}
		config[container.Name] = strings.Replace(config[container.Name], "{", fmt.Sprintf(`{"NEW-%d":"canary-new",`, random.IntN(3)), 1)
		config[container.Name] = strings.Replace(config[container.Name], ",}", "}", 1)
		return causeName(changes.ByContainer, container.Name)
	}},
	{"a container's labels", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		container, ok := pick(random, f.ConfigContainers)
		if !ok {
			return ""
		}
		container.Labels = fleet.Labels{"region": "west"}
		return causeName(changes.ByContainer, container.Name)
	}},
	{"a container removed", func(random *rand.Rand, f *fleet.Fleet, config fleet.Config) string {
		container, ok := pick(random, f.ConfigContainers)
		if !ok {
			return ""
		}
		name := container.Name
		delete(config, name)
		f.ConfigContainers = slices.DeleteFunc(f.ConfigContainers, func(c fleet.ConfigContainer) bool { return c.Name == name })
		return causeName(changes.ByContainer, name)
	}},
	{"a cluster type's labels", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		clusterType, _ := pick(random, f.ClusterTypes)
		clusterType.Labels = fleet.Labels{"region": "west", "size": "small"}
		return causeName(changes.ByClusterType, clusterType.Name)
	}},
	{"a cluster type's reconciler", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		clusterType, _ := pick(random, f.ClusterTypes)
		clusterType.Reconciler = "argocd"
		return causeName(changes.ByClusterType, clusterType.Name)
	}},
	{"a cluster's labels", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		cluster, ok := pick(random, f.Clusters)
		if !ok {
			return ""
		}
		cluster.Labels = fleet.Labels{"region": "east", "size": "large"}
		return causeName(changes.ByCluster, cluster.Name)
	}},
	{"a cluster removed", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		cluster, ok := pick(random, f.Clusters)
		if !ok || f.Explicit {
			return ""
		}
		name := cluster.Name
		f.Clusters = slices.DeleteFunc(f.Clusters, func(c fleet.Cluster) bool { return c.Name == name })
		return causeName(changes.ByCluster, name)
	}},
	{"a tag", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		workload, _ := pick(random, f.Workloads)
		target, _ := pick(random, workload.DeploymentTargets)
		target.Manifests.Branch = "other"
		return causeName(changes.ByWorkload, workload.Name)
	}},
	{"a target's labels", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		workload, _ := pick(random, f.Workloads)
		target, _ := pick(random, workload.DeploymentTargets)
		target.Labels = fleet.Labels{"size": "small", "restricted": "true"}
		return causeName(changes.ByWorkload, workload.Name)
	}},
	{"a target's namespace", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		workload, _ := pick(random, f.Workloads)
		target, _ := pick(random, workload.DeploymentTargets)
		target.Namespace = "own-" + workload.Name + "-" + target.Name
		return causeName(changes.ByWorkload, workload.Name)
	}},
	{"a quota", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		workspace, _ := pick(random, f.Workspaces)
		workspace.ResourceQuota = map[string]string{"limits.cpu": "4"}
		return causeName(changes.ByWorkspace, workspace.Name)
	}},
	{"a policy removed", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		policy, ok := pick(random, f.TargetPolicies)
		if !ok {
			return ""
		}
		name := policy.Name
		f.TargetPolicies = slices.DeleteFunc(f.TargetPolicies, func(p fleet.TargetPolicy) bool { return p.Name == name })
		return causeName(changes.ByPolicy, name)
	}},
	{"a policy that selects all", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		policy, ok := pick(random, f.TargetPolicies)
		if !ok {
			return ""
		}
		policy.DeploymentTargetSelector, policy.WorkloadSelector, policy.ClusterTypeSelector = nil, nil, &fleet.Selector{}
		return causeName(changes.ByPolicy, policy.Name)
	}},
	{"how containers merge", func(_ *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		f.Hydration = &fleet.Hydration{OnConflict: "override", Precedence: "name", Lists: "append"}
		return causeName(changes.ByHydration, "")
	}},
}

// addCanaries marks every text among the values. No line may contain the mark.
func addCanaries(config fleet.Config) {
	for name, text := range config {
		for _, value := range []string{"x", "y", "0123"} {
			text = strings.ReplaceAll(text, `:"`+value+`"`, `:"canary-`+value+`"`)
			text = strings.ReplaceAll(text, `["`+value+`"`, `["canary-`+value+`"`)
		}
		config[name] = text
	}
}

func TestRandomChangesAreCountedOnceWithTheirCause(t *testing.T) {
	summarized := map[string]int{}
	for seed := range uint64(acceptancetest.Count(300, 700)) {
		random := rand.New(rand.NewPCG(seed, 7))
		chosen := mutations[random.IntN(len(mutations))]
		f, config := fleettest.Small(seed)
		addCanaries(config)
		before, ok := renderFleet(t, f, config)
		if !ok {
			continue
		}
		f, config = fleettest.Small(seed)
		addCanaries(config)
		causes := []string{chosen.change(random, f, config)}
		if causes[0] == "" {
			continue
		}
		if seed%3 == 2 {
			if other := mutations[random.IntN(len(mutations))].change(random, f, config); other != "" {
				causes = append(causes, other)
			}
		}
		after, ok := renderFleet(t, f, config)
		if !ok {
			continue
		}
		folders := foldersOf(before, after)
		lines := changes.Summarize(before.version, after.version, folders, changes.Notes{})
		before.version.Config = changes.Digest(before.version.Config)
		for name, digest := range before.version.Config {
			if strings.Contains(digest, "canary") {
				t.Errorf("seed %d: digest of %q holds a value: %s", seed, name, digest)
			}
		}
		equalLines(t, summarize(before, after), formatLines(lines))
		if len(folders) == 0 {
			if len(lines) > 0 {
				t.Errorf("seed %d: got lines %q without a difference", seed, formatLines(lines))
			}
			continue
		}
		summarized[chosen.name]++
		added, removed := 0, 0
		for _, folder := range folders {
			if folder.Added {
				added++
			}
			if folder.Removed {
				removed++
			}
		}
		counts := lines[0].Counts
		if counts.Changed != len(folders)-added-removed || counts.Added != added || counts.Removed != removed {
			t.Errorf("seed %d: %d folders, %d added, %d removed: %+v", seed, len(folders), added, removed, counts)
			continue
		}
		linesAdded, linesRemoved, maxAssignments := 0, 0, 0
		for i := range lines[1:] {
			line := &lines[i+1]
			switch count := len(line.Assignments); line.Kind {
			case changes.AdditionLine:
				linesAdded += count
			case changes.RemovalLine:
				linesRemoved += count
			default:
				maxAssignments = max(maxAssignments, count)
			}
			if len(line.Causes) == 0 {
				t.Errorf("seed %d: %s: want causes %s, got %s", seed, chosen.name, causes, formatLine(line))
			}
			for _, cause := range line.Causes {
				if !slices.Contains(causes, causeName(cause.Kind, cause.Name)) {
					t.Errorf("seed %d: %s: want causes %s, got %s", seed, chosen.name, causes, formatLine(line))
				}
			}
		}
		if text := strings.Join(changes.English(lines), "\n"); strings.Contains(text, "canary") {
			t.Errorf("seed %d: value revealed in %q", seed, text)
		}
		if linesAdded != added || linesRemoved != removed || maxAssignments > len(folders)-added-removed || (maxAssignments == 0) != (len(folders) == added+removed) {
			t.Errorf("seed %d: the lines do not add up to the counts of the first: %q", seed, formatLines(lines))
		}
	}
	for _, tested := range mutations {
		if summarized[tested.name] == 0 {
			t.Errorf("%s was never tested", tested.name)
		}
	}
}
