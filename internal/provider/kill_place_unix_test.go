//go:build unix

package provider_test

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// variants is the number of fleets, each with 6 cluster types and up to 8 deployment targets. Between the first two, one folder
// changes, and git unpacks the push. Other steps change more, and git keeps the pack.
const variants = 4

func variant(n int) map[string]any {
	database, level, count := "mysql://one", "info", 8
	switch n {
	case 1:
		database = "mysql://two"
	case 2:
		level = "debug"
	case 3:
		level, count = "warn", 6
	}
	targets := map[string]any{}
	for i := range count {
		targets[fmt.Sprintf("t%d", i)] = map[string]any{
			"environment": "dev", "manifests": map[string]any{"repo": "https://git.example.com/app", "branch": "main"},
		}
	}
	var types []any
	for i := range 6 {
		types = append(types, map[string]any{"name": fmt.Sprintf("drone-%d", i)})
	}
	return map[string]any{
		"environment":   "dev",
		"workspaces":    []any{map[string]any{"name": "team"}},
		"cluster_types": types,
		"workloads":     []any{map[string]any{"name": "app", "workspace": "team", "deployment_targets": targets}},
		"target_policies": []any{map[string]any{
			"name": "all", "deployment_target_selector": map[string]any{}, "cluster_type_selector": map[string]any{},
		}},
		"config_containers": []any{
			map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": level}},
			map[string]any{
				"name": "one", "labels": map[string]any{"cluster-type": "drone-0", "deployment-target": "app-t0"},
				"data": map[string]any{"DATABASE_URL": database},
			},
		},
	}
}

// killRepository is a repository that killed providers write to.
type killRepository struct {
	t          *testing.T
	repository repository
	token      string
	delivery   map[string]string
	requests   func() []giteaPullRequest // newest ones, on Gitea
	// bareFolder is "" if only a server has access to the repository.
	bareFolder string
	clone      string // latest fresh clone
	// stopServer is nil without a server.
	stopServer func()

	state    []byte           // Terraform's state of the assignment
	private  []byte           // its private state
	current  int              // last applied variant
	contents [variants]string // hash after an undisturbed apply of each variant
}

const branch = "dev"

// inputFor returns the input for a variant in the present state.
func (p *killRepository) inputFor(n int) applyInput {
	p.t.Helper()
	decoded, findings := fleet.Decode(variant(n))
	if len(findings) > 0 {
		p.t.Fatal(findings.Error())
	}
	known, err := decoded.Value()
	if err != nil {
		p.t.Fatal(err)
	}
	entriesType := []any{"object", map[string]string{"known": "string"}}
	entries := func(known map[string]string) map[string]string {
		text, err := fleet.EncodeEntries(known)
		if err != nil {
			p.t.Fatal(err)
		}
		return map[string]string{"known": text}
	}
	dynamic := func(object map[string]string) any {
		if object == nil {
			return nil
		}
		types := map[string]string{}
		for key := range object {
			types[key] = "string"
		}
		return map[string]any{"type": []any{"object", types}, "value": object}
	}
	assignment, err := json.Marshal(map[string]any{
		"name": "dev",
		"fleet": map[string]any{
			"type": []any{"object", map[string]any{
				"format": "string", "environment": "string", "model": "string",
				"config": entriesType, "manifests": entriesType,
			}},
			"value": map[string]any{
				"format": known.Format, "environment": known.Environment, "model": known.Model,
				"config": entries(known.Config), "manifests": entries(known.Manifests),
			},
		},
		"gitops_repo": dynamic(map[string]string{"url": p.repository.url, "branch": branch}),
		"delivery":    dynamic(p.delivery),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	provider, err := json.Marshal(map[string]any{"git": dynamic(map[string]string{"token": p.token})})
	if err != nil {
		p.t.Fatal(err)
	}
	return applyInput{Provider: provider, Assignment: assignment, State: p.state, Private: p.private}
}

func (p *killRepository) apply(n int) {
	p.t.Helper()
	state, private, err := p.inputFor(n).apply(p.t.Context(), func() {})
	if err != nil {
		p.t.Fatalf("apply: %s", err)
	}
	p.state, p.private, p.current = state, private, n
}

// cloneAndCheck returns a fresh bare clone that passes git fsck, or "" without a repository. In the server's own repository,
// git fsck would miss objects of refs pushed meanwhile.
func (p *killRepository) cloneAndCheck() string {
	p.t.Helper()
	from := p.repository.cloneURL
	if p.bareFolder != "" {
		if !p.exists() {
			return ""
		}
		from = "file://" + p.bareFolder
	}
	if p.clone == "" {
		p.clone = filepath.Join(p.t.TempDir(), "clone.git")
	}
	if err := os.RemoveAll(p.clone); err != nil {
		p.t.Fatal(err)
	}
	git(p.t, "", "clone", "--quiet", "--mirror", from, p.clone)
	git(p.t, p.clone, "fsck", "--strict", "--no-dangling")
	return p.clone
}

func (p *killRepository) exists() bool {
	_, err := os.Stat(p.bareFolder)
	return p.bareFolder == "" || !errors.Is(err, fs.ErrNotExist)
}

// branchTip returns the commit of a branch and the hash of its files, or "" without the branch.
func branchTip(t *testing.T, directory, branch string) (commit, hash string) {
	t.Helper()
	if directory == "" || git(t, directory, "for-each-ref", "refs/heads/"+branch) == "" {
		return "", ""
	}
	commit = git(t, directory, "rev-parse", "refs/heads/"+branch)
	return commit, contentHash(t, directory, commit)
}

// contentHash hashes the files of a commit, except fields that depend on history or state, and markers of emptied hosts.
func contentHash(t *testing.T, directory, commit string) string {
	t.Helper()
	files := tar.NewReader(strings.NewReader(git(t, directory, "archive", "--format=tar", commit)))
	hash := sha256.New()
	for {
		header, err := files.Next()
		if err != nil {
			return hex.EncodeToString(hash.Sum(nil))
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(header.Name, ".flotilla/") {
			text = volatileFields.ReplaceAll(text, nil)
		}
		if !isVacated(string(text)) {
			fmt.Fprintf(hash, "%s %d\n%s", header.Name, len(text), text)
		}
	}
}

var volatileFields = regexp.MustCompile(`,\n *"(changed|tree_before)": "[^"]*"| *"holder": "[^"]*",\n`)

// recordContents applies every variant undisturbed, and records the hashes.
func (p *killRepository) recordContents() {
	p.t.Helper()
	for n := range variants {
		p.apply(n)
		_, p.contents[n] = branchTip(p.t, p.cloneAndCheck(), branch)
	}
	p.apply(0)
}

// checkAfterKill reports whether the branch has the commit of the killed apply. Its files, including records and files of
// others, must equal those before or after the apply.
func (p *killRepository) checkAfterKill(before string, n int) (after bool) {
	p.t.Helper()
	directory := p.cloneAndCheck()
	commit, hash := branchTip(p.t, directory, branch)
	if commit == before {
		return false
	}
	if hash != p.contents[n] {
		p.t.Errorf("the branch is at commit %s with content %s, want commit %q or content %s", commit, hash, before, p.contents[n])
	}
	if parent := git(p.t, directory, "log", "-1", "--format=%P", commit); parent != before {
		p.t.Errorf("the branch's commit has the parent %q, want %q", parent, before)
	}
	return true
}

// checkConvergence applies the variant again: the branch must have the content of an undisturbed apply, with one commit since
// before. One more apply changes nothing. In half of all cases it has no state, and replaces the holder in the records.
func (p *killRepository) checkConvergence(before string, n int) {
	p.t.Helper()
	found, _ := branchTip(p.t, p.cloneAndCheck(), branch)
	want := "1"
	if p.state == nil && found != before {
		want = "2"
	}
	p.apply(n)
	directory := p.cloneAndCheck()
	commit, hash := branchTip(p.t, directory, branch)
	if hash != p.contents[n] {
		p.t.Errorf("the next apply results in content %s, want %s", hash, p.contents[n])
	}
	since := []string{"rev-list", "--count", commit}
	if before != "" {
		since = append(since, "^"+before)
	}
	if commits := git(p.t, directory, since...); commits != want {
		p.t.Errorf("got %s commits, want %s", commits, want)
	}
	isStateLost := commit[0] < '8'
	if isStateLost {
		p.state, p.private = nil, nil
	}
	p.apply(n)
	if again, now := branchTip(p.t, p.cloneAndCheck(), branch); again != commit && (!isStateLost || now != hash) {
		p.t.Error("one more apply made a commit")
	}
}

// checkClean requires that git fsck passes and no lock or temporary files are left.
func (p *killRepository) checkClean() {
	p.t.Helper()
	git(p.t, p.bareFolder, "fsck", "--strict", "--no-dangling")
	if head := git(p.t, p.bareFolder, "symbolic-ref", "HEAD"); head != "refs/heads/"+branch {
		p.t.Errorf("HEAD is %s", head)
	}
	err := filepath.WalkDir(p.bareFolder, func(path string, _ fs.DirEntry, err error) error {
		if name := filepath.Base(path); strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "tmp_objdir-") ||
			strings.HasPrefix(name, "incoming-") {
			p.t.Errorf("file %s was left", path)
		}
		return err
	})
	if err != nil {
		p.t.Error(err)
	}
	beside, err := os.ReadDir(filepath.Dir(p.bareFolder))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, entry := range beside {
		if strings.HasPrefix(entry.Name(), ".") {
			p.t.Errorf("%s was left beside the repository", entry.Name())
		}
	}
}

// hasOnlyProviders is false if a server writes, too.
func (p *killRepository) hasOnlyProviders() bool { return p.bareFolder != "" && p.stopServer == nil }

// finish stops the server. No provider may be running.
func (p *killRepository) finish() {
	p.t.Helper()
	if p.stopServer != nil {
		p.stopServer()
		p.checkClean()
	}
}

// newLocalRepository is at a local path.
func newLocalRepository(t *testing.T) *killRepository {
	t.Helper()
	p := newMissingRepository(t)
	git(t, "", "init", "--quiet", "--bare", "--initial-branch="+branch, p.bareFolder)
	p.seed()
	p.recordContents()
	return p
}

// newMissingRepository is a path where the first apply creates a repository.
func newMissingRepository(t *testing.T) *killRepository {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gitops.git")
	return &killRepository{t: t, repository: repository{url: path, cloneURL: path}, bareFolder: path}
}

func newBackendRepository(t *testing.T, handle func(http.Handler) http.Handler) *killRepository {
	t.Helper()
	p := newForeignBackendRepository(t, handle)
	p.recordContents()
	return p
}

// newForeignBackendRepository has files of others only. git's http-backend serves it.
func newForeignBackendRepository(t *testing.T, handle func(http.Handler) http.Handler) *killRepository {
	t.Helper()
	p := newMissingRepository(t)
	initHosted(t, filepath.Dir(p.bareFolder), filepath.Base(p.bareFolder), branch)
	p.seed()
	backend := gitBackend(t, filepath.Dir(p.bareFolder))
	server := httptest.NewServer(handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// With a Content-Length, git-http-backend would wait forever for the request of a dead client.
		r.ContentLength = -1
		backend.ServeHTTP(w, r)
	})))
	t.Cleanup(server.Close)
	p.repository.url, p.stopServer = server.URL+"/"+filepath.Base(p.bareFolder), server.Close
	return p
}

// newGiteaRepository is behind a proxy, which handle wraps.
func newGiteaRepository(t *testing.T, handle func(http.Handler) http.Handler) *killRepository {
	t.Helper()
	repo, gitea, user := giteaWithUser(t)
	to, err := url.Parse(gitea.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // killed clients
	server := httptest.NewServer(handle(proxy))
	t.Cleanup(server.Close)
	p := &killRepository{t: t, repository: repo, token: user.Token, requests: func() (newest []giteaPullRequest) {
		gitea.API(t, user, http.MethodGet, "/repos/"+user.Name+"/gitops/pulls?state=all&limit=50", nil, &newest)
		return newest
	}}
	p.seed()
	p.repository.url = server.URL + strings.TrimPrefix(repo.url, gitea.URL)
	p.recordContents()
	return p
}

// seed pushes a commit with files of others.
func (p *killRepository) seed() {
	p.t.Helper()
	folder := p.t.TempDir()
	git(p.t, folder, "init", "--quiet", "--initial-branch="+branch)
	for name, content := range map[string]string{
		"README.md": "Written by hand.\n", "drone-0/by-hand/notes.md": "x\n", "drone-00/y": "y", "other/z": "z\n",
	} {
		writeFile(p.t, filepath.Join(folder, filepath.FromSlash(name)), content)
	}
	git(p.t, folder, "add", "--all")
	git(p.t, folder, "commit", "--quiet", "--message", "By hand")
	git(p.t, folder, "push", "--quiet", p.repository.cloneURL, "HEAD:"+branch)
}
