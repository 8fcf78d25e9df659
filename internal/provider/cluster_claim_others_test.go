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
	fleet := poolFleet("pool-1", "pool-2", "pool-3", "pool-4", "pool-5", "pool-6")
	all := claims(claimOn(url, "a", 2, fleet), claimOn(url, "b", 2, fleet), claimOn(url, "c", 2, fleet))
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

func TestOtherClaimsBetweenPlanAndApply(t *testing.T) {
	t.Parallel()
	url := bare(t)
	fleet := poolFleet("pool-1", "pool-2", "pool-3")
	w, other := providertest.New(startProvider), providertest.New(startProvider)
	// A plan does not promise new clusters: the apply takes free ones.
	plan, diags := w.Plan(t.Context(), claims(claimOn(url, "web", 1, fleet)))
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	apply(t, other, claims(claimOn(url, "api", 1, fleet)))
	if diags := w.ApplyPlan(t.Context(), plan); diags.Err() != nil || namesIn(w.State.Values(claimAddress)) != "pool-2" {
		t.Errorf("the state has %q; diagnostics: %s", namesIn(w.State.Values(claimAddress)), diags)
	}
	// A plan promises kept clusters: if another claim took one after the record was removed, the apply writes nothing.
	commitByHand(t, url, "prod", func(folder string) { removeFile(t, claimRecordPath(folder, "web")) })
	if plan, diags = w.Plan(t.Context(), claims(claimOn(url, "web", 1, fleet))); diags.Err() != nil ||
		namesIn(plan.Change(claimAddress).After) != "pool-2" {
		t.Fatal(diags)
	}
	apply(t, other, claims(claimOn(url, "api", 2, fleet)))
	before := countCommits(t, url, "prod")
	if diags := w.ApplyPlan(t.Context(), plan); !diags.Has("Repository has changed since the plan") || !words(`The plan promised cluster "pool-2", and claim "api" has taken it since. Nothing was written: plan again.`).
		MatchString(diags.String()) ||
		countCommits(t, url, "prod") != before {
		t.Errorf("got diagnostics %s", diags)
	}
	apply(t, w, claims(claimOn(url, "web", 1, fleet)))
	if got := namesIn(w.State.Values(claimAddress)); got != "pool-3" {
		t.Errorf("the state has %q", got)
	}
	// If no cluster is left at apply, the error is the same as at plan, and nothing is written.
	apply(t, other, claims())
	if plan, diags = other.Plan(t.Context(), claims(claimOn(url, "api", 2, fleet))); diags.Err() != nil {
		t.Fatal(diags)
	}
	apply(t, w, claims(claimOn(url, "web", 2, fleet)))
	before = countCommits(t, url, "prod")
	if diags := other.ApplyPlan(t.Context(), plan); !diags.Has("The pool has too few clusters") || countCommits(t, url, "prod") != before {
		t.Errorf("got diagnostics %s", diags)
	}
	apply(t, w, claims(claimOn(url, "web", 3, fleet)))
	expectRefusedClaim(t, providertest.New(startProvider), claims(claimOn(url, "new", 1, fleet)), "too few clusters")
}

// A plan promises only the clusters that the claim keeps.
func TestAClaimThatTakesMoreKeepsWhatItsPlanPromised(t *testing.T) {
	t.Parallel()
	url := bare(t)
	fleet := poolFleet("pool-1", "pool-2", "pool-3", "pool-4", "pool-5", "pool-6")
	w, other := providertest.New(startProvider), providertest.New(startProvider)
	planned := func(number int, want string) *providertest.Plan {
		t.Helper()
		plan, diags := w.Plan(t.Context(), claims(claimOn(url, "web", number, fleet)))
		if diags.Err() != nil || namesIn(plan.Change(claimAddress).After) != want {
			t.Fatalf("the plan does not have %q; diagnostics: %s", want, diags)
		}
		return plan
	}
	apply(t, w, claims(claimOn(url, "web", 2, fleet)))
	plan := planned(3, "pool-1 pool-2 ?")
	apply(t, other, claims(claimOn(url, "api", 1, fleet)))
	if diags := w.ApplyPlan(t.Context(), plan); diags.Err() != nil || namesIn(w.State.Values(claimAddress)) != "pool-1 pool-2 pool-4" {
		t.Errorf("the state has %q; diagnostics: %s", namesIn(w.State.Values(claimAddress)), diags)
	}
	commitByHand(t, url, "prod", func(folder string) { removeFile(t, claimRecordPath(folder, "web")) })
	plan = planned(4, "pool-1 pool-2 pool-4 ?")
	apply(t, other, claims(claimOn(url, "api", 2, fleet)))
	before := countCommits(t, url, "prod")
	if diags := w.ApplyPlan(t.Context(), plan); !words(
		`The plan promised cluster "pool-1", and claim "api" has taken it since.`,
	).MatchString(diags.String()) ||
		countCommits(t, url, "prod") != before {
		t.Errorf("got diagnostics %s", diags)
	}
}

func TestAReplacedClaimKeepsItsClusters(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first, tainted bool
	}{"destroyed first": {}, "created first": {first: true}, "tainted": {tainted: true}, "tainted, created first": {first: true, tainted: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := bare(t)
			w := providertest.New(startProvider)
			// With create_before_destroy, the new instance finds the record of the old one and must adopt it.
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
				t.Errorf("the remaining files are %s", got)
			}
		})
	}
}

func TestAMovedClaimTakesFreeClustersAtItsNewLocation(t *testing.T) {
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
	// At another location the claim is created again, and earlier claims there have priority.
	location := map[string]any{"url": url, "branch": "claims"}
	other := providertest.New(startProvider)
	apply(t, other, claims(with(base, "name", "api", "number", 1, "gitops_repo", location)))
	if got, _ := claimPlan(t, w, claims(with(same, "gitops_repo", location))); got != "unknown" {
		t.Errorf("the plan says %q", got)
	}
	apply(t, w, claims(with(same, "gitops_repo", location)))
	if got := namesIn(w.State.Values(claimAddress)); got != "pool-2 pool-3" {
		t.Errorf("the state has %q", got)
	}
	if got := git(t, url, "ls-tree", "-r", "--name-only", "prod"); got != "" {
		t.Errorf("the old location still has %s", got)
	}
	if got, _ := claimPlan(t, w, claims(with(same, "gitops_repo", location))); got != "" {
		t.Errorf("a second plan says %q", got)
	}
}

func TestAnInventoryListsClaims(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	fleet := poolFleet("pool-1", "pool-2", "pool-3")
	apply(t, w, claims(claimOn(url, "web", 2, fleet)))
	apply(t, w, claims(claimOn(url, "web", 2, fleet), claimOn(url, "idle", 0, fleet)))
	read, diags := w.ReadData(
		t.Context(),
		providertest.Configuration{},
		"flotilla_inventory",
		map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "prod"}},
	)
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	if got := fmt.Sprint(read["claims"]); got != "[map[clusters:[] environment:prod name:idle path:prod] map[clusters:[pool-1 pool-2] environment:prod name:web path:prod]]" {
		t.Errorf("claims are %s", got)
	}
}

// TestThePoolKeepsOneWarmCluster applies the guide's example while teams join, grow and shrink.
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
				var existing []string
				for _, resource := range state.Values.RootModule.Resources {
					if rest, ok := strings.CutPrefix(resource.Address, `terraform_data.cluster["`); ok {
						existing = append(existing, strings.TrimSuffix(rest, `"]`))
					}
				}
				if got := strings.Join(existing, " "); got != clusters {
					t.Errorf("%s: the clusters are %s, want %s", teams, got, clusters)
				}
				if got := fmt.Sprint(state.Values.Outputs["clusters"].Value); got != claimed {
					t.Errorf("%s: claims are %s, want %s", teams, got, claimed)
				}
			}
			step("", "pool-1", "map[]")
			step("payments=1", "pool-1 pool-2", "map[payments:[pool-1]]")
			w.plan("-detailed-exitcode", "-var=teams={payments=1}")
			step("payments=1,reports=1", "pool-1 pool-2 pool-3", "map[payments:[pool-1] reports:[pool-2]]")
			// A released cluster exists until the next run, and claimed clusters stay regardless of their order.
			step("reports=1", "pool-1 pool-2 pool-3", "map[reports:[pool-2]]")
			step("reports=1", "pool-1 pool-2", "map[reports:[pool-2]]")
			step("reports=1,payments=2", "pool-1 pool-2 pool-3 pool-4", "map[payments:[pool-1 pool-3] reports:[pool-2]]")
		})
	}
}
