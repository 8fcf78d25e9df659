//go:build unix

package provider_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// How far a request has come. What is only asked for never gets to the server. What is sent is done by
// it, though the provider was killed before, and so is what is half answered.
const (
	asked        = "asked for"
	halfSent     = "half sent"
	sent         = "sent"
	halfAnswered = "half answered"
	answered     = "answered"
)

// Requests of Git's protocol.
const (
	refs        = "refs"
	objects     = "objects"
	refsForPush = "refs for pushing"
	push        = "push"
	refsAgain   = "refs after the push"
)

// step is one of an apply: a request, and how far it has come.
type step struct {
	Request int // from 0
	When    string
	Name    string
}

// stepsOf are the steps of one request.
func stepsOf(request int, name string, whens ...string) []step {
	steps := make([]step, len(whens))
	for i, when := range whens {
		steps[i] = step{request, when, name + ": " + when}
	}
	return steps
}

// watcher sees the requests that a provider makes, and kills it at one step.
type watcher interface {
	// watch waits for the end of what a killed provider had asked for, forgets what it has seen, and
	// kills at this step.
	watch(at step, kill func())
	// steps are those of the requests that were seen.
	steps() []step
	environment() []string
}

// never is no step.
var never = step{Request: -1}

// webWatcher is a server before another.
type webWatcher struct {
	next http.Handler

	mu       sync.Mutex
	requests []string
	at       step
	kill     func()
	killed   bool
	serving  sync.WaitGroup
}

func (w *webWatcher) before(next http.Handler) http.Handler {
	w.next, w.at = next, never
	return w
}

func (w *webWatcher) environment() []string { return nil }

func (w *webWatcher) watch(at step, kill func()) {
	w.serving.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests, w.at, w.kill, w.killed = nil, at, kill, false
}

func (w *webWatcher) steps() (steps []step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, name := range numbered(w.requests) {
		whens := []string{asked, sent, halfAnswered, answered}
		switch {
		case strings.HasPrefix(name, push):
			whens = []string{asked, halfSent, sent, halfAnswered, answered}
		case strings.HasPrefix(name, refs), strings.HasPrefix(name, "GET"):
			whens = []string{asked, answered}
		}
		steps = append(steps, stepsOf(i, name, whens...)...)
	}
	return steps
}

// numbered tells requests of one name apart.
func numbered(requests []string) []string {
	count, names := map[string]int{}, make([]string, len(requests))
	for i, name := range requests {
		if name == refs && slices.Contains(requests[:i], push) {
			name = refsAgain
		}
		count[name]++
		if names[i] = name; count[name] > 1 {
			names[i] = fmt.Sprintf("%s (%d)", name, count[name])
		}
	}
	return names
}

var (
	repositoryOfAPI = regexp.MustCompile(`^/api/v1/(repos/[^/]*/[^/]*/?)?`)
	numberInAPI     = regexp.MustCompile(`\d+`)
)

func requestName(r *http.Request) string {
	switch service := r.URL.Query().Get("service"); {
	case service == "git-upload-pack":
		return refs
	case service == "git-receive-pack":
		return refsForPush
	case strings.HasSuffix(r.URL.Path, "/git-upload-pack"):
		return objects
	case strings.HasSuffix(r.URL.Path, "/git-receive-pack"):
		return push
	}
	name := repositoryOfAPI.ReplaceAllString(r.URL.Path, "")
	return r.Method + " " + cmp.Or(numberInAPI.ReplaceAllString(name, "{n}"), "repository")
}

// ServeHTTP passes requests on until the provider is killed.
func (w *webWatcher) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	w.serving.Add(1)
	defer w.serving.Done()
	w.mu.Lock()
	hit, killed := len(w.requests) == w.at.Request, w.killed
	w.requests, w.killed = append(w.requests, requestName(r)), killed || hit
	at, kill := w.at.When, w.kill
	w.mu.Unlock()
	switch {
	case killed:
		panic(http.ErrAbortHandler)
	case !hit:
		w.next.ServeHTTP(answer, r)
		return
	case at == asked:
		kill()
		panic(http.ErrAbortHandler)
	}
	body, _ := io.ReadAll(r.Body)
	switch at {
	case halfSent:
		kill()
		body = body[:len(body)/2]
	case sent:
		kill()
	}
	r = r.WithContext(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	recorder := httptest.NewRecorder()
	if at == halfSent {
		defer func() { _ = recover() }() // half a request is an error of the proxy's
	}
	w.next.ServeHTTP(recorder, r)
	text := recorder.Body.Bytes()
	switch at {
	case halfAnswered:
		text = text[:len(text)/2]
	case answered:
	default:
		return
	}
	for key, values := range recorder.Header() {
		answer.Header()[key] = values
	}
	answer.WriteHeader(recorder.Code)
	_, _ = answer.Write(text)
	_ = http.NewResponseController(answer).Flush()
	kill()
}

// gitWatcher is a git on PATH before the real one.
type gitWatcher struct {
	t      *testing.T
	folder string
}

const (
	watchFolder = "FLOTILLA_TEST_WATCH"     // where such a git finds its orders
	realGit     = "FLOTILLA_TEST_WATCH_GIT" // path
	orders      = "orders"
	seen        = "seen"
)

func newGitWatcher(t *testing.T) *gitWatcher {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &gitWatcher{t: t, folder: t.TempDir()}
	if err := os.Symlink(self, filepath.Join(w.folder, "git")); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *gitWatcher) environment() []string {
	w.t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		w.t.Fatal(err)
	}
	return []string{
		"PATH=" + w.folder + string(os.PathListSeparator) + os.Getenv("PATH"), watchFolder + "=" + w.folder, realGit + "=" + git,
	}
}

// watch needs no kill: such a git kills its parent.
func (w *gitWatcher) watch(at step, _ func()) {
	w.t.Helper()
	text, err := json.Marshal(at)
	if err != nil {
		w.t.Fatal(err)
	}
	for name, content := range map[string]string{orders: string(text), seen: ""} {
		writeFile(w.t, filepath.Join(w.folder, name), content)
	}
}

func (w *gitWatcher) steps() (steps []step) {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.folder, seen))
	if err != nil {
		w.t.Fatal(err)
	}
	// A git-upload-pack or git-receive-pack is two requests: of refs, and what follows. After the push
	// nothing follows.
	pushed := false
	var requests []string
	for _, name := range strings.Fields(string(text)) {
		switch {
		case name == "receive-pack":
			name, pushed = refsForPush, true
		case name == "upload-pack" && pushed:
			name = refsAgain
		case name == "upload-pack":
			name = refs
		default:
			name = "creation, git " + name
		}
		requests = append(requests, name)
	}
	for i, name := range numbered(requests) {
		steps = append(steps, stepsOf(i, name, asked, answered)...)
		number := strings.TrimPrefix(name, refs)
		switch requests[i] {
		case refsForPush:
			steps[len(steps)-1].When = advertised
			steps = append(steps, stepsOf(i, push, halfSent, sent, halfAnswered, answered)...)
		case refs:
			steps[len(steps)-1].When = advertised
			steps = append(steps, stepsOf(i, objects+number, sent, halfAnswered, answered)...)
		case refsAgain:
			steps[len(steps)-1].When = advertised
		}
	}
	return steps
}

// advertised is between asked and sent, where refs and objects are one process.
const advertised = "advertised"

// runWatchedGit is such a git.
func runWatchedGit() error {
	folder, path := os.Getenv(watchFolder), os.Getenv(realGit)
	pass := func() error { return syscall.Exec(path, append([]string{"git"}, os.Args[1:]...), os.Environ()) }
	text, err := os.ReadFile(filepath.Join(folder, orders))
	if err != nil {
		return pass() // nobody watches yet
	}
	var at step
	if err := json.Unmarshal(text, &at); err != nil {
		return err
	}
	commands := []string{"upload-pack", "receive-pack", "init", "symbolic-ref", "config"}
	i := slices.IndexFunc(os.Args, func(argument string) bool { return slices.Contains(commands, argument) })
	before, err := os.ReadFile(filepath.Join(folder, seen))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, seen), append(before, os.Args[i]+"\n"...), 0o600); err != nil {
		return err
	}
	kill := func() {
		// While it waits for this process, the id is its own.
		if id := os.Getppid(); strconv.Itoa(id) == os.Getenv(doomedID) {
			_ = syscall.Kill(id, syscall.SIGKILL)
		}
	}
	switch {
	case bytes.Count(before, []byte("\n")) != at.Request:
		return pass()
	case at.When == asked:
		kill()
		return nil
	}
	command := exec.Command(path, os.Args[1:]...)
	if !strings.HasSuffix(os.Args[i], "-pack") {
		err := command.Run()
		kill()
		return err
	}
	return watchService(command, at.When, kill)
}

// watchService stands between a provider and a git-upload-pack or git-receive-pack.
func watchService(service *exec.Cmd, when string, kill func()) error {
	in, err := service.StdinPipe()
	if err != nil {
		return err
	}
	out, err := service.StdoutPipe()
	if err != nil {
		return err
	}
	if err := service.Start(); err != nil {
		return err
	}
	defer func() { _ = service.Wait() }()
	defer func() { _ = in.Close() }()
	for length := 1; length > 0; { // until the flush packet
		header := make([]byte, 4)
		if _, err := io.ReadFull(out, header); err != nil {
			return err
		}
		if _, err := fmt.Sscanf(string(header), "%04x", &length); err != nil {
			return err
		}
		rest := make([]byte, max(0, length-len(header)))
		if _, err := io.ReadFull(out, rest); err != nil {
			return err
		}
		if _, err := os.Stdout.Write(slices.Concat(header, rest)); err != nil {
			return err
		}
	}
	if when == advertised {
		kill()
		return nil
	}
	request, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	switch when {
	case halfSent:
		kill()
		request = request[:len(request)/2]
	case sent:
		kill()
	}
	if _, err := in.Write(request); err != nil {
		return err
	}
	_ = in.Close()
	answer, err := io.ReadAll(out)
	if err != nil {
		return err
	}
	switch when {
	case halfAnswered:
		_, _ = os.Stdout.Write(answer[:len(answer)/2])
		kill()
	case answered:
		_, _ = os.Stdout.Write(answer)
		kill()
	}
	return nil
}

// stepTable is what was found at the steps, by server.
type stepTable struct {
	mu    sync.Mutex
	found map[string][]foundStep
}

type foundStep struct {
	name  string
	after bool // the branch has the commit
}

func (s *stepTable) add(name, server string, after bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found[server] = append(s.found[server], foundStep{name, after})
}

// rows has a row for each server, with its steps in their order.
func (s *stepTable) rows(rows *killRows) {
	for i, server := range stepServers {
		before, after := 0, 0
		for _, step := range s.found[server] {
			if step.after {
				after++
			} else {
				before++
			}
		}
		if before+after == 0 {
			continue
		}
		rows.set(i, "`kill -9` of the provider at each step", server, before+after, fmt.Sprintf(
			"%d before and %d after the commit, none between; the next apply converged. Before: %s. After: %s",
			before, after, named(s.found[server], false), named(s.found[server], true)))
	}
}

// named are the names of steps, each request's together.
func named(steps []foundStep, after bool) string {
	var text strings.Builder
	last := ""
	for _, step := range steps {
		if step.after != after {
			continue
		}
		request, when, _ := strings.Cut(step.name, ": ")
		switch {
		case last == "":
			text.WriteString(request + " " + when)
		case request == last:
			text.WriteString(", " + when)
		default:
			text.WriteString("; " + request + " " + when)
		}
		last = request
	}
	return cmp.Or(text.String(), "none")
}

const (
	stepBackend = "http-backend"
	stepGitea   = "Gitea"
	stepLocal   = "local path"
	stepCreated = "local path (created)"
	stepMerged  = "Gitea (pull request merged)"
	stepOpened  = "Gitea (pull request opened)"
	stepClosed  = "Gitea (pull request closed)"
)

var stepServers = []string{stepBackend, stepGitea, stepLocal, stepCreated, stepMerged, stepOpened, stepClosed}

// TestReliabilityKilledAtEveryStep kills providers at every step of an apply. What is tried only when
// all is asked for are Gitea's steps, which take long.
func TestReliabilityKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	table, rows := &stepTable{found: map[string][]foundStep{}}, &killRows{}
	rows.write(t, "51-killed-at-every-step.md")
	t.Cleanup(func() { table.rows(rows) })
	t.Run(stepLocal, func(t *testing.T) {
		t.Parallel()
		p := localPlace(t)
		killAtEachStep(t, table, stepLocal, newGitWatcher(t), func(*testing.T) *place { return p })
	})
	t.Run(stepCreated, func(t *testing.T) {
		t.Parallel()
		trees := learnCreated(t, missingPlace)
		killAtEachStep(t, table, stepCreated, newGitWatcher(t), func(t *testing.T) *place {
			p := missingPlace(t)
			p.trees = trees
			return p
		})
	})
	t.Run(stepBackend, func(t *testing.T) {
		t.Parallel()
		w := &webWatcher{}
		p := backendPlace(t, w.before)
		killAtEachStep(t, table, stepBackend, w, func(*testing.T) *place { return p })
	})
	if often(0, 1) == 0 {
		return
	}
	t.Run(stepGitea, func(t *testing.T) {
		t.Parallel()
		w := &webWatcher{}
		p := giteaPlace(t, w.before)
		killAtEachStep(t, table, stepGitea, w, func(*testing.T) *place { return p })
	})
	for _, how := range []struct {
		server, merge string
		to            int
		moves         bool // the branch, in the end
		open          int  // requests, in the end
	}{
		{server: stepOpened, merge: "none", to: 2, open: 1},
		{server: stepClosed, merge: "none", to: 0},
		{server: stepMerged, merge: "now", to: 2, moves: true},
	} {
		t.Run(how.server, func(t *testing.T) {
			t.Parallel()
			w := &webWatcher{}
			p := giteaPlace(t, w.before)
			p.delivery = map[string]string{"mode": "pull_request", "forge": "gitea", "merge": how.merge}
			from := 2 - how.to
			for _, n := range []int{how.to, from} { // a first request is looked for in other ways
				p.apply(n)
			}
			eachStep(t, p.wish(how.to), w, func(at step) {
				p.apply(from)
				before, tree := tip(t, p.look(), branch)
				if how.moves {
					tree = p.trees[how.to]
				}
				killed := killAt(t, p.wish(how.to), w, at)
				commit, is := tip(t, p.look(), branch)
				if commit != before && (is != tree || !how.moves) {
					t.Errorf("the branch is between: at commit %s with tree %s", commit, is)
				}
				if killed {
					table.add(at.Name, how.server, commit != before)
				}
				p.proposes(how.to, tree, how.open)
			})
		})
	}
}

// proposes applies what a killed provider was to propose: in the end the branch has this tree, as many
// requests are open, the variant is what they ask for, and one more apply changes nothing.
func (p *place) proposes(n int, tree string, open int) {
	p.t.Helper()
	p.apply(n)
	look := func() (string, []request) {
		p.t.Helper()
		directory := p.look()
		commit, is := tip(p.t, directory, branch)
		if is != tree {
			p.t.Errorf("the branch has tree %s, want %s", is, tree)
		}
		all, found := p.requests(), 0
		for _, one := range all {
			if one.State != "open" {
				continue
			}
			found++
			if is := git(p.t, directory, "rev-parse", one.Head.SHA+"^{tree}"); is != p.trees[n] {
				p.t.Errorf("the open request asks for tree %s, want %s", is, p.trees[n])
			}
		}
		if found != open {
			p.t.Errorf("%d requests are open, want %d", found, open)
		}
		return commit, all
	}
	commit, all := look()
	p.apply(n)
	if again, now := look(); again != commit || !slices.Equal(now, all) {
		p.t.Errorf("one more apply changed something: the branch is at %s, was at %s; the requests are %+v, were %+v", again, commit, now, all)
	}
}

// killAtEachStep kills at every step of what brings the branch from the first variant to another.
func killAtEachStep(t *testing.T, table *stepTable, server string, w watcher, newPlace func(*testing.T) *place) {
	t.Helper()
	const n = 2
	p := newPlace(t)
	defer p.end()
	eachStep(t, p.wish(n), w, func(at step) {
		p := newPlace(t)
		if p.state != nil {
			p.apply(0)
		}
		before, _ := tip(t, p.look(), branch)
		if killAt(t, p.wish(n), w, at) {
			table.add(at.Name, server, p.judge(before, n))
		}
		p.converges(before, n)
		if p.alone() {
			p.clean()
		}
	})
}

// eachStep lets a provider apply undisturbed, and calls do with all steps that there were; with some
// of them unless all are asked for.
func eachStep(t *testing.T, w wish, watcher watcher, do func(step)) {
	t.Helper()
	provider := newDoomed(t, w, watcher.environment()...)
	watcher.watch(never, nil)
	provider.proceed()
	if !provider.ends() {
		t.Fatal("an undisturbed apply failed")
	}
	provider.settles()
	steps := watcher.steps()
	if len(steps) == 0 {
		t.Fatal("no steps were seen")
	}
	watcher.watch(never, nil)
	for i := 0; i < len(steps); i += often(6, 1) {
		do(steps[i])
		if t.Failed() {
			t.Fatalf("killed at the step %s", steps[i].Name)
		}
	}
}

// killAt lets a provider apply until it is killed at a step, and all that it started ends. It tells
// whether the provider came to that step.
func killAt(t *testing.T, w wish, watcher watcher, at step) (killed bool) {
	t.Helper()
	provider := newDoomed(t, w, watcher.environment()...)
	watcher.watch(at, provider.kill)
	provider.last = func() { watcher.watch(never, nil) } // the last answer comes before the kill
	provider.proceed()
	provider.ends()
	provider.settles()
	watcher.watch(never, nil)
	status, ok := provider.command.ProcessState.Sys().(syscall.WaitStatus)
	killed = ok && status.Signal() == syscall.SIGKILL
	if !killed && !strings.HasPrefix(at.Name, "GET") { // how often it asks whether the host is ready differs
		t.Errorf("the provider did not come to the step %s", at.Name)
	}
	return killed
}
