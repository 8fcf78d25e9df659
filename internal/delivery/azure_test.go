package delivery_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// azureDevOps imitates Azure DevOps with one repository: the Git server of Azure Repos, and the REST API for pull requests as in
// learn.microsoft.com/en-us/rest/api/azure/devops/git/pull-requests. It merges after the answer, and lists cut descriptions.
type azureDevOps struct {
	*site
	location folder.Location
	password string

	mu      sync.Mutex
	pulls   []*azurePull
	blocked bool // by a policy of the branch
}

type azurePull struct {
	ID           int               `json:"pullRequestId"`
	Status       string            `json:"status"`
	Title        string            `json:"title"`
	Description  string            `json:"description"`
	Source       string            `json:"sourceRefName"`
	Target       string            `json:"targetRefName"`
	MergeStatus  string            `json:"mergeStatus"`
	Head         map[string]string `json:"lastMergeSourceCommit,omitempty"`
	Merge        map[string]string `json:"lastMergeCommit,omitempty"`
	AutoComplete map[string]string `json:"autoCompleteSetBy,omitempty"`
	Labels       []string          `json:"-"`

	queued bool
}

const azureRepository = "org/My Project/_git/gitops"

func newAzureDevOps(t *testing.T) *azureDevOps {
	t.Helper()
	a := &azureDevOps{site: newSite(t), password: "personal-access-token"}
	a.git(".", "init", "--quiet", "--bare", "--initial-branch=main", azureRepository)
	for _, setting := range []string{"http.receivepack", "uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"} {
		a.git(azureRepository, "config", setting, "true")
	}
	backend := gittest.AzureRepos().Before(t, &cgi.Handler{
		Path:   filepath.Join(a.git(".", "--exec-path"), "git-http-backend"),
		Env:    []string{"GIT_PROJECT_ROOT=" + a.folder, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=test"},
		Stderr: io.Discard,
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		switch {
		case password != a.password:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(http.StatusNonAuthoritativeInfo)
			_, _ = io.WriteString(w, "<html>Azure DevOps Services | Sign In")
		case strings.Contains(r.URL.Path, "/_apis/"):
			a.mu.Lock()
			defer a.mu.Unlock()
			status, answer := a.serveAPI(r)
			w.Header().Set("Content-Type", "application/json; charset=utf-8; api-version=7.1")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(answer)
		default:
			backend.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	a.location = folder.Location{URL: server.URL + "/org/My%20Project/_git/gitops", Branch: "main"}
	return a
}

func (a *azureDevOps) client(password string) *delivery.Service {
	credentials := git.Credentials{Login: git.Login{Token: password}}
	return delivery.New(delivery.ServiceOptions{Git: gitops.NewBranchClient(gitops.BranchOptions{}), Credentials: credentials})
}

func (a *azureDevOps) tip(branch string) string {
	return a.git(azureRepository, "for-each-ref", "--format=%(objectname)", branch)
}

// serveAPI answers a request for the REST API.
func (a *azureDevOps) serveAPI(r *http.Request) (int, any) {
	refuse := func(status int, kind, message string) (int, any) {
		return status, map[string]any{"$id": "1", "message": message, "typeKey": kind}
	}
	if strings.HasSuffix(r.URL.Path, "/_apis/connectionData") {
		return 200, map[string]any{"authenticatedUser": map[string]string{"id": "11111111-aaaa-4aaa-8aaa-111111111111"}}
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/org/My Project/_apis/git/repositories/gitops/")
	if !ok || r.URL.Query().Get("api-version") != "7.1" {
		return refuse(
			404,
			"GitRepositoryNotFoundException",
			"TF401019: The Git repository with name or identifier does not exist or you do not have permissions",
		)
	}
	text, _ := io.ReadAll(r.Body)
	var sent azurePull
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&sent); len(text) > 0 && err != nil && !strings.HasSuffix(path, "/labels") {
		return refuse(400, "InvalidArgumentValueException", err.Error())
	}
	if len(sent.Description) > 4000 {
		return refuse(400, "InvalidArgumentValueException", "the description is too long")
	}
	segments := strings.Split(path, "/")
	switch {
	case segments[0] == "commits":
		return 200, map[string]any{"value": []any{}}
	case len(segments) == 1 && r.Method == http.MethodGet:
		return 200, map[string]any{"value": a.listPulls(r)}
	case len(segments) == 1:
		for _, pull := range a.pulls {
			if pull.Status == "active" && pull.Source == sent.Source && pull.Target == sent.Target {
				return refuse(
					409,
					"GitPullRequestExistsException",
					"TF401179: An active pull request for the source and target branch already exists.",
				)
			}
		}
		if a.tip(sent.Source) == "" || a.tip(sent.Target) == "" {
			return refuse(
				400,
				"GitPullRequestCannotBeActivated",
				"TF401398: The pull request cannot be activated because the source and/or the target branch no longer exists",
			)
		}
		sent.ID, sent.Status = len(a.pulls)+1, "active"
		a.pulls = append(a.pulls, &sent)
		return 201, a.readPull(&sent)
	}
	number, _ := strconv.Atoi(segments[1])
	if number < 1 || number > len(a.pulls) {
		return refuse(404, "GitPullRequestNotFoundException", "TF401180: The requested pull request was not found.")
	}
	pull := a.pulls[number-1]
	switch {
	case len(segments) == 3 && r.Method == http.MethodGet:
		labels := []any{}
		for _, name := range pull.Labels {
			labels = append(labels, map[string]any{"id": name, "name": name, "active": true})
		}
		return 200, map[string]any{"value": labels}
	case len(segments) == 3:
		var label struct{ Name string }
		_ = json.Unmarshal(text, &label)
		pull.Labels = append(pull.Labels, label.Name)
		return 200, label
	case r.Method == http.MethodGet:
		return 200, a.readPull(pull)
	case pull.Status != "active":
		return refuse(400, "GitPullRequestNotEditableException", "TF401181: The pull request cannot be edited due to its state.")
	case sent.Status == "completed" && sent.Head["commitId"] != a.tip(pull.Source):
		return refuse(409, "GitPullRequestStaleException", "TF401192: The source branch has been modified since the last merge attempt.")
	case sent.Status == "completed" && a.blocked:
		return refuse(403, "GitPullRequestUpdateRejectedByPolicyException", "policies are not fulfilled: minimum number of reviewers")
	}
	pull.Title, pull.Description = cmp.Or(sent.Title, pull.Title), cmp.Or(sent.Description, pull.Description)
	switch {
	case sent.Status == "completed":
		pull.queued = true
	case sent.Status == "abandoned":
		pull.Status = sent.Status
	case sent.AutoComplete["id"] == "00000000-0000-0000-0000-000000000000":
		pull.AutoComplete = nil
	case sent.AutoComplete != nil:
		pull.AutoComplete = sent.AutoComplete
	}
	answer := *pull
	return 200, answer
}

func (a *azureDevOps) listPulls(r *http.Request) []azurePull {
	listed := []azurePull{}
	query := r.URL.Query()
	for _, pull := range slices.Backward(a.pulls) {
		current := a.readPull(pull)
		if status := query.Get("searchCriteria.status"); status != "all" && status != current.Status ||
			current.Source != query.Get("searchCriteria.sourceRefName") ||
			query.Has("searchCriteria.targetRefName") && current.Target != query.Get("searchCriteria.targetRefName") {
			continue
		}
		current.Description = current.Description[:min(400, len(current.Description))]
		listed = append(listed, current)
	}
	return listed
}

// readPull completes a queued merge and returns the pull request.
func (a *azureDevOps) readPull(pull *azurePull) azurePull {
	if pull.Status == "active" {
		pull.Head, pull.MergeStatus = map[string]string{"commitId": a.tip(pull.Source)}, "succeeded"
		if pull.queued || pull.AutoComplete != nil && !a.blocked {
			base, head := a.tip(pull.Target), a.tip(pull.Source)
			tree := a.git(azureRepository, "merge-tree", "--write-tree", base, head)
			merge := a.git(
				azureRepository,
				"-c",
				"user.name=A",
				"-c",
				"user.email=a@example.com",
				"commit-tree",
				"-p",
				base,
				"-p",
				head,
				"-m",
				"Merged PR",
				tree,
			)
			a.git(azureRepository, "update-ref", pull.Target, merge, base)
			pull.Status, pull.Merge = "completed", map[string]string{"commitId": merge}
		}
	}
	return *pull
}

// deliver applies a version and returns the new state.
func (a *azureDevOps) deliver(
	previous *delivery.OwnerState,
	settings delivery.Settings,
	version string,
	hosts ...string,
) (*delivery.OwnerState, delivery.ApplyOutcome, error) {
	intent := delivery.Desired{Owner: owner(a.location, "dev"), Settings: settings, After: wantedTrees(a.t, version, 20, hosts...), State: previous}
	done, err := a.client(a.password).Apply(a.t.Context(), newApplyRequest(intent, version))
	return &delivery.OwnerState{
		Owner:       intent.Owner,
		Settings:    settings,
		PullRequest: done.PullRequest,
		SavedState:  delivery.SavedState{Trees: intent.After, Records: done.Records, Holder: done.Holder},
	}, done, err
}

func (a *azureDevOps) refresh(state *delivery.OwnerState) *delivery.OwnerState {
	a.t.Helper()
	if err := a.client(a.password).Refresh(a.t.Context(), state); err != nil {
		a.t.Fatal(err)
	}
	return state
}

func TestPullRequestsOnAzureRepos(t *testing.T) {
	a := newAzureDevOps(t)
	push, hosts := delivery.Settings{}, []string{"a", "b", "c", "d", "e"}
	propose := delivery.Settings{PullRequest: true, Forge: forge.Azure, Request: forge.RequestOptions{Labels: []string{"fleet"}}}
	if _, done, err := a.deliver(nil, push, "1", hosts...); err != nil || done.Commit != a.tip("refs/heads/main") {
		t.Fatalf("the first push: %+v, %v", done, err)
	}
	state, first, err := a.deliver(nil, propose, "2", hosts...)
	if err != nil || first.PullRequest != a.location.URL+"/pullrequest/1" {
		t.Fatalf("proposed %+v, %v", first, err)
	}
	pull := a.pulls[0]
	if !strings.Contains(pull.Description, "\nAnd ") || !strings.HasPrefix(pull.Description, "<!-- flotilla-assignment: dev -->\n") ||
		!slices.Equal(pull.Labels, []string{"fleet"}) {
		t.Errorf("the request is %+v", pull)
	}
	if !a.refresh(state).Drift.IsNone() {
		t.Errorf("the pending pull request is drift: %+v", state.Drift)
	}
	// Another version updates the pull request.
	state, again, err := a.deliver(state, propose, "3", hosts...)
	if err != nil || again.PullRequest != first.PullRequest || len(a.pulls) != 1 {
		t.Fatalf("proposed again %+v, %v", again, err)
	}
	// A policy prevents the merge.
	merge := propose
	merge.Request.Merge = forge.Now
	a.blocked = true
	if _, _, err := a.deliver(state, merge, "4", hosts...); !errors.Is(err, forge.ErrNotMergeable) || !errors.Is(err, delivery.ErrProposed) ||
		!strings.Contains(err.Error(), "minimum number of reviewers") {
		t.Errorf("blocked by a policy: %v", err)
	}
	merge.Request.Merge = forge.WhenChecksSucceed
	state, autoMerge, err := a.deliver(state, merge, "5", hosts...)
	if err != nil || pull.AutoComplete == nil || pull.Status != "active" {
		t.Fatalf("auto-merge: %+v, %v", autoMerge, err)
	}
	a.blocked = false
	if !a.refresh(state).Drift.IsNone() || pull.Status != "completed" || len(a.folders(azureRepository, "main")) != 100 {
		t.Errorf("after the policy is fulfilled: %s, %+v", pull.Status, state.Drift)
	}
	merge.Request.Merge = forge.Now
	state, merged, err := a.deliver(state, merge, "6", hosts...)
	if err != nil || merged.Commit != a.tip("refs/heads/main") || len(a.pulls) != 2 || a.pulls[1].Status != "completed" {
		t.Fatalf("merged %+v, %v", merged, err)
	}
	// A closed pull request is drift and is opened again.
	state, _, err = a.deliver(state, propose, "7", hosts...)
	if err != nil || len(a.pulls) != 3 {
		t.Fatal(err)
	}
	a.pulls[2].Status = "abandoned"
	if a.refresh(state).Drift.IsNone() {
		t.Error("the closed pull request is no drift")
	}
	// With the content of the branch, there is nothing to propose.
	if _, _, err = a.deliver(state, propose, "8", hosts...); err != nil || len(a.pulls) != 4 {
		t.Fatal(err)
	}
	if _, done, err := a.deliver(state, propose, "6", hosts...); err != nil || done.PullRequest != "" || a.pulls[3].Status != "abandoned" {
		t.Errorf("nothing to propose: %+v, %v", done, err)
	}
	a.git(azureRepository, "fsck", "--strict")
}

func TestAWrongTokenOfAzureIsReported(t *testing.T) {
	a := newAzureDevOps(t)
	for name, settings := range map[string]delivery.Settings{"push": {}, "pull request": {PullRequest: true, Forge: forge.Azure}} {
		intent := delivery.Desired{Owner: owner(a.location, "dev"), Settings: settings, After: wantedTrees(t, "1", 1, "a")}
		_, err := a.client("expired-token").Apply(t.Context(), newApplyRequest(intent, "1"))
		if err == nil || !strings.Contains(err.Error(), "it asks to sign in with a browser") ||
			strings.Contains(fmt.Sprintf("%+v", err), "expired-token") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for reviewer, want := range map[string]string{"anna": "an email address or project/team", "anna@example.com": "", "My Project/Team": ""} {
		settings := delivery.Settings{PullRequest: true, Forge: forge.Azure, Request: forge.RequestOptions{Reviewers: []string{reviewer}}}
		err := a.client("").CheckSettings(settings, owner(a.location, "dev"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", reviewer, err, want)
		}
	}
}
