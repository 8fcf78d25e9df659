package provider_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// A person edits a file of an open request on its base. Gitea does not merge conflicting requests, and reports them like unchecked ones.
func TestConflictingPullRequestGetsItsBaseMerged(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	host := hostedRepository{t, server, user}
	const file = "large/app-core/platform-config.yaml"
	proposedConfiguration := func(database, merge string) providertest.Configuration {
		extra := `delivery = { mode = "pull_request", forge = "gitea"` + merge + ` }`
		return moduleOf(t, small{database: fmt.Sprintf("%q", database), extra: extra}.config(repo)).Configuration
	}
	editByHand := func(text string) {
		repo.change(t, "dev", func(folder string) { writeFile(t, filepath.Join(folder, filepath.FromSlash(file)), text) })
	}
	// checkMergedBase expects the tip of dev and the configured value in the head of the request.
	checkMergedBase := func(database string) {
		t.Helper()
		clone := repo.clone(t, "flotilla/dev/dev")
		if base := repo.tip(t, "dev"); !slices.Contains(
			strings.Fields(git(t, clone, "log", "-1", "--format=%P")),
			base,
		) {
			t.Errorf("commit %s of dev was not merged", base)
		}
		if content := files(t, clone)[file]; !strings.Contains(content, database) {
			t.Errorf("the branch of the request has\n%s", content)
		}
	}
	checkLine := func(plan *providertest.Plan, text string) {
		t.Helper()
		if lines := linesOf(plan); !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, text) }) {
			t.Errorf("the plan does not say %q: %q", text, lines)
		}
	}
	w := providertest.New(startProvider)
	apply(t, w, moduleOf(t, small{}.config(repo)).Configuration)
	apply(t, w, proposedConfiguration("mysql://two", ""))

	// The request is open.
	editByHand("by: hand\n")
	checkLine(
		apply(t, w, proposedConfiguration("mysql://two", "")),
		`pull request 1 conflicts with branch "dev", where large/app-core changed: that branch is merged into "flotilla/dev/dev"`,
	)
	checkMergedBase("mysql://two")
	if plan := apply(t, w, proposedConfiguration("mysql://two", "")); !plan.Empty() {
		t.Errorf("the next apply makes changes: %q", linesOf(plan))
	}

	// A person closed the request, and its content conflicts.
	editByHand("by: another\n")
	host.callAPI(http.MethodPatch, "/pulls/1", map[string]any{"state": "closed"}, nil)
	checkLine(
		apply(t, w, proposedConfiguration("mysql://two", "")),
		`pull request 1 was closed and not merged: another one is opened from branch "flotilla/dev/dev", into which branch "dev" is merged`,
	)
	checkMergedBase("mysql://two")
	if open := host.openRequests(); len(open) != 1 || open["flotilla/dev/dev"].Number != 2 {
		t.Errorf("got open requests %+v, want the second", open)
	}

	// The configuration requests an immediate merge.
	editByHand("by: a third\n")
	apply(t, w, proposedConfiguration("mysql://two", `, merge = "now"`))
	if all := listPullRequests(t, server, user); len(all) != 2 || !all[1].Merged {
		t.Errorf("got requests %+v, want the second one merged", all)
	}
	if content := repo.read(t, "dev")[file]; !strings.Contains(content, "mysql://two") {
		t.Errorf("dev has\n%s", content)
	}
	if plan := apply(t, w, proposedConfiguration("mysql://two", `, merge = "now"`)); !plan.Empty() {
		t.Errorf("an apply after the merge makes changes: %q", linesOf(plan))
	}
}

// The test also runs the plan of a drift job.
func TestConflictingPullRequestWithRealTools(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	for _, tool := range acceptanceTools(t) {
		repo, server, user := giteaWithUser(t)
		w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders + small{}.config(repo)})
		w.run("apply", "-auto-approve", "-input=false")
		writeFile(
			t,
			filepath.Join(w.path, "main.tf"),
			requiredProviders+small{database: `"mysql://two"`, extra: `delivery = { mode = "pull_request", forge = "gitea" }`}.config(repo),
		)
		w.run("apply", "-auto-approve", "-input=false")
		w.run("plan", "-detailed-exitcode", "-input=false")
		repo.change(t, "dev", func(folder string) {
			writeFile(t, filepath.Join(folder, "large", "app-core", "platform-config.yaml"), "by: hand\n")
		})
		if output := w.run("apply", "-auto-approve", "-input=false", "-no-color"); !words(
			`pull request 1 conflicts with branch \"dev\", where large/app-core changed: that branch is merged into \"flotilla/dev/dev\"`,
		).MatchString(output) {
			t.Errorf("the apply does not report the conflict:\n%s", output)
		}
		w.run("plan", "-detailed-exitcode", "-input=false")
		all := listPullRequests(t, server, user)
		mergeRequest(t, server, user, all[0].Number, all[0].Head.SHA)
		w.run("plan", "-detailed-exitcode", "-input=false")
		if content := repo.read(t, "dev")["large/app-core/platform-config.yaml"]; !strings.Contains(content, "mysql://two") {
			t.Errorf("dev has\n%s", content)
		}
	}
}
