package provider_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// mergeRequest merges by a method of Gitea, once the request is mergeable.
func (l *branchLife) mergeRequest(number int, method string) {
	l.t.Helper()
	for range 240 {
		if l.host.getRequest(number).Mergeable {
			break
		}
		time.Sleep(250 * time.Millisecond)
	}
	l.host.callAPI(http.MethodPost, fmt.Sprintf("/pulls/%d/merge", number), map[string]any{"Do": method}, nil)
}

// The history names the assignment and the configuration's commit for each way to merge. A person's commit has no assignment.
func TestHistoryNamesTheAssignmentOfAMergedRequest(t *testing.T) {
	t.Parallel()
	l, clock := newBranchLife(t), &stoppedClock{now: time.Now().UTC().Truncate(time.Second)}
	l.w = providertest.New(provider.StartAt(clock)) // records have a resolution of one second
	apply(t, l.w, l.configuration("dev", "first", nil))
	methods := []string{"merge", "squash"}
	if acceptancetest.All() {
		methods = []string{"merge", "rebase", "rebase-merge", "squash"}
	}
	source := func(i int) string { return strings.Repeat(fmt.Sprint(i+1), 40) }
	for i, method := range methods {
		configuration := l.configuration("dev", method, requestDelivery())
		configuration.Resources[assignment].Attributes["source"] = map[string]any{"url": "https://git.example.com/platform", "commit": source(i)}
		clock.now = clock.now.Add(time.Minute)
		apply(t, l.w, configuration)
		l.mergeRequest(l.openRequests()[0].Number, method)
	}
	l.repo.change(t, "dev", func(folder string) { writeFile(t, folder+"/large/app-core/platform-config.yaml", "by: hand\n") })

	read, diags := l.w.ReadData(
		t.Context(),
		providertest.Configuration{Provider: map[string]any{"git": map[string]any{"token": l.host.user.Token}}},
		"flotilla_history",
		map[string]any{"gitops_repo": map[string]any{"url": l.repo.url, "branch": "dev"}, "name": "dev"},
	)
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	commits, _ := read["commits"].([]any)
	if len(commits) != len(methods)+2 {
		t.Fatalf("got %d commits, want %d: %v", len(commits), len(methods)+2, commits)
	}
	if person := field(commits[0], "assignments"); fmt.Sprint(person) != "[]" {
		t.Errorf("a person's commit: got assignments %v, want none", person)
	}
	for i, method := range methods {
		commit := commits[len(methods)-i]
		if owners := fmt.Sprint(field(commit, "assignments")); owners != "[dev]" {
			t.Errorf("%s: commit %q: got assignments %s, want [dev]", method, field(commit, "subject"), owners)
		}
		if run := field(commit, "run"); run != nil {
			t.Errorf("%s: got run %v outside of a pipeline, want none", method, run)
		}
		if from := field(field(commit, "source"), "commit"); from != source(i) {
			t.Errorf("%s: got source %v, want commit %s", method, field(commit, "source"), source(i))
		}
	}
}
