package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// fleetWithSecrets returns a fleet whose cluster type "large" gets a reference to a secret, and encrypted files.
func fleetWithSecrets(reference any, encrypted ...any) providertest.Call {
	return fleetOf(map[string]any{
		"cluster_types": []any{
			map[string]any{"name": "drone", "labels": map[string]any{"edge": "true"}},
			map[string]any{
				"name": "large", "labels": map[string]any{"size": "large"}, "secret_service": "external-secrets",
				"secret_stores": map[string]any{"vault": map[string]any{"name": "vault-west"}},
			},
			map[string]any{"name": "spare"},
		},
		"config_containers": []any{
			map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": "info"}},
			map[string]any{
				"name": "db", "labels": map[string]any{"cluster-type": "large"},
				"secrets": map[string]any{"DB_PASSWORD": reference}, "encrypted": encrypted,
			},
		},
	})
}

func vaultReference(version any) map[string]any {
	return map[string]any{"store": "vault", "key": "prod/db", "property": "password", "version": version}
}

func TestAReferenceIsCommittedAndAnotherVersionIsAChange(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, assigned(url, fleetWithSecrets(vaultReference("3")), nil))
	file := git(t, url, "show", "dev:clusters/all/large/app-core/platform-secrets.yaml")
	for _, want := range []string{"kind: ExternalSecret", "vault-west", "prod/db", "DB_PASSWORD", "password"} {
		if !strings.Contains(file, want) {
			t.Errorf("%q is not in\n%s", want, file)
		}
	}
	if files := git(t, url, "ls-tree", "-r", "--name-only", "dev"); strings.Count(files, "platform-secrets.yaml") != 1 {
		t.Errorf("references are in\n%s", files)
	}
	if plan := apply(t, w, assigned(url, fleetWithSecrets(vaultReference("3")), nil)); !plan.Empty() {
		t.Errorf("the second plan has %v", linesOf(plan))
	}
	plan := apply(t, w, assigned(url, fleetWithSecrets(vaultReference("4")), nil))
	want := fileLine("platform-secrets.yaml", "spec.data.DB_PASSWORD.remoteRef.version", "large/app-core", causeBy(changes.ByContainer, "db"))
	if lines := linesOf(plan); !slices.Contains(lines, want) {
		t.Errorf("%q is not among %q", want, lines)
	}
}

// Only the label "workspace" of the config container counts.
func TestLabelsGiveATeamNoSecretsOfAnotherWorkspace(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	target := func(labels map[string]any) map[string]any {
		return map[string]any{
			"live": map[string]any{
				"environment": "dev",
				"labels":      labels,
				"manifests":   map[string]any{"repo": "https://git.example.com/app", "branch": "main"},
			},
		}
	}
	apply(t, w, assigned(url, fleetOf(map[string]any{
		"workspaces": []any{map[string]any{"name": "team"}, map[string]any{"name": "payments"}},
		"cluster_types": []any{
			map[string]any{"name": "drone", "secret_service": "external-secrets", "secret_stores": map[string]any{"vault": map[string]any{}}},
		},
		"workloads": []any{
			map[string]any{
				"name":               "app",
				"workspace":          "team",
				"labels":             map[string]any{"workspace": "payments"},
				"deployment_targets": target(map[string]any{"workspace": "payments", "tier": "paid"}),
			},
			map[string]any{"name": "pay", "workspace": "payments", "deployment_targets": target(map[string]any{"tier": "paid"})},
		},
		"target_policies": []any{policy("all", map[string]any{}, map[string]any{})},
		"config_containers": []any{map[string]any{
			"name": "db", "labels": map[string]any{"workspace": "payments", "tier": "paid"}, "secrets": map[string]any{"DB_PASSWORD": vaultReference("3")},
		}},
	}), nil))
	files := git(t, url, "ls-tree", "-r", "--name-only", "dev")
	if !strings.Contains(files, "drone/pay-live/platform-secrets.yaml") || strings.Contains(files, "drone/app-live/platform-secrets.yaml") {
		t.Errorf("the files are\n%s", files)
	}
}

func TestAnUnknownReferenceDelaysOnlyItsOwnHosts(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOf(nil), nil))
	for name, fleet := range map[string]any{
		"version":        fleetWithSecrets(vaultReference(providertest.Unknown{})),
		"reference":      fleetWithSecrets(providertest.Unknown{}),
		"encrypted file": fleetWithSecrets(vaultReference("3"), providertest.Unknown{}),
	} {
		plan, diags := w.Plan(t.Context(), assigned(url, fleet, nil))
		if diags.Err() != nil {
			t.Fatalf("%s: %s", name, diags)
		}
		change := plan.Change(assignment)
		if change.After["content"] != (providertest.Unknown{}) {
			t.Errorf("%s: the content is %v, want unknown", name, change.After["content"])
		}
		if !strings.Contains(diags.String(), lineText(changes.Line{Kind: changes.WaitLine, Assignments: assignmentKeys("large/app-core"), Names: []string{`config container "db"`}})) || strings.Contains(diags.String(), "drone") {
			t.Errorf("%s: %s", name, diags)
		}
	}
}

// The form of the configuration is unknown until the manifests are known. Two deployment targets in one namespace are therefore an error
// only at apply.
func TestUnknownManifestsReserveNoNames(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	shared := func(tag any, forms ...any) providertest.Configuration {
		target := func(tag any, forms ...any) map[string]any {
			return map[string]any{
				"environment": "dev",
				"namespace":   "shop",
				"config_as":   forms,
				"manifests":   map[string]any{"repo": "https://git.example.com/app", "tag": tag},
			}
		}
		return assigned(url, fleetOf(map[string]any{
			"cluster_types": []any{
				map[string]any{"name": "drone", "secret_service": "external-secrets", "secret_stores": map[string]any{"vault": map[string]any{}}},
			},
			"workloads": []any{map[string]any{"name": "app", "workspace": "team", "deployment_targets": map[string]any{
				"a": target(tag, forms...), "b": target("v1", "configmap", "secret"),
			}}},
			"target_policies": []any{policy("all", map[string]any{}, map[string]any{})},
			"config_containers": []any{
				map[string]any{"name": "db", "data": map[string]any{"DB_HOST": "db"}, "secrets": map[string]any{"DB_PASSWORD": vaultReference("3")}},
			},
		}), nil)
	}
	if _, diags := w.Plan(t.Context(), shared(providertest.Unknown{}, "configmap:api", "secret:api")); diags.Err() != nil {
		t.Error(diags)
	}
	apply(t, w, shared("v1", "configmap:api", "secret:api"))
	_, diags := w.Plan(t.Context(), shared("v1", "configmap", "secret"))
	for _, want := range []string{`"app-a" writes "platform-config" into namespace "shop", too`, `"app-a" has the Secret "platform-secrets" in namespace "shop", too`} {
		if !strings.Contains(diags.String(), want) {
			t.Errorf("%q is not in %s", want, diags)
		}
	}
}

// The schedule does not depend on the version.
func TestAnUnknownVersionOfASecretMakesOnlyItsOwnHostsUnknown(t *testing.T) {
	t.Parallel()
	clusterType := func(name string) any {
		return map[string]any{"name": name, "secret_service": "external-secrets", "secret_stores": map[string]any{"vault": map[string]any{}}}
	}
	fleet := func(version any) any {
		return providertest.Call{Function: "fleet", Arguments: []any{map[string]any{
			"environment": "dev", "workspaces": []any{map[string]any{"name": "team"}}, "cluster_types": []any{clusterType("one"), clusterType("two")},
			"workloads": []any{map[string]any{"name": "app", "workspace": "team", "deployment_targets": map[string]any{"live": map[string]any{
				"environment": "dev", "manifests": map[string]any{"repo": "https://git.example.com/app", "tag": "v1"},
			}}}},
			"target_policies": []any{
				map[string]any{"name": "all", "deployment_target_selector": map[string]any{}, "cluster_type_selector": map[string]any{}},
			},
			"config_containers": []any{
				map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": "info"}},
				map[string]any{"name": "db", "labels": map[string]any{"cluster-type": "two"}, "secrets": map[string]any{
					"DB_PASSWORD": map[string]any{"store": "vault", "key": "prod/db", "version": version},
				}},
			},
		}}}
	}
	url, w, unknown := bare(t), providertest.New(startProvider), fleet(providertest.Unknown{Then: "3"})
	values, diags := w.PlanData(t.Context(), providertest.Configuration{}, "flotilla_scheduling", map[string]any{"fleet": unknown})
	if assignments, _ := values["assignments"].(map[string]any); len(assignments) != 2 || diags.Err() != nil {
		t.Errorf("before the apply %d assignments are known: %s", len(assignments), diags)
	}
	plan := apply(t, w, assigned(url, unknown, nil))
	if content, isUnknown := plan.Change(assignment).After["content"].(providertest.Unknown); !isUnknown {
		t.Errorf("at plan the content is %v", content)
	}
	if plan, diags := mustPlan(t, w, assigned(url, fleet("3"), nil)); !plan.Empty() {
		t.Errorf("the next plan has %q: %s", linesOf(plan), diags)
	}
}

func TestMistakesInReferencesAreReportedAtPlan(t *testing.T) {
	t.Parallel()
	const secret = "hunter2x9"
	for name, test := range map[string]struct {
		attributes map[string]any
		at, want   string
	}{
		"the secret itself": {
			map[string]any{"secrets": map[string]any{"DB_PASSWORD": secret}}, `AttributeName("secrets")`,
			"must be a reference to a secret in a store, an object {store, key} with property and version where they are needed, not a string",
		},
		"a misspelt attribute": {
			map[string]any{"secrets": map[string]any{"DB_PASSWORD": map[string]any{"store": "vault", "kye": "prod/db"}}}, "kye", `did you mean "key"?`,
		},
		"no store": {
			map[string]any{"secrets": map[string]any{"DB_PASSWORD": map[string]any{"key": "prod/db"}}}, "store", "is required",
		},
		"a duplicate key": {
			map[string]any{"data": map[string]any{"DB_HOST": "db"}, "secrets": map[string]any{"DB_HOST": vaultReference("3")}}, "DB_HOST", "a key is either a value or a secret",
		},
		"an empty container": {map[string]any{}, "data", "unless secrets or encrypted is given"},
		"a plain Secret": {
			map[string]any{"encrypted": []any{"apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\nstringData: {PASSWORD: " + secret + "}\n"}}, "encrypted", "is a Secret that is not encrypted",
		},
	} {
		attributes := map[string]any{"name": "db"}
		for key, value := range test.attributes {
			attributes[key] = value
		}
		_, diags := providertest.New(startProvider).Plan(t.Context(), providertest.Configuration{Resources: map[string]providertest.Resource{
			"flotilla_config_container.db": {Attributes: attributes},
		}})
		found := false
		for _, one := range diags {
			found = found || one.Error && strings.Contains(one.At+" "+one.Detail, test.at) && strings.Contains(one.Detail, test.want)
		}
		if !found {
			t.Errorf("%s: %s", name, diags)
		}
		// the same in a fleet
		_, inFleet := providertest.New(startProvider).
			Plan(t.Context(), assigned(bare(t), fleetOf(map[string]any{"config_containers": []any{attributes}}), nil))
		if inFleet.Err() == nil || !strings.Contains(inFleet.String(), test.want[strings.Index(test.want, " ")+1:]) ||
			!strings.Contains(inFleet.String(), `config_containers["db"]`) {
			t.Errorf("%s in a fleet: %s", name, inFleet)
		}
		if strings.Contains(diags.String()+inFleet.String(), secret) {
			t.Errorf("%s: a message repeats a secret", name)
		}
	}
}

// References and encrypted files are no secrets, so the state has them. The next plan is empty.
func TestAContainerAndAClusterTypeKeepTheirReferences(t *testing.T) {
	t.Parallel()
	config := fmt.Sprintf(`
resource "terraform_data" "version" {
  input = "3"
}
resource "flotilla_config_container" "db" {
  name      = "db"
  secrets   = { DB_PASSWORD = { store = "vault", key = "prod/db", version = terraform_data.version.output }, OLD = null }
  encrypted = [%q]
}
resource "flotilla_cluster_type" "edge" {
  name           = "edge"
  environment    = "dev"
  secret_service = "external-secrets"
  secret_stores  = { vault = { kind = "SecretStore" } }
  decryption     = { secret = "sops-age" }
}
`, fleettest.Sealed("tls", "shop"))
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{{
			Config:           config,
			ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue("flotilla_config_container.db", tfjsonpath.New("json"), knownvalue.StringExact("{}")),
				statecheck.ExpectKnownValue("flotilla_config_container.db", tfjsonpath.New("secrets"), knownvalue.NotNull()),
			},
		}},
	})
}

func TestMistakesInStoresAreReportedAtPlan(t *testing.T) {
	t.Parallel()
	_, diags := providertest.New(startProvider).Plan(t.Context(), providertest.Configuration{Resources: map[string]providertest.Resource{
		"flotilla_cluster_type.edge": {Attributes: map[string]any{
			"name": "edge", "environment": "dev", "secret_stores": map[string]any{"vault": map[string]any{"kind": "Secretstore"}}, "decryption": map[string]any{"secrets": "sops"},
		}},
	}})
	for _, want := range []string{`must be one of ClusterSecretStore, SecretStore, not "Secretstore"`, `did you mean "secret"?`} {
		if !strings.Contains(diags.String(), want) {
			t.Errorf("%q is not in %s", want, diags)
		}
	}
	_, diags = providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(map[string]any{"cluster_types": []any{
		map[string]any{"name": "drone", "secret_service": "external-secret"}, map[string]any{"name": "large"}, map[string]any{"name": "spare"},
	}}), nil))
	if want := `cluster_types["drone"].secret_service: no template of type secret is called "external-secret"; did you mean "external-secrets"?`; !strings.Contains(
		diags.String(),
		want,
	) {
		t.Errorf("%q is not in %s", want, diags)
	}
}
