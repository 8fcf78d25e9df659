package gitops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reliabilitytest"
)

// faulty passes requests to next unless fault answers them.
type faulty struct {
	next  http.Handler
	mu    sync.Mutex
	fault func(w http.ResponseWriter, r *http.Request, next http.Handler) bool
}

func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	fault := f.fault
	f.mu.Unlock()
	if fault == nil || !fault(w, r, f.next) {
		f.next.ServeHTTP(w, r)
	}
}

// once applies do to the first request with the given suffix of the URL.
func once(
	suffix string,
	do func(w http.ResponseWriter, r *http.Request, next http.Handler),
) func(http.ResponseWriter, *http.Request, http.Handler) bool {
	var done atomic.Bool
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		if !strings.HasSuffix(r.URL.Path+"?"+r.URL.RawQuery, suffix) || !done.CompareAndSwap(false, true) {
			return false
		}
		do(w, r, next)
		return true
	}
}

// eachTime applies do to every request with the given suffix of the URL.
func eachTime(
	suffix string,
	do func(w http.ResponseWriter, r *http.Request, next http.Handler),
) func(http.ResponseWriter, *http.Request, http.Handler) bool {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		if !strings.HasSuffix(r.URL.Path+"?"+r.URL.RawQuery, suffix) {
			return false
		}
		do(w, r, next)
		return true
	}
}

func drop(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		if tcp, ok := connection.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = connection.Close()
	}
}

// serveThen lets the server handle the request, and sends another answer to the client.
func serveThen(
	answer func(w http.ResponseWriter, r *http.Request, next http.Handler),
) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		answer(w, r, next)
	}
}

func respond(status int, body string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// truncate sends the first half of the real answer.
func truncate(w http.ResponseWriter, r *http.Request, next http.Handler) {
	recorder := httptest.NewRecorder()
	next.ServeHTTP(recorder, r)
	w.Header().Set("Content-Type", recorder.Header().Get("Content-Type"))
	_, _ = w.Write(recorder.Body.Bytes()[:recorder.Body.Len()/2])
}

// breakOff announces the whole answer, and drops the connection in the middle.
func breakOff(w http.ResponseWriter, r *http.Request, next http.Handler) {
	recorder := httptest.NewRecorder()
	next.ServeHTTP(recorder, r)
	w.Header().Set("Content-Type", recorder.Header().Get("Content-Type"))
	w.Header().Set("Content-Length", strconv.Itoa(recorder.Body.Len()+1))
	_, _ = w.Write(recorder.Body.Bytes()[:recorder.Body.Len()/2])
	_ = http.NewResponseController(w).Flush()
	drop(w, r, next)
}

// dropWhileSending reads a part of the request. The server gets nothing.
func dropWhileSending(w http.ResponseWriter, r *http.Request, next http.Handler) {
	_, _ = io.CopyN(io.Discard, r.Body, 64)
	drop(w, r, next)
}

// stall never answers.
func stall(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// trickle sends the real answer a few bytes at a time.
func trickle(w http.ResponseWriter, r *http.Request, next http.Handler) {
	recorder := httptest.NewRecorder()
	next.ServeHTTP(recorder, r)
	w.Header().Set("Content-Type", recorder.Header().Get("Content-Type"))
	for part := range slices.Chunk(recorder.Body.Bytes(), 7) {
		_, _ = w.Write(part)
		_ = http.NewResponseController(w).Flush()
	}
}

func garble(w http.ResponseWriter, r *http.Request, next http.Handler) {
	recorder := httptest.NewRecorder()
	next.ServeHTTP(recorder, r)
	body := bytes.ReplaceAll(recorder.Body.Bytes(), []byte("PACK"), []byte("KCAP"))
	_, _ = w.Write(append(body[:len(body)*3/4], bytes.Repeat([]byte{0xff}, len(body)/4)...))
}

// fault is the action of a proxy on a request.
type fault struct {
	name string
	do   func(http.ResponseWriter, *http.Request, http.Handler)
	slow bool // slower than the client's timeout, so that a single fault may fail the apply
}

var faults = []fault{
	{name: "dropped before", do: drop},
	{name: "dropped while it is sent", do: dropWhileSending},
	{name: "dropped while it is answered", do: breakOff},
	{name: "dropped after", do: serveThen(drop)},
	{name: "an answer cut short", do: truncate},
	{name: "a garbled answer", do: garble},
	{name: "an empty 200", do: respond(200, "")},
	{name: "an empty 200 after", do: serveThen(respond(200, ""))},
	{name: "a page in place of an answer", do: respond(200, "<html>hello</html>")},
	{name: "429", do: respond(429, "slow down")},
	{name: "500", do: respond(500, "oh no")},
	{name: "502 after", do: serveThen(respond(502, "bad gateway"))},
	{name: "503", do: respond(503, "back soon")},
	{name: "504 after", do: serveThen(respond(504, "gateway timeout"))},
	{name: "a slow answer", do: trickle},
	{name: "no answer", do: stall, slow: true},
	{name: "no answer after", do: serveThen(stall), slow: true},
}

var requests = []struct{ name, suffix string }{
	{"the advertisement for fetching", "/info/refs?service=git-upload-pack"},
	{"the fetch", "/git-upload-pack?"},
	{"the advertisement for pushing", "/info/refs?service=git-receive-pack"},
	{"the push", "/git-receive-pack?"},
}

// TestReliabilityFaults spoils one kind of request of an apply, once or each time. The apply overcomes a single fault, unless the
// client times out. A permanent fault may be an error. The outcome of the apply always agrees with the branch, and no other commit
// is lost.
func TestReliabilityFaults(t *testing.T) {
	t.Parallel()
	servers := []serving{{name: "git http-backend", config: anyObject, remote: overHTTP}}
	if reliabilitytest.Count(0, 1) == 1 {
		servers = append(servers, serving{name: "Gitea over http", mirror: true, remote: overGiteaHTTP})
	}
	for i, serving := range servers {
		var converged, failed atomic.Int32
		t.Run(serving.name, func(t *testing.T) {
			for r, request := range requests {
				for f, fault := range faults {
					for _, always := range []bool{false, true} {
						if always == ((r+f)%2 == 0) && reliabilitytest.Count(0, 1) == 0 {
							continue // alternate between once and each time
						}
						often := "once"
						if always {
							often = "each time"
						}
						t.Run(request.name+", "+fault.name+", "+often, func(t *testing.T) {
							t.Parallel()
							err := applyThroughFault(t, serving, request.suffix, fault, always)
							if err == nil {
								converged.Add(1)
								return
							}
							failed.Add(1)
							if !always && !fault.slow {
								t.Errorf("err = %v", err)
							}
						})
					}
				}
			}
		})
		cells := len(requests) * len(faults) * 2
		reliabilitytest.Report(t, fmt.Sprintf("30-faults-%d", i),
			"a proxy spoils a request of an apply, once or each time", serving.name,
			fmt.Sprintf("%d requests × %d faults × 2", len(requests), len(faults)),
			fmt.Sprintf("%d converged, %d a clear error, %d otherwise; 0 lost updates",
				converged.Load(), failed.Load(), cells-int(converged.Load()+failed.Load())))
	}
}

func applyThroughFault(t *testing.T, serving serving, suffix string, fault fault, always bool) error {
	t.Helper()
	r := newRepository(t, serving)
	r.commitFirst("README.md", "x")
	tip := r.tip()
	remote := r.remote
	behind, err := url.Parse(remote.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: behind.Scheme, Host: behind.Host})
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	spoil := once(suffix, fault.do)
	if always {
		spoil = eachTime(suffix, fault.do)
	}
	remote.URL = serve(t, &faulty{next: proxy, fault: spoil}) + behind.Path
	var options gitops.BranchOptions
	if fault.slow {
		options.Git = git.NewConnector(git.ConnectorOptions{Over: bounded.Transport(500 * time.Millisecond)})
	}
	edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "b")})
	result, err := gitops.NewBranchClient(options).Apply(context.Background(), remote, edit)
	checkOutcome(t, r, tip, result, err)
	return err
}

func TestAServerLostBeforeThePushIsUnreachable(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[2])
	r.commitFirst("README.md", "x")
	var isDown atomic.Bool
	next := backend(t, filepath.Dir(r.directory))
	remote := r.remote
	remote.URL = serve(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if isDown.Load() || strings.Contains(request.URL.RawQuery, "receive-pack") {
			isDown.Store(true)
			drop(w, request, next)
			return
		}
		next.ServeHTTP(w, request)
	})) + "/gitops.git"
	result, err := gitops.NewBranchClient(gitops.BranchOptions{}).
		Apply(context.Background(), remote, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "b")}))
	if !errors.Is(err, git.ErrUnreachable) || strings.Contains(err.Error(), "not known") || result.Pushes != 0 {
		t.Errorf("%+v, %v", result, err)
	}
}

// checkOutcome compares the outcome of an apply with the branch. At tip, the branch had only a foreign README.md.
func checkOutcome(t *testing.T, r *repository, tip string, result gitops.ApplyResult, err error) {
	t.Helper()
	now, files := r.tip(), r.files()
	if files["README.md"] != "x" || r.countCommits() != map[bool]int{true: 1, false: 2}[now == tip] {
		t.Errorf("an update is lost: %v", files)
	}
	switch {
	case err == nil && (!result.Committed || result.Commit != now || files["dev/drone/app/a"] != "b"):
		t.Errorf("a false success: %+v", result)
	case err != nil && now != tip && !strings.Contains(err.Error(), "not known"):
		t.Errorf("a false failure: %v", err)
	case err != nil && !strings.HasPrefix(err.Error(), "repository "):
		t.Errorf("an error without a subject: %v", err)
	}
	r.fsck()
}
