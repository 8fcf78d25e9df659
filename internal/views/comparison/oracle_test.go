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

// deployed is a side with the values of each folder, as its own files have them.
type deployed struct {
	side   comparison.Side
	values map[folder.Key]comparison.Values
}

// deploy renders a fleet; false where it has findings, as random ones do.
func deploy(tb testing.TB, f *fleet.Fleet, config fleet.Config) (deployed, bool) {
	tb.Helper()
	scheduled, findings := schedule.Schedule(f)
	if len(findings) > 0 {
		return deployed{}, false
	}
	hydrated, err := hydrate.Hydrate(f, config, scheduled.Assignments)
	if err != nil {
		tb.Fatal(err)
	}
	templates, findings := render.Compile(f)
	if len(hydrated.Findings) > 0 || len(findings) > 0 {
		return deployed{}, false
	}
	is := deployed{comparison.Side{}, map[folder.Key]comparison.Values{}}
	for i, assignment := range scheduled.Assignments {
		snapshot := hydrated.All[i]
		files, err := templates.Render(render.Subject{
			Assignment: assignment, Environment: f.Environment, Owner: "platform", ConfigVersion: snapshot.Version, Config: snapshot.Values(),
			Repo: &folder.Location{URL: "https://git.example.com/gitops", Branch: "dev"},
		})
		if err != nil {
			tb.Fatal(err)
		}
		named := make([]folder.File, len(files))
		for j, file := range files {
			named[j] = folder.File{Name: file.Name, Content: file.Content}
		}
		key := folder.Key{Host: assignment.Host.Name, DeploymentTarget: assignment.Target.Name}
		manifests := assignment.Target.Target.Manifests.Manifests
		is.side[key] = comparison.Folder{
			Workload: assignment.Target.Workload.Name, Workspace: assignment.Target.Workload.Workspace, Manifests: &manifests,
			Policies: assignment.Policies, Config: snapshot.Version, Tree: fmt.Sprintf("%s %s", snapshot.Version, key),
		}
		is.values[key] = changes.ConfigValues(named)
	}
	return is, true
}

// random deploys a random fleet. Some of its folders have another version or other policies than the others of the deployment target,
// as during a rollout, some have those of another host, and some are not there.
func random(tb testing.TB, r *rand.Rand, seed uint64) (deployed, bool) {
	tb.Helper()
	is, ok := deploy(tb, first(fleettest.Small(seed)), second(fleettest.Small(seed)))
	for _, key := range slices.SortedFunc(maps.Keys(is.side), folder.Key.Compare) {
		f := is.side[key]
		switch r.IntN(10) {
		case 0:
			delete(is.side, key)
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
		is.side[key] = f
	}
	// Some hosts have what others of the same deployment target were to have.
	keys := slices.SortedFunc(maps.Keys(is.side), folder.Key.Compare)
	for i, one := range keys {
		for _, other := range keys[i+1:] {
			if one.DeploymentTarget == other.DeploymentTarget && r.IntN(3) == 0 {
				is.side[one], is.side[other] = is.side[other], is.side[one]
				is.values[one], is.values[other] = is.values[other], is.values[one]
			}
		}
	}
	return is, ok
}

func first[A, B any](a A, _ B) A  { return a }
func second[A, B any](_ A, b B) B { return b }

// oracle compares by looking at everything, and is told the values of each folder.
func oracle(left, right deployed, pairs comparison.Pairs, files bool) map[string]string {
	pairOf := func(names map[string]string, left, right string) bool {
		if paired, ok := names[left]; ok {
			return paired == right
		}
		for _, taken := range names {
			if taken == right {
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
		said := map[string]bool{}
		tell := func(format string, arguments ...any) { said[fmt.Sprintf(format, arguments...)] = true }
		// What the sides have of everything.
		type sets struct{ left, right map[string]bool }
		all := map[string]*sets{}
		note := func(what string, onRight bool, is string) {
			if all[what] == nil {
				all[what] = &sets{map[string]bool{}, map[string]bool{}}
			}
			if onRight {
				all[what].right[is] = true
			} else {
				all[what].left[is] = true
			}
		}
		keys := map[string]bool{}
		for _, of := range []deployed{left, right} {
			for _, values := range of.values {
				for key := range values {
					keys[key] = true
				}
			}
		}
		value := func(of deployed, at folder.Key, key string) string {
			text, is := of.values[at][key]
			return fmt.Sprint(is, " ", text)
		}
		see := func(of deployed, onRight bool, name string) {
			for at, f := range of.side {
				if at.DeploymentTarget != name {
					continue
				}
				note("version", onRight, fmt.Sprint(f.Manifests.Texts()))
				for _, policy := range f.Policies {
					note("policy "+policy, onRight, "yes")
				}
				for key := range keys {
					note("value "+key, onRight, value(of, at, key))
				}
			}
		}
		see(left, false, t.left)
		see(right, true, t.right)
		for what, is := range all {
			switch policy, isPolicy := strings.CutPrefix(what, "policy "); {
			case maps.Equal(is.left, is.right):
			case isPolicy && len(is.right) == 0:
				tell("policies")
				tell("only left policy %s", policy)
			case isPolicy:
				tell("policies")
				tell("only right policy %s", policy)
			case what == "version":
				tell("version")
			default:
				tell("values")
				tell("%s", what)
			}
		}
		// What they have on the same hosts.
		shared := map[string]bool{}
		differentFiles := false
		for l, lf := range left.side {
			for r, rf := range right.side {
				if l.DeploymentTarget != t.left || r.DeploymentTarget != t.right || !pairOf(pairs.Hosts, l.Host, r.Host) {
					continue
				}
				shared["left "+l.Host], shared["right "+r.Host] = true, true
				if !slices.Equal(lf.Manifests.Texts(), rf.Manifests.Texts()) {
					tell("version")
				}
				if !slices.Equal(slices.Sorted(slices.Values(lf.Policies)), slices.Sorted(slices.Values(rf.Policies))) {
					tell("policies")
				}
				for key := range keys {
					if value(left, l, key) != value(right, r, key) {
						tell("values")
						tell("value %s", key)
					}
				}
				differentFiles = differentFiles || files && lf.Tree != rf.Tree
			}
		}
		for l := range left.side {
			if l.DeploymentTarget == t.left && !shared["left "+l.Host] {
				tell("hosts")
				tell("only left host %s", l.Host)
			}
		}
		for r := range right.side {
			if r.DeploymentTarget == t.right && !shared["right "+r.Host] {
				tell("hosts")
				tell("only right host %s", r.Host)
			}
		}
		if differentFiles && !said["version"] && !said["values"] && !said["policies"] {
			tell("files")
		}
		if len(said) > 0 {
			found[t.left+" → "+t.right] = strings.Join(slices.Sorted(maps.Keys(said)), "; ")
		}
	}
	return found
}

// printed writes a comparison as the oracle does.
func printed(targets []comparison.Target) map[string]string {
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
		said := map[string]bool{}
		for _, aspect := range t.Differs {
			said[string(aspect)] = true
		}
		for _, key := range t.Keys {
			said["value "+key.Key] = true
		}
		for side, part := range map[string]comparison.Part{"left": t.Left, "right": t.Right} {
			for _, host := range part.OnlyHosts {
				said["only "+side+" host "+host] = true
			}
			for _, policy := range part.OnlyPolicies {
				said["only "+side+" policy "+policy] = true
			}
		}
		found[left+" → "+right] = strings.Join(slices.Sorted(maps.Keys(said)), "; ")
	}
	return found
}

func TestAComparisonIsWhatLookingAtEverythingFinds(t *testing.T) {
	t.Parallel()
	pairs, seen := 0, map[string]int{}
	for seed := uint64(0); pairs < 100; seed++ {
		r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // the same each time
		// Every other pair is one fleet twice.
		left, ok := random(t, r, seed)
		right, alsoOK := random(t, r, seed+seed%2*1000)
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
		if got := printed(targets); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, lines(got), lines(want))
		}
		if counts.OnlyLeft+counts.OnlyRight+counts.Different != len(want) || counts.Unread > 0 {
			t.Fatalf("seed %d: counts are %+v of %d", seed, counts, len(want))
		}
		for _, said := range want {
			for _, word := range strings.Split(said, "; ") {
				seen[strings.Join(strings.Fields(word)[:min(3, len(strings.Fields(word)))][:1], " ")]++
			}
		}
	}
	for _, word := range []string{"only_left", "only_right", "hosts", "version", "values", "value", "policies", "only", "files"} {
		if seen[word] < 3 {
			t.Errorf("only %d of all pairs have %q: %v", seen[word], word, seen)
		}
	}
}

func lines(of map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(&b, "%s: %s\n", name, of[name])
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
