package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/source"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// repository is a bare repository with a checkout.
type repository struct {
	t              *testing.T
	bare, checkout string
}

func newRepository(t *testing.T, settings ...string) *repository {
	t.Helper()
	folder := t.TempDir()
	r := &repository{t: t, bare: filepath.Join(folder, "source.git"), checkout: filepath.Join(folder, "checkout")}
	gittest.Run(t, folder, "git", "init", "--quiet", "--bare", "--template=", "--initial-branch=main", r.bare)
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "=")
		gittest.Run(t, r.bare, "git", "config", key, value)
	}
	gittest.Run(t, folder, "git", "init", "--quiet", "--template=", "--initial-branch=main", r.checkout)
	r.git("remote", "add", "origin", r.bare)
	return r
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	return strings.TrimSpace(gittest.Run(r.t, r.checkout, "git", args...))
}

// commit writes files over existing ones and returns the commit.
func (r *repository) commit(files map[string]string) string {
	r.t.Helper()
	for name, content := range files {
		path := filepath.Join(r.checkout, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	r.git("add", "--all")
	r.git("commit", "--quiet", "--allow-empty", "--message", "Write")
	return r.git("rev-parse", "HEAD")
}

func (r *repository) push(refs ...string) {
	r.t.Helper()
	r.git(append([]string{"push", "--quiet", "--force", "origin"}, refs...)...)
}

// counted is a server that counts the bytes it sends.
type counted struct {
	net.Listener
	sent *atomic.Int64
}

func (l counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConnection{c, l.sent}, err
}

type countedConnection struct {
	net.Conn
	sent *atomic.Int64
}

func (c countedConnection) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

// gitPrograms returns the folder of git's programs, or "" without git.
var gitPrograms = sync.OnceValue(func() string {
	output, _ := exec.Command("git", "--exec-path").Output()
	return strings.TrimSpace(string(output))
})

// serve serves a repository by git's http-backend. requests counts requests for packs.
func (r *repository) serve(token string) (url string, sent, requests *atomic.Int64) {
	r.t.Helper()
	sent, requests = &atomic.Int64{}, &atomic.Int64{}
	backend := &cgi.Handler{
		Path: filepath.Join(gitPrograms(), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(r.bare), "GIT_HTTP_EXPORT_ALL=1"}, Stderr: io.Discard,
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if _, password, _ := request.BasicAuth(); password != token {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if request.Method == http.MethodPost {
			requests.Add(1)
		}
		body, err := io.ReadAll(request.Body) // the backend would spin on a truncated body
		if err != nil {
			return
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		backend.ServeHTTP(w, request)
	}))
	server.Listener = counted{server.Listener, sent}
	server.Start()
	r.t.Cleanup(server.Close)
	return server.URL + "/" + filepath.Base(r.bare), sent, requests
}

var (
	anyObject    = []string{"uploadpack.allowFilter=true", "uploadpack.allowAnySHA1InWant=true"}
	blobNone     = []string{"uploadpack.allowFilter=true"}
	noTreeFilter = []string{
		"uploadpack.allowFilter=true", "uploadpack.allowAnySHA1InWant=true", "uploadpackfilter.allow=false", "uploadpackfilter.blob:none.allow=true",
	}
)

func read(t *testing.T, query source.Query) (source.Files, error) {
	t.Helper()
	for _, wrong := range query.Check() {
		t.Fatal(wrong)
	}
	return source.NewReader(git.NewConnector(git.ConnectorOptions{}), git.Credentials{}).Read(t.Context(), query)
}

func wantFiles(t *testing.T, query source.Query, want map[string]string) source.Files {
	t.Helper()
	got, err := read(t, query)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got.Texts, want) {
		t.Errorf("%+v gives %q, want %q", query, got.Texts, want)
	}
	return got
}

// wantError requires an error at an attribute with all these texts.
func wantError(t *testing.T, query source.Query, attribute string, says ...string) {
	t.Helper()
	_, err := read(t, query)
	var wrong *source.QueryError
	if !errors.As(err, &wrong) || wrong.Attribute != attribute {
		t.Fatalf("%+v: %v, want an error at %s", query, err, attribute)
	}
	for _, text := range says {
		if !strings.Contains(wrong.Error(), text) {
			t.Errorf("%+v: %v, want %q", query, wrong, text)
		}
	}
}

func TestFilesAreReadFromEveryServer(t *testing.T) {
	t.Parallel()
	few := map[string][]string{"any object": anyObject, "plain": nil}
	all := map[string][]string{"any object": anyObject, "blob filter": blobNone, "no tree filter": noTreeFilter, "plain": nil}
	for name, settings := range map[bool]map[string][]string{false: few, true: all}[acceptancetest.All()] {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t, settings...)
			first := r.commit(
				map[string]string{
					"a.yaml":                   "first",
					"teams/one/app.yaml":       "one",
					"teams/two/app.yaml":       "two",
					"teams/two/deep/er/b.yaml": "deep",
					"x.txt":                    "x",
				},
			)
			r.git("tag", "light")
			r.git("tag", "--annotate", "--message", "release", "v1")
			r.git("tag", "--annotate", "--message", "again", "v1-again", "v1")
			second := r.commit(map[string]string{"a.yaml": "second"})
			r.push("main", "--tags")
			overHTTP, _, _ := r.serve("")
			urls := []string{overHTTP}
			if settings == nil || acceptancetest.All() {
				urls = append(urls, r.bare, "file://"+r.bare, r.checkout)
			}
			for i, url := range urls {
				refs := map[string]string{"": second, "main": second, "refs/heads/main": second, "v1": first, "v1-again": first, "refs/tags/light": first, second: second}
				if i > 0 && !acceptancetest.All() { // one reader is enough for the others
					refs = map[string]string{"": second, "v1-again": first}
				}
				for ref, want := range refs {
					got := wantFiles(
						t,
						source.Query{URL: url, Ref: ref, Include: []string{"a.*"}},
						map[string]string{"a.yaml": map[string]string{first: "first", second: "second"}[want]},
					)
					if got.Commit != want {
						t.Errorf("%s of %s is commit %s, want %s", ref, url, got.Commit, want)
					}
				}
				all := map[string]string{"one/app.yaml": "one", "two/app.yaml": "two", "two/deep/er/b.yaml": "deep"}
				wantFiles(t, source.Query{URL: url, Path: "./teams/"}, all)
				wantFiles(
					t,
					source.Query{URL: url, Path: "teams", Include: []string{"**/*.yaml"}, Exclude: []string{"two/deep"}},
					map[string]string{"one/app.yaml": "one", "two/app.yaml": "two"},
				)
				wantFiles(
					t,
					source.Query{URL: url, Include: []string{"teams/*/app.yaml", "{x,y}.txt"}},
					map[string]string{"teams/one/app.yaml": "one", "teams/two/app.yaml": "two", "x.txt": "x"},
				)
			}
		})
	}
}

func TestACommitWithoutRefIsReadIfTheServerGivesIt(t *testing.T) {
	t.Parallel()
	r := newRepository(t, anyObject...)
	orphan := r.commit(map[string]string{"a": "orphan"})
	r.push("main")
	r.git("commit", "--quiet", "--amend", "--message", "Another")
	r.push("main")
	url, _, _ := r.serve("")
	for _, url := range []string{url, r.bare} {
		wantFiles(t, source.Query{URL: url, Ref: orphan}, map[string]string{"a": "orphan"})
		wantError(t, source.Query{URL: url, Ref: strings.Repeat("1", 40)}, "ref", "there is no commit 1111", url)
	}
	gittest.Run(t, r.bare, "git", "config", "uploadpack.allowAnySHA1InWant", "false")
	wantError(t, source.Query{URL: url, Ref: orphan}, "ref", "no branch or tag is at commit "+orphan, "make a tag")
	gittest.Run(t, r.bare, "git", "config", "uploadpack.allowReachableSHA1InWant", "true")
	wantError(t, source.Query{URL: url, Ref: orphan}, "ref", "there is no commit "+orphan)
}

func TestMissingFilesAndRefsAreNamed(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.commit(map[string]string{"workloads/app.yaml": "x", "other": "y"})
	first := r.git("rev-parse", "HEAD")
	r.git("tag", "both")
	r.git("tag", "--annotate", "--message", "a tree", "tree", "HEAD^{tree}")
	r.commit(map[string]string{"other": "z"})
	r.push("main", "main:both", "--tags")
	r.push("main:refs/heads/both")
	query := func(change func(*source.Query)) source.Query {
		q := source.Query{URL: r.bare, Ref: "main"}
		change(&q)
		return q
	}
	wantError(t, query(func(q *source.Query) { q.Ref = "mian" }), "ref", `there is no branch or tag "mian"; did you mean "main"?`, r.bare)
	wantError(t, query(func(q *source.Query) { q.Ref = "refs/tags/bot" }), "ref", `there is no tag "bot"; did you mean "both"?`)
	wantError(t, query(func(q *source.Query) { q.Ref = "refs/heads/v9" }), "ref", `there is no branch "v9"`)
	wantError(t, query(func(q *source.Query) { q.Ref = first[:8] }), "ref", "has to be whole, 40 hexadecimal digits")
	wantError(t, query(func(q *source.Query) { q.Ref = "both" }), "ref", "refs/heads/both or refs/tags/both")
	wantError(t, query(func(q *source.Query) { q.Path = "workload" }), "path", `no folder "workload"`, `did you mean "workloads"?`)
	wantError(t, query(func(q *source.Query) { q.Path = "workloads/app.yaml" }), "path", `"workloads/app.yaml" is a file`)
	wantError(
		t,
		query(func(q *source.Query) { q.Path = "workloads"; q.Include = []string{"*.json"} }),
		"include",
		`no file in "workloads" matches "*.json"`,
	)
	wantError(t, query(func(q *source.Query) { q.Include = []string{"workloads"} }), "include", `all its files are "workloads/**"`)
	if _, err := read(t, query(func(q *source.Query) { q.Ref = "tree" })); err == nil || !strings.Contains(err.Error(), "not a commit") {
		t.Errorf("a tag of a tree: %v", err)
	}
	if _, err := read(t, source.Query{URL: r.bare + "-none"}); !errors.Is(err, git.ErrNotFound) {
		t.Errorf("a repository that is not there: %v", err)
	}
	empty := newRepository(t)
	wantError(t, source.Query{URL: empty.bare}, "ref", "the repository is empty")
	r.git("push", "--quiet", "origin", "main:next")
	gittest.Run(t, r.bare, "git", "symbolic-ref", "HEAD", "refs/heads/none")
	wantError(t, source.Query{URL: r.bare}, "ref", "no default branch")
}

func TestBinaryFilesAreNamed(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.commit(map[string]string{
		"a.yaml": "a", "logo.png": "\x89PNG\xff", "large.yaml": "version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "all/a": "a", "all/b": "bb",
		"\xff.name": "a",
	})
	if err := os.Symlink("a.yaml", filepath.Join(r.checkout, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	r.git("update-index", "--add", "--cacheinfo", "160000,"+r.git("rev-parse", "HEAD")+",module.yaml")
	r.git("add", "link.yaml")
	r.git("commit", "--quiet", "--message", "Link")
	r.push("main")
	wantError(t, source.Query{URL: r.bare, Include: []string{"*.png"}}, "include", `Not UTF-8: "logo.png"`, "exclude")
	wantError(t, source.Query{URL: r.bare, Include: []string{"large.yaml"}}, "include", `Git LFS`, `"large.yaml"`)
	wantError(
		t,
		source.Query{URL: r.bare, Include: []string{"*.yaml"}},
		"include",
		`"link.yaml" is a symbolic link, "module.yaml" is a submodule`,
	)
	wantError(t, source.Query{URL: r.bare, Include: []string{"*.name"}}, "include", `not UTF-8: "\xff.name"`)
	wantFiles(
		t,
		source.Query{URL: r.bare, Include: []string{"*.yaml"}, Exclude: []string{"l*", "module.yaml"}},
		map[string]string{"a.yaml": "a"},
	)
	wantFiles(t, source.Query{URL: r.bare, Path: "all", Limits: source.Limits{Files: 2, Bytes: 3}}, map[string]string{"a": "a", "b": "bb"})
	wantError(
		t,
		source.Query{URL: r.bare, Path: "all", Limits: source.Limits{Files: 1, Bytes: 3}},
		"limits",
		"More than 1 files match",
		"limits.files",
	)
	wantError(
		t,
		source.Query{URL: r.bare, Path: "all", Limits: source.Limits{Files: 2, Bytes: 2}},
		"limits",
		"more than 2 bytes",
		"limits.bytes",
	)
}

func TestATreeOfManyEqualTreesIsBounded(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	tree := "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
	gittest.Feed(t, r.bare, nil, "mktree")
	for range 5 {
		var text strings.Builder
		for i := range 12 {
			fmt.Fprintf(&text, "040000 tree %s\t%d\n", tree, i)
		}
		tree = strings.TrimSpace(gittest.Feed(t, r.bare, []byte(text.String()), "mktree"))
	}
	r.setMain(tree)
	wantError(t, source.Query{URL: r.bare}, "include", "More than 200000 folders")
}

func TestPrivateRepositoriesAreReadWithTheirCredentialsAlone(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.commit(map[string]string{"a": "a"})
	r.push("main")
	url, _, _ := r.serve("the-secret")
	for _, credentials := range []git.Credentials{
		{}, {Login: git.Login{Token: "wrong-secret"}}, {ByURL: []git.URLCredentials{{URL: "https://other.example.com", Login: git.Login{Token: "the-secret"}}}},
	} {
		_, err := source.NewReader(git.NewConnector(git.ConnectorOptions{}), credentials).Read(t.Context(), source.Query{URL: url})
		if !errors.Is(err, git.ErrUnauthorized) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v", err)
		}
	}
	credentials := git.Credentials{
		Login: git.Login{Token: "wrong-secret"},
		ByURL: []git.URLCredentials{{URL: url, Login: git.Login{Token: "the-secret"}}},
	}
	if _, err := source.NewReader(git.NewConnector(git.ConnectorOptions{}), credentials).Read(t.Context(), source.Query{URL: url}); err != nil {
		t.Error(err)
	}
}

func TestQueriesAreChecked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		query source.Query
		at    string // attributes of the errors
	}{
		"nothing":                  {source.Query{}, "url"},
		"everything":               {source.Query{URL: "ftp://x", Ref: "a b", Path: "../x", Include: []string{"[a"}, Exclude: []string{""}}, "url ref path include exclude"},
		"a path from the root":     {source.Query{URL: "x", Path: "/a"}, "path"},
		"a path with a backslash":  {source.Query{URL: "x", Path: `a\b`}, "path"},
		"a long path":              {source.Query{URL: "x", Path: strings.Repeat("a/", 4000)}, "path"},
		"no pattern":               {source.Query{URL: "x", Include: []string{}}, "include"},
		"a ref of another kind":    {source.Query{URL: "x", Ref: "refs/pull/1/head"}, "ref"},
		"a ref of nothing":         {source.Query{URL: "x", Ref: "refs/heads/"}, "ref"},
		"a ref that is an option":  {source.Query{URL: "x", Ref: "--upload-pack=x"}, "ref"},
		"a long ref":               {source.Query{URL: "x", Ref: strings.Repeat("a", 2000)}, "ref"},
		"all that is right":        {source.Query{URL: "x", Ref: "release/1.2", Path: ".", Include: []string{"**"}, Exclude: []string{"a/**"}}, ""},
		"a branch that looks odd":  {source.Query{URL: "x", Ref: "renovate/@scope-x+y=z#1"}, ""},
		"a commit":                 {source.Query{URL: "x", Ref: strings.Repeat("a", 40)}, ""},
		"a commit in another hash": {source.Query{URL: "x", Ref: strings.Repeat("a", 64)}, ""},
	} {
		var at []string
		for _, wrong := range test.query.Check() {
			at = append(at, wrong.Attribute)
		}
		if strings.Join(at, " ") != test.at {
			t.Errorf("%s: wrong are %q, want %q: %v", name, at, test.at, test.query.Check())
		}
	}
}

// TestReadingAFewOfManyFilesReceivesLittle reads 40 files out of 20,000, in `make acceptance` out of 100,000. It logs how much more
// a server without filters sends.
func TestReadingAFewOfManyFilesReceivesLittle(t *testing.T) {
	t.Parallel()
	folders, each := acceptancetest.Count(60, 1_000), 100
	r := newRepository(t)
	var stream bytes.Buffer
	stream.WriteString("commit refs/heads/main\ncommitter a <a@example.com> 1700000000 +0000\ndata 1\nx\n")
	for i := range folders {
		for j := range each {
			content := fmt.Sprintf("kind: ConfigMap\nmetadata: {name: file-%d-%d}\n", i, j)
			fmt.Fprintf(&stream, "M 100644 inline teams/team-%d/file-%d.yaml\ndata %d\n%s\n", i, j, len(content), content)
		}
	}
	gittest.Feed(t, r.bare, stream.Bytes(), "fast-import", "--quiet")
	query := source.Query{Ref: "main", Path: "teams", Include: []string{fmt.Sprintf("team-{0,10,20,%d}/file-?.yaml", folders-1)}}
	for _, server := range []struct {
		name     string
		settings []string
		sent     int // maximum bytes for each folder
	}{{"any object", anyObject, 1_000}, {"no tree filter", noTreeFilter, 8_000}, {"plain", nil, 64_000}} {
		_, _ = gittest.TryRun(t, r.bare, "git", "config", "--remove-section", "uploadpack")
		_, _ = gittest.TryRun(t, r.bare, "git", "config", "--remove-section", "uploadpackfilter")
		for _, setting := range server.settings {
			key, value, _ := strings.Cut(setting, "=")
			gittest.Run(t, r.bare, "git", "config", key, value)
		}
		url, sent, requests := r.serve("")
		query.URL = url
		got, err := read(t, query)
		if err != nil {
			t.Fatal(err)
		}
		last := fmt.Sprintf("kind: ConfigMap\nmetadata: {name: file-%d-9}\n", folders-1)
		if len(got.Texts) != 40 || got.Texts[fmt.Sprintf("team-%d/file-9.yaml", folders-1)] != last {
			t.Errorf("%s: %d files: %q", server.name, len(got.Texts), slices.Sorted(maps.Keys(got.Texts)))
		}
		if most := int64(server.sent * folders); sent.Load() > most {
			t.Errorf("%s: received %d bytes, want %d at most", server.name, sent.Load(), most)
		}
		t.Logf("%s: received %d KiB in %d requests", server.name, sent.Load()>>10, requests.Load())
	}
	// A local repository sends as little, regardless of its own configuration.
	query.URL = r.bare
	objects := 0
	client := git.NewConnector(git.ConnectorOptions{Log: func(_ context.Context, _ string, fields map[string]any) {
		count, _ := fields["objects"].(int)
		objects += count
	}})
	if _, err := source.NewReader(client, git.Credentials{}).Read(t.Context(), query); err != nil {
		t.Fatal(err)
	}
	if objects < 40 || objects > 60 {
		t.Errorf("%d objects were fetched of a local repository", objects)
	}
}
