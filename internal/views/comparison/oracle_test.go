package comparison_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/comparison"
)

// deployedSide is a side, with the values in the files of each folder.
type deployedSide struct {
	side   comparison.Side
	values map[folder.Key]comparison.Values
}

// deploy renders a fleet. It returns false if the fleet has findings, as random fleets may.
func deploy(tb testing.TB, f *fleet.Fleet, config fleet.Config) (deployedSide, bool) {
	tb.Helper()
	scheduled, findings := schedule.Schedule(f)
	if len(findings) > 0 {
		return deployedSide{}, false
	}
	hydrated, err := hydrate.Hydrate(f, config, scheduled.Assignments)
	if err != nil {
		tb.Fatal(err)
	}
	templates, findings := render.Compile(f)
	if len(hydrated.Findings) > 0 || len(findings) > 0 {
		return deployedSide{}, false
	}
	rendered := deployedSide{comparison.Side{}, map[folder.Key]comparison.Values{}}
	for i, assignment := range scheduled.Assignments {
		snapshot := hydrated.All[i]
		files, err := templates.Render(render.Subject{
			Assignment: assignment, Environment: f.Environment, Owner: "platform", ConfigVersion: snapshot.Version, Config: snapshot.Values(),
			Repo: &folder.Location{URL: "https://git.example.com/gitops", Branch: "dev"},
		})
		if err != nil {
			tb.Fatal(err)
		}
		folderFiles := make([]folder.File, len(files))
		for j, file := range files {
			folderFiles[j] = folder.File{Name: file.Name, Content: file.Content}
		}
		key := folder.Key{Host: assignment.Host.Name, DeploymentTarget: assignment.Target.Name}
		manifests := assignment.Target.Target.Manifests.Manifests
		rendered.side[key] = comparison.Folder{
			Workload: assignment.Target.Workload.Name, Workspace: assignment.Target.Workload.Workspace, Manifests: &manifests,
			Policies: assignment.Policies, Config: snapshot.Version, Tree: fmt.Sprintf("%s %s", snapshot.Version, key),
		}
		rendered.values[key] = changes.ConfigValues(folderFiles)
	}
	return rendered, true
}

// deployRandom deploys a random fleet. Some folders have other versions or policies than the rest of the deployment target, as
// during a rollout; some have the content of another host; some are missing.
func deployRandom(tb testing.TB, r *rand.Rand, seed uint64) (deployedSide, bool) {
	tb.Helper()
	rendered, ok := deploy(tb, first(fleettest.Small(seed)), second(fleettest.Small(seed)))
	for _, key := range slices.SortedFunc(maps.Keys(rendered.side), folder.Key.Compare) {
		f := rendered.side[key]
		switch r.IntN(10) {
		case 0:
			delete(rendered.side, key)
			continue
		case 1, 2:
			other := *f.Manifests
			other.Tag = fmt.Sprint(r.IntN(2))
			f.Manifests = &other
		case 3:
			f.Manifests = nil
		case 4:
			f.Policies = []string{"z", "a"}
		case 5:
			f.Tree += " by hand"
		}
		rendered.side[key] = f
	}
	// Some hosts swap folders of a deployment target.
	keys := slices.SortedFunc(maps.Keys(rendered.side), folder.Key.Compare)
	for i, one := range keys {
		for _, other := range keys[i+1:] {
			if one.DeploymentTarget == other.DeploymentTarget && r.IntN(3) == 0 {
				rendered.side[one], rendered.side[other] = rendered.side[other], rendered.side[one]
				rendered.values[one], rendered.values[other] = rendered.values[other], rendered.values[one]
			}
		}
	}
	return rendered, ok
}

func first[A, B any](a A, _ B) A  { return a }
func second[A, B any](_ A, b B) B { return b }

// oracle compares every pair of folders. It is given the values of each folder.
func oracle(left, right deployedSide, pairs comparison.Pairs, files bool) map[string]string {
	pairOf := func(names map[string]string, left, right string) bool {
		if paired, ok := names[left]; ok {
			return paired == right
		}
		for _, pairedRight := range names {
			if pairedRight == right {
				return false
			}
		}
		return left == right
	}
	type target struct{ left, right string }
	targets := map[target]bool{}
	for l := range left.side {
		alone := true
		for r := range right.side {
			if pairOf(pairs.DeploymentTargets, l.DeploymentTarget, r.DeploymentTarget) {
				targets[target{l.DeploymentTarget, r.DeploymentTarget}], alone = true, false
			}
		}
		if alone {
			targets[target{left: l.DeploymentTarget}] = true
		}
	}
	for r := range right.side {
		alone := true
		for t := range targets {
			alone = alone && t.right != r.DeploymentTarget
		}
		if alone {
			targets[target{right: r.DeploymentTarget}] = true
		}
	}
	found := map[string]string{}
	for t := range targets {
		switch {
		case t.right == "":
			found[t.left+" → "] = "only_left"
			continue
		case t.left == "":
			found[" → "+t.right] = "only_right"
			continue
		}
		differences := map[string]bool{}
		add := func(format string, arguments ...any) { differences[fmt.Sprintf(format, arguments...)] = true }
		// The versions, policies and values of each side.
		type sets struct{ left, right map[string]bool }
		all := map[string]*sets{}
		collect := func(aspect string, onRight bool, text string) {
			if all[aspect] == nil {
				all[aspect] = &sets{map[string]bool{}, map[string]bool{}}
			}
			if onRight {
				all[aspect].right[text] = true
			} else {
				all[aspect].left[text] = true
			}
		}
		keys := map[string]bool{}
		for _, deployed := range []deployedSide{left, right} {
			for _, values := range deployed.values {
				for key := range values {
					keys[key] = true
				}
			}
		}
		value := func(deployed deployedSide, folderKey folder.Key, key string) string {
			text, isGiven := deployed.values[folderKey][key]
			return fmt.Sprint(isGiven, " ", text)
		}
		collectSide := func(deployed deployedSide, onRight bool, name string) {
			for folderKey, f := range deployed.side {
				if folderKey.DeploymentTarget != name {
					continue
				}
				collect("version", onRight, fmt.Sprint(f.Manifests.Texts()))
				for _, policy := range f.Policies {
					collect("policy "+policy, onRight, "yes")
				}
				for key := range keys {
					collect("value "+key, onRight, value(deployed, folderKey, key))
				}
			}
		}
		collectSide(left, false, t.left)
		collectSide(right, true, t.right)
		for aspect, sides := range all {
			switch policy, isPolicy := strings.CutPrefix(aspect, "policy "); {
			case maps.Equal(sides.left, sides.right):
			case isPolicy && len(sides.right) == 0:
				add("policies")
				add("only left policy %s", policy)
			case isPolicy:
				add("policies")
				add("only right policy %s", policy)
			case aspect == "version":
				add("version")
			default:
				add("values")
				add("%s", aspect)
			}
		}
		// The differences on the same hosts.
		shared := map[string]bool{}
		differentFiles := false
		for l, lf := range left.side {
			for r, rf := range right.side {
				if l.DeploymentTarget != t.left || r.DeploymentTarget != t.right || !pairOf(pairs.Hosts, l.Host, r.Host) {
					continue
				}
				shared["left "+l.Host], shared["right "+r.Host] = true, true
				if !slices.Equal(lf.Manifests.Texts(), rf.Manifests.Texts()) {
					add("version")
				}
				if !slices.Equal(slices.Sorted(slices.Values(lf.Policies)), slices.Sorted(slices.Values(rf.Policies))) {
					add("policies")
				}
				for key := range keys {
					if value(left, l, key) != value(right, r, key) {
						add("values")
						add("value %s", key)
					}
				}
				differentFiles = differentFiles || files && lf.Tree != rf.Tree
			}
		}
		for l := range left.side {
			if l.DeploymentTarget == t.left && !shared["left "+l.Host] {
				add("hosts")
				add("only left host %s", l.Host)
			}
		}
		for r := range right.side {
			if r.DeploymentTarget == t.right && !shared["right "+r.Host] {
				add("hosts")
				add("only right host %s", r.Host)
			}
		}
		if differentFiles && !differences["version"] && !differences["values"] && !differences["policies"] {
			add("files")
		}
		if len(differences) > 0 {
			found[t.left+" → "+t.right] = strings.Join(slices.Sorted(maps.Keys(differences)), "; ")
		}
	}
	return found
}

// formatTargets formats a comparison like the oracle.
func formatTargets(targets []comparison.Target) map[string]string {
	found := map[string]string{}
	for _, t := range targets {
		left, right := t.Name, t.Name
		if t.RightName != "" {
			right = t.RightName
		}
		switch t.State {
		case comparison.OnlyLeft:
			found[left+" → "] = "only_left"
			continue
		case comparison.OnlyRight:
			found[" → "+right] = "only_right"
			continue
		}
		differences := map[string]bool{}
		for _, aspect := range t.Differs {
			differences[string(aspect)] = true
		}
		for _, key := range t.Keys {
			differences["value "+key.Key] = true
		}
		for side, part := range map[string]comparison.Part{"left": t.Left, "right": t.Right} {
			for _, host := range part.OnlyHosts {
				differences["only "+side+" host "+host] = true
			}
			for _, policy := range part.OnlyPolicies {
				differences["only "+side+" policy "+policy] = true
			}
		}
		found[left+" → "+right] = strings.Join(slices.Sorted(maps.Keys(differences)), "; ")
	}
	return found
}

func TestComparisonAgreesWithAnOracle(t *testing.T) {
	t.Parallel()
	pairs, seen := 0, map[string]int{}
	for seed := uint64(0); pairs < 100; seed++ {
		r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // the same each time
		// Every second pair is one fleet twice.
		left, ok := deployRandom(t, r, seed)
		right, alsoOK := deployRandom(t, r, seed+seed%2*1000)
		if !ok || !alsoOK {
			continue
		}
		pairs++
		in := comparison.Input{Left: left.side, Right: right.side, Values: map[string]comparison.Values{}, Files: r.IntN(2) == 0}
		if r.IntN(3) == 0 {
			in.Pairs = comparison.Pairs{
				DeploymentTargets: map[string]string{"app-0-live": "app-1-live", "app-1-test": "app-1-test"},
				Hosts:             map[string]string{"type-0": "type-1", "clusters/cluster-1": "clusters/cluster-0"},
			}
		}
		for _, ask := range comparison.Asks(in, false, 1000) {
			values := left.values
			if ask.Right {
				values = right.values
			}
			if _, twice := in.Values[ask.Config]; twice {
				t.Fatalf("%s is asked for twice", ask.Config)
			}
			in.Values[ask.Config] = values[ask.Key]
		}
		targets, counts := comparison.Compare(in)
		want := oracle(left, right, in.Pairs, in.Files)
		if got := formatTargets(targets); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, lines(got), lines(want))
		}
		if counts.OnlyLeft+counts.OnlyRight+counts.Different != len(want) || counts.Unread > 0 {
			t.Fatalf("seed %d: counts %+v, want %d different targets", seed, counts, len(want))
		}
		for _, differences := range want {
			for _, word := range strings.Split(differences, "; ") {
				seen[strings.Join(strings.Fields(word)[:min(3, len(strings.Fields(word)))][:1], " ")]++
			}
		}
	}
	for _, word := range []string{"only_left", "only_right", "hosts", "version", "values", "value", "policies", "only", "files"} {
		if seen[word] < 3 {
			t.Errorf("%d pairs have %q, want at least 3: %v", seen[word], word, seen)
		}
	}
}

func lines(found map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&b, "%s: %s\n", name, found[name])
	}
	return b.String()
}

// BenchmarkCompare compares two fleets of 20,000 assignments that differ in every value.
func BenchmarkCompare(b *testing.B) {
	f, config := fleettest.Reference(fleettest.ReferenceAssignments, 1)
	left, _ := deploy(b, f, config)
	other := fleet.Config{}
	for name, text := range config {
		other[name] = strings.ReplaceAll(text, "value-", "other-")
	}
	right, _ := deploy(b, f, other)
	in := comparison.Input{Left: left.side, Right: right.side, Values: map[string]comparison.Values{}}
	asks := comparison.Asks(in, false, 1<<30)
	for _, ask := range asks {
		values := left.values
		if ask.Right {
			values = right.values
		}
		in.Values[ask.Config] = values[ask.Key]
	}
	b.ReportAllocs()
	var counts comparison.Counts
	for b.Loop() {
		comparison.Asks(in, false, 1<<30)
		_, counts = comparison.Compare(in)
	}
	b.ReportMetric(float64(len(left.side)+len(right.side)), "assignments")
	b.ReportMetric(float64(len(asks)), "configs")
	b.ReportMetric(float64(counts.Different), "different")
}
