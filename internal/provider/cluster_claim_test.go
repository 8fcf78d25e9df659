package provider_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const claimAddress = "flotilla_cluster_claim.test"

// poolFleet has a pool of clusters, "<name>=<state>" or "<name>" for ready ones.
func poolFleet(clusters ...string) any {
	list := []any{}
	for _, cluster := range clusters {
		name, state, _ := strings.Cut(cluster, "=")
		state = cmp.Or(state, "ready")
		list = append(list, map[string]any{"name": name, "cluster_type": "pool", "labels": map[string]any{"state": state}})
	}
	return providertest.Call{Function: "fleet", Arguments: []any{map[string]any{
		"environment": "prod", "cluster_types": []any{map[string]any{"name": "pool"}}, "clusters": list,
	}}}
}

// claimOn returns a claim of ready clusters.
func claimOn(url, name string, number int, fleet any) map[string]any {
	return map[string]any{
		"name": name, "pool": map[string]any{"match_labels": map[string]any{"state": "ready"}}, "number": number, "fleet": fleet,
		"gitops_repo": map[string]any{"url": url, "branch": "prod", "path": "prod"},
	}
}

func claims(all ...map[string]any) providertest.Configuration {
	configuration := providertest.Configuration{Resources: map[string]providertest.Resource{}}
	for i, attributes := range all {
		address := claimAddress
		if i > 0 {
			address += fmt.Sprint(i)
		}
		configuration.Resources[address] = providertest.Resource{Attributes: attributes}
	}
	return configuration
}

func with(attributes map[string]any, further ...any) map[string]any {
	changed := maps.Clone(attributes)
	for i := 0; i < len(further); i += 2 {
		changed[further[i].(string)] = further[i+1]
	}
	return changed
}

// namesIn returns the clusters of a claim in a state or a plan: "?" for an unknown name, "unknown" for an unknown list.
func namesIn(values map[string]any) string {
	list, ok := values["clusters"].([]any)
	if !ok {
		return "unknown"
	}
	var names []string
	for _, name := range list {
		if text, isKnown := name.(string); isKnown {
			names = append(names, text)
		} else {
			names = append(names, "?")
		}
	}
	return strings.Join(names, " ")
}

// claimPlan returns the planned clusters, or "" if nothing changes.
func claimPlan(t *testing.T, w providertest.Runner, configuration providertest.Configuration) (string, providertest.Diagnostics) {
	t.Helper()
	plan, diags := w.Plan(t.Context(), configuration)
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	if plan.Empty() {
		return "", diags
	}
	return namesIn(plan.Change(claimAddress).After), diags
}

func claimRecordPath(folder, name string) string {
	return filepath.Join(folder, "prod", ".flotilla", ".claims", name+".json")
}

func commitByHand(t *testing.T, url, branch string, change func(folder string)) {
	t.Helper()
	repository{cloneURL: url}.change(t, branch, change)
}

func countCommits(t *testing.T, url, branch string) string {
	t.Helper()
	return git(t, url, "rev-list", "--count", branch)
}

func TestAClaimThroughItsLife(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	fleet := poolFleet("pool-1", "pool-2", "pool-3", "pool-4=busy")
	step := func(name, plan, state, commits string, attributes map[string]any) {
		t.Helper()
		if got, _ := claimPlan(t, w, claims(attributes)); got != plan {
			t.Errorf("%s: the plan says %q, want %q", name, got, plan)
		}
		apply(t, w, claims(attributes))
		if got := namesIn(w.State.Values(claimAddress)); got != state {
			t.Errorf("%s: the state has %q, want %q", name, got, state)
		}
		if got, _ := claimPlan(t, w, claims(attributes)); got != "" {
			t.Errorf("%s: a second plan says %q", name, got)
		}
		if got := countCommits(t, url, "prod"); got != commits {
			t.Errorf("%s: %s commits, want %s", name, got, commits)
		}
		if values := w.State.Values(claimAddress); values["commit"] != git(t, url, "rev-parse", "prod") {
			t.Errorf("%s: commit is %v", name, values["commit"])
		}
	}
	base := claimOn(url, "web", 2, fleet)
	step("two clusters", "unknown", "pool-1 pool-2", "1", base)
	step("a third cluster", "pool-1 pool-2 ?", "pool-1 pool-2 pool-3", "2", with(base, "number", 3))
	step("two again", "pool-1 pool-2", "pool-1 pool-2", "3", with(base, "number", 2))
	step("another name", "pool-1 pool-2", "pool-1 pool-2", "4", with(base, "name", "shop"))
	base = with(base, "name", "shop")
	step("changed labels", "", "pool-1 pool-2", "4", with(base, "fleet", poolFleet("pool-1=busy", "pool-2=busy")))
	step("another pool", "", "pool-1 pool-2", "4", with(base, "pool", map[string]any{"match_labels": map[string]any{"state": "busy"}}))
	step("a cluster left", "pool-2 ?", "pool-2 pool-3", "5", with(base, "fleet", poolFleet("pool-2", "pool-3")))
	base = with(base, "fleet", poolFleet("pool-2", "pool-3"))
	step("a cluster left, and fewer are wanted", "pool-3", "pool-3", "6", with(base, "fleet", poolFleet("pool-3"), "number", 1))
	step(
		"another commit message",
		"pool-3",
		"pool-3",
		"6",
		with(base, "fleet", poolFleet("pool-3"), "number", 1, "commit_message", "claim more"),
	)
	step("no clusters", "", "", "7", with(base, "number", 0))
	if text := git(t, url, "log", "--format=%s", "prod"); text != strings.Join([]string{
		"claim shop: 1 released", "claim shop: 1 released", "claim shop: 1 taken, 1 released", "claim shop: takes over from web",
		"claim web: 1 released", "claim web: 1 taken", "claim web: 2 taken",
	}, "\n") {
		t.Errorf("the commits are\n%s", text)
	}
	apply(t, w, claims())
	if text := git(t, url, "log", "-1", "--format=%s", "prod"); text != "claim shop: ends" || len(w.State) > 0 {
		t.Errorf("the last commit is %q", text)
	}
	if got := git(t, url, "ls-tree", "-r", "--name-only", "prod"); got != "" {
		t.Errorf("the remaining files are %s", got)
	}
}

// expectRefusedClaim plans. The diagnostics must match all of want.
func expectRefusedClaim(t *testing.T, w providertest.Runner, configuration providertest.Configuration, want ...string) {
	t.Helper()
	_, diags := w.Plan(t.Context(), configuration)
	for _, text := range want {
		if diags.Err() == nil || !words(text).MatchString(diags.String()) {
			t.Errorf("want %q, got\n%s", text, diags)
		}
	}
}

func TestClaimsOfTwoStatesWithOneNameAreDistinguished(t *testing.T) {
	t.Parallel()
	url := bare(t)
	first, second := providertest.New(startProvider), providertest.New(startProvider)
	base := claimOn(url, "web", 2, poolFleet("pool-1", "pool-2", "pool-3"))
	apply(t, first, claims(base))
	expectRefusedClaim(
		t,
		second,
		claims(base),
		"Claim belongs to another state",
		`There is already a record of a claim "web" that is not in this state; it has pool-1, pool-2. If another state has the claim, choose another name.`,
	)
	apply(t, second, claims(with(base, "name", "api", "number", 1)))
	if got := namesIn(second.State.Values(claimAddress)); got != "pool-3" {
		t.Errorf("the second state has %q", got)
	}

	// After an adoption, the former holder is warned and releases nothing.
	third := providertest.New(startProvider)
	plan, diags := third.Plan(t.Context(), claims(with(base, "adopt", true)))
	if diags.Err() != nil ||
		!words(`The record of the claim "web" has pool-1, pool-2. A state that had the claim before loses it.`).MatchString(diags.String()) ||
		namesIn(plan.Change(claimAddress).After) != "unknown" {
		t.Errorf("got diagnostics %s", diags)
	}
	apply(t, third, claims(with(base, "adopt", true)))
	if got := namesIn(third.State.Values(claimAddress)); got != "pool-1 pool-2" {
		t.Errorf("the third state has %q", got)
	}
	if got, _ := claimPlan(t, third, claims(with(base, "adopt", true))); got != "" {
		t.Errorf("a second plan says %q", got)
	}
	expectRefusedClaim(t, first, claims(base), "Claim belongs to another state")
	before := countCommits(t, url, "prod")
	if _, diags := first.Apply(t.Context(), claims(), providertest.Destroy()); diags.Err() != nil ||
		!diags.Has("Claim belongs to another holder") {
		t.Errorf("got diagnostics %s", diags)
	}
	if after := countCommits(t, url, "prod"); after != before {
		t.Error("a commit was made")
	}
}

func TestAClaimThatLostItsStateIsImported(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	base := claimOn(url, "web", 2, poolFleet("pool-1", "pool-2", "pool-3"))
	apply(t, w, claims(base))
	w.Lose(claimAddress)
	for id, want := range map[string]string{"web": "Invalid import ID", url + "#prod:prod:api": "Nothing to import", url + "#prod:prod:Web": "Invalid name", url + "#prod:../x:web": "Invalid GitOps repository"} {
		if diags := w.Import(t.Context(), claims(base), claimAddress, id); !diags.Has(want) {
			t.Errorf("%s: got diagnostics %s", id, diags)
		}
	}
	if diags := w.Import(t.Context(), claims(base), claimAddress, url+"#prod:prod:web"); diags.Err() != nil {
		t.Fatal(diags)
	}
	if got, _ := claimPlan(t, w, claims(base)); got != "" {
		t.Errorf("the plan after the import says %q", got)
	}
	apply(t, w, claims(with(base, "number", 3)))
	if got := namesIn(w.State.Values(claimAddress)); got != "pool-1 pool-2 pool-3" || countCommits(t, url, "prod") != "2" {
		t.Errorf("the state has %q", got)
	}
}

func TestDriftOfAClaimShowsInThePlan(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change     func(t *testing.T, folder string)
		plan, want string
		says       string
		commits    string // "3" if empty
	}{
		"the record is removed": {
			change: func(t *testing.T, folder string) { removeFile(t, claimRecordPath(folder, "web")) },
			plan:   "pool-1 pool-2", want: "pool-1 pool-2",
		},
		"the record is removed, and another claim has a cluster": {
			change: func(t *testing.T, folder string) {
				removeFile(t, claimRecordPath(folder, "web"))
				writeFile(t, claimRecordPath(folder, "api"), `{"format":1,"clusters":[{"name":"pool-1"}]}`)
			},
			plan: "pool-2 ?", want: "pool-2 pool-3", says: `According to the records, another claim has pool-1, too: the claim "web" releases them`,
		},
		"the record lists another cluster": {
			change: func(t *testing.T, folder string) {
				text := readFile(t, claimRecordPath(folder, "web"))
				writeFile(t, claimRecordPath(folder, "web"), strings.Replace(text, "pool-2", "pool-4", 1))
			},
			plan: "pool-1 pool-2", want: "pool-1 pool-2",
		},
		"the record lists another cluster, and another claim has its own": {
			change: func(t *testing.T, folder string) {
				text := readFile(t, claimRecordPath(folder, "web"))
				writeFile(t, claimRecordPath(folder, "web"), strings.Replace(text, "pool-2", "pool-4", 1))
				writeFile(t, claimRecordPath(folder, "api"), `{"format":1,"clusters":[{"name":"pool-2"}]}`)
			},
			plan: "pool-1 pool-4", want: "pool-1 pool-4", says: "another claim has pool-2", commits: "2",
		},
		"the record has no holder": {
			change: func(t *testing.T, folder string) {
				writeFile(t, claimRecordPath(folder, "web"), `{"format":1,"clusters":[{"name":"pool-1"},{"name":"pool-2"}]}`)
			},
			plan: "pool-1 pool-2", want: "pool-1 pool-2",
		},
		"the record is unreadable": {
			change: func(t *testing.T, folder string) { writeFile(t, claimRecordPath(folder, "web"), "{") },
			plan:   "pool-1 pool-2", want: "pool-1 pool-2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := bare(t)
			w := providertest.New(startProvider)
			configuration := claims(claimOn(url, "web", 2, poolFleet("pool-1", "pool-2", "pool-3", "pool-4")))
			apply(t, w, configuration)
			commitByHand(t, url, "prod", func(folder string) { test.change(t, folder) })
			got, diags := claimPlan(t, w, configuration)
			if got != test.plan || !words(test.says).MatchString(diags.String()) {
				t.Errorf("the plan says %q, want %q; diagnostics: %s", got, test.plan, diags)
			}
			apply(t, w, configuration)
			if got := namesIn(w.State.Values(claimAddress)); got != test.want {
				t.Errorf("the state has %q, want %q", got, test.want)
			}
			if got, _ := claimPlan(t, w, configuration); got != "" || countCommits(t, url, "prod") != cmp.Or(test.commits, "3") {
				t.Errorf("a second plan says %q, after %s commits", got, countCommits(t, url, "prod"))
			}
		})
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func removeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestAClaimIsWrittenAgainIfItsRepositoryIsGone(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	configuration := claims(claimOn(url, "web", 1, poolFleet("pool-1", "pool-2")))
	apply(t, w, configuration)
	if err := os.RemoveAll(url); err != nil {
		t.Fatal(err)
	}
	got, diags := claimPlan(t, w, configuration)
	if got != "pool-1" || !diags.Has("Repository is gone") {
		t.Errorf("the plan says %q; diagnostics: %s", got, diags)
	}
	apply(t, w, configuration)
	if got := namesIn(w.State.Values(claimAddress)); got != "pool-1" || countCommits(t, url, "prod") != "1" {
		t.Errorf("the state has %q", got)
	}
	if err := os.RemoveAll(url); err != nil {
		t.Fatal(err)
	}
	if _, diags := w.Apply(t.Context(), claims(), providertest.Destroy()); diags.Err() != nil || len(w.State) > 0 {
		t.Errorf("got diagnostics %s", diags)
	}
}

func TestBadClaimsAreRefusedAtPlan(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	fleet := poolFleet("pool-1", "pool-2", "pool-3", "pool-4=busy")
	apply(t, w, claims(claimOn(url, "web", 1, fleet), claimOn(url, "api", 1, fleet)))
	base := claimOn(url, "new", 1, fleet)
	for name, test := range map[string]struct {
		attributes map[string]any
		want       []string
	}{
		"too many": {with(base, "number", 3), []string{"The pool has too few clusters",
			`3 clusters are wanted, and the pool of 3 clusters has 1 free: claim "api" has pool-`, `claim "web" has pool-`, "apply that first"}},
		"nothing selected": {with(base, "pool", map[string]any{"match_labels": map[string]any{"state": "new"}}),
			[]string{"The pool is empty", "1 cluster is wanted, and the pool selects no cluster of the fleet"}},
		"no clusters":          {with(base, "fleet", poolFleet()), []string{"The pool is empty"}},
		"a negative number":    {with(base, "number", -1), []string{"The number must be a whole number from 0 to 10000"}},
		"a fraction":           {with(base, "number", 1.5), []string{"The number must be a whole number from 0 to 10000"}},
		"a number too large":   {with(base, "number", 10_001), []string{"The number must be a whole number from 0 to 10000"}},
		"a name with a slash":  {with(base, "name", "../x"), []string{"is not a DNS label"}},
		"a device name":        {with(base, "name", "aux"), []string{"device name on Windows"}},
		"a misspelt selector":  {with(base, "pool", map[string]any{"match_label": map[string]any{}}), []string{"Invalid selector", `match_label: unknown attribute; did you mean "match_labels"?`}},
		"a bad expression":     {with(base, "pool", map[string]any{"expression": "state in ("}), []string{"Invalid selector"}},
		"a string as the pool": {with(base, "pool", "ready"), []string{"Invalid selector"}},
		"no fleet":             {with(base, "fleet", map[string]any{"clusters": []any{}}), []string{"Invalid fleet"}},
		"a bad location":       {with(base, "gitops_repo", map[string]any{"url": url, "branch": "a..b"}), []string{"Invalid GitOps repository"}},
		"bad timeouts":         {with(base, "timeouts", map[string]any{"reed": "5m"}), []string{`did you mean "read"?`}},
		"all at once": {with(base, "number", -1, "name", "A", "pool", "x", "gitops_repo", map[string]any{"url": url}),
			[]string{"The number must be", "is not a DNS label", "Invalid selector", "Invalid GitOps repository"}},
	} {
		t.Run(name, func(t *testing.T) {
			expectRefusedClaim(t, providertest.New(startProvider), claims(test.attributes), test.want...)
		})
	}
	expectRefusedClaim(t, providertest.New(startProvider), claims(base, base), "Two claims have the same name")

	commitByHand(t, url, "prod", func(folder string) { writeFile(t, claimRecordPath(folder, "api"), "{}") })
	expectRefusedClaim(
		t,
		providertest.New(startProvider),
		claims(base),
		"Record of a claim cannot be read",
		"It is not known which clusters are free: prod/.flotilla/.claims/api.json",
	)
}

func TestAClaimWithUnknownValues(t *testing.T) {
	t.Parallel()
	url := bare(t)
	base := claimOn(url, "web", 2, poolFleet("pool-1", "pool-2", "pool-3"))
	for name, change := range map[string]func(known map[string]any) (string, any){
		"name":   func(known map[string]any) (string, any) { return "name", known["name"] },
		"number": func(known map[string]any) (string, any) { return "number", known["number"] },
		"pool":   func(known map[string]any) (string, any) { return "pool", known["pool"] },
		"repo":   func(known map[string]any) (string, any) { return "gitops_repo", known["gitops_repo"] },
	} {
		w := providertest.New(startProvider)
		known := with(base, "name", name)
		attribute, value := change(known)
		unknown := claims(with(known, attribute, providertest.Unknown{Then: value}))
		if got, _ := claimPlan(t, w, unknown); got != "unknown" {
			t.Errorf("%s: the plan says %q", name, got)
		}
		apply(t, w, unknown)
		if got := namesIn(w.State.Values(claimAddress)); got != "pool-1 pool-2" {
			t.Errorf("%s: the state has %q", name, got)
		}
		if got, _ := claimPlan(t, w, claims(known)); got != "" {
			t.Errorf("%s: a plan with known values says %q", name, got)
		}
		apply(t, w, claims())
	}
	// A cluster with an unknown name makes the whole fleet unknown, and thus the kept clusters.
	w := providertest.New(startProvider)
	apply(t, w, claims(base))
	fleet := providertest.Call{Function: "fleet", Arguments: []any{map[string]any{
		"environment": "prod", "cluster_types": []any{map[string]any{"name": "pool"}},
		"clusters": []any{
			map[string]any{"name": providertest.Unknown{Then: "pool-2"}, "cluster_type": "pool", "labels": map[string]any{"state": "ready"}},
		},
	}}}
	if got, _ := claimPlan(t, w, claims(with(base, "fleet", fleet, "number", 1))); got != "unknown" {
		t.Errorf("the plan says %q", got)
	}
	apply(t, w, claims(with(base, "fleet", fleet, "number", 1)))
	if got := namesIn(w.State.Values(claimAddress)); got != "pool-2" {
		t.Errorf("the state has %q", got)
	}
}
