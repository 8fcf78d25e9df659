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

// merge merges an open request in one of Gitea's ways, once Gitea has found out that it can be.
func (l *branchLife) mergeRequest(number int, method string) {
	l.t.Helper()
	for range 240 {
		if l.host.pull(number).Mergeable {
			break
		}
		time.Sleep(250 * time.Millisecond)
	}
	l.host.api(http.MethodPost, fmt.Sprintf("/pulls/%d/merge", number), map[string]any{"Do": method}, nil)
}

// However people merge a request, the history says which assignment made the change, and from which commit of the
// configuration. A commit of a person has no assignment.
func TestHistoryNamesTheAssignmentOfAMergedRequest(t *testing.T) {
	t.Parallel()
	l, clock := newBranchLife(t), &stoppedClock{now: time.Now().UTC().Truncate(time.Second)}
	l.w = providertest.New(provider.StartAt(clock)) // records tell changes of one second not apart
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
		t.Fatalf("there are %d commits: %v", len(commits), commits)
	}
	if person := field(commits[0], "assignments"); fmt.Sprint(person) != "[]" {
		t.Errorf("a person's commit is of %v", person)
	}
	for i, method := range methods {
		commit := commits[len(methods)-i]
		if owners := fmt.Sprint(field(commit, "assignments")); owners != "[dev]" {
			t.Errorf("%s: the commit %q is of %s", method, field(commit, "subject"), owners)
		}
		if run := field(commit, "run"); run != nil {
			t.Errorf("%s: outside of a pipeline the run is %v", method, run)
		}
		if from := field(field(commit, "source"), "commit"); from != source(i) {
			t.Errorf("%s: the change came from %v", method, field(commit, "source"))
		}
	}
}
