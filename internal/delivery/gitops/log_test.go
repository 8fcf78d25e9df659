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

// logLines collects the log of a client.
type logLines struct {
	mu   sync.Mutex
	text []string
}

func (l *logLines) add(_ context.Context, message string, fields map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, fmt.Sprintf("%s %v", message, fields))
}

func (l *logLines) hasMessage(message string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.text, func(line string) bool { return strings.HasPrefix(line, message) })
}

func TestTheLogHasEachStepAndNoSecret(t *testing.T) {
	t.Parallel()
	r := newRepository(t, serving{config: noTreeFilter, remote: overHTTP})
	apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1")}))
	server := &faulty{next: requireLogin("robot", canary, backend(t, filepath.Dir(r.directory)))}
	remote := git.Remote{
		IsGitOps:    true,
		URL:         serve(t, server) + "/gitops.git",
		Branch:      "main",
		Credentials: git.Credentials{Login: git.Login{Username: "robot", Password: canary}},
	}
	// Once, another push comes first. Once, the server fails and repeats the credentials.
	once500 := once("/info/refs?service=git-upload-pack", func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, r.Header.Get("Authorization"), canary)
	})
	overtake := once("/git-receive-pack?", func(w http.ResponseWriter, request *http.Request, next http.Handler) {
		r.commitByHand(func(w *workTree) { w.write("README.md", "x") })
		next.ServeHTTP(w, request)
	})
	server.fault = func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		return once500(w, r, next) || overtake(w, r, next)
	}
	var log logLines
	client := gitops.NewBranchClient(gitops.BranchOptions{Git: git.NewConnector(git.ConnectorOptions{Log: log.add})})
	branch, err := client.ReadBranch(t.Context(), remote, dev)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := branch.ReadOwner(t.Context(), dev); err != nil {
		t.Fatal(err)
	}
	result, err := client.Apply(t.Context(), remote, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "2")}))
	if err != nil || !result.Committed {
		t.Fatalf("%+v, %v", result, err)
	}
	for _, message := range []string{
		"looked at the branch", "fetched", "the server does not answer so small a request", "the repository did not answer",
		"prepared a commit", "pushed", "waits before it tries again",
	} {
		if !log.hasMessage(message) {
			t.Errorf("the log has no %q", message)
		}
	}
	for _, line := range log.text {
		if strings.Contains(line, canary) || !strings.Contains(line, "branch:main") {
			t.Errorf("the log has %s", line)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(log.text, "\n"))
	}
}

func TestTheLogHasNoUsersOfURLs(t *testing.T) {
	t.Parallel()
	var log logLines
	client := git.NewConnector(git.ConnectorOptions{Log: log.add})
	for _, url := range []string{"ssh://someone@h/r", "someone@h:r", "https://someone:" + canary + "@h/r", "ssh://h/r"} {
		client.Log(t.Context(), git.Remote{IsGitOps: true, URL: url, Branch: "main"}, "x", nil)
	}
	for _, line := range log.text {
		if strings.Contains(line, "someone") || strings.Contains(line, canary) {
			t.Errorf("the log has %s", line)
		}
	}
	if len(log.text) != 4 {
		t.Errorf("got %d lines, want 4", len(log.text))
	}
}
