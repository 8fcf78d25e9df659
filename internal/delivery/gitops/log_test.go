package gitops_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// lines collects what a client logs.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) log(_ context.Context, message string, fields map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, fmt.Sprintf("%s %v", message, fields))
}

func (l *lines) has(message string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.text, func(line string) bool { return strings.HasPrefix(line, message) })
}

func TestTheLogTellsTheWayAndNoSecret(t *testing.T) {
	t.Parallel()
	r := newRepository(t, serving{config: noTreeFilter, remote: overHTTP})
	apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/app": rendered(t, "a", "1")}))
	server := &faulty{next: guarded("robot", canary, backend(t, filepath.Dir(r.directory)))}
	remote := git.Remote{
		IsGitOps:    true,
		URL:         serve(t, server) + "/gitops.git",
		Branch:      "main",
		Credentials: git.Credentials{Login: git.Login{Username: "robot", Password: canary}},
	}
	// Somebody is faster once, and the server breaks once and repeats what it was shown.
	once500 := once("/info/refs?service=git-upload-pack", func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, r.Header.Get("Authorization"), canary)
	})
	overtake := once("/git-receive-pack?", func(w http.ResponseWriter, request *http.Request, next http.Handler) {
		r.byHand(func(w *workTree) { w.write("README.md", "x") })
		next.ServeHTTP(w, request)
	})
	server.fault = func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		return once500(w, r, next) || overtake(w, r, next)
	}
	var told lines
	client := gitops.NewBranchClient(gitops.BranchOptions{Git: git.NewConnector(git.ConnectorOptions{Log: told.log})})
	look, err := client.ReadBranch(t.Context(), remote, dev)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := look.ReadOwner(t.Context(), dev); err != nil {
		t.Fatal(err)
	}
	result, err := client.Apply(t.Context(), remote, devEdit(t, map[string]gitops.FolderEdit{"drone/app": rendered(t, "a", "2")}))
	if err != nil || !result.Committed {
		t.Fatalf("%+v, %v", result, err)
	}
	for _, message := range []string{
		"looked at the branch", "fetched", "the server does not answer so small a request", "the repository did not answer",
		"prepared a commit", "pushed", "waits before it tries again",
	} {
		if !told.has(message) {
			t.Errorf("nothing says %q", message)
		}
	}
	for _, line := range told.text {
		if strings.Contains(line, canary) || !strings.Contains(line, "branch:main") {
			t.Errorf("logged: %s", line)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(told.text, "\n"))
	}
}

func TestTheLogHasNoUsersOfURLs(t *testing.T) {
	t.Parallel()
	var told lines
	client := git.NewConnector(git.ConnectorOptions{Log: told.log})
	for _, url := range []string{"ssh://someone@h/r", "someone@h:r", "https://someone:" + canary + "@h/r", "ssh://h/r"} {
		client.Log(t.Context(), git.Remote{IsGitOps: true, URL: url, Branch: "main"}, "x", nil)
	}
	for _, line := range told.text {
		if strings.Contains(line, "someone") || strings.Contains(line, canary) {
			t.Errorf("logged: %s", line)
		}
	}
	if len(told.text) != 4 {
		t.Errorf("%d lines", len(told.text))
	}
}
