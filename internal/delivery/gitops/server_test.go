package gitops_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// run, tryRun and feed run programs, such as git.
var (
	run    = gittest.Run
	tryRun = gittest.TryRun
	feed   = gittest.Feed
)

// repository is a bare repository and its remote.
type repository struct {
	t         testing.TB
	directory string // of the repository, or of a mirror
	mirror    bool
	remote    git.Remote
}

// serving is a kind of server.
type serving struct {
	name   string
	often  bool     // also used in `make test`
	config []string // git configuration of the bare repository
	remote func(t testing.TB, directory string) git.Remote
	mirror bool // the directory is a mirror of a repository on a Git host
}

var (
	anyObject = []string{"uploadpack.allowFilter=true", "uploadpack.allowAnySHA1InWant=true"}
	blobNone  = []string{"uploadpack.allowFilter=true"}
	// GitLab allows filters, except by tree depth.
	noTreeFilter = []string{
		"uploadpack.allowFilter=true", "uploadpack.allowAnySHA1InWant=true",
		"uploadpackfilter.allow=false", "uploadpackfilter.blob:none.allow=true",
	}
)

var servings = []serving{
	{name: "path", often: true, remote: func(_ testing.TB, directory string) git.Remote { return git.Remote{IsGitOps: true, URL: directory} }},
	{name: "file", remote: func(_ testing.TB, directory string) git.Remote {
		return git.Remote{IsGitOps: true, URL: "file://" + filepath.ToSlash(directory)}
	}},
	{name: "http any object", often: true, config: anyObject, remote: overHTTP},
	{name: "http blob filter", config: blobNone, remote: overHTTP},
	{name: "http no tree filter", config: noTreeFilter, remote: overHTTP},
	{name: "http plain", often: true, remote: overHTTP},
}

// gitHostImitations imitate the servers of Git hosts that do not run git.
var gitHostImitations = []serving{
	{name: "like Azure Repos", config: anyObject, remote: overStandIn(gittest.AzureRepos)},
	{name: "like Azure Repos without objects by id", config: anyObject, remote: overStandIn(func() *gittest.StandIn {
		server := gittest.AzureRepos()
		server.NoIDs = true
		return server
	})},
	{name: "like CodeCommit", config: anyObject, remote: overStandIn(gittest.CodeCommit)},
}

func overStandIn(server func() *gittest.StandIn) func(testing.TB, string) git.Remote {
	return func(t testing.TB, directory string) git.Remote {
		t.Helper()
		return git.Remote{
			IsGitOps: true,
			URL:      serve(t, server().Before(t, httpBackend(t, filepath.Dir(directory)))) + "/" + filepath.Base(directory),
		}
	}
}

// forEachServing runs a test with an empty repository on each kind of server in `make acceptance`. In `make test`, the name of the
// test selects a path, a server with most options, or one with the fewest.
func forEachServing(t *testing.T, test func(t *testing.T, r *repository)) {
	t.Helper()
	forEachOf(t, someServings(t), test)
}

func someServings(t *testing.T) []serving {
	t.Helper()
	if acceptancetest.All() {
		return servings
	}
	return pickByName(t, slices.DeleteFunc(slices.Clone(servings), func(one serving) bool { return !one.often }))
}

// someGitHostImitations returns one of gitHostImitations, selected by the name of the test, and all of them in `make acceptance`.
func someGitHostImitations(t *testing.T) []serving {
	t.Helper()
	if acceptancetest.All() {
		return gitHostImitations
	}
	return pickByName(t, gitHostImitations)
}

func pickByName(t *testing.T, servings []serving) []serving {
	t.Helper()
	one := crc32.ChecksumIEEE([]byte(t.Name())) % uint32(len(servings))
	return servings[one : one+1]
}

// forEachOf is forEachServing for the given servers.
func forEachOf(t *testing.T, servings []serving, test func(t *testing.T, r *repository)) {
	t.Helper()
	for _, serving := range servings {
		t.Run(serving.name, func(t *testing.T) {
			t.Parallel()
			test(t, newRepository(t, serving))
		})
	}
}

func newRepository(t testing.TB, serving serving) *repository {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "repositories", "gitops.git")
	r := &repository{t: t, directory: directory, mirror: serving.mirror}
	initRepository(t, directory, append([]string{"http.receivepack=true", "receive.autogc=false"}, serving.config...)...)
	r.remote = serving.remote(t, directory)
	r.remote.Branch = "main"
	return r
}

// initRepository creates a bare repository with settings, as git init and git config do. It runs no processes, because tests create
// hundreds of repositories.
func initRepository(t testing.TB, directory string, settings ...string) {
	t.Helper()
	text := "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "=")
		section, rest, _ := strings.Cut(key, ".")
		if i := strings.LastIndexByte(rest, '.'); i >= 0 {
			section, rest = fmt.Sprintf("%s %q", section, rest[:i]), rest[i+1:]
		}
		text += fmt.Sprintf("[%s]\n\t%s = %s\n", section, rest, value)
	}
	for _, folder := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(directory, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": text} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func overHTTP(t testing.TB, directory string) git.Remote {
	t.Helper()
	return git.Remote{IsGitOps: true, URL: serve(t, backend(t, filepath.Dir(directory))) + "/" + filepath.Base(directory)}
}

// serve returns the base URL of a server that ends with the test.
func serve(t testing.TB, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// backend is git's http-backend for the repositories in a folder. It gets only complete requests, as from a buffering web server,
// because a request that breaks off makes it spin forever. In `make test`, most requests start no process.
func backend(t testing.TB, root string) http.Handler {
	t.Helper()
	program := gittest.Backend(root, httpBackend(t, root))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		program.ServeHTTP(w, r)
	})
}

// newClient returns a client that reads local repositories without running git, except in `make acceptance`.
func newClient(options gitops.BranchOptions) *gitops.BranchClient {
	if options.Git == nil {
		options.Git = git.NewConnector(gittest.Options())
	}
	return gitops.NewBranchClient(options)
}

// gitPrograms returns the folder of git's programs, "" without git.
var gitPrograms = sync.OnceValue(func() string {
	output, _ := exec.Command("git", "--exec-path").Output()
	return strings.TrimSpace(string(output))
})

func httpBackend(t testing.TB, root string) *cgi.Handler {
	t.Helper()
	return &cgi.Handler{
		Path:   filepath.Join(gitPrograms(), "git-http-backend"),
		Env:    []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=test"},
		Stderr: io.Discard,
	}
}

// gitea starts a real Gitea in `make acceptance`. A push to it costs half a second of processor time.
func gitea(t testing.TB) *giteatest.Gitea {
	t.Helper()
	acceptancetest.Only(t)
	return giteatest.Start(t)
}

// overGiteaHTTP creates a repository of a new user with a token in Gitea. The repository in the directory mirrors it.
func overGiteaHTTP(t testing.TB, directory string) git.Remote {
	t.Helper()
	server := gitea(t)
	user := mirrorFromGitea(t, server, directory)
	return git.Remote{
		IsGitOps: true, URL: fmt.Sprintf("%s/%s/gitops.git", server.URL, user.Name),
		Credentials: git.Credentials{Login: git.Login{Token: user.Token}},
	}
}

func mirrorFromGitea(t testing.TB, server *giteatest.Gitea, directory string) giteatest.User {
	t.Helper()
	user := server.User(t)
	address, err := url.Parse(server.Repository(t, user, "gitops"))
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword(user.Name, user.Password)
	run(t, directory, "git", "remote", "add", "--mirror=fetch", "origin", address.String())
	return user
}

// serveByGit makes git serve the repository instead of [gittest.Local], which leaves repositories with hooks to git.
func (r *repository) serveByGit() {
	r.t.Helper()
	if err := os.Mkdir(filepath.Join(r.directory, "hooks"), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.directory, "hooks", "none"), nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// git runs git in the bare repository.
func (r *repository) git(args ...string) string {
	r.t.Helper()
	r.update()
	if output, ok := gittest.Answer(r.directory, args...); ok {
		return strings.TrimSpace(output)
	}
	return strings.TrimSpace(run(r.t, r.directory, "git", args...))
}

func (r *repository) update() {
	r.t.Helper()
	if r.mirror {
		run(r.t, r.directory, "git", "fetch", "--quiet", "--prune")
	}
}

// origin returns the URL for clones.
func (r *repository) origin() string {
	r.t.Helper()
	if r.mirror {
		return strings.TrimSpace(run(r.t, r.directory, "git", "remote", "get-url", "origin"))
	}
	return r.directory
}

// clone returns a work tree of the branch. The repository may be empty.
func (r *repository) clone() *workTree {
	r.t.Helper()
	directory := filepath.Join(r.t.TempDir(), "clone")
	run(r.t, "", "git", "clone", "--quiet", r.origin(), directory)
	return &workTree{r: r, directory: directory}
}

// fsck fails the test if the repository is damaged. In `make acceptance` and for mirrors, it runs git, in four processes.
func (r *repository) fsck() {
	r.t.Helper()
	if !r.mirror && !acceptancetest.All() {
		if err := gittest.Check(r.directory); err != nil {
			r.t.Fatal(err)
		}
		return
	}
	if output := r.git("fsck", "--strict", "--full"); strings.Contains(output, "error") || strings.Contains(output, "missing") {
		r.t.Fatalf("git fsck --strict: %s", output)
	}
}

func fileURL(directory string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(directory)}).String()
}
