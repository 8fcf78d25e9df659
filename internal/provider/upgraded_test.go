package provider_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// The two releases render the same, so the upgrade can be a cause only together with another change. Package changes tests an upgrade
// as the only cause.
func TestAnUpgradeOfTheProviderIsACause(t *testing.T) {
	t.Parallel()
	release := "1.2.0"
	runner := providertest.New(func() (tfprotov6.ProviderServer, error) { return provider.Server(provider.New(release)()), nil })
	url := bare(t)
	apply(t, runner, assigned(url, fleetOf(nil), nil))
	release = "1.3.0"
	if plan, diags := mustPlan(t, runner, assigned(url, fleetOf(nil), nil)); !plan.Empty() {
		t.Errorf("an upgrade alone has the changes %v: %s", linesOf(plan), diags)
	}
	other := fleetOf(map[string]any{"cluster_types": []any{
		map[string]any{"name": "drone", "labels": map[string]any{"edge": "true"}, "reconciler": "argocd"},
		map[string]any{"name": "large", "labels": map[string]any{"size": "large"}},
	}})
	plan, _ := mustPlan(t, runner, assigned(url, other, nil))
	if lines := strings.Join(linesOf(plan), "\n"); !strings.Contains(lines, `by cluster type "drone", provider 1.2.0 -> 1.3.0`) {
		t.Errorf("the plan says\n%s", lines)
	}
}

func TestAPlanNamesTenNewClusterTypesAtOnceAndKeysInsideAnObject(t *testing.T) {
	t.Parallel()
	url, runner := bare(t), providertest.New(startProvider)
	types := []any{
		map[string]any{"name": "drone", "labels": map[string]any{"edge": "true"}},
		map[string]any{"name": "large", "labels": map[string]any{"size": "large"}},
	}
	containers := func(timeout string) []any {
		return []any{map[string]any{"name": "all", "data": map[string]any{"HTTP": map[string]any{"timeout": timeout, "retries": "3"}}}}
	}
	apply(t, runner, assigned(url, fleetOf(map[string]any{"cluster_types": types, "config_containers": containers("1s")}), nil))
	plan, _ := mustPlan(t, runner, assigned(url, fleetOf(map[string]any{"cluster_types": types, "config_containers": containers("2s")}), nil))
	if lines := strings.Join(linesOf(plan), "\n"); !strings.Contains(
		lines,
		fileLine("platform-config.yaml", "data.HTTP.timeout", "drone/app-core, drone/app-edge, large/app-core", causeBy(changes.ByContainer, "all")),
	) {
		t.Errorf("the plan says\n%s", lines)
	}
	for _, name := range strings.Split("abcdefghij", "") {
		types = append(types, map[string]any{"name": "site-" + name, "labels": map[string]any{"size": "large"}})
	}
	plan, _ = mustPlan(t, runner, assigned(url, fleetOf(map[string]any{"cluster_types": types, "config_containers": containers("1s")}), nil))
	if lines := linesOf(plan); len(lines) != 2 || !strings.HasSuffix(lines[1], ": 10 assignments, by 10 new cluster types") {
		t.Errorf("the plan says %q", lines)
	}
}
