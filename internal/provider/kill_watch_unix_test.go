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

// Moments of a request. A request that was asked for never reaches the server. One that was sent is completed, even after the
// kill.
const (
	asked        = "asked for"
	halfSent     = "half sent"
	sent         = "sent"
	halfAnswered = "half answered"
	answered     = "answered"
)

const (
	refs        = "refs"
	objects     = "objects"
	refsForPush = "refs for pushing"
	push        = "push"
	refsAgain   = "refs after the push"
)

// step is a moment of a request.
type step struct {
	Request int // from 0
	When    string
	Name    string
}

func stepsOf(request int, name string, whens ...string) []step {
	steps := make([]step, len(whens))
	for i, when := range whens {
		steps[i] = step{request, when, name + ": " + when}
	}
	return steps
}

// watcher records the requests of a provider, and kills it at one step.
type watcher interface {
	// watch waits for requests of a killed provider, forgets all recorded requests, and sets the step of the next kill.
	watch(at step, kill func())
	steps() []step
	environment() []string
}

var noStep = step{Request: -1}

// webWatcher is a proxy before a server.
type webWatcher struct {
	next http.Handler

	mu       sync.Mutex
	requests []string
	target   step
	kill     func()
	killed   bool
	serving  sync.WaitGroup
}

func (w *webWatcher) wrap(next http.Handler) http.Handler {
	w.next, w.target = next, noStep
	return w
}

func (w *webWatcher) environment() []string { return nil }

func (w *webWatcher) watch(at step, kill func()) {
	w.serving.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests, w.target, w.kill, w.killed = nil, at, kill, false
}

func (w *webWatcher) steps() (steps []step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, name := range uniqueNames(w.requests) {
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

func uniqueNames(requests []string) []string {
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

func (w *webWatcher) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	w.serving.Add(1)
	defer w.serving.Done()
	w.mu.Lock()
	hit, killed := len(w.requests) == w.target.Request, w.killed
	w.requests, w.killed = append(w.requests, requestName(r)), killed || hit
	moment, kill := w.target.When, w.kill
	w.mu.Unlock()
	switch {
	case killed:
		panic(http.ErrAbortHandler)
	case !hit:
		w.next.ServeHTTP(answer, r)
		return
	case moment == asked:
		kill()
		panic(http.ErrAbortHandler)
	}
	body, _ := io.ReadAll(r.Body)
	switch moment {
	case halfSent:
		kill()
		body = body[:len(body)/2]
	case sent:
		kill()
	}
	r = r.WithContext(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	recorder := httptest.NewRecorder()
	if moment == halfSent {
		defer func() { _ = recover() }() // the proxy panics on half a request
	}
	w.next.ServeHTTP(recorder, r)
	text := recorder.Body.Bytes()
	switch moment {
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

// gitWatcher puts a git before the real one on PATH.
type gitWatcher struct {
	t      *testing.T
	folder string
}

// Only PATH reaches this git, so it reads its settings from files.
const (
	watchFolder       = "FLOTILLA_TEST_WATCH" // variable of the provider process: the folder
	realGit           = "real-git"            // path
	providerProcessID = "doomed"              // id of the provider process
	targetStep        = "orders"
	seenCommands      = "seen"
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
	writeFile(w.t, filepath.Join(w.folder, realGit), git)
	return []string{"PATH=" + w.folder + string(os.PathListSeparator) + os.Getenv("PATH"), watchFolder + "=" + w.folder}
}

// watch ignores kill, because the watched git kills its parent.
func (w *gitWatcher) watch(at step, _ func()) {
	w.t.Helper()
	text, err := json.Marshal(at)
	if err != nil {
		w.t.Fatal(err)
	}
	for name, content := range map[string]string{targetStep: string(text), seenCommands: ""} {
		writeFile(w.t, filepath.Join(w.folder, name), content)
	}
}

func (w *gitWatcher) steps() (steps []step) {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.folder, seenCommands))
	if err != nil {
		w.t.Fatal(err)
	}
	// One process of git-upload-pack or git-receive-pack serves two requests: refs, then objects or a push. After the push, it
	// serves only refs.
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
	for i, name := range uniqueNames(requests) {
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

// advertised is a moment between asked and sent, when one git process serves both refs and objects.
const advertised = "advertised"

func runWatchedGit() error {
	self, err := exec.LookPath("git")
	if err != nil {
		return err
	}
	folder := filepath.Dir(self)
	content, err := os.ReadFile(filepath.Join(folder, realGit))
	if err != nil {
		return err
	}
	path := string(content)
	pass := func() error { return syscall.Exec(path, append([]string{"git"}, os.Args[1:]...), os.Environ()) }
	text, err := os.ReadFile(filepath.Join(folder, targetStep))
	if err != nil {
		return pass() // not watched yet
	}
	var at step
	if err := json.Unmarshal(text, &at); err != nil {
		return err
	}
	commands := []string{"upload-pack", "receive-pack", "init", "symbolic-ref", "config"}
	i := slices.IndexFunc(os.Args, func(argument string) bool { return slices.Contains(commands, argument) })
	before, err := os.ReadFile(filepath.Join(folder, seenCommands))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, seenCommands), append(before, os.Args[i]+"\n"...), 0o600); err != nil {
		return err
	}
	kill := func() {
		// The parent cannot reuse its id while it waits for this process.
		doomed, _ := os.ReadFile(filepath.Join(folder, providerProcessID))
		if id := os.Getppid(); strconv.Itoa(id) == string(doomed) {
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

// watchService relays between a provider and a git-upload-pack or git-receive-pack.
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
