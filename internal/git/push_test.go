package git_test

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// serveRepository serves a bare repository by git's http-backend. before may answer a request instead.
func serveRepository(t *testing.T, before func(w http.ResponseWriter, r *http.Request) (done bool)) git.Remote {
	t.Helper()
	remote, _ := serveBehind(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !before(w, r) {
				next.ServeHTTP(w, r)
			}
		})
	})
	return remote
}

// serveBehind serves a bare repository by git's http-backend behind another handler.
func serveBehind(t *testing.T, before func(next http.Handler) http.Handler) (remote git.Remote, directory string) {
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
	return git.Remote{IsGitOps: true, URL: server.URL + "/r.git", Branch: "main"}, directory
}

// The context of this test ends while the client asks for the branch after the push.
func TestAContextThatEndsDuringTheCheckOfAPushLeavesNoDoubt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var pushed, ended atomic.Bool
	remote := serveRepository(t, func(_ http.ResponseWriter, r *http.Request) bool {
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
	client := git.NewConnector(git.ConnectorOptions{})
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

// A first apply of 100,000 folders pushes hundreds of megabytes.
func TestALargePackIsNotCopied(t *testing.T) {
	overHTTP := serveRepository(t, func(http.ResponseWriter, *http.Request) bool { return false })
	random := rand.NewChaCha8([32]byte{})
	for name, remote := range map[string]git.Remote{"http": overHTTP, "a path": {URL: filepath.Join(t.TempDir(), "r.git"), Branch: "main"}} {
		client := git.NewConnector(git.ConnectorOptions{})
		if name != "http" {
			if err := client.Create(t.Context(), remote); err != nil {
				t.Fatal(err)
			}
		}
		tip, err := client.Open(t.Context(), remote, 1)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		commit, pack := commitOf(t, tip, "a", "x")
		content := make([]byte, 50<<10)
		for range 32 << 20 / len(content) {
			_, _ = random.Read(content) // incompressible
			pack.AddFile(git.BlobID(content), content)
		}
		result, err := client.Push(t.Context(), remote, "main", tip.Commit, commit, pack)
		runtime.ReadMemStats(&after)
		if err != nil || !result.Applied {
			t.Fatalf("over %s: %+v, %v", name, result, err)
		}
		if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 44 &&
			!testing.Short() { // in short tests, the race detector drops pooled compressors
			t.Errorf("over %s: a push of %d MiB takes %d MiB", name, pack.Finish()>>20, allocated)
		}
	}
}
