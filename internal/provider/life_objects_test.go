package provider_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// objectsLife renames the cluster types of shops and their branch, changes content, reverts and loses the state, in any order. After
// each apply both hosts have their folder, although protection lets none go, and all objects follow what is in the commit.
type objectsLife struct {
	*shops
	random  *rand.Rand
	names   int
	commits []string
	did     []string
}

func (l *objectsLife) rename(of map[string]any) map[string]any {
	l.names++
	former, _ := of["formerly"].([]any)
	return typeOf(fmt.Sprint("type-", l.names), append(append([]any{}, former...), of["name"])...)
}

func (l *objectsLife) step() {
	for _, choice := range []struct {
		weight int
		what   string
		do     func()
	}{
		{30, "other content", func() { l.replicas = 1 + l.random.IntN(9) }},
		{25, "rename of the first", func() { l.lab = l.rename(l.lab) }},
		{25, "rename of the second", func() { l.store = l.rename(l.store) }},
		{50, "reports", l.report},
		{15, "rollback", func() { l.further["rollback_to"] = pick(l.random, l.commits) }},
		{50, "no rollback", func() { delete(l.further, "rollback_to") }},
		{15, "hold", func() {
			l.further["holds"] = []any{map[string]any{"hosts": []any{l.store["name"]}, "reason": "an audit"}}
		}},
		{30, "no hold", func() { delete(l.further, "holds") }},
		{8, "rename of the branch", func() {
			was := l.branch
			l.branch = fmt.Sprint("branch-", len(l.did))
			git(l.t, l.url, "branch", "-m", was, l.branch)
			git(l.t, l.url, "symbolic-ref", "HEAD", "refs/heads/"+l.branch)
		}},
	} {
		if l.random.IntN(100) < choice.weight {
			l.did = append(l.did, choice.what)
			choice.do()
		}
	}
	if l.further["holds"] != nil { // by its present name
		l.further["holds"] = []any{map[string]any{"hosts": []any{l.store["name"]}, "reason": "an audit"}}
	}
	l.did = append(l.did, fmt.Sprintf("applies %v %v %d %s %v", l.lab, l.store, l.replicas, l.branch, l.further))
	plan, said := l.w.Apply(l.t.Context(), l.configuration())
	if said.Err() != nil {
		l.t.Errorf("the apply fails: %s", said.Err())
		return
	}
	l.did = append(l.did, fmt.Sprint(plan.Change(assignment).After["changes"]))
	l.clock.now = l.clock.now.Add(1)
	files := filesOfCommit(l.t, l.url, l.branch)
	checkFollowed(l.t, files, l.url, l.branch)
	if has := replicasIn(files); strings.Count(has, ",") != 1 {
		l.t.Errorf("the branch has %s", has)
	}
	l.commits = append(l.commits, git(l.t, l.url, "rev-parse", l.branch))
}

func TestALifeOfRenamesWithFinalObjects(t *testing.T) {
	t.Parallel()
	steps := acceptancetest.Count(12, 60)
	for _, reconciler := range []string{"flux", "argocd"} {
		for seed := range uint64(acceptancetest.Count(1, 20)) {
			t.Run(fmt.Sprint(reconciler, "-", seed), func(t *testing.T) {
				t.Parallel()
				l := &objectsLife{shops: newShops(t, reconciler), random: rand.New(rand.NewPCG(seed, 23))}
				l.further["rollout"] = nil
				apply(t, l.w, l.configuration())
				delete(l.further, "rollout")
				l.commits = []string{git(t, l.url, "rev-parse", l.branch)}
				for range steps {
					if l.step(); t.Failed() {
						t.Fatalf("after:\n%s", strings.Join(l.did, "\n"))
					}
				}
			})
		}
	}
}
