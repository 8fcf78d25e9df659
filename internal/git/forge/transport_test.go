package forge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// minimalPatience is for tests of retries.
var minimalPatience = forge.HTTPOptions{Patience: 10 * time.Millisecond}

var allForges = func() (all []forge.Forge) {
	for _, kind := range forge.Kinds() {
		all = append(all, kind.Forge)
	}
	return all
}()

// forEachForge runs a test with a server for each kind of Git host.
func forEachForge(t *testing.T, handler http.HandlerFunc, test func(t *testing.T, host *forge.GitHost), options ...forge.HTTPOptions) {
	t.Helper()
	for _, kind := range allForges {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(handler)
			t.Cleanup(server.Close)
			test(t, newHost(t, kind, server.URL+repositoryPath(kind), options...))
		})
	}
}

// forEachHandlerHost is [forEachForge] with [newHandlerHost].
func forEachHandlerHost(
	t *testing.T, handler http.HandlerFunc, test func(t *testing.T, host *forge.GitHost), options ...forge.HTTPOptions,
) {
	t.Helper()
	for _, kind := range allForges {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			test(t, newHandlerHost(t, kind, repositoryPath(kind), handler, options...))
		})
	}
}

// answerEmpty answers with an empty list.
func answerEmpty(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.Contains(r.URL.Path, "/_apis/"):
		_, _ = io.WriteString(w, `{"value": [], "count": 0}`)
	case strings.Contains(r.URL.Path, "/2.0/"), strings.Contains(r.URL.Path, "/rest/"):
		_, _ = io.WriteString(w, `{"values": [], "isLastPage": true}`)
	default:
		_, _ = io.WriteString(w, "[]")
	}
}

// roundTripper answers instead of a Git host.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func readCloser(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }

// callEach calls each method with a request to the Git host and passes its error to check.
func callEach(ctx context.Context, host *forge.GitHost, check func(name string, err error)) {
	request := &forge.PullRequest{Number: 7, Owner: "dev", Head: "flotilla/dev"}
	_, err := host.Find(ctx, dev, 0)
	check("Find", err)
	check("CheckHead", host.CheckHead(ctx, dev))
	_, err = host.Ensure(ctx, wantedRequest(dev))
	check("Ensure", err)
	for _, how := range []forge.MergeMode{forge.Now, forge.WhenChecksSucceed} {
		if checkWanted(host, wantedRequest(dev), how) != nil {
			continue // the kind does not support it
		}
		_, err = host.Merge(ctx, request, newHead, how)
		check("Merge "+string(how), err)
	}
	if checkWanted(host, wantedRequest(dev), forge.WhenChecksSucceed) == nil { // otherwise there is nothing to turn off
		check("DisableAutoMerge", host.DisableAutoMerge(ctx, request))
	}
	check("Close", host.Close(ctx, request))
	_, err = host.Statuses(ctx, newHead)
	check("Statuses", err)
}

func TestErrorsDescribeTheProblemOfTheGitHost(t *testing.T) {
	t.Parallel()
	status := func(code int, kind, body string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	inAnHour := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	for name, test := range map[string]struct {
		handler  http.HandlerFunc
		kind     error
		wantText string
	}{
		"unauthorized":         {status(401, "application/json", `{"message":"Bad credentials"}`), forge.ErrUnauthorized, "401 Unauthorized: Bad credentials"},
		"forbidden":            {status(403, "application/json", `{"message":"token does not have at least one of required scope(s)"}`), forge.ErrUnauthorized, "required scope(s)"},
		"not found":            {status(404, "application/json", `{"message":"Not Found"}`), forge.ErrNotFound, "404"},
		"gone":                 {status(410, "text/plain", "was here"), forge.ErrNotFound, "410 Gone: was here"},
		"teapot":               {status(418, "text/plain", "short and stout"), forge.ErrRefused, "short and stout"},
		"down":                 {status(503, "text/plain", "back soon"), forge.ErrUnreachable, "503 Service Unavailable: back soon"},
		"down, with a page":    {status(502, "text/html", "<html><h1>Bad Gateway</h1></html>"), forge.ErrUnreachable, "502 Bad Gateway"},
		"a web page":           {status(200, "text/html; charset=utf-8", "<html>Sign in</html>"), forge.ErrUnreachable, "a web page instead of its API's answer"},
		"garbage":              {status(200, "application/json", "garbage"), forge.ErrUnreachable, "invalid character"},
		"half an answer":       {status(200, "application/json", `[{"number": `), forge.ErrUnreachable, "unexpected"},
		"another kind of JSON": {status(200, "application/json", `"text"`), forge.ErrUnreachable, "cannot unmarshal"},
		"limited for an hour":  {status(429, "application/json", `{"message":"slow down"}`, "Retry-After", "3600"), forge.ErrRateLimited, "(1h0m0s): slow down"},
		"limited until a date": {status(429, "text/plain", "", "Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)), forge.ErrRateLimited, "asks to wait until"},
		"GitHub's quota": {
			status(403, "application/json", `{"message":"API rate limit exceeded for user ID 1."}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", inAnHour),
			forge.ErrRateLimited, "asks to wait until",
		},
		"GitHub's second quota": {
			status(403, "application/json", `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`),
			forge.ErrRateLimited, "(1m0s): You have exceeded a secondary rate limit",
		},
		"GitLab's quota": {status(429, "text/plain", "Retry later\n", "RateLimit-Remaining", "0", "RateLimit-Reset", inAnHour), forge.ErrRateLimited, ": Retry later"},
		"a redirect elsewhere": {
			status(301, "text/plain", "", "Location", "https://person:secret@other.example.com/x?private_token=secret"), forge.ErrUnreachable,
			`redirects to "https://other.example.com/x", and redirects are not followed`,
		},
		"a redirect here":       {status(307, "text/plain", "", "Location", "/x"), forge.ErrUnreachable, "/x\""},
		"a redirect to nowhere": {status(302, "text/plain", ""), forge.ErrUnreachable, "does not say where to"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachHandlerHost(t, test.handler, func(t *testing.T, host *forge.GitHost) {
				callEach(t.Context(), host, func(name string, err error) {
					if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.wantText) || !strings.Contains(err.Error(), "/gitops") ||
						!strings.Contains(err.Error(), "\": ") {
						t.Errorf("%s: err = %v", name, err)
					}
					if strings.Contains(err.Error(), "secret") {
						t.Errorf("%s: the error contains the secret of the redirect: %v", name, err)
					}
				})
			}, minimalPatience)
		})
	}
}

func TestAnUnreachableGitHostIsAnError(t *testing.T) {
	t.Parallel()
	unknown := httptest.NewUnstartedServer(http.NotFoundHandler())
	unknown.Config.ErrorLog = log.New(io.Discard, "", 0)
	unknown.StartTLS()
	t.Cleanup(unknown.Close)
	for name, test := range map[string]struct{ url, wantText string }{
		"no server":             {"http://127.0.0.1:1", "refused"},
		"a foreign certificate": {unknown.URL, "certificate"},
	} {
		for _, kind := range allForges {
			t.Run(name+" "+string(kind), func(t *testing.T) {
				t.Parallel()
				_, err := newHost(t, kind, test.url+repositoryPath(kind), minimalPatience).Find(t.Context(), dev, 0)
				wantError(t, err, forge.ErrUnreachable, test.wantText)
			})
		}
	}
}

func TestCallsEndWithTheirDeadline(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"a silent host": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"an unavailable host": func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(120 * time.Millisecond)
			w.WriteHeader(http.StatusServiceUnavailable)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachForge(t, handler, func(t *testing.T, host *forge.GitHost) {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				_, err := host.Find(ctx, dev, 0)
				if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, forge.ErrUnreachable) {
					t.Errorf("err = %v", err)
				}
			})
		})
	}
}

// The provider waits for a rate limit that ends within the patience, because the Git host did not execute the request. A limit beyond
// the deadline is reported at once.
func TestShortRateLimitsAreWaitedFor(t *testing.T) {
	t.Parallel()
	past := strconv.FormatInt(1, 10)
	hub := []exchange{
		{request: hubOpen, answer: []fields{}},
		{
			request: "POST " + hub + "/pulls",
			status:  201,
			answer:  hubPull(),
			body:    `{"title": "Deploy dev", "head": "flotilla/dev", "base": "main", "body": ` + quoteJSON(devBody) + `}`,
		},
	}
	lab := []exchange{
		{request: labList, answer: []fields{}},
		{
			request: "POST " + lab,
			status:  201,
			answer:  labMerge(),
			body:    `{"title": "Deploy dev", "source_branch": "flotilla/dev", "target_branch": "main", "description": ` + quoteJSON(devBody) + `}`,
		},
	}
	az := []exchange{
		{request: azOpen, answer: azList()},
		{
			request: azPost,
			status:  201,
			answer:  azPull(),
			body: `{"title": "Deploy dev", "sourceRefName": "refs/heads/flotilla/dev", "targetRefName": "refs/heads/main", "description": ` + quoteJSON(
				devBody,
			) + `}`,
		},
	}
	for name, test := range map[string]struct {
		on    func(*testing.T, []exchange, ...forge.HTTPOptions) *forge.GitHost
		both  []exchange
		limit exchange
	}{
		"GitHub, 429":                {newGitHub, hub, exchange{status: 429, header: map[string]string{"Retry-After": "1"}}},
		"GitHub, 429 without a time": {newGitHub, hub, exchange{status: 429, answer: "slow down"}},
		"GitHub, 403":                {newGitHub, hub, exchange{status: 403, header: map[string]string{"Retry-After": "0"}, answer: hubRefusal("You have exceeded a secondary rate limit.")}},
		"GitHub, 403 until now": {newGitHub, hub, exchange{
			status: 403, header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": past}, answer: hubRefusal("API rate limit exceeded for user ID 1."),
		}},
		"Azure, 429":            {newAzure, az, exchange{status: 429, header: map[string]string{"Retry-After": "1", "X-RateLimit-Remaining": "0"}, answer: azRefusal("RequestBlockedException", "TF400733: The request has been canceled: Request was blocked due to exceeding usage of resource 'Concurrency' in namespace 'User'.")}},
		"GitLab, 429":           {newGitLab, lab, exchange{status: 429, header: map[string]string{"Retry-After": "1"}, answer: "Retry later\n"}},
		"GitLab, 429 until now": {newGitLab, lab, exchange{status: 429, header: map[string]string{"RateLimit-Remaining": "0", "RateLimit-Reset": past}, answer: "Retry later\n"}},
	} {
		runInFakeTime(t, name, func(t *testing.T) {
			var exchanges []exchange
			for _, e := range test.both {
				limited := test.limit
				limited.request, limited.body = e.request, e.body
				exchanges = append(exchanges, limited, e)
			}
			host := test.on(t, exchanges, forge.HTTPOptions{Patience: 1100 * time.Millisecond})
			if request, err := host.Ensure(t.Context(), shortRequest()); err != nil || request.Number != 7 {
				t.Errorf("got %+v, %v", request, err)
			}
		})
	}
	runInFakeTime(t, "beyond the deadline", func(t *testing.T) {
		host := newGitHub(t, []exchange{{request: hubOpen, status: 429, header: map[string]string{"Retry-After": "30"}}})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := host.Find(ctx, dev, 0)
		wantError(t, err, forge.ErrRateLimited, "(30s)")
	})
	runInFakeTime(t, "forever", func(t *testing.T) {
		e := exchange{request: hubOpen, status: 429, header: map[string]string{"Retry-After": "0"}}
		_, err := newGitHub(t, []exchange{e, e, e, e}).Find(t.Context(), dev, 0)
		wantError(t, err, forge.ErrRateLimited, "limits requests")
	})
}

// runInFakeTime runs a test with simulated time. In `make acceptance`, it uses a network and real time.
func runInFakeTime(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		if acceptancetest.All() {
			test(t)
			return
		}
		synctest.Test(t, test)
	})
}

func TestOnlyReadsAreRetried(t *testing.T) {
	t.Parallel()
	down := exchange{request: hubOpen, status: 500, answer: "oh no"}
	if _, err := newGitHub(t, []exchange{down, down, down, {request: hubOpen, answer: []fields{hubListed()}}}, minimalPatience).Find(t.Context(), dev, 0); err != nil {
		t.Errorf("after three failures: %v", err)
	}
	_, err := newGitHub(t, []exchange{down, down, down, down}, minimalPatience).Find(t.Context(), dev, 0)
	wantError(t, err, forge.ErrUnreachable, "500 Internal Server Error: oh no")

	// POST, PUT and PATCH are not retried: see "a lost answer" and "down" in promises_test.go.
}

func TestADroppedConnectionIsRetried(t *testing.T) {
	t.Parallel()
	for _, kind := range allForges {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) <= 2 {
					connection, _, err := http.NewResponseController(w).Hijack()
					if err == nil {
						_ = connection.Close()
					}
					return
				}
				answerEmpty(w, r)
			}))
			t.Cleanup(server.Close)
			selector := dev
			selector.Base = "env/dev" // Gitea only lists for such a base
			if request, err := newHost(t, kind, server.URL+repositoryPath(kind), minimalPatience).Find(t.Context(), selector, 0); err != nil || request != nil {
				t.Errorf("got %+v, %v, want none", request, err)
			}
		})
	}
}

func TestCredentialsGoToTheAPIsHostOnly(t *testing.T) {
	t.Parallel()
	var leaked atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		leaked.Add(1)
		t.Errorf("another host got %s %s with %q", r.Method, r.URL, r.Header)
	}))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		forEachForge(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.RequestURI(), status)
		}, func(t *testing.T, host *forge.GitHost) {
			callEach(t.Context(), host, func(_ string, err error) { wantError(t, err, forge.ErrUnreachable, elsewhere.URL) })
		})
	}
	// A link to the next page is not followed to another host, either.
	forEachForge(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("page") == "1" {
			w.Header().Set("Link", fmt.Sprintf(`<%s/x?page=2>; rel="next"`, elsewhere.URL))
			w.Header().Set("X-Next-Page", "2")
		}
		answerEmpty(w, r)
	}, func(t *testing.T, host *forge.GitHost) {
		selector := dev
		selector.Base = "env/dev"
		if _, err := host.Find(t.Context(), selector, 0); err != nil {
			t.Error(err)
		}
	})
}

// The Git host repeats the credentials in each encoding and with each status.
func TestNoErrorContainsTheCredentials(t *testing.T) {
	t.Parallel()
	for i, status := range []int{200, 301, 400, 401, 403, 404, 405, 406, 409, 410, 422, 423, 429, 500, 501, 503} {
		kinds := []string{"application/json", "text/html", "text/plain"}
		if !acceptancetest.All() {
			kinds = kinds[i%3:][:1]
		}
		for _, kind := range kinds {
			t.Run(fmt.Sprint(status, " ", kind), func(t *testing.T) {
				t.Parallel()
				echo := func(w http.ResponseWriter, r *http.Request) {
					username, password, _ := r.BasicAuth()
					echoed := strings.Join(append(canaryForms("person"), username, password, r.Header.Get("Authorization")), " ")
					w.Header().Set("Content-Type", kind)
					w.Header().Set("Retry-After", "3600")
					w.Header().Set("Location", "https://person:"+strings.TrimPrefix(canaryForms("")[3], ":")+"@other.example.com/"+canaryForms("")[2])
					w.WriteHeader(status)
					if kind == "application/json" {
						fmt.Fprintf(
							w,
							`{"message": %s, "errors": [{"message": %s}], "error": %s}`,
							quoteJSON(strings.Repeat("x", 280)+echoed),
							quoteJSON(echoed),
							quoteJSON(canary),
						)
					} else {
						_, _ = io.WriteString(w, echoed)
					}
				}
				url, over := serve(t, http.HandlerFunc(echo))
				for _, forgeKind := range allForges {
					for _, credentials := range []forge.Credentials{{Token: canary}, {Username: "person", Password: canary}} {
						host, err := forge.NewGitHost(
							forge.HostedRepository{URL: url + repositoryPath(forgeKind), Forge: forgeKind, Credentials: credentials},
							forge.HTTPOptions{Patience: time.Millisecond, Over: over},
						)
						if err != nil {
							t.Fatal(err)
						}
						ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
						callEach(ctx, host, func(_ string, err error) { wantNoCanary(t, err) })
						wanted := forge.Status{Context: "flotilla/dev", State: forge.Success, Description: canary}
						wantNoCanary(t, host.SetStatus(ctx, newHead, wanted))
						_, err = host.Status(ctx, newHead, wanted)
						wantNoCanary(t, err)
						cancel()
					}
				}
			})
		}
	}
}

func TestCredentialsAreNotPrinted(t *testing.T) {
	t.Parallel()
	repository := forge.HostedRepository{
		URL:         "https://github.com/owner/gitops",
		Credentials: forge.Credentials{Username: "person", Password: canary, Token: canary},
	}
	for _, printed := range []any{repository, repository.Credentials} {
		if text := fmt.Sprintf("%v %+v %#v %d", printed, printed, printed, printed); strings.Contains(text, "c4n4ry") {
			t.Errorf("got the secret in %s", text)
		}
	}
}
