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

// exchange is one request that a host must be sent, and what it answers.
type exchange struct {
	request string            // method, path and sorted query
	body    string            // the JSON that is sent; "" for none
	status  int               // of the answer; 0 for 200
	header  map[string]string // of the answer
	answer  any               // JSON; a string is sent as it is
}

// script is a host that must be sent these requests, in this order, each with
// the canary as its credentials. Its answers have the shape that the host
// describes.
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
		s.t.Errorf("%s %s was not expected", got, body)
		http.Error(w, "not expected", http.StatusTeapot)
		return
	}
	e := s.all[s.next]
	s.next++
	if got != e.request {
		s.t.Errorf("request %d is %s\nand not %s", s.next, got, e.request)
	}
	if !sameJSON(string(body), e.body) {
		s.t.Errorf("%s: the body is %s\nand not %s", got, body, e.body)
	}
	_, password, _ := r.BasicAuth() // Azure's
	if authorization := r.Header.Get("Authorization"); authorization != "Bearer "+canary && authorization != "token "+canary &&
		password != canary {
		s.t.Errorf("%s: the credentials are %q", got, authorization)
	}
	if r.UserAgent() != "terraform-provider-flotilla/1.2.3" {
		s.t.Errorf("%s: the user agent is %q", got, r.UserAgent())
	}
	if e.body != "" && r.Header.Get("Content-Type") != "application/json" {
		s.t.Errorf("%s: the content is %q", got, r.Header.Get("Content-Type"))
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

// quoted is text as a JSON string.
func quoted(text string) string {
	encoded, _ := json.Marshal(text)
	return string(encoded)
}

// scripted returns a host of a kind behind a script, whose requests must all
// have come when the test ends.
func scripted(t *testing.T, kind forge.Forge, path string, exchanges []exchange, options ...forge.HTTPOptions) *forge.GitHost {
	t.Helper()
	s := &script{t: t, api: apiOf(t, kind), all: exchanges}
	t.Cleanup(func() {
		if s.next < len(s.all) && !t.Failed() {
			t.Errorf("%s was never sent", s.all[s.next].request)
		}
	})
	return hostBefore(t, kind, path, s, options...)
}

// hostBefore returns a host whose requests a handler answers, in memory. In `make acceptance` they pass a network.
func hostBefore(t *testing.T, kind forge.Forge, path string, handler http.Handler, options ...forge.HTTPOptions) *forge.GitHost {
	t.Helper()
	url, over := serve(t, handler)
	with := only(options)
	with.Over = over
	return hostAt(t, kind, url+path, with)
}

// serve returns the address of a server that ends with the test, and what reaches it.
func serve(t *testing.T, handler http.Handler) (string, http.RoundTripper) {
	t.Helper()
	if acceptancetest.All() {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		return server.URL, webtest.Transport
	}
	return "http://127.0.0.1", answeredBy(handler)
}

// answeredBy passes requests to a handler as a server would, in memory.
func answeredBy(handler http.Handler) roundTripper {
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

func apiOf(t *testing.T, kind forge.Forge) *description {
	t.Helper()
	api, err := describedBy(kind)
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// pathOf is the path of a repository as a kind of host has it.
func pathOf(kind forge.Forge) string {
	switch kind {
	case forge.Azure:
		return "/org/owner/_git/gitops"
	case forge.BitbucketDataCenter:
		return "/scm/PLAT/gitops.git"
	}
	return "/owner/gitops.git"
}

// only are the options of a test; the zero value where it has none.
func only(options []forge.HTTPOptions) (with forge.HTTPOptions) {
	if len(options) > 0 {
		with = options[0]
	}
	return with
}

// hostAt returns a host that is sent only what the kind of host describes.
func hostAt(t *testing.T, kind forge.Forge, url string, options ...forge.HTTPOptions) *forge.GitHost {
	t.Helper()
	with := only(options)
	with.UserAgent = "terraform-provider-flotilla/1.2.3"
	if api := apiOf(t, kind); api != nil {
		with.Over = described{t: t, api: api, next: with.Over}
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

// simply is dev's request with a short body.
func simply() forge.Wanted {
	return forge.Wanted{Selector: dev, RequestOptions: forge.RequestOptions{Title: devTitle}, Body: "changes"}
}

// checkWanted checks a request with a merge mode.
func checkWanted(host *forge.GitHost, w forge.Wanted, mode forge.MergeMode) error {
	w.Merge = mode
	return host.Check(w.Selector, w.RequestOptions)
}

// free expects that dev's branch may be pushed to, or what an error says.
func free(t *testing.T, host *forge.GitHost, says string) {
	t.Helper()
	err := host.CheckHead(t.Context(), dev)
	if says != "" {
		wantError(t, err, forge.ErrNotOwned, says)
	} else if err != nil {
		t.Error(err)
	}
}

// wantEnsured opens or updates a request, which is number 7, or fails: with the request beside the error, or without.
func wantEnsured(t *testing.T, host *forge.GitHost, wanted forge.Wanted, kind error, says string, beside bool) {
	t.Helper()
	got, err := host.Ensure(t.Context(), wanted)
	if kind == nil {
		if err != nil || got == nil || got.Number != 7 || got.State != forge.Open {
			t.Errorf("ensured %+v, %v", got, err)
		}
		return
	}
	wantError(t, err, kind, says)
	if (got != nil) != beside {
		t.Errorf("beside the error is %+v", got)
	}
}

// wantMerged merges at the new head.
func wantMerged(t *testing.T, host *forge.GitHost, request *forge.PullRequest, how forge.MergeMode, kind error, says string) {
	t.Helper()
	got, err := host.Merge(t.Context(), request, newHead, how)
	if kind != nil {
		wantError(t, err, kind, says)
		return
	}
	if err != nil || got.State != forge.Merged || got.MergeCommit != mergedAs || got.HeadCommit != newHead {
		t.Errorf("merged %+v, %v", got, err)
	}
}

// wantArranged has the new head merged when its checks succeed, after which the request is in a state.
func wantArranged(t *testing.T, host *forge.GitHost, request *forge.PullRequest, state forge.RequestState, kind error, says string) {
	t.Helper()
	got, err := host.Merge(t.Context(), request, newHead, forge.WhenChecksSucceed)
	if kind != nil {
		wantError(t, err, kind, says)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	wantState(t, got, state)
}
