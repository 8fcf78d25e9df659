package provider_test

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/troubleshooting"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// startProvider returns a new provider. Tests use it with the stand-in for Terraform, also under the race detector.
func startProvider() (tfprotov6.ProviderServer, error) {
	server, err := provider.StartAt(nil)()
	if err != nil {
		return nil, err
	}
	return validatingServer{server.(troubleshooting.Server)}, nil
}

// fleetOf returns a call of provider::flotilla::fleet with further attributes. Deployment target "edge" is on drone, "core" is on drone
// and large, and spare is empty.
func fleetOf(further map[string]any) providertest.Call {
	argument := map[string]any{
		"environment": "dev",
		"workspaces":  []any{map[string]any{"name": "team"}},
		"cluster_types": []any{
			map[string]any{"name": "drone", "labels": map[string]any{"edge": "true"}},
			map[string]any{"name": "large", "labels": map[string]any{"size": "large"}},
			map[string]any{"name": "spare"},
		},
		"workloads": []any{map[string]any{
			"name": "app", "workspace": "team",
			"deployment_targets": map[string]any{
				"edge": map[string]any{
					"environment": "dev", "labels": map[string]any{"edge": "true"},
					"manifests": map[string]any{"repo": "https://git.example.com/app", "branch": "main"},
				},
				"core": map[string]any{
					"environment": "dev",
					"manifests":   map[string]any{"repo": "https://git.example.com/app", "branch": "main", "path": "core"},
				},
			},
		}},
		"target_policies": []any{
			policy(
				"edge",
				map[string]any{"match_labels": map[string]any{"edge": "true"}},
				map[string]any{"match_labels": map[string]any{"edge": "true"}},
			),
			policy("core", map[string]any{"expression": "!edge"}, map[string]any{"expression": "edge=true"}),
			policy("core-on-large", map[string]any{"expression": "!edge"}, map[string]any{"match_labels": map[string]any{"size": "large"}}),
		},
		"config_containers": []any{
			map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": "info"}},
			map[string]any{
				"name":   "large",
				"labels": map[string]any{"cluster-type": "large"},
				"data":   map[string]any{"DATABASE_URL": "mysql://one"},
			},
		},
	}
	maps.Copy(argument, further)
	return providertest.Call{Function: "fleet", Arguments: []any{argument}}
}

func policy(name string, targets, clusterTypes map[string]any) map[string]any {
	return map[string]any{"name": name, "deployment_target_selector": targets, "cluster_type_selector": clusterTypes}
}

// assigned returns a configuration with one assignment at a repository, with further attributes.
func assigned(url string, fleet any, further map[string]any) providertest.Configuration {
	attributes := map[string]any{
		"name": "dev", "fleet": fleet,
		"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"},
	}
	maps.Copy(attributes, further)
	return providertest.Configuration{Resources: map[string]providertest.Resource{assignment: {Attributes: attributes}}}
}

// bare returns the path of a repository that does not exist yet.
func bare(t *testing.T) string {
	t.Helper()
	return filepath.ToSlash(filepath.Join(t.TempDir(), "gitops.git"))
}

func apply(
	t *testing.T,
	w providertest.Runner,
	configuration providertest.Configuration,
	options ...providertest.Option,
) *providertest.Plan {
	t.Helper()
	plan, diags := w.Apply(t.Context(), configuration, options...)
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	return plan
}

func TestSimulatedLifeOfAnAssignment(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	configuration := assigned(url, fleetOf(nil), nil)
	if plan := apply(t, w, configuration); plan.Change(assignment).Action != providertest.Create {
		t.Errorf("the first apply is to %s", plan.Change(assignment).Action)
	}
	first := git(t, url, "rev-parse", "dev")
	if plan := apply(t, w, configuration); !plan.Empty() {
		t.Errorf("the second plan has %v", plan.Change(assignment).After)
	}
	changed := fleetOf(map[string]any{"config_containers": []any{map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": "debug"}}}})
	if plan := apply(t, w, assigned(url, changed, nil)); plan.Change(assignment).Action != providertest.Update {
		t.Errorf("the plan of a change is to %s", plan.Change(assignment).Action)
	}
	if got := git(t, url, "rev-parse", "dev^"); got != first {
		t.Error("a change makes more than one commit")
	}

	// Drift: somebody removes a file.
	clone := repository{cloneURL: url}.clone(t, "dev")
	git(t, clone, "rm", "-q", "clusters/all/large/app-core/reconciler.yaml")
	git(t, clone, "commit", "-qm", "by hand")
	git(t, clone, "push", "-q")
	if plan := apply(t, w, assigned(url, changed, nil)); plan.Change(assignment).Action != providertest.Update {
		t.Errorf("the plan of drift is to %s", plan.Change(assignment).Action)
	}
	git(t, url, "cat-file", "-e", "dev:clusters/all/large/app-core/reconciler.yaml")
	if plan := apply(t, w, assigned(url, changed, nil)); !plan.Empty() {
		t.Errorf("the plan after the repair has %v", plan.Change(assignment).After)
	}

	apply(t, w, assigned(url, changed, nil), providertest.Destroy())
	if len(w.State) > 0 {
		t.Errorf("a destroy leaves %v", w.State)
	}
}
