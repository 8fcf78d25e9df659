package forge_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/webtest"
)

// exchange is one expected request to a Git host, with its answer.
type exchange struct {
	request string            // method, path and sorted query
	body    string            // expected JSON; "" for none
	status  int               // of the answer; 0 for 200
	header  map[string]string // of the answer
	answer  any               // JSON, or a string with the whole body
}

// script is a Git host that expects the given requests in order, with the canary as credentials. Its answers have the shapes in the
// description.
type script struct {
	t    *testing.T
	api  *description // nil for none
	mu   sync.Mutex
	next int
	all  []exchange
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	got := r.Method + " " + r.URL.EscapedPath()
	if r.URL.RawQuery != "" {
		got += "?" + r.URL.Query().Encode()
	}
	if s.next == len(s.all) {
		s.t.Errorf("unexpected request %s %s", got, body)
		http.Error(w, "not expected", http.StatusTeapot)
		return
	}
	e := s.all[s.next]
	s.next++
	if got != e.request {
		s.t.Errorf("request %d: got %s\nwant %s", s.next, got, e.request)
	}
	if !sameJSON(string(body), e.body) {
		s.t.Errorf("%s: got the body %s\nwant %s", got, body, e.body)
	}
	_, password, _ := r.BasicAuth() // Azure's
	if authorization := r.Header.Get("Authorization"); authorization != "Bearer "+canary && authorization != "token "+canary &&
		password != canary {
		s.t.Errorf("%s: got credentials %q", got, authorization)
	}
	if r.UserAgent() != "terraform-provider-flotilla/1.2.3" {
		s.t.Errorf("%s: got user agent %q", got, r.UserAgent())
	}
	if e.body != "" && r.Header.Get("Content-Type") != "application/json" {
		s.t.Errorf("%s: got content type %q", got, r.Header.Get("Content-Type"))
	}
	if s.api != nil {
		shaped, err := s.api.shape(r, body, e)
		if err != nil {
			s.t.Errorf("%s: %v", got, err)
		} else if shaped != nil {
			e.answer = string(shaped)
		}
	}
	respond(w, e)
}

func respond(w http.ResponseWriter, e exchange) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	for name, value := range e.header {
		w.Header().Set(name, value)
	}
	if e.status != 0 {
		w.WriteHeader(e.status)
	}
	if text, ok := e.answer.(string); ok {
		fmt.Fprint(w, text)
	} else if e.answer != nil {
		_ = json.NewEncoder(w).Encode(e.answer)
	}
}

func sameJSON(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	var valueA, valueB any
	return json.Unmarshal([]byte(a), &valueA) == nil && json.Unmarshal([]byte(b), &valueB) == nil && reflect.DeepEqual(valueA, valueB)
}

// quoteJSON returns text as a JSON string.
func quoteJSON(text string) string {
	encoded, _ := json.Marshal(text)
	return string(encoded)
}

// newScriptedHost returns a Git host with a script. The test fails if some requests are missing at its end.
func newScriptedHost(t *testing.T, kind forge.Forge, path string, exchanges []exchange, options ...forge.HTTPOptions) *forge.GitHost {
	t.Helper()
	s := &script{t: t, api: descriptionOf(t, kind), all: exchanges}
	t.Cleanup(func() {
		if s.next < len(s.all) && !t.Failed() {
			t.Errorf("the request %s is missing", s.all[s.next].request)
		}
	})
	return newHandlerHost(t, kind, path, s, options...)
}

// newHandlerHost returns a Git host with a handler in memory. In `make acceptance`, requests pass a network.
func newHandlerHost(t *testing.T, kind forge.Forge, path string, handler http.Handler, options ...forge.HTTPOptions) *forge.GitHost {
	t.Helper()
	url, over := serve(t, handler)
	with := firstOptions(options)
	with.Over = over
	return newHost(t, kind, url+path, with)
}

// serve returns the address of a server that ends with the test, and a transport to it.
func serve(t *testing.T, handler http.Handler) (string, http.RoundTripper) {
	t.Helper()
	if acceptancetest.All() {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		return server.URL, webtest.Transport
	}
	return "http://127.0.0.1", handlerTransport(handler)
}

// handlerTransport passes requests to a handler in memory, as a server does.
func handlerTransport(handler http.Handler) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		sent := r.Clone(r.Context())
		sent.Host, sent.RequestURI = cmp.Or(r.Host, r.URL.Host), r.URL.RequestURI()
		if sent.Body == nil {
			sent.Body = http.NoBody
		}
		for name, values := range r.Header { // Gitea's SDK writes some in lower case
			delete(sent.Header, name)
			sent.Header[http.CanonicalHeaderKey(name)] = values
		}
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, sent)
		response := recorder.Result()
		response.Request = r
		return response, r.Context().Err()
	}
}

func descriptionOf(t *testing.T, kind forge.Forge) *description {
	t.Helper()
	api, err := findDescription(kind)
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// repositoryPath returns the path of a repository for a kind of Git host.
func repositoryPath(kind forge.Forge) string {
	switch kind {
	case forge.Azure:
		return "/org/owner/_git/gitops"
	case forge.BitbucketDataCenter:
		return "/scm/PLAT/gitops.git"
	}
	return "/owner/gitops.git"
}

// firstOptions returns the options of a test, by default the zero value.
func firstOptions(options []forge.HTTPOptions) (with forge.HTTPOptions) {
	if len(options) > 0 {
		with = options[0]
	}
	return with
}

// newHost returns a Git host whose requests are checked by the description of its kind.
func newHost(t *testing.T, kind forge.Forge, url string, options ...forge.HTTPOptions) *forge.GitHost {
	t.Helper()
	with := firstOptions(options)
	with.UserAgent = "terraform-provider-flotilla/1.2.3"
	if api := descriptionOf(t, kind); api != nil {
		with.Over = checkedTransport{t: t, api: api, next: with.Over}
	}
	host, err := forge.NewGitHost(forge.HostedRepository{URL: url, Forge: kind, Credentials: forge.Credentials{Token: canary}}, with)
	if err != nil {
		t.Fatal(err)
	}
	return host
}

const (
	oldHead   = "1111111111111111111111111111111111111111"
	newHead   = "2222222222222222222222222222222222222222"
	mergedAs  = "3333333333333333333333333333333333333333"
	devMark   = "<!-- flotilla-assignment: dev -->"
	devBody   = devMark + "\n\nchanges\n"
	prodMark  = "<!-- flotilla-assignment: prod -->"
	devTitle  = "Deploy dev"
	otherText = "somebody's"
)

// shortRequest returns dev's pull request with a short body.
func shortRequest() forge.Wanted {
	return forge.Wanted{Selector: dev, RequestOptions: forge.RequestOptions{Title: devTitle}, Body: "changes"}
}

// checkWanted checks a request with a merge mode.
func checkWanted(host *forge.GitHost, w forge.Wanted, mode forge.MergeMode) error {
	w.Merge = mode
	return host.Check(w.Selector, w.RequestOptions)
}

// wantFreeHead expects that dev's branch is free, or an error with a text.
func wantFreeHead(t *testing.T, host *forge.GitHost, wantText string) {
	t.Helper()
	err := host.CheckHead(t.Context(), dev)
	if wantText != "" {
		wantError(t, err, forge.ErrNotOwned, wantText)
	} else if err != nil {
		t.Error(err)
	}
}

// wantEnsured expects Ensure to return pull request 7, or an error with or without it.
func wantEnsured(t *testing.T, host *forge.GitHost, wanted forge.Wanted, kind error, wantText string, withRequest bool) {
	t.Helper()
	got, err := host.Ensure(t.Context(), wanted)
	if kind == nil {
		if err != nil || got == nil || got.Number != 7 || got.State != forge.Open {
			t.Errorf("got %+v, %v", got, err)
		}
		return
	}
	wantError(t, err, kind, wantText)
	if (got != nil) != withRequest {
		t.Errorf("got %+v with the error", got)
	}
}

// wantMerged expects a merge at the new head, or an error.
func wantMerged(t *testing.T, host *forge.GitHost, request *forge.PullRequest, how forge.MergeMode, kind error, wantText string) {
	t.Helper()
	got, err := host.Merge(t.Context(), request, newHead, how)
	if kind != nil {
		wantError(t, err, kind, wantText)
		return
	}
	if err != nil || got.State != forge.Merged || got.MergeCommit != mergedAs || got.HeadCommit != newHead {
		t.Errorf("got %+v, %v", got, err)
	}
}

// wantAutoMerge turns on auto-merge at the new head, and expects the given state or an error.
func wantAutoMerge(t *testing.T, host *forge.GitHost, request *forge.PullRequest, state forge.RequestState, kind error, wantText string) {
	t.Helper()
	got, err := host.Merge(t.Context(), request, newHead, forge.WhenChecksSucceed)
	if kind != nil {
		wantError(t, err, kind, wantText)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	wantState(t, got, state)
}
