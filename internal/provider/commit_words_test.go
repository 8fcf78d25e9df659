package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// newestActions returns the changes that flotilla_history reports for the newest commit.
func newestActions(t *testing.T, w *providertest.Workspace, url, host string) string {
	t.Helper()
	attributes := map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"}, "limit": 1}
	if host != "" {
		attributes["host"] = host
	}
	read, diags := w.ReadData(t.Context(), providertest.Configuration{}, "flotilla_history", attributes)
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	commits, _ := read["commits"].([]any)
	var all []string
	for _, commit := range commits {
		changed, _ := field(commit, "changes").([]any)
		for _, change := range changed {
			text := fmt.Sprintf("%s %s/%s", field(change, "action"), field(change, "host"), field(change, "deployment_target"))
			if from := field(change, "from"); from != nil {
				text += fmt.Sprintf(" from %s", from)
			}
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}

func TestPlanCommitAndHistoryReportTheSameRename(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	step := func(configuration providertest.Configuration, plan, subject, body, history string) {
		t.Helper()
		lines := strings.Join(linesOf(apply(t, w, configuration)), "\n")
		if !strings.Contains(lines, plan) {
			t.Errorf("the plan says\n%s\nwant %q", lines, plan)
		}
		message := git(t, url, "log", "-1", "--format=%B", "dev")
		if !strings.HasPrefix(message, subject+"\n") || !strings.Contains(message, body) {
			t.Errorf("the commit says\n%s\nwant %q, %q", message, subject, body)
		}
		if got := newestActions(t, w, url, ""); got != history {
			t.Errorf("the history says %q, want %q", got, history)
		}
	}
	apply(t, w, assigned(url, fleetOfTypes("info", nil, namedType("old"), namedType("other")), noRemovals))
	step(
		assigned(url, fleetOfTypes("info", nil, namedType("new", "old"), namedType("other")), noRemovals),
		`cluster type "old" is now "new": 2 folders move`,
		"dev: 2 moved",
		"Moved:\n- new/app-web, from old/app-web\n- new/base-all, from old/base-all\n",
		"moved new/app-web from old, moved new/base-all from old",
	)
	for _, host := range []string{"new", "old"} { // filtered by the new or the old host
		if got := newestActions(t, w, url, host); got != "moved new/app-web from old, moved new/base-all from old" {
			t.Errorf("the history of %s says %q", host, got)
		}
	}
	step(
		assigned(url, fleetOfTypes("debug", nil, namedType("newest", "old", "new"), namedType("other")), noRemovals),
		`cluster type "new" is now "newest": 2 folders move`,
		"dev: 5 changed, 2 moved",
		"Moved:\n- newest/app-web, from new/app-web\n",
		"changed clusters/one/app-edge, changed newest/app-web from new, changed newest/base-all from new, changed other/app-web, changed other/base-all",
	)
}

// Only a marker or record that others changed is repaired.
func TestACommitNamesChangesOfHostsWithoutFolders(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	empty := func(types ...any) providertest.Configuration {
		return assigned(url, fleetOfTypes("info", map[string]any{"target_policies": []any{}, "clusters": []any{}}, types...), nil)
	}
	for _, step := range []struct {
		types   []any
		byHand  bool
		subject string
	}{
		{[]any{namedType("one")}, false, "dev: 1 host added"},
		{[]any{namedType("one"), namedType("two"), namedType("three")}, false, "dev: 2 hosts added"},
		{[]any{namedType("uno", "one"), namedType("two"), namedType("three")}, false, "dev: 1 host renamed"},
		{[]any{namedType("uno", "one"), namedType("two")}, false, "dev: 1 host removed"},
		{[]any{namedType("uno", "one"), namedType("two")}, true, "dev: 1 host repaired"},
	} {
		if step.byHand {
			commitByHand(t, url, "dev", func(folder string) { writeFile(t, folder+"/clusters/all/two/dev.md", "by hand") })
		}
		apply(t, w, empty(step.types...))
		if subject := git(t, url, "log", "-1", "--format=%s", "dev"); subject != step.subject {
			t.Errorf("the commit says %q, want %q", subject, step.subject)
		}
	}
}
