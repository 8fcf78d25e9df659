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

// azureDevOps stands in for Azure DevOps: one repository, whose server insists on what Azure Repos' does,
// and of the REST API what a life of a request takes, as its reference describes it
// (learn.microsoft.com/en-us/rest/api/azure/devops/git/pull-requests). Merges are done after they were
// answered, and a description in a list is cut.
type azureDevOps struct {
	*site
	location folder.Location
	password string

	mu      sync.Mutex
	pulls   []*azurePull
	blocked bool // a policy of the branch is not fulfilled
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
			status, answer := a.api(r)
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

// api answers one request.
func (a *azureDevOps) api(r *http.Request) (int, any) {
	refused := func(status int, kind, message string) (int, any) {
		return status, map[string]any{"$id": "1", "message": message, "typeKey": kind}
	}
	if strings.HasSuffix(r.URL.Path, "/_apis/connectionData") {
		return 200, map[string]any{"authenticatedUser": map[string]string{"id": "11111111-aaaa-4aaa-8aaa-111111111111"}}
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/org/My Project/_apis/git/repositories/gitops/")
	if !ok || r.URL.Query().Get("api-version") != "7.1" {
		return refused(
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
		return refused(400, "InvalidArgumentValueException", err.Error())
	}
	if len(sent.Description) > 4000 {
		return refused(400, "InvalidArgumentValueException", "the description is too long")
	}
	segments := strings.Split(path, "/")
	switch {
	case segments[0] == "commits":
		return 200, map[string]any{"value": []any{}}
	case len(segments) == 1 && r.Method == http.MethodGet:
		return 200, map[string]any{"value": a.list(r)}
	case len(segments) == 1:
		for _, pull := range a.pulls {
			if pull.Status == "active" && pull.Source == sent.Source && pull.Target == sent.Target {
				return refused(
					409,
					"GitPullRequestExistsException",
					"TF401179: An active pull request for the source and target branch already exists.",
				)
			}
		}
		if a.tip(sent.Source) == "" || a.tip(sent.Target) == "" {
			return refused(
				400,
				"GitPullRequestCannotBeActivated",
				"TF401398: The pull request cannot be activated because the source and/or the target branch no longer exists",
			)
		}
		sent.ID, sent.Status = len(a.pulls)+1, "active"
		a.pulls = append(a.pulls, &sent)
		return 201, a.look(&sent)
	}
	number, _ := strconv.Atoi(segments[1])
	if number < 1 || number > len(a.pulls) {
		return refused(404, "GitPullRequestNotFoundException", "TF401180: The requested pull request was not found.")
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
		return 200, a.look(pull)
	case pull.Status != "active":
		return refused(400, "GitPullRequestNotEditableException", "TF401181: The pull request cannot be edited due to its state.")
	case sent.Status == "completed" && sent.Head["commitId"] != a.tip(pull.Source):
		return refused(409, "GitPullRequestStaleException", "TF401192: The source branch has been modified since the last merge attempt.")
	case sent.Status == "completed" && a.blocked:
		return refused(403, "GitPullRequestUpdateRejectedByPolicyException", "policies are not fulfilled: minimum number of reviewers")
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

func (a *azureDevOps) list(r *http.Request) []azurePull {
	listed := []azurePull{}
	query := r.URL.Query()
	for _, pull := range slices.Backward(a.pulls) {
		seen := a.look(pull)
		if status := query.Get("searchCriteria.status"); status != "all" && status != seen.Status ||
			seen.Source != query.Get("searchCriteria.sourceRefName") ||
			query.Has("searchCriteria.targetRefName") && seen.Target != query.Get("searchCriteria.targetRefName") {
			continue
		}
		seen.Description = seen.Description[:min(400, len(seen.Description))]
		listed = append(listed, seen)
	}
	return listed
}

// look is a request as somebody sees it who asks; what was queued is done then.
func (a *azureDevOps) look(pull *azurePull) azurePull {
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

// deliver applies a version, and returns what is known then.
func (a *azureDevOps) deliver(
	known *delivery.OwnerState,
	settings delivery.Settings,
	version string,
	hosts ...string,
) (*delivery.OwnerState, delivery.ApplyOutcome, error) {
	intent := delivery.Desired{Owner: owner(a.location, "dev"), Settings: settings, After: wanted(a.t, version, 20, hosts...), State: known}
	done, err := a.client(a.password).Apply(a.t.Context(), order(intent, version))
	return &delivery.OwnerState{
		Owner:       intent.Owner,
		Settings:    settings,
		PullRequest: done.PullRequest,
		SavedState:  delivery.SavedState{Trees: intent.After, Records: done.Records, Holder: done.Holder},
	}, done, err
}

func (a *azureDevOps) refreshed(known *delivery.OwnerState) *delivery.OwnerState {
	a.t.Helper()
	if err := a.client(a.password).Refresh(a.t.Context(), known); err != nil {
		a.t.Fatal(err)
	}
	return known
}

func TestARequestLivesOnAzureRepos(t *testing.T) {
	a := newAzureDevOps(t)
	push, hosts := delivery.Settings{}, []string{"a", "b", "c", "d", "e"}
	propose := delivery.Settings{PullRequest: true, Forge: forge.Azure, Request: forge.RequestOptions{Labels: []string{"fleet"}}}
	if _, done, err := a.deliver(nil, push, "1", hosts...); err != nil || done.Commit != a.tip("refs/heads/main") {
		t.Fatalf("the first push: %+v, %v", done, err)
	}
	known, first, err := a.deliver(nil, propose, "2", hosts...)
	if err != nil || first.PullRequest != a.location.URL+"/pullrequest/1" {
		t.Fatalf("proposed %+v, %v", first, err)
	}
	pull := a.pulls[0]
	if !strings.Contains(pull.Description, "\nAnd ") || !strings.HasPrefix(pull.Description, "<!-- flotilla-assignment: dev -->\n") ||
		!slices.Equal(pull.Labels, []string{"fleet"}) {
		t.Errorf("the request is %+v", pull)
	}
	if !a.refreshed(known).Drift.IsNone() {
		t.Errorf("pending is drift: %+v", known.Drift)
	}
	// Another version is the same request; nothing new changes nothing.
	known, again, err := a.deliver(known, propose, "3", hosts...)
	if err != nil || again.PullRequest != first.PullRequest || len(a.pulls) != 1 {
		t.Fatalf("proposed again %+v, %v", again, err)
	}
	// A policy holds it, and says so.
	merge := propose
	merge.Request.Merge = forge.Now
	a.blocked = true
	if _, _, err := a.deliver(known, merge, "4", hosts...); !errors.Is(err, forge.ErrNotMergeable) || !errors.Is(err, delivery.ErrProposed) ||
		!strings.Contains(err.Error(), "minimum number of reviewers") {
		t.Errorf("held by a policy: %v", err)
	}
	merge.Request.Merge = forge.WhenChecksSucceed
	known, arranged, err := a.deliver(known, merge, "5", hosts...)
	if err != nil || pull.AutoComplete == nil || pull.Status != "active" {
		t.Fatalf("arranged %+v, %v", arranged, err)
	}
	a.blocked = false
	if !a.refreshed(known).Drift.IsNone() || pull.Status != "completed" || len(a.folders(azureRepository, "main")) != 100 {
		t.Errorf("once the policy is fulfilled: %s, %+v", pull.Status, known.Drift)
	}
	merge.Request.Merge = forge.Now
	known, merged, err := a.deliver(known, merge, "6", hosts...)
	if err != nil || merged.Commit != a.tip("refs/heads/main") || len(a.pulls) != 2 || a.pulls[1].Status != "completed" {
		t.Fatalf("merged %+v, %v", merged, err)
	}
	// What is closed is drift, and proposed anew.
	known, _, err = a.deliver(known, propose, "7", hosts...)
	if err != nil || len(a.pulls) != 3 {
		t.Fatal(err)
	}
	a.pulls[2].Status = "abandoned"
	if a.refreshed(known).Drift.IsNone() {
		t.Error("a request that was closed is no drift")
	}
	// Back to what the branch has, there is nothing to propose.
	if _, _, err = a.deliver(known, propose, "8", hosts...); err != nil || len(a.pulls) != 4 {
		t.Fatal(err)
	}
	if _, done, err := a.deliver(known, propose, "6", hosts...); err != nil || done.PullRequest != "" || a.pulls[3].Status != "abandoned" {
		t.Errorf("nothing to propose: %+v, %v", done, err)
	}
	a.git(azureRepository, "fsck", "--strict")
}

func TestAWrongTokenOfAzureIsReported(t *testing.T) {
	a := newAzureDevOps(t)
	for name, settings := range map[string]delivery.Settings{"push": {}, "pull request": {PullRequest: true, Forge: forge.Azure}} {
		intent := delivery.Desired{Owner: owner(a.location, "dev"), Settings: settings, After: wanted(t, "1", 1, "a")}
		_, err := a.client("expired-token").Apply(t.Context(), order(intent, "1"))
		if err == nil || !strings.Contains(err.Error(), "it asks to sign in with a browser") ||
			strings.Contains(fmt.Sprintf("%+v", err), "expired-token") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for reviewer, says := range map[string]string{"anna": "an email address or project/team", "anna@example.com": "", "My Project/Team": ""} {
		settings := delivery.Settings{PullRequest: true, Forge: forge.Azure, Request: forge.RequestOptions{Reviewers: []string{reviewer}}}
		err := a.client("").CheckSettings(settings, owner(a.location, "dev"))
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", reviewer, err)
		}
	}
}
