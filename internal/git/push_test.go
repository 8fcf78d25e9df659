package git_test

import (
	"context"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gittest"
)

// served is a bare repository behind git's http-backend; before is asked first.
func served(t *testing.T, before func(w http.ResponseWriter, r *http.Request) (done bool)) git.Remote {
	t.Helper()
	remote, _ := servedBy(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !before(w, r) {
				next.ServeHTTP(w, r)
			}
		})
	})
	return remote
}

// servedBy is a bare repository behind git's http-backend, with a server before it.
func servedBy(t *testing.T, before func(next http.Handler) http.Handler) (remote git.Remote, directory string) {
	t.Helper()
	root := t.TempDir()
	directory = filepath.Join(root, "r.git")
	gittest.Run(t, "", "git", "init", "--quiet", "--bare", "--initial-branch=main", directory)
	gittest.Run(t, directory, "git", "config", "http.receivepack", "true")
	program := &cgi.Handler{
		Path:   filepath.Join(strings.TrimSpace(gittest.Run(t, "", "git", "--exec-path")), "git-http-backend"),
		Env:    []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=test"},
		Stderr: io.Discard,
	}
	server := httptest.NewServer(before(program))
	t.Cleanup(server.Close)
	return git.Remote{URL: server.URL + "/r.git", Branch: "main"}, directory
}

// TestAContextThatEndsDuringTheCheckOfAPushLeavesNoDoubt ends the context
// when the server is asked where the branch is after the push.
func TestAContextThatEndsDuringTheCheckOfAPushLeavesNoDoubt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var pushed, ended atomic.Bool
	remote := served(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
			pushed.Store(true)
		}
		if pushed.Load() && strings.HasSuffix(r.URL.Path, "/info/refs") && ended.CompareAndSwap(false, true) {
			cancel()
			<-r.Context().Done()
			return true
		}
		return false
	})
	client := git.NewClient()
	tip, err := client.Open(ctx, remote, 1)
	if err != nil {
		t.Fatal(err)
	}
	commit, pack := commitOf(t, tip, "a", "x")
	result, err := client.Push(ctx, remote, "main", tip.Commit, commit, pack)
	if err != nil || !result.Applied || !ended.Load() {
		t.Errorf("%+v, %v; the context ended: %t", result, err, ended.Load())
	}
}
