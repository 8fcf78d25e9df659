package provider_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func TestClaimsOfOneConfigurationHaveACommitEach(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	from := poolFleet("pool-1", "pool-2", "pool-3", "pool-4", "pool-5", "pool-6")
	all := claims(claimOn(url, "a", 2, from), claimOn(url, "b", 2, from), claimOn(url, "c", 2, from))
	apply(t, w, all)
	seen := map[string]bool{}
	for address := range all.Resources {
		for _, name := range strings.Fields(namesIn(w.State.Values(address))) {
			seen[name] = true
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d clusters are claimed", len(seen))
	}
	if commits := countCommits(t, url, "prod"); commits != "3" {
		t.Errorf("%s commits", commits)
	}
	if got, _ := claimPlan(t, w, all); got != "" {
		t.Errorf("a second plan says %q", got)
	}
}

func TestWhatOthersClaimBetweenPlanAndApply(t *testing.T) {
	t.Parallel()
	url := bare(t)
	from := poolFleet("pool-1", "pool-2", "pool-3")
	w, other := providertest.New(startProvider), providertest.New(startProvider)
	// What is taken is not promised: the apply takes what is left.
	plan, said := w.Plan(t.Context(), claims(claimOn(url, "web", 1, from)))
	if said.Err() != nil {
		t.Fatal(said)
	}
	apply(t, other, claims(claimOn(url, "api", 1, from)))
	if said := w.ApplyPlan(t.Context(), plan); said.Err() != nil || namesIn(w.State.Values(claimAddress)) != "pool-2" {
		t.Errorf("the state has %q; said is %s", namesIn(w.State.Values(claimAddress)), said)
	}
	// What is kept is promised: where somebody broke the record, and another has taken it, nothing is written.
	commitByHand(t, url, "prod", func(folder string) { removeFile(t, claimRecordPath(folder, "web")) })
	if plan, said = w.Plan(t.Context(), claims(claimOn(url, "web", 1, from))); said.Err() != nil ||
		namesIn(plan.Change(claimAddress).After) != "pool-2" {
		t.Fatal(said)
	}
	apply(t, other, claims(claimOn(url, "api", 2, from)))
	before := countCommits(t, url, "prod")
	if said := w.ApplyPlan(t.Context(), plan); !said.Has("Repository has changed since the plan") || !words(`The plan promised cluster "pool-2", and claim "api" has taken it since. Nothing was written: plan again.`).
		MatchString(said.String()) ||
		countCommits(t, url, "prod") != before {
		t.Errorf("said is %s", said)
	}
	apply(t, w, claims(claimOn(url, "web", 1, from)))
	if got := namesIn(w.State.Values(claimAddress)); got != "pool-3" {
		t.Errorf("the state has %q", got)
	}
	// Nothing is left between plan and apply: the error of the apply is that of a plan, and nothing is written.
	apply(t, other, claims())
	if plan, said = other.Plan(t.Context(), claims(claimOn(url, "api", 2, from))); said.Err() != nil {
		t.Fatal(said)
	}
	apply(t, w, claims(claimOn(url, "web", 2, from)))
	before = countCommits(t, url, "prod")
	if said := other.ApplyPlan(t.Context(), plan); !said.Has("The pool has too few clusters") || countCommits(t, url, "prod") != before {
		t.Errorf("said is %s", said)
	}
	apply(t, w, claims(claimOn(url, "web", 3, from)))
	expectRefusedClaim(t, providertest.New(startProvider), claims(claimOn(url, "new", 1, from)), "too few clusters")
}

// A plan that takes more promises the clusters that it keeps, and only these.
func TestAClaimThatTakesMoreKeepsWhatItsPlanPromised(t *testing.T) {
	t.Parallel()
	url := bare(t)
	from := poolFleet("pool-1", "pool-2", "pool-3", "pool-4", "pool-5", "pool-6")
	w, other := providertest.New(startProvider), providertest.New(startProvider)
	planned := func(number int, want string) *providertest.Plan {
		t.Helper()
		plan, said := w.Plan(t.Context(), claims(claimOn(url, "web", number, from)))
		if said.Err() != nil || namesIn(plan.Change(claimAddress).After) != want {
			t.Fatalf("the plan is not %q; said is %s", want, said)
		}
		return plan
	}
	apply(t, w, claims(claimOn(url, "web", 2, from)))
	plan := planned(3, "pool-1 pool-2 ?")
	apply(t, other, claims(claimOn(url, "api", 1, from)))
	if said := w.ApplyPlan(t.Context(), plan); said.Err() != nil || namesIn(w.State.Values(claimAddress)) != "pool-1 pool-2 pool-4" {
		t.Errorf("the state has %q; said is %s", namesIn(w.State.Values(claimAddress)), said)
	}
	commitByHand(t, url, "prod", func(folder string) { removeFile(t, claimRecordPath(folder, "web")) })
	plan = planned(4, "pool-1 pool-2 pool-4 ?")
	apply(t, other, claims(claimOn(url, "api", 2, from)))
	before := countCommits(t, url, "prod")
	if said := w.ApplyPlan(t.Context(), plan); !words(
		`The plan promised cluster "pool-1", and claim "api" has taken it since.`,
	).MatchString(said.String()) ||
		countCommits(t, url, "prod") != before {
		t.Errorf("said is %s", said)
	}
}

func TestAClaimThatIsReplaced(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first, tainted bool
	}{"destroyed first": {}, "created first": {first: true}, "tainted": {tainted: true}, "tainted, created first": {first: true, tainted: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := bare(t)
			w := providertest.New(startProvider)
			// Created first, it finds the record of the one that it replaces, and no state tells it so.
			configuration := claims(with(claimOn(url, "web", 2, poolFleet("pool-1", "pool-2", "pool-3")), "adopt", test.first))
			configured := configuration.Resources[claimAddress]
			configured.CreateBeforeDestroy = test.first
			configuration.Resources[claimAddress] = configured
			apply(t, w, configuration)
			var options []providertest.Option
			if test.tainted {
				object := *w.State[claimAddress].Current
				object.Tainted = true
				w.State[claimAddress] = providertest.Instance{Current: &object}
			} else {
				options = append(options, providertest.Replace(claimAddress))
			}
			apply(t, w, configuration, options...)
			if got := namesIn(w.State.Values(claimAddress)); got != "pool-1 pool-2" {
				t.Errorf("the state has %q", got)
			}
			if !strings.Contains(git(t, url, "show", "prod:prod/.flotilla/.claims/web.json"), "pool-2") {
				t.Error("the record is gone")
			}
			if got, _ := claimPlan(t, w, configuration); got != "" {
				t.Errorf("a plan after it says %q", got)
			}
			apply(t, w, configuration, providertest.Destroy())
			if got := git(t, url, "ls-tree", "-r", "--name-only", "prod"); got != "" {
				t.Errorf("left is %s", got)
			}
		})
	}
}

func TestAClaimThatMoves(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	base := claimOn(url, "web", 2, poolFleet("pool-1", "pool-2", "pool-3"))
	apply(t, w, claims(base))
	same := with(base, "gitops_repo", map[string]any{"url": "file://" + url, "branch": "prod", "path": "prod"})
	if got, _ := claimPlan(t, w, claims(same)); got != "pool-1 pool-2" {
		t.Errorf("the plan says %q", got)
	}
	apply(t, w, claims(same))
	if got := countCommits(t, url, "prod"); got != "1" {
		t.Errorf("%s commits", got)
	}
	// At a really different location it is made anew, and others there come first.
	there := map[string]any{"url": url, "branch": "claims"}
	other := providertest.New(startProvider)
	apply(t, other, claims(with(base, "name", "api", "number", 1, "gitops_repo", there)))
	if got, _ := claimPlan(t, w, claims(with(same, "gitops_repo", there))); got != "unknown" {
		t.Errorf("the plan says %q", got)
	}
	apply(t, w, claims(with(same, "gitops_repo", there)))
	if got := namesIn(w.State.Values(claimAddress)); got != "pool-2 pool-3" {
		t.Errorf("the state has %q", got)
	}
	if got := git(t, url, "ls-tree", "-r", "--name-only", "prod"); got != "" {
		t.Errorf("at the old location there is %s", got)
	}
	if got, _ := claimPlan(t, w, claims(with(same, "gitops_repo", there))); got != "" {
		t.Errorf("a second plan says %q", got)
	}
}

func TestAnInventoryListsClaims(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	from := poolFleet("pool-1", "pool-2", "pool-3")
	apply(t, w, claims(claimOn(url, "web", 2, from)))
	apply(t, w, claims(claimOn(url, "web", 2, from), claimOn(url, "idle", 0, from)))
	read, said := w.ReadData(
		t.Context(),
		providertest.Configuration{},
		"flotilla_inventory",
		map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "prod"}},
	)
	if said.Err() != nil {
		t.Fatal(said)
	}
	if got := fmt.Sprint(read["claims"]); got != "[map[clusters:[] environment:prod name:idle path:prod] map[clusters:[pool-1 pool-2] environment:prod name:web path:prod]]" {
		t.Errorf("claims are %s", got)
	}
}

// TestThePoolKeepsOneWarmCluster applies the example of the guide while teams come, want more and want less.
func TestThePoolKeepsOneWarmCluster(t *testing.T) {
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkdir(
				t,
				tool,
				map[string]string{"main.tf": readFile(t, filepath.Join("..", "..", "examples", "onboarding", "pool", "main.tf"))},
			)
			step := func(teams, clusters, claimed string) {
				t.Helper()
				w.run("apply", "-input=false", "-auto-approve", "-no-color", "-var=teams={"+teams+"}")
				var state struct {
					Values struct {
						Outputs    map[string]struct{ Value any }
						RootModule struct {
							Resources []struct{ Address string }
						} `json:"root_module"`
					}
				}
				if err := json.Unmarshal([]byte(w.run("show", "-json")), &state); err != nil {
					t.Fatal(err)
				}
				var there []string
				for _, resource := range state.Values.RootModule.Resources {
					if rest, ok := strings.CutPrefix(resource.Address, `terraform_data.cluster["`); ok {
						there = append(there, strings.TrimSuffix(rest, `"]`))
					}
				}
				if got := strings.Join(there, " "); got != clusters {
					t.Errorf("%s: the clusters are %s, want %s", teams, got, clusters)
				}
				if got := fmt.Sprint(state.Values.Outputs["clusters"].Value); got != claimed {
					t.Errorf("%s: claimed are %s, want %s", teams, got, claimed)
				}
			}
			step("", "pool-1", "map[]")
			step("payments=1", "pool-1 pool-2", "map[payments:[pool-1]]")
			w.plan("-detailed-exitcode", "-var=teams={payments=1}")
			step("payments=1,reports=1", "pool-1 pool-2 pool-3", "map[payments:[pool-1] reports:[pool-2]]")
			// What is released is there until the next run has seen it, and what is claimed stays, wherever it is in the order.
			step("reports=1", "pool-1 pool-2 pool-3", "map[reports:[pool-2]]")
			step("reports=1", "pool-1 pool-2", "map[reports:[pool-2]]")
			step("reports=1,payments=2", "pool-1 pool-2 pool-3 pool-4", "map[payments:[pool-1 pool-3] reports:[pool-2]]")
		})
	}
}
