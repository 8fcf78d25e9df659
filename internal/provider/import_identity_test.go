package provider_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// identities returns the identities of objects outside of the state, by type.
func identities(m *matrix) map[string]map[string]any {
	return map[string]map[string]any{
		"flotilla_assignment":    {"url": m.url, "branch": "dev", "path": "all", "name": "dev"},
		"flotilla_cluster_claim": {"url": m.url, "branch": "prod", "path": "prod", "name": "web"},
		"flotilla_agent":         {"cluster": "edge", "hub": nil, "name": nil, "namespace": "flux-system"},
		"flotilla_commit_status": {
			"url": m.statuses + "/team/app.git", "commit": strings.Repeat("2", 40), "context": "flotilla/dev", "forge": "gitea", "api_url": nil,
		},
	}
}

func TestObjectsOutsideOfTheStateAreImportedByIdentity(t *testing.T) {
	t.Parallel()
	world := newMemoryWorld(t, true)
	w := providertest.New(world.start)
	m := newMatrix(t, world, w)
	m.createAll()
	before := m.readOutside()
	for name, identity := range identities(m) {
		address := m.address(name)
		if got := w.Identity(address); !maps.Equal(got, identity) {
			t.Errorf("%s: the identity is %v, want %v", name, got, identity)
		}
		w.Lose(address)
		for attribute := range identity {
			without := maps.Clone(identity)
			delete(without, attribute)
			if diags := w.ImportIdentity(t.Context(), m.configuration(), address, without); diags.Err() != nil {
				wrong := attribute == "path" || attribute == "forge" // the default path has no owner, and the URL does not tell the kind of Git host
				if !wrong && !diags.Has("Invalid import identity argument") {
					t.Errorf("%s without %s: got diagnostics %s", name, attribute, diags)
				}
			}
			w.Lose(address)
		}
		if diags := w.ImportIdentity(t.Context(), m.configuration(), address, identity); diags.Err() != nil {
			t.Fatalf("%s: got diagnostics %s", name, diags)
		}
		if got := w.Identity(address); !maps.Equal(got, identity) {
			t.Errorf("%s: the imported identity is %v, want %v", name, got, identity)
		}
	}
	plan, diags := w.Plan(t.Context(), m.configuration())
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	for _, change := range plan.Changes {
		if want := change.Action == providertest.NoOp || change.Address == m.address("flotilla_agent") && change.Action == providertest.Update; !want {
			t.Errorf("the plan after the imports has action %s of %s: %v", change.Action, change.Address, change.After)
		}
	}
	if m.readOutside() != before {
		t.Error("an import changed an object")
	}
	m.apply("import by identity")
	m.checkSettled("import by identity")
	if diags := w.ImportIdentity(t.Context(), m.configuration(), m.address("flotilla_workload"), nil); !diags.Has(
		"Resource type does not support identity",
	) {
		t.Errorf("a workload has diagnostics %s", diags)
	}
}

func TestWrongIdentitiesAreErrors(t *testing.T) {
	t.Parallel()
	url := bare(t)
	for want, identity := range map[string]map[string]any{
		"Nothing to import":         {"url": url, "branch": "prod", "name": "web"},
		"Invalid name":              {"url": url, "branch": "prod", "name": "Web"},
		"Invalid GitOps repository": {"url": url, "branch": "prod", "path": "../x", "name": "web"},
	} {
		for address, configuration := range map[string]providertest.Configuration{
			claimAddress: claims(claimOn(url, "web", 1, poolFleet("pool-1"))), assignment: assigned(url, fleetOf(nil), nil),
		} {
			w := providertest.New(startProvider)
			diags := w.ImportIdentity(t.Context(), configuration, address, identity)
			if !diags.Has(want) && (want != "Nothing to import" || !strings.Contains(fmt.Sprint(diags), "does not exist")) {
				t.Errorf("%s: identity %v: got diagnostics %s", address, identity, diags)
			}
		}
	}
}

func TestAnIdentityFollowsTheObject(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	base := claimOn(url, "web", 1, poolFleet("pool-1"))
	apply(t, w, claims(base))
	apply(t, w, claims(with(base, "name", "api")))
	if got := w.Identity(claimAddress); got["name"] != "api" {
		t.Errorf("the identity of the renamed claim is %v", got)
	}
	w = providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOf(nil), nil))
	former := w.Identity(assignment)
	apply(t, w, assigned(url, fleetOf(nil), map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "elsewhere"}}))
	if got := w.Identity(assignment); got["path"] != "elsewhere" || former["path"] == "elsewhere" {
		t.Errorf("the identity of the moved assignment is %v", got)
	}
}
