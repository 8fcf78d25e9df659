package changes_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// mutation changes one object of a fleet, and returns what a line may call it; "" where there is no such
// object.
type mutation struct {
	name   string
	change func(random *rand.Rand, f *fleet.Fleet, config fleet.Config) string
}

func named(kind, name string) string { return fmt.Sprintf("%s %q", kind, name) }

// chosen returns a random element, and false where there is none.
func chosen[T any](random *rand.Rand, from []T) (*T, bool) {
	if len(from) == 0 {
		return nil, false
	}
	return &from[random.IntN(len(from))], true
}

var mutations = []mutation{
	{"a value", func(random *rand.Rand, f *fleet.Fleet, config fleet.Config) string {
		container, ok := chosen(random, f.ConfigContainers)
		if !ok {
			return ""
		}
		config[container.Name] = strings.Replace(config[container.Name], "{", fmt.Sprintf(`{"NEW-%d":"canary-new",`, random.IntN(3)), 1)
		config[container.Name] = strings.Replace(config[container.Name], ",}", "}", 1)
		return named("config container", container.Name)
	}},
	{"a container's labels", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		container, ok := chosen(random, f.ConfigContainers)
		if !ok {
			return ""
		}
		container.Labels = fleet.Labels{"region": "west"}
		return named("config container", container.Name)
	}},
	{"a container removed", func(random *rand.Rand, f *fleet.Fleet, config fleet.Config) string {
		container, ok := chosen(random, f.ConfigContainers)
		if !ok {
			return ""
		}
		name := container.Name
		delete(config, name)
		f.ConfigContainers = slices.DeleteFunc(f.ConfigContainers, func(c fleet.ConfigContainer) bool { return c.Name == name })
		return named("config container", name)
	}},
	{"a cluster type's labels", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		clusterType, _ := chosen(random, f.ClusterTypes)
		clusterType.Labels = fleet.Labels{"region": "west", "size": "small"}
		return named("cluster type", clusterType.Name)
	}},
	{"a cluster type's reconciler", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		clusterType, _ := chosen(random, f.ClusterTypes)
		clusterType.Reconciler = "argocd"
		return named("cluster type", clusterType.Name)
	}},
	{"a cluster's labels", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		cluster, ok := chosen(random, f.Clusters)
		if !ok {
			return ""
		}
		cluster.Labels = fleet.Labels{"region": "east", "size": "large"}
		return named("cluster", cluster.Name)
	}},
	{"a cluster removed", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		cluster, ok := chosen(random, f.Clusters)
		if !ok || f.Explicit {
			return ""
		}
		name := cluster.Name
		f.Clusters = slices.DeleteFunc(f.Clusters, func(c fleet.Cluster) bool { return c.Name == name })
		return named("cluster", name)
	}},
	{"a tag", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		workload, _ := chosen(random, f.Workloads)
		target, _ := chosen(random, workload.DeploymentTargets)
		target.Manifests.Branch = "other"
		return named("workload", workload.Name)
	}},
	{"a target's labels", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		workload, _ := chosen(random, f.Workloads)
		target, _ := chosen(random, workload.DeploymentTargets)
		target.Labels = fleet.Labels{"size": "small", "restricted": "true"}
		return named("workload", workload.Name)
	}},
	{"a target's namespace", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		workload, _ := chosen(random, f.Workloads)
		target, _ := chosen(random, workload.DeploymentTargets)
		target.Namespace = "own-" + workload.Name + "-" + target.Name
		return named("workload", workload.Name)
	}},
	{"a quota", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		workspace, _ := chosen(random, f.Workspaces)
		workspace.ResourceQuota = map[string]string{"limits.cpu": "4"}
		return named("workspace", workspace.Name)
	}},
	{"a policy removed", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		policy, ok := chosen(random, f.TargetPolicies)
		if !ok {
			return ""
		}
		name := policy.Name
		f.TargetPolicies = slices.DeleteFunc(f.TargetPolicies, func(p fleet.TargetPolicy) bool { return p.Name == name })
		return named("target policy", name)
	}},
	{"a policy that selects all", func(random *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		policy, ok := chosen(random, f.TargetPolicies)
		if !ok {
			return ""
		}
		policy.DeploymentTargetSelector, policy.WorkloadSelector, policy.ClusterTypeSelector = nil, nil, &fleet.Selector{}
		return named("target policy", policy.Name)
	}},
	{"how containers merge", func(_ *rand.Rand, f *fleet.Fleet, _ fleet.Config) string {
		f.Hydration = &fleet.Hydration{OnConflict: "override", Precedence: "name", Lists: "append"}
		return "the hydration settings"
	}},
}

// secretive turns every text among the values into one that must not be in any line.
func secretive(config fleet.Config) {
	for name, text := range config {
		for _, value := range []string{"x", "y", "0123"} {
			text = strings.ReplaceAll(text, `:"`+value+`"`, `:"canary-`+value+`"`)
			text = strings.ReplaceAll(text, `["`+value+`"`, `["canary-`+value+`"`)
		}
		config[name] = text
	}
}

var (
	firstLine = regexp.MustCompile(`^(\d+) hosts?; assignments: (\d+) changed, (\d+) added, (\d+) removed$`)
	ofLine    = regexp.MustCompile(`: (\d+) assignments?`)
)

// namesOnly says whether the end of a line names some of the causes, and nothing else.
func namesOnly(said string, causes []string) bool {
	for _, cause := range causes {
		said = strings.ReplaceAll(said, cause, "")
		kind, name, isNamed := strings.Cut(cause, ` "`)
		if !isNamed {
			continue
		}
		plural := strings.Replace(kind+"s", "policys", "policies", 1)
		said = strings.ReplaceAll(strings.ReplaceAll(said, plural+` "`, `"`), `"`+name, "")
	}
	return strings.Trim(strings.NewReplacer("(new)", "", "(removed)", "").Replace(said), ", ") == ""
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

func TestOfRandomChangesEachFolderIsCountedOnceAndTheCauseIsWhatWasChanged(t *testing.T) {
	summarized := map[string]int{}
	for seed := range uint64(700) {
		random := rand.New(rand.NewPCG(seed, 7))
		one := mutations[random.IntN(len(mutations))]
		f, config := fleettest.Small(seed)
		secretive(config)
		before, ok := renderFleet(t, f, config)
		if !ok {
			continue
		}
		f, config = fleettest.Small(seed)
		secretive(config)
		causes := []string{one.change(random, f, config)}
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
		lines := summarize(before, after)
		before.version.Config = changes.Digest(before.version.Config)
		for name, digest := range before.version.Config {
			if strings.Contains(digest, "canary") {
				t.Errorf("seed %d: digest of %q holds a value: %s", seed, name, digest)
			}
		}
		equalLines(t, summarize(before, after), lines)
		if len(folders) == 0 {
			if len(lines) > 0 {
				t.Errorf("seed %d: nothing differs, and %q", seed, lines)
			}
			continue
		}
		summarized[one.name]++
		added, removed := 0, 0
		for _, folder := range folders {
			if folder.Added {
				added++
			}
			if folder.Removed {
				removed++
			}
		}
		counts := firstLine.FindStringSubmatch(lines[0])
		if counts == nil || number(counts[2]) != len(folders)-added-removed || number(counts[3]) != added || number(counts[4]) != removed {
			t.Errorf("seed %d: %d folders, %d added, %d removed: %q", seed, len(folders), added, removed, lines[0])
			continue
		}
		linesAdded, linesRemoved, most := 0, 0, 0
		for _, line := range lines[1:] {
			what, _, _ := strings.Cut(line, ", by ")
			count, named := 1, strings.Count(what, ", ")+1
			if match := ofLine.FindStringSubmatch(line); match != nil {
				count, named = number(match[1]), 0
			}
			switch {
			case strings.HasPrefix(line, "+ "):
				linesAdded += max(count, named)
			case strings.HasPrefix(line, "- "):
				linesRemoved += max(count, named)
			default:
				most = max(most, count)
			}
			if _, said, found := strings.Cut(line, ", by "); !found || !namesOnly(said, causes) {
				t.Errorf("seed %d: %s, causes are %s: %s", seed, one.name, causes, line)
			}
			if strings.Contains(line, "canary") {
				t.Errorf("seed %d: a value in %q", seed, line)
			}
		}
		if linesAdded != added || linesRemoved != removed || most > len(folders)-added-removed || (most == 0) != (len(folders) == added+removed) {
			t.Errorf("seed %d: the lines do not come to what they begin with: %q", seed, lines)
		}
	}
	for _, one := range mutations {
		if summarized[one.name] == 0 {
			t.Errorf("%s: never tried", one.name)
		}
	}
}
