package provider_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// objectsLife makes random changes to stagedObjects. After each apply, both hosts have a folder, although protection forbids removals,
// and all objects follow folders of the commit. The state without the assignment cannot write.
type objectsLife struct {
	*stagedObjects
	random *rand.Rand
	// runners have a state each. The first has the assignment.
	runners [2]providertest.Runner
	names   int
	commits []string
	history []string
}

func (l *objectsLife) renameType(of map[string]any) map[string]any {
	l.names++
	former, _ := of["formerly"].([]any)
	return namedType(fmt.Sprint("type-", l.names), append(append([]any{}, former...), of["name"])...)
}

func (l *objectsLife) applyRandomChanges() {
	for _, choice := range []struct {
		weight int
		what   string
		do     func()
	}{
		{30, "other content", func() { l.replicas = 1 + l.random.IntN(9) }},
		{25, "rename of the first", func() { l.lab = l.renameType(l.lab) }},
		{25, "rename of the second", func() { l.store = l.renameType(l.store) }},
		{50, "reports", l.reportReady},
		{15, "rollback", func() { l.further["rollback_to"] = pick(l.random, l.commits) }},
		{50, "no rollback", func() { delete(l.further, "rollback_to") }},
		{15, "hold", func() {
			l.further["holds"] = []any{map[string]any{"hosts": []any{l.store["name"]}, "reason": "an audit"}}
		}},
		{30, "no hold", func() { delete(l.further, "holds") }},
		{15, "chart published again", func() {
			files := maps.Clone(chartWithoutSecret)
			files["templates/text.yaml"] += fmt.Sprintf("# %d\n", len(l.history))
			l.pin = l.charts.republish(l.t, l.pin.Version, files)
		}},
		{10, "other state", func() {
			l.runners[0], l.runners[1] = l.runners[1], l.runners[0]
			l.further["adopt"] = true
		}},
		{8, "rename of the branch", func() {
			former := l.branch
			l.branch = fmt.Sprint("branch-", len(l.history))
			git(l.t, l.url, "branch", "-m", former, l.branch)
			git(l.t, l.url, "symbolic-ref", "HEAD", "refs/heads/"+l.branch)
		}},
	} {
		if l.random.IntN(100) < choice.weight {
			l.history = append(l.history, choice.what)
			choice.do()
		}
	}
	if l.further["holds"] != nil { // a rename may have changed the name
		l.further["holds"] = []any{map[string]any{"hosts": []any{l.store["name"]}, "reason": "an audit"}}
	}
	l.history = append(l.history, fmt.Sprintf("applies %v %v %d %s %v", l.lab, l.store, l.replicas, l.branch, l.further))
	plan, diags := l.runners[0].Apply(l.t.Context(), l.configuration(), providertest.InOneCommand())
	if diags.Err() != nil {
		l.t.Errorf("the apply fails: %s", diags.Err())
		return
	}
	if change := plan.Change(assignment); change != nil { // nil with real tools
		l.history = append(l.history, fmt.Sprint(change.After["changes"]))
	}
	l.clock.now = l.clock.now.Add(1)
	files := filesOfCommit(l.t, l.url, l.branch)
	checkFollowedPaths(l.t, files, l.url, l.branch)
	if replicas := replicasByHost(files); strings.Count(replicas, ",") != 1 {
		l.t.Errorf("the branch has %s", replicas)
	}
	tip := git(l.t, l.url, "rev-parse", l.branch)
	l.commits = append(l.commits, tip)
	if l.further["adopt"] != nil {
		delete(l.further, "adopt")
		l.checkOtherState(tip)
	}
}

// checkOtherState expects the state that lost the assignment to refuse an apply.
func (l *objectsLife) checkOtherState(tip string) {
	state := l.runners[1].Now()[assignment].Current
	if state == nil || !strings.Contains(string(state.Attributes), strconv.Quote(l.branch)) {
		return // the assignment was never in that state on this branch
	}
	_, diags := l.runners[1].Apply(l.t.Context(), l.configuration(), providertest.InOneCommand())
	if diags.Err() == nil || !diags.Has(otherState) {
		l.t.Errorf("the other state may write: %s", diags)
	}
	if now := git(l.t, l.url, "rev-parse", l.branch); now != tip {
		l.t.Errorf("the other state wrote commit %s", now)
	}
}

func TestALifeOfRenamesWithFinalObjects(t *testing.T) {
	t.Parallel()
	steps := acceptancetest.Count(12, 60)
	for _, reconciler := range []string{"flux", "argocd"}[:acceptancetest.Count(1, 2)] {
		for seed := range uint64(acceptancetest.Count(1, 20)) {
			t.Run(fmt.Sprint(reconciler, "-", seed), func(t *testing.T) {
				t.Parallel()
				l := &objectsLife{stagedObjects: newStagedObjects(t, reconciler), random: rand.New(rand.NewPCG(seed, 23))}
				otherRunner := providertest.New(startProvider)
				otherRunner.Start = provider.StartAt(l.clock)
				l.runners = [2]providertest.Runner{l.w, otherRunner}
				l.playSteps(steps)
			})
		}
	}
}

func TestALifeOfRenamesWithFinalObjectsAndTools(t *testing.T) {
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		for _, reconciler := range []string{"flux", "argocd"} {
			for seed := range uint64(lifeSeeds()) {
				t.Run(fmt.Sprint(name, "-", reconciler, "-", seed), func(t *testing.T) {
					t.Parallel()
					l := &objectsLife{stagedObjects: newStagedObjects(t, reconciler), random: rand.New(rand.NewPCG(seed, 23))}
					for i := range l.runners {
						l.runners[i] = providertest.NewTerraform(t, tool, "flotilla/flotilla", provider.StartAt(l.clock))
					}
					l.playSteps(60)
				})
			}
		}
	}
}

func lifeSeeds() int {
	if acceptancetest.Either() {
		return 1
	}
	return 10
}

func (l *objectsLife) playSteps(steps int) {
	l.further["rollout"] = nil
	if _, diags := l.runners[0].Apply(l.t.Context(), l.configuration(), providertest.InOneCommand()); diags.Err() != nil {
		l.t.Fatal(diags)
	}
	delete(l.further, "rollout")
	l.commits = []string{git(l.t, l.url, "rev-parse", l.branch)}
	for range steps {
		if l.applyRandomChanges(); l.t.Failed() {
			l.t.Fatalf("after:\n%s", strings.Join(l.history, "\n"))
		}
	}
}

func TestNewStateTakesOverARenamedAssignment(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *stagedObjects, first string){
		"another rename": func(s *stagedObjects, _ string) { s.lab, s.replicas = namedType("desk", "lab", "bench"), 5 },
		"rollback":       func(s *stagedObjects, first string) { s.further["rollback_to"] = first },
		"rollback and rename": func(s *stagedObjects, first string) {
			s.further["rollback_to"], s.lab = first, namedType("desk", "lab", "bench")
		},
		"renamed branch while a stage waits": func(s *stagedObjects, _ string) {
			git(s.t, s.url, "branch", "-m", s.branch, "main")
			git(s.t, s.url, "symbolic-ref", "HEAD", "refs/heads/main")
			s.branch = "main"
		},
		"hold": func(s *stagedObjects, _ string) {
			s.replicas = 5
			s.further["holds"] = []any{map[string]any{"hosts": []any{"bench"}, "reason": "an audit"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStagedObjects(t, "flux")
			s.further["rollout"] = nil
			s.applyAndCheck("lab 3, store 3")
			delete(s.further, "rollout")
			first := git(t, s.url, "rev-parse", s.branch)
			s.replicas = 4
			s.applyAndCheck("lab 4, store 3")
			s.lab, s.store = namedType("bench", "lab"), namedType("shop", "store")
			s.applyAndCheck("bench 4, shop 3")
			change(s, first)
			otherRunner := providertest.New(startProvider)
			otherRunner.Start = provider.StartAt(s.clock)
			s.further["adopt"] = true
			if _, diags := otherRunner.Apply(t.Context(), s.configuration()); diags.Err() != nil {
				t.Fatal(diags.Err())
			}
			files := filesOfCommit(t, s.url, s.branch)
			checkFollowedPaths(t, files, s.url, s.branch)
			if replicas := replicasByHost(files); strings.Count(replicas, ",") != 1 {
				t.Errorf("the branch has %s", replicas)
			}
		})
	}
}

func TestAFormerStateTakesAnAssignmentBack(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *stagedObjects, first string){
		"as it is":           func(*stagedObjects, string) {},
		"and rolls back":     func(s *stagedObjects, first string) { s.further["rollback_to"] = first },
		"and renames":        func(s *stagedObjects, _ string) { s.lab = namedType("desk", "lab", "bench") },
		"with other content": func(s *stagedObjects, _ string) { s.replicas = 7 },
		"with a hold": func(s *stagedObjects, _ string) {
			s.store = namedType("market", "store", "shop")
			s.further["holds"] = []any{map[string]any{"hosts": []any{"market"}, "reason": "an audit"}}
		},
	} {
		for _, branch := range []string{"dev", "main"} {
			if !acceptancetest.All() && (branch == "main") != strings.HasPrefix(name, "and ") {
				continue
			}
			t.Run(name+" on "+branch, func(t *testing.T) {
				t.Parallel()
				s := newStagedObjects(t, "flux")
				s.further["rollout"] = nil
				s.applyAndCheck("lab 3, store 3")
				delete(s.further, "rollout")
				first := git(t, s.url, "rev-parse", s.branch)
				otherRunner := providertest.New(startProvider)
				otherRunner.Start = provider.StartAt(s.clock)
				s.further["adopt"] = true
				apply(t, otherRunner, s.configuration())
				delete(s.further, "adopt")
				if branch != s.branch {
					git(t, s.url, "branch", "-m", s.branch, branch)
					git(t, s.url, "symbolic-ref", "HEAD", "refs/heads/"+branch)
				}
				s.branch, s.replicas, s.lab, s.store = branch, 4, namedType("bench", "lab"), namedType("shop", "store")
				apply(t, otherRunner, s.configuration())
				s.further["adopt"] = true
				change(s, first)
				apply(t, s.w, s.configuration())
				files := filesOfCommit(t, s.url, s.branch)
				checkFollowedPaths(t, files, s.url, s.branch)
				if replicas := replicasByHost(files); strings.Count(replicas, ",") != 1 {
					t.Errorf("the branch has %s", replicas)
				}
				delete(s.further, "adopt")
				if _, diags := otherRunner.Apply(t.Context(), s.configuration()); diags.Err() == nil || !diags.Has(otherState) {
					t.Errorf("the other state may write: %s", diags)
				}
			})
		}
	}
}
