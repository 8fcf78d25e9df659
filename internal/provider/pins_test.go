package provider_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// Pins are in rendered files, records and the inventory. A newer commit is a change. Without pins, manifests follow the branch.
func TestPinsAreWrittenAndRecorded(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	request := folder.Manifests{Storage: "git", Repo: "https://git.example.com/app", Branch: "main"}
	apply := func(commit string) {
		t.Helper()
		further := map[string]any{}
		if commit != "" {
			text, err := artifact.Resolved{"app-edge": {Manifests: request, Pin: folder.Pin{Commit: commit}}}.Encode()
			if err != nil {
				t.Fatal(err)
			}
			further["artifacts"] = text
		}
		if _, diags := w.Apply(t.Context(), assigned(url, fleetOf(further), nil)); diags.Err() != nil {
			t.Fatal(diags)
		}
		rendered := git(t, url, "show", "dev:clusters/all/drone/app-edge/reconciler.yaml")
		if isPinned := strings.Contains(rendered, `commit: "`+commit+`"`); isPinned != (commit != "") ||
			!strings.Contains(rendered, `branch: "main"`) {
			t.Errorf("pin %q: got\n%s", commit, rendered)
		}
		read, diags := w.ReadData(t.Context(), providertest.Configuration{}, "flotilla_inventory", map[string]any{
			"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"}, "host": "drone",
		})
		if diags.Err() != nil {
			t.Fatal(diags)
		}
		for _, one := range read["assignments"].([]any) {
			member := one.(map[string]any)
			manifests := member["manifests"].(map[string]any)
			var want any
			if commit != "" && member["deployment_target"] == "app-edge" {
				want = map[string]any{"commit": commit, "version": nil, "digest": nil}
			}
			if manifests["branch"] != "main" || !reflect.DeepEqual(manifests["pin"], want) {
				t.Errorf("%v: got manifests %v, want pin %v", member["deployment_target"], manifests, want)
			}
		}
	}
	apply(strings.Repeat("c0", 20))
	apply(strings.Repeat("c1", 20))
	apply("")
}
