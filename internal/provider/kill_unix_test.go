//go:build unix

package provider_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// init makes this binary, under another name, one of the processes that these tests need.
func init() {
	var run func() error
	switch filepath.Base(os.Args[0]) {
	case doomedName:
		run = runDoomed
	case "git":
		run = runWatchedGit
	default:
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// wish is what a provider is to bring about.
type wish struct {
	Provider   json.RawMessage // configuration of the provider
	Assignment json.RawMessage // configuration of a flotilla_assignment
	State      []byte          // its state, in MessagePack; empty where there is none
}

// apply does what Terraform does: refresh, plan, apply. It calls begin before it applies, and returns
// the state after.
func (w wish) apply(ctx context.Context, begin func()) ([]byte, error) {
	const name = "flotilla_assignment"
	server, err := factories()["flotilla"]()
	if err != nil {
		return nil, err
	}
	configured, err := server.ConfigureProvider(ctx, &tfprotov6.ConfigureProviderRequest{Config: &tfprotov6.DynamicValue{JSON: w.Provider}})
	if err != nil || failure(configured.Diagnostics) != nil {
		return nil, cmp.Or(err, failure(configured.Diagnostics))
	}
	config, state := &tfprotov6.DynamicValue{JSON: w.Assignment}, &tfprotov6.DynamicValue{MsgPack: w.State}
	if len(w.State) > 0 {
		read, err := server.ReadResource(ctx, &tfprotov6.ReadResourceRequest{TypeName: name, CurrentState: state})
		if err != nil || failure(read.Diagnostics) != nil {
			return nil, cmp.Or(err, failure(read.Diagnostics))
		}
		state = read.NewState
	} else {
		state.MsgPack = []byte{0xc0} // null
	}
	// The provider plans every computed attribute itself: nothing of the state need be proposed.
	planned, err := server.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName: name, PriorState: state, ProposedNewState: config, Config: config,
	})
	if err != nil || failure(planned.Diagnostics) != nil {
		return nil, cmp.Or(err, failure(planned.Diagnostics))
	}
	begin()
	applied, err := server.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: name, PriorState: state, PlannedState: planned.PlannedState, Config: config, PlannedPrivate: planned.PlannedPrivate,
	})
	if err != nil || failure(applied.Diagnostics) != nil {
		return nil, cmp.Or(err, failure(applied.Diagnostics))
	}
	return applied.NewState.MsgPack, nil
}

func failure(diagnostics []*tfprotov6.Diagnostic) error {
	var all []error
	for _, diagnostic := range diagnostics {
		if diagnostic.Severity == tfprotov6.DiagnosticSeverityError {
			all = append(all, errors.New(diagnostic.Summary+": "+diagnostic.Detail))
		}
	}
	return errors.Join(all...)
}

// The process of a provider that may be killed reads its wish, says when it is about to apply, waits
// to be told to, says when it has, and ends with its input, as a plugin does when Terraform ends it.
const (
	doomedName = "doomed-provider"
	doomedID   = "FLOTILLA_TEST_DOOMED" // of the process, for those that it starts
	ready      = "ready"
	done       = "done"
)

func runDoomed() error {
	in := json.NewDecoder(os.Stdin)
	var w wish
	if err := in.Decode(&w); err != nil {
		return err
	}
	if err := os.Setenv(doomedID, strconv.Itoa(os.Getpid())); err != nil {
		return err
	}
	say := func(what string) { _, _ = fmt.Fprintln(os.Stdout, what) }
	_, err := w.apply(context.Background(), func() {
		say(ready)
		var proceed bool
		_ = in.Decode(&proceed)
	})
	if err == nil {
		say(done)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	return err
}

// doomed is such a process.
type doomed struct {
	t       *testing.T
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
	stderr  bytes.Buffer
	family  *os.File // ends when the process and all that it started have ended
	last    func()   // is called when it has applied, before it ends
}

// newDoomed starts a process, and returns when it is about to apply.
func newDoomed(t *testing.T, w wish, environment ...string) *doomed {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &doomed{t: t, command: exec.CommandContext(t.Context(), self), last: func() {}}
	d.command.Args = []string{doomedName}
	d.command.Env = append(os.Environ(), environment...)
	d.command.Stderr = &d.stderr
	family, inherited, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	d.family, d.command.ExtraFiles = family, []*os.File{inherited}
	if d.in, err = d.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := d.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.out = bufio.NewScanner(out)
	if err := d.command.Start(); err != nil {
		t.Fatal(err)
	}
	_ = inherited.Close()
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.in.Write(text); err != nil {
		t.Fatal(err)
	}
	if !d.out.Scan() || d.out.Text() != ready {
		d.ends()
		t.Fatalf("the provider did not come to apply: %s", d.stderr.String())
	}
	return d
}

// proceed lets it apply.
func (d *doomed) proceed() {
	d.t.Helper()
	if _, err := io.WriteString(d.in, "true\n"); err != nil {
		d.t.Fatal(err)
	}
}

func (d *doomed) kill() { _ = d.command.Process.Kill() }

// ends waits for the end of the process, and tells whether it had applied.
func (d *doomed) ends() (applied bool) {
	if applied = d.out.Scan() && d.out.Text() == done; applied {
		d.last()
	}
	_ = d.in.Close()
	err := d.command.Wait()
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.Exited() {
		d.t.Errorf("the provider was not killed, but failed: %s", d.stderr.String())
	}
	return applied
}

// settles waits for the end of all that the process had started.
func (d *doomed) settles() {
	_, _ = io.Copy(io.Discard, d.family)
	_ = d.family.Close()
}

// undisturbed lets a process apply, and returns how long that took.
func undisturbed(t *testing.T, w wish) time.Duration {
	t.Helper()
	d := newDoomed(t, w)
	start := time.Now()
	d.proceed()
	var took time.Duration
	d.last = func() { took = time.Since(start) }
	if !d.ends() {
		t.Error("an undisturbed apply failed")
	}
	d.settles()
	return took
}

// variants are fleets of one environment, of 6 cluster types and up to 8 deployment targets each. From
// one of the first two to the other, one folder changes, and git unpacks what is pushed; any other
// step changes all or removes some, and git keeps the pack.
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

// place is a repository that providers are killed over.
type place struct {
	t          *testing.T
	repository repository
	token      string
	delivery   map[string]string
	requests   func() []request // the newest, on Gitea
	// directory is the bare repository itself; empty where only the server has it.
	directory string
	clone     string // of it, made last
	// stop ends who else than providers works on it, if anybody does.
	stop func()

	state   []byte           // what Terraform has
	current int              // the variant that was applied last
	trees   [variants]string // what undisturbed applies make of the branch
}

const branch = "dev"

// wish is for a variant, starting from what Terraform has.
func (p *place) wish(n int) wish {
	p.t.Helper()
	decoded, findings := fleet.Decode(variant(n))
	if len(findings) > 0 {
		p.t.Fatal(findings.Error())
	}
	model, err := decoded.Fleet.Model()
	if err != nil {
		p.t.Fatal(err)
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
		"name":        "dev",
		"fleet":       map[string]any{"environment": "dev", "model": model, "config": decoded.Config},
		"gitops_repo": dynamic(map[string]string{"url": p.repository.url, "branch": branch}),
		"delivery":    dynamic(p.delivery),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	provider, err := json.Marshal(map[string]any{"git": map[string]any{"token": p.token}})
	if err != nil {
		p.t.Fatal(err)
	}
	return wish{Provider: provider, Assignment: assignment, State: p.state}
}

// apply is one that nobody disturbs, in the test's own process.
func (p *place) apply(n int) {
	p.t.Helper()
	state, err := p.wish(n).apply(p.t.Context(), func() {})
	if err != nil {
		p.t.Fatalf("apply: %s", err)
	}
	p.state, p.current = state, n
}

// look returns a fresh clone, bare, with which git finds nothing wrong; "" where no repository is yet.
// The server's own repository is no place to look at while somebody may still push: git fsck then
// misses objects of refs that came while it ran.
func (p *place) look() string {
	p.t.Helper()
	from := p.repository.cloneURL
	if p.directory != "" {
		if !p.exists() {
			return ""
		}
		from = "file://" + p.directory
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

func (p *place) exists() bool {
	_, err := os.Stat(p.directory)
	return p.directory == "" || !errors.Is(err, fs.ErrNotExist)
}

// tip is the commit that a branch is at, and its tree; empty where there is none.
func tip(t *testing.T, directory, branch string) (commit, tree string) {
	t.Helper()
	if directory == "" || git(t, directory, "for-each-ref", "refs/heads/"+branch) == "" {
		return "", ""
	}
	ids := strings.Fields(git(t, directory, "rev-parse", "refs/heads/"+branch, "refs/heads/"+branch+"^{tree}"))
	return ids[0], ids[1]
}

// learn applies every variant undisturbed, and remembers what each makes of the branch.
func (p *place) learn() {
	p.t.Helper()
	for n := range variants {
		p.apply(n)
		_, p.trees[n] = tip(p.t, p.look(), branch)
	}
	p.apply(0)
}

// judge looks at the repository of a provider that was killed on the way from a commit to a variant,
// and tells whether the branch has the commit that it was to make. The branch's whole tree is
// compared: what is owned, the records of it, and the files of others.
func (p *place) judge(before string, n int) (after bool) {
	p.t.Helper()
	directory := p.look()
	commit, tree := tip(p.t, directory, branch)
	if commit == before {
		return false
	}
	if tree != p.trees[n] {
		p.t.Errorf("the branch is between: at commit %s with tree %s, want commit %q or tree %s", commit, tree, before, p.trees[n])
	}
	if parent := git(p.t, directory, "log", "-1", "--format=%P", commit); parent != before {
		p.t.Errorf("the branch's commit has the parent %q, want %q", parent, before)
	}
	return true
}

// converges applies what a killed provider was to apply: afterwards the branch has what an undisturbed
// apply makes of it, with one commit, and one more apply, which knows of no state in half of all
// cases, makes none.
func (p *place) converges(before string, n int) {
	p.t.Helper()
	p.apply(n)
	directory := p.look()
	commit, tree := tip(p.t, directory, branch)
	if tree != p.trees[n] {
		p.t.Errorf("the next apply makes tree %s, want %s", tree, p.trees[n])
	}
	since := []string{"rev-list", "--count", commit}
	if before != "" {
		since = append(since, "^"+before)
	}
	if made := git(p.t, directory, since...); made != "1" {
		p.t.Errorf("%s commits came of it, want one", made)
	}
	if commit[0] < '8' {
		p.state = nil
	}
	p.apply(n)
	if again, _ := tip(p.t, p.look(), branch); again != commit {
		p.t.Error("one more apply made a commit")
	}
}

// clean checks a repository on this machine that nobody works on any more: git finds nothing wrong
// with it, and nothing lies about that would be in anybody's way.
func (p *place) clean() {
	p.t.Helper()
	git(p.t, p.directory, "fsck", "--strict", "--no-dangling")
	if head := git(p.t, p.directory, "symbolic-ref", "HEAD"); head != "refs/heads/"+branch {
		p.t.Errorf("HEAD is %s", head)
	}
	err := filepath.WalkDir(p.directory, func(path string, _ fs.DirEntry, err error) error {
		if name := filepath.Base(path); strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "tmp_objdir-") || strings.HasPrefix(name, "incoming-") {
			p.t.Errorf("%s was left", path)
		}
		return err
	})
	if err != nil {
		p.t.Error(err)
	}
	beside, err := os.ReadDir(filepath.Dir(p.directory))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, entry := range beside {
		if strings.HasPrefix(entry.Name(), ".") {
			p.t.Errorf("%s was left beside the repository", entry.Name())
		}
	}
}

// alone says whether only providers, and what they start, work on the repository.
func (p *place) alone() bool { return p.directory != "" && p.stop == nil }

// end is when no provider will be killed over it any more.
func (p *place) end() {
	p.t.Helper()
	if p.stop != nil {
		p.stop()
		p.clean()
	}
}

// localPlace is a repository at a local path, with files of others in it.
func localPlace(t *testing.T) *place {
	t.Helper()
	p := missingPlace(t)
	git(t, "", "init", "--quiet", "--bare", "--initial-branch="+branch, p.directory)
	p.seed()
	p.learn()
	return p
}

// missingPlace is a path at which an apply creates a repository.
func missingPlace(t *testing.T) *place {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gitops.git")
	return &place{t: t, repository: repository{url: path, cloneURL: path}, directory: path}
}

// backendPlace is one behind git's http-backend, and what handle makes of that.
func backendPlace(t *testing.T, handle func(http.Handler) http.Handler) *place {
	t.Helper()
	p := foreignBackendPlace(t, handle)
	p.learn()
	return p
}

// foreignBackendPlace is one in which are only files of others.
func foreignBackendPlace(t *testing.T, handle func(http.Handler) http.Handler) *place {
	t.Helper()
	p := missingPlace(t)
	git(t, "", "init", "--quiet", "--bare", "--initial-branch="+branch, p.directory)
	for _, key := range []string{"http.receivepack", "uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"} {
		git(t, p.directory, "config", key, "true")
	}
	p.seed()
	backend := &cgi.Handler{
		Path:   filepath.Join(git(t, "", "--exec-path"), "git-http-backend"),
		Env:    []string{"GIT_PROJECT_ROOT=" + filepath.Dir(p.directory), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=test"},
		Stderr: io.Discard,
	}
	server := httptest.NewServer(handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Told how long a request is, git-http-backend waits forever for the rest of one whose client is gone.
		r.ContentLength = -1
		backend.ServeHTTP(w, r)
	})))
	t.Cleanup(server.Close)
	p.repository.url, p.stop = server.URL+"/"+filepath.Base(p.directory), server.Close
	return p
}

// giteaPlace is one of a user's on Gitea, behind what handle makes of that.
func giteaPlace(t *testing.T, handle func(http.Handler) http.Handler) *place {
	t.Helper()
	repo, gitea, user := giteaWithUser(t)
	to, err := url.Parse(gitea.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of those whose client was killed
	server := httptest.NewServer(handle(proxy))
	t.Cleanup(server.Close)
	p := &place{t: t, repository: repo, token: user.Token, requests: func() (newest []request) {
		gitea.API(t, user, http.MethodGet, "/repos/"+user.Name+"/gitops/pulls?state=all&limit=50", nil, &newest)
		return newest
	}}
	p.seed()
	p.repository.url = server.URL + strings.TrimPrefix(repo.url, gitea.URL)
	p.learn()
	return p
}

// seed makes a first commit, of files that are not ours.
func (p *place) seed() {
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

// killRows are rows of a table of what was tried: what, servers, runs, outcome. Tests that run side by
// side set them by their place in the table.
type killRows struct {
	mu   sync.Mutex
	rows map[int]string
}

func (r *killRows) set(order int, what, servers string, runs int, outcome string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows == nil {
		r.rows = map[int]string{}
	}
	r.rows[order] = fmt.Sprintf("| %s | %s | %d | %s |\n", what, servers, runs, outcome)
}

// write writes the rows when the test and what it runs have passed, if a folder for such tables is
// named.
func (r *killRows) write(t *testing.T, name string) {
	t.Helper()
	t.Cleanup(func() {
		var text strings.Builder
		for _, order := range slices.Sorted(maps.Keys(r.rows)) {
			text.WriteString(r.rows[order])
		}
		t.Logf("\n%s", text.String())
		if folder := os.Getenv(reliability); folder != "" && !t.Failed() {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text.String()), 0o644); err != nil {
				t.Error(err)
			}
		}
	})
}

// reliability names a folder for tables; where it is set, tests run as often as they promise.
const reliability = "FLOTILLA_RELIABILITY"

// often is how often a test runs.
func often(few, many int) int {
	if os.Getenv(reliability) != "" {
		return many
	}
	return few
}
