package provider_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// A mirror counts as the same location even if others push to one copy before the plan or between plan and apply.
func TestAMirrorStaysTheSameLocationAfterPushes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, between string // "old" or "new" for the copy that gets a push
		value           string // of a config container, changed with the URL
	}{
		"a push to the new URL":                          {between: "new"},
		"a push to the old URL":                          {between: "old"},
		"a push to the new URL, and a changed value":     {between: "new", value: "mysql://two"},
		"a push to the old URL, and a changed value":     {between: "old", value: "mysql://two"},
		"the new URL ahead":                              {before: "new"},
		"the new URL ahead, and both different at apply": {before: "new", between: "old", value: "mysql://two"},
		"the old URL ahead, and then also the new one":   {before: "old", between: "new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, w, _ := applyDestroyable(t)
			next := repository{url: repo.url + ".mirror.git", cloneURL: repo.url + ".mirror.git"}
			git(t, "", "clone", "--quiet", "--mirror", repo.url, next.url)
			push := func(to string) {
				target := map[string]repository{"old": repo, "new": next}[to]
				if to != "" {
					target.change(t, "dev", func(folder string) { writeFile(t, filepath.Join(folder, "elsewhere", to), "by hand\n") })
				}
			}
			further := atRoot(next)
			var change map[string]any
			if test.value != "" {
				change = map[string]any{"config_containers": []any{map[string]any{"name": "all", "data": map[string]any{"DATABASE_URL": test.value}}}}
			}
			configuration := assigned(next.url, fleetOf(change), further)
			push(test.before)
			plan, diags := w.Plan(t.Context(), configuration)
			if diags.Err() != nil {
				t.Fatal(diags.Err())
			}
			if isApart := strings.Contains(diags.String(), "Former location stays"); isApart != (test.before != "") {
				t.Errorf("the plan says %s", diags)
			}
			push(test.between)
			before := git(t, repo.url, "rev-parse", "dev")
			if diags := w.ApplyPlan(t.Context(), plan); diags.Bugs() != nil || diags.Err() != nil {
				t.Fatalf("got %s", diags)
			}
			if now := git(t, repo.url, "rev-parse", "dev"); now != before {
				t.Error("the old location was written")
			}
			if content := git(t, next.url, "show", "dev:large/app-core/platform-config.yaml"); !strings.Contains(content, test.value) {
				t.Errorf("the new location has\n%s", content)
			}
			if plan, diags := w.Plan(t.Context(), configuration); diags.Err() != nil || !plan.Empty() {
				t.Errorf("the next plan has %v %s", linesOf(plan), diags)
			}
		})
	}
}
