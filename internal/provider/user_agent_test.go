package provider_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func TestEveryRequestNamesTheRelease(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	git(t, root, "init", "--quiet", "--bare", "--initial-branch=dev", "platform/gitops.git")
	bare := filepath.Join(root, "platform", "gitops.git")
	git(t, bare, "config", "http.receivepack", "true")
	commit := git(t, bare, "commit-tree", "-m", "Begin", git(t, bare, "hash-object", "-t", "tree", "-w", os.DevNull))
	git(t, bare, "update-ref", "refs/heads/dev", commit)
	server := newRecorder(t, root)
	onCluster := `provider "flotilla" { clusters = { "drone-1" = { host = "` + server.URL + `" } } }` + "\n"
	for name, config := range map[string]string{
		"git":            small{path: "committed"}.config(repository{url: server.URL + "/platform/gitops.git"}),
		"Git host":       small{path: "proposed", extra: `delivery = { mode = "pull_request", forge = "gitea" }`}.config(repository{url: server.URL + "/platform/gitops.git"}),
		"agent":          onCluster + agentOf(server.URL+"/platform/gitops.git"),
		"files of a ref": `data "flotilla_repository_files" "all" { ` + "\n" + `url = "` + server.URL + `/platform/gitops.git"` + "\n" + `ref = "dev"` + "\n" + `include = ["**"]` + "\n}",
	} {
		before := server.count()
		module, err := providertest.ParseModule(config, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		workspace := providertest.New(startProvider)
		_, _ = workspace.Apply(t.Context(), module.Configuration) // only requests matter
		for address, arguments := range module.Data {
			typeName, _, _ := strings.Cut(strings.TrimPrefix(address, "data."), ".")
			_, _ = workspace.ReadData(t.Context(), module.Configuration, typeName, arguments)
		}
		if server.count() == before {
			t.Errorf("%s: the servers got no request", name)
		}
	}
	before := server.count()
	_, diags := readCompliance(
		t,
		server.URL+"/platform/gitops.git",
		map[string]any{"clusters": map[string]any{"drone-1": map[string]any{"host": server.URL}}},
		map[string]any{"feedback": map[string]any{"clusters": true}},
	)
	if server.count() == before {
		t.Errorf("the cluster got no request for reports: %s", diags)
	}
	for _, kind := range []string{"/platform/gitops.git/", "/api/v1/repos/", "/api"} {
		if !server.hasRequest(kind) {
			t.Errorf("got no request for %s", kind)
		}
	}
}

// recorder is a Git server, and an empty Git host and cluster. It fails the test if a request does not name the release.
type recorder struct {
	*httptest.Server
	mu    sync.Mutex
	paths []string
}

func newRecorder(t *testing.T, root string) *recorder {
	t.Helper()
	backend := httpBackend(t, root)
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		r.paths = append(r.paths, request.URL.Path)
		r.mu.Unlock()
		agent := request.UserAgent()
		if !strings.HasSuffix(agent, "terraform-provider-flotilla/test") {
			t.Errorf("%s %s: got user agent %q", request.Method, request.URL.Path, agent)
		}
		if strings.HasPrefix(request.URL.Path, "/platform/gitops.git/") {
			if !strings.HasPrefix(agent, "go-git/") {
				t.Errorf("%s: Git servers do not recognize %q as a Git client", request.URL.Path, agent)
			}
			backend.ServeHTTP(w, request)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		http.Error(w, `{"message": "not found"}`, http.StatusNotFound)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.paths)
}

func (r *recorder) hasRequest(prefix string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range r.paths {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

func agentOf(url string) string {
	return `resource "flotilla_agent" "drone" {
  cluster      = "drone-1"
  cluster_type = "drone"
  reconciler   = "flux"
  gitops_repo  = { url = "` + url + `", branch = "dev" }
}
`
}
