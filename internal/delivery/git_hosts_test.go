package delivery_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// statusHost is a Git host with a repository owner/r.git and statuses of commits.
type statusHost struct {
	*site
	location folder.Location
	// answer returns the contexts of a commit's statuses, or an HTTP status.
	answer func(commit string) (contexts []string, status int)

	mu        sync.Mutex
	requested []string // commits
}

func newStatusHost(t *testing.T) *statusHost {
	t.Helper()
	h := &statusHost{site: newSite(t)}
	h.git(".", "init", "--quiet", "--bare", "--initial-branch=main", "owner/r.git")
	h.git("owner/r.git", "config", "http.receivepack", "true")
	backend := &cgi.Handler{
		Path:   filepath.Join(h.git(".", "--exec-path"), "git-http-backend"),
		Env:    []string{"GIT_PROJECT_ROOT=" + h.folder, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=test"},
		Stderr: io.Discard,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		commit, ok := strings.CutPrefix(r.URL.Path, "/api/v1/repos/owner/r/commits/")
		if !ok {
			if strings.HasPrefix(r.URL.Path, "/api/") {
				fmt.Fprint(w, "{}")
				return
			}
			backend.ServeHTTP(w, r)
			return
		}
		commit = strings.TrimSuffix(commit, "/status")
		if r.URL.Query().Get("page") != "1" {
			fmt.Fprint(w, `{"statuses": []}`)
			return
		}
		h.mu.Lock()
		h.requested = append(h.requested, commit)
		h.mu.Unlock()
		contexts, status := h.answer(commit)
		if status != 0 {
			w.WriteHeader(status)
			return
		}
		statuses := []map[string]any{}
		for i, context := range contexts {
			statuses = append(statuses, map[string]any{"id": i, "context": context, "status": "success"})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"statuses": statuses})
	}))
	t.Cleanup(server.Close)
	h.location = folder.Location{URL: server.URL + "/owner/r.git", Branch: "main"}
	var state *delivery.OwnerState
	for version := range 4 {
		text := fmt.Sprint(version)
		state = h.mustApply(delivery.Desired{Owner: owner(h.location, "dev"), After: wantedTrees(t, text, 1, "drone"), State: state}, text)
	}
	return h
}

func TestStatusesAreReadFromTheNewestCommitUntilTheCallerStops(t *testing.T) {
	h := newStatusHost(t)
	commits := strings.Fields(h.git("owner/r.git", "rev-list", "main"))
	if len(commits) < 4 {
		t.Fatalf("got %d commits, want at least 4", len(commits))
	}
	h.answer = func(commit string) ([]string, int) {
		if commit == commits[0] {
			return nil, http.StatusNotFound // the Git host does not have the commit yet
		}
		return []string{"flotilla/" + commit[:4]}, 0
	}
	settings := delivery.Settings{Forge: forge.Gitea}
	for name, test := range map[string]struct {
		limit, enough  int
		want, requests []string
	}{
		"enough":      {20, 2, commits[1:3], commits[:3]},
		"the limit":   {3, 20, commits[1:3], commits[:3]},
		"all":         {20, 20, commits[1:], commits},
		"no statuses": {1, 20, nil, commits[:1]},
	} {
		h.requested = nil
		statuses, err := h.newService().
			ReadStatuses(t.Context(), delivery.StatusQuery{Settings: settings, Location: h.location, Limit: test.limit}, func(statuses []delivery.CommitStatuses) bool {
				return len(statuses) == test.enough
			})
		if (err != nil) != (test.want == nil) || err != nil && !errors.Is(err, forge.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, commit := range statuses {
			got = append(got, commit.Commit)
			if len(commit.Statuses) != 1 || commit.Statuses[0].Context != "flotilla/"+commit.Commit[:4] || commit.Statuses[0].State != forge.Success {
				t.Errorf("%s: %+v", name, commit)
			}
		}
		if strings.Join(got, " ") != strings.Join(test.want, " ") || strings.Join(h.requested, " ") != strings.Join(test.requests, " ") {
			t.Errorf("%s: got %v with requests for %v, want %v with %v", name, got, h.requested, test.want, test.requests)
		}
	}
	h.answer = func(commit string) ([]string, int) {
		if commit == commits[1] {
			return nil, http.StatusForbidden
		}
		return []string{"a"}, 0
	}
	statuses, err := h.newService().
		ReadStatuses(t.Context(), delivery.StatusQuery{Settings: settings, Location: h.location, Limit: 20}, func([]delivery.CommitStatuses) bool { return false })
	if !errors.Is(err, forge.ErrUnauthorized) || len(statuses) != 1 {
		t.Errorf("refused: %+v, %v", statuses, err)
	}
}

func TestARepositoryWithoutAGitHostHasNoStatuses(t *testing.T) {
	s := newSite(t)
	for url, want := range map[string]string{
		s.folder + "/r.git":                      "need an http or https URL of a Git host, and the url has no scheme",
		"file://" + s.folder + "/r.git":          "the scheme of the url is \"file\"",
		"ssh://git@git.example.com/owner/r":      "the scheme of the url is \"ssh\"",
		"git@git.example.com:owner/r.git":        "cannot be parsed as the http or https URL of a Git host",
		"https://git.example.com/owner/r.git":    "set forge to gitea, forgejo, github, gitlab, azure",
		"https://github.com/owner/group/r.git":   "owner/name",
		"https://token@github.com/owner/r.git":   "credentials in it",
		"https://gitea.com/owner/../owner/r.git": "\"..\"",
	} {
		location := folder.Location{URL: url, Branch: "main"}
		client := s.newService()
		if err := client.CheckStatuses(delivery.Settings{}, location, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
		_, err := client.ReadStatuses(t.Context(), delivery.StatusQuery{Location: location, Limit: 20}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
	}
	if err := s.newService().CheckStatuses(delivery.Settings{}, folder.Location{URL: "https://github.com/owner/r.git"}, true); err != nil {
		t.Error(err)
	}
}
