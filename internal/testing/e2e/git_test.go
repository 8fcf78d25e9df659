package e2e_test

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
)

// repository is a repository on the Git host with a clone of it.
type repository struct {
	t       *testing.T
	url     string
	pushURL string // has the token
	clone   string
}

// newRepository creates a public repository, so that agents need no credentials.
func newRepository(t *testing.T, server *giteatest.Gitea, owner giteatest.User, name string) *repository {
	t.Helper()
	r := newPrivateRepository(t, server, owner, name)
	server.API(t, owner, "PATCH", "/repos/"+owner.Name+"/"+name, map[string]any{"private": false}, nil)
	return r
}

// newPrivateRepository creates a repository that only its owner may read.
func newPrivateRepository(t *testing.T, server *giteatest.Gitea, owner giteatest.User, name string) *repository {
	t.Helper()
	r := &repository{t: t, url: server.Repository(t, owner, name), clone: t.TempDir()}
	parsed, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.UserPassword(owner.Name, owner.Token)
	r.pushURL = parsed.String()
	r.git("init", "--quiet", "-b", "main")
	return r
}

// push commits these files to the branch main and leaves other files unchanged.
func (r *repository) push(files map[string]string) {
	r.t.Helper()
	r.pushTo("main", files)
}

// pushTo commits these files to the clone's branch and pushes it as the named branch.
func (r *repository) pushTo(branch string, files map[string]string) {
	r.t.Helper()
	for name, text := range files {
		path := filepath.Join(r.clone, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	r.git("add", ".")
	r.git("commit", "--quiet", "-m", "Change the workload")
	r.git("push", "--quiet", r.pushURL, "HEAD:"+branch)
}

// head returns the newest commit of the clone.
func (r *repository) head() string {
	r.t.Helper()
	return strings.TrimSpace(r.git("rev-parse", "HEAD"))
}

// tip returns the newest commit of a branch on the Git host.
func (r *repository) tip(branch string) string {
	r.t.Helper()
	r.git("fetch", "--quiet", r.pushURL, branch)
	return strings.TrimSpace(r.git("rev-parse", "FETCH_HEAD"))
}

// pushTag tags the newest commit of the clone.
func (r *repository) pushTag(name string) {
	r.t.Helper()
	r.git("tag", name)
	r.git("push", "--quiet", r.pushURL, name)
}

// listFiles lists the files of a folder of the branch dev.
func (r *repository) listFiles(folder string) []string {
	r.t.Helper()
	r.git("fetch", "--quiet", r.pushURL, "dev")
	names := strings.Fields(r.git("ls-tree", "-r", "--name-only", "FETCH_HEAD", folder+"/"))
	slices.Sort(names)
	return names
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	output, err := git(r.t.Context(), r.clone, args...)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(output)
}
