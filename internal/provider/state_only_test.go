package provider_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/providertest"
)

// described is a configuration with a resource of each kind that has labels.
func described(labels any) providertest.Configuration {
	with := func(attributes map[string]any) providertest.Resource {
		if labels != nil {
			attributes["labels"] = labels
		}
		return providertest.Resource{Attributes: attributes}
	}
	return providertest.Configuration{Resources: map[string]providertest.Resource{
		"flotilla_environment.x":      with(map[string]any{"name": "dev", "gitops_repo": map[string]any{"url": "https://git.example.com/gitops", "branch": "dev"}}),
		"flotilla_workspace.x":        with(map[string]any{"name": "team"}),
		"flotilla_cluster_type.x":     with(map[string]any{"name": "drone", "environment": "dev"}),
		"flotilla_cluster.x":          with(map[string]any{"name": "drone-7", "environment": "dev", "cluster_type": "drone"}),
		"flotilla_workload.x":         with(map[string]any{"name": "app", "workspace": "team"}),
		"flotilla_config_container.x": with(map[string]any{"name": "all", "data": map[string]any{"A": "1"}}),
		"flotilla_config_schema.x":    with(map[string]any{"name": "all", "schema": "{}"}),
	}}
}

func TestANumberInPlaceOfALabelIsAnError(t *testing.T) {
	t.Parallel()
	for _, wrong := range []any{1.1, true} {
		_, said := providertest.New(startProvider).Plan(t.Context(), described(map[string]any{"version": wrong}))
		if count := strings.Count(said.String(), "put it in quotes"); count != len(described(nil).Resources) {
			t.Errorf("%d errors: %s", count, said)
		}
	}
}

func TestStatesWhoseLabelsWereAMapAreRead(t *testing.T) {
	t.Parallel()
	for name, labels := range map[string]any{
		"labels": map[string]any{"version": "1.10", "tier": "core"}, "no label": map[string]any{}, "none": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, configuration := providertest.New(startProvider), described(labels)
			apply(t, w, configuration)
			for address, instance := range w.State {
				text := string(instance.Current.Attributes)
				for now, was := range map[string]string{
					`{"type":["object",{"tier":"string","version":"string"}],"value":{"tier":"core","version":"1.10"}}`: `{"tier":"core","version":"1.10"}`,
					`{"type":["object",{}],"value":{}}`: `{}`,
				} {
					text = strings.Replace(text, `"labels":`+now, `"labels":`+was, 1)
				}
				if changed := text != string(instance.Current.Attributes); changed != (labels != nil) {
					t.Fatalf("the state of %s is %s", address, text)
				}
				instance.Current.Attributes, instance.Current.SchemaVersion = []byte(text), 0
			}
			plan := apply(t, w, configuration)
			for _, change := range plan.Changes {
				if change.Action != providertest.NoOp {
					t.Errorf("the plan is to %s %s: %v -> %v", change.Action, change.Address, change.Before, change.After)
				}
			}
			if version := w.State["flotilla_cluster.x"].Current.SchemaVersion; version != 1 {
				t.Errorf("the state has version %d", version)
			}
		})
	}
}
