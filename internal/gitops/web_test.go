package gitops_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
)

const canary = "c4n4ry s3cr3t/+&%?"

// guarded asks for basic authentication before next.
func guarded(username, password string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gotUsername, gotPassword, _ := r.BasicAuth(); gotUsername != username || gotPassword != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			// A server that repeats what it was sent.
			http.Error(w, "bad credentials: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func TestCredentialsGoToTheServerAsBasicAuthentication(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		username, password string
		credentials        gitops.Credentials
	}{
		"a password":          {"person", canary, gitops.Credentials{Username: "person", Password: canary}},
		"a token":             {"x-access-token", canary, gitops.Credentials{Token: canary}},
		"a token of a user":   {"oauth2", canary, gitops.Credentials{Username: "oauth2", Token: canary}},
		"a token is stronger": {"oauth2", canary, gitops.Credentials{Username: "oauth2", Token: canary, Password: "x"}},
	} {
		r := newRepository(t, servings[0])
		r.remote.URL = serve(t, guarded(test.username, test.password, backend(t, filepath.Dir(r.directory)))) + "/gitops.git"
		r.remote.Credentials = test.credentials
		edit := devEdit(t, map[string]gitops.Folder{"drone/app": rendered(t, "a", "a")})
		if result := apply(t, r, edit); !result.Committed {
			t.Errorf("%s: %+v", name, result)
		}
		if text := fmt.Sprintf("%v %+v %#v %s", r.remote, r.remote, r.remote, r.remote.Credentials); strings.Contains(text, canary) {
			t.Errorf("%s: a printed remote shows the secret: %s", name, text)
		}
	}
}

func TestNoErrorHasACredentialInIt(t *testing.T) {
	t.Parallel()
	credentials := gitops.Credentials{Username: "person", Password: canary, Token: canary + "token"}
	echo := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			fmt.Fprintln(w, r.Header.Get("Authorization"), credentials.Password, url.QueryEscape(credentials.Token),
				url.PathEscape(credentials.Token), url.UserPassword("person", credentials.Token),
				base64.StdEncoding.EncodeToString([]byte(":"+credentials.Token)), base64.RawURLEncoding.EncodeToString([]byte(credentials.Token)))
		})
	}
	urls := map[string]string{
		"401": serve(t, echo(401)) + "/r", "403": serve(t, echo(403)) + "/r", "404": serve(t, echo(404)) + "/r",
		"410": serve(t, echo(410)) + "/r", "400": serve(t, echo(400)) + "/r", "500": serve(t, echo(500)) + "/r", "200": serve(t, echo(200)) + "/r",
		"in the URL": "https://person:" + url.PathEscape(canary) + "@127.0.0.1:1/r", "in ssh": "git:c4n4ry@127.0.0.1:r",
		"nobody":   "http://127.0.0.1:1/r",
		"no host":  "http://host.invalid/r",
		"redirect": serve(t, http.RedirectHandler("http://person:"+url.PathEscape(credentials.Token)+"@127.0.0.1:1/info/refs", http.StatusFound)) + "/r",
	}
	for name, at := range urls {
		remote := gitops.Remote{URL: at, Branch: "main", Credentials: credentials}
		_, inspected := gitops.NewClient().Inspect(context.Background(), remote, dev)
		_, applied := gitops.NewClient().Apply(context.Background(), remote, devEdit(t, map[string]gitops.Folder{"drone/app": rendered(t, "a", "a")}))
		for _, err := range []error{inspected, applied} {
			if err == nil {
				t.Errorf("%s: no error", name)
				continue
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				text := fmt.Sprintf("%v %+v %#v", e, e, e)
				for _, form := range []string{
					canary, url.QueryEscape(canary), url.PathEscape(canary), strings.TrimRight(base64.StdEncoding.EncodeToString([]byte("person:"+credentials.Token)), "="),
					"c4n4ry", base64.StdEncoding.EncodeToString([]byte("c4n4ry")),
				} {
					if strings.Contains(text, form) {
						t.Errorf("%s: the error has %q in it: %s", name, form, text)
					}
				}
			}
		}
	}
}

func TestErrorsSayWhatIsWrongWithTheRepository(t *testing.T) {
	t.Parallel()
	status := func(code int, body string) string {
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, code) })) + "/r"
	}
	hang := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})) + "/r"
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	t.Cleanup(tls.Close)
	empty := t.TempDir()
	for name, test := range map[string]struct {
		url  string
		kind error
		text string
	}{
		"not found":             {status(404, "no such repository"), gitops.ErrNotFound, "no such repository"},
		"gone":                  {status(410, "x"), gitops.ErrNotFound, "410"},
		"unauthorized":          {status(401, "who are you"), gitops.ErrUnauthorized, "who are you"},
		"forbidden":             {status(403, "not you"), gitops.ErrUnauthorized, "not you"},
		"broken":                {status(500, "oh no"), gitops.ErrUnreachable, "oh no"},
		"nobody listens":        {"http://127.0.0.1:1/r", gitops.ErrUnreachable, "refused"},
		"no such host":          {"http://host.invalid/r", gitops.ErrUnreachable, "host.invalid"},
		"a foreign certificate": {tls.URL + "/r", gitops.ErrUnreachable, "certificate"},
		"no answer":             {hang, context.DeadlineExceeded, "deadline"},
		"not git":               {serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })) + "/r", gitops.ErrUnreachable, "not a Git server"},
		"an empty folder":       {empty, gitops.ErrNotFound, "not a git repository"},
		"an unsupported URL":    {"git://h/r", nil, "git"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			defer cancel()
			_, err := gitops.NewClient().Inspect(ctx, gitops.Remote{URL: test.url, Branch: "main"}, dev)
			if err == nil || test.kind != nil && !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestCredentialsDoNotFollowARedirectToAnotherHost(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	var leaked atomic.Int32
	next := backend(t, filepath.Dir(r.directory))
	elsewhere := serve(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Authorization") != "" {
			leaked.Add(1)
		}
		next.ServeHTTP(w, request)
	}))
	r.remote.URL = serve(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		http.Redirect(w, request, elsewhere+request.URL.RequestURI(), http.StatusMovedPermanently)
	})) + "/gitops.git"
	r.remote.Credentials = gitops.Credentials{Token: canary}
	edit := devEdit(t, map[string]gitops.Folder{"drone/app": rendered(t, "a", "a")})
	apply(t, r, edit)
	inspect(t, r, dev)
	if leaked.Load() != 0 {
		t.Errorf("the credentials went to another host %d times", leaked.Load())
	}
}

// faulty passes requests to next, but for those that fault takes.
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

// once takes the first request whose path ends so.
func once(suffix string, do func(w http.ResponseWriter, r *http.Request, next http.Handler)) func(http.ResponseWriter, *http.Request, http.Handler) bool {
	var done atomic.Bool
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		if !strings.HasSuffix(r.URL.Path+"?"+r.URL.RawQuery, suffix) || !done.CompareAndSwap(false, true) {
			return false
		}
		do(w, r, next)
		return true
	}
}

func always(suffix string, do func(w http.ResponseWriter, r *http.Request, next http.Handler)) func(http.ResponseWriter, *http.Request, http.Handler) bool {
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

// applyThen lets the server do the work and keeps the answer from the client.
func applyThen(answer func(w http.ResponseWriter, r *http.Request, next http.Handler)) func(http.ResponseWriter, *http.Request, http.Handler) {
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

// truncated sends the first half of the real answer.
func truncated(w http.ResponseWriter, r *http.Request, next http.Handler) {
	recorder := httptest.NewRecorder()
	next.ServeHTTP(recorder, r)
	w.Header().Set("Content-Type", recorder.Header().Get("Content-Type"))
	_, _ = w.Write(recorder.Body.Bytes()[:recorder.Body.Len()/2])
}

func garbled(w http.ResponseWriter, r *http.Request, next http.Handler) {
	recorder := httptest.NewRecorder()
	next.ServeHTTP(recorder, r)
	body := bytes.ReplaceAll(recorder.Body.Bytes(), []byte("PACK"), []byte("KCAP"))
	_, _ = w.Write(append(body[:len(body)*3/4], bytes.Repeat([]byte{0xff}, len(body)/4)...))
}

var faults = map[string]func(http.ResponseWriter, *http.Request, http.Handler){
	"dropped before":     drop,
	"dropped after":      applyThen(drop),
	"an empty 200":       respond(200, ""),
	"an empty 200 after": applyThen(respond(200, "")),
	"429":                respond(429, "slow down"),
	"500":                respond(500, "oh no"),
	"502 after":          applyThen(respond(502, "bad gateway")),
	"truncated":          truncated,
	"garbled":            garbled,
	"not git":            respond(200, "<html>hello</html>"),
}

var requests = map[string]string{
	"the advertisement for fetching": "/info/refs?service=git-upload-pack",
	"the fetch":                      "/git-upload-pack?",
	"the advertisement for pushing":  "/info/refs?service=git-receive-pack",
	"the push":                       "/git-receive-pack?",
}

func TestABadAnswerOnceIsOvercome(t *testing.T) {
	t.Parallel()
	for request, suffix := range requests {
		for fault, do := range faults {
			t.Run(request+": "+fault, func(t *testing.T) {
				t.Parallel()
				r, proxy := newFaultyRepository(t)
				proxy.fault = once(suffix, do)
				edit := devEdit(t, map[string]gitops.Folder{"drone/app": rendered(t, "a", "b")})
				result, err := gitops.NewClient().Apply(context.Background(), r.remote, edit)
				if err != nil {
					t.Errorf("err = %v", err)
				} else {
					if !result.Committed || result.Commit != r.git("rev-parse", "main") || r.files()["dev/drone/app/a"] != "b" {
						t.Errorf("a false success: %+v", result)
					}
					if got := r.git("rev-list", "--count", "main"); got != "2" {
						t.Errorf("%s commits", got)
					}
				}
				r.fsck()
			})
		}
	}
}

func TestABadAnswerEachTimeIsAClearErrorOrNoHarm(t *testing.T) {
	t.Parallel()
	for request, suffix := range requests {
		for fault, do := range faults {
			t.Run(request+": "+fault, func(t *testing.T) {
				t.Parallel()
				r, proxy := newFaultyRepository(t)
				tip := r.git("rev-parse", "main")
				proxy.fault = always(suffix, do)
				edit := devEdit(t, map[string]gitops.Folder{"drone/app": rendered(t, "a", "b")})
				result, err := gitops.NewClient().Apply(context.Background(), r.remote, edit)
				if err == nil && (!result.Committed || result.Commit != r.git("rev-parse", "main") || r.files()["dev/drone/app/a"] != "b") {
					t.Errorf("a false success: %+v", result)
				}
				if err != nil && r.git("rev-parse", "main") != tip && !strings.Contains(err.Error(), "not known") {
					t.Errorf("a false failure: %v", err)
				}
				r.fsck()
			})
		}
	}
}

// newFaultyRepository has a commit, and a proxy in front of it.
func newFaultyRepository(t *testing.T) (*repository, *faulty) {
	t.Helper()
	r := newRepository(t, serving{name: "http", config: anyObject, remote: overHTTP})
	r.byHand(func(w *workTree) { w.write("README.md", "x") })
	proxy := &faulty{next: backend(t, filepath.Dir(r.directory))}
	r.remote.URL = serve(t, proxy) + "/gitops.git"
	return r, proxy
}

func TestARefusedPushIsAnErrorWithTheServersWords(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		hook := "#!/bin/sh\necho 'GL-HOOK-ERR: branch main is protected' >&2\nexit 1\n"
		if err := os.WriteFile(filepath.Join(r.directory, "hooks", "pre-receive"), []byte(hook), 0o755); err != nil {
			if err := os.MkdirAll(filepath.Join(r.directory, "hooks"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(r.directory, "hooks", "pre-receive"), []byte(hook), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		edit := devEdit(t, map[string]gitops.Folder{"drone/app": rendered(t, "a", "b")})
		result, err := gitops.NewClient().Apply(context.Background(), r.remote, edit)
		if !errors.Is(err, gitops.ErrRefused) || !strings.Contains(err.Error(), "branch main is protected") || result.Committed {
			t.Errorf("result = %+v, err = %v", result, err)
		}
		if len(r.files()) != 0 {
			t.Error("the branch has files")
		}
	})
}
