package git

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

func TestAServerWithoutAnAnswerIsUnreachable(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.String(), http.StatusFound)
	}))
	t.Cleanup(server.Close)
	for at, want := range map[string]string{
		server.URL + "/secret": "the server redirects too often",
		strings.Replace(server.URL, "http", "https", 1) + "/secret": "server gave HTTP response to HTTPS client",
	} {
		to, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		w := &webWire{client: &http.Client{CheckRedirect: checkRedirect}, at: to}
		_, err = w.references(t.Context())
		if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: err = %v", at, err)
		}
	}
}

type brokenTransport struct{ requests int }

func (b *brokenTransport) RoundTrip(*http.Request) (*http.Response, error) {
	b.requests++
	return nil, errors.New("http: server closed idle connection")
}

func TestADroppedFetchIsSentAgain(t *testing.T) {
	t.Parallel()
	broken := &brokenTransport{}
	w := &webWire{client: &http.Client{Transport: broken}, at: &url.URL{Scheme: "https", Host: "git.example.com"}}
	f := newFetcher(w, packp.NewAdvRefs(), func(context.Context, string, map[string]any) {})
	err := f.fetch(t.Context(), f.request([]Hash{{1}}, 0))
	if !errors.Is(err, ErrUnreachable) || broken.requests != 2 {
		t.Errorf("%d requests, err = %v", broken.requests, err)
	}
}
