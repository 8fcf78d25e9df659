package git

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/flotilla/terraform-provider-flotilla/internal/bounded"
	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// responseTimeout is how long a server may take to answer: it answers a push after its hooks have run. Reading a pack
// has no limit of its own: the caller's context has it.
const responseTimeout = 5 * time.Minute

// What a server may answer at most, by request.
const (
	maxAdvertisement = 64 << 20 // a million refs
	maxReport        = 4 << 20  // a push's report, with what the hooks print
	maxErrorBody     = 64 << 10
)

// NewHTTPTransport is the default of Options.Over, which also trusts the certificates in a PEM text; "" is the default. It is
// an error when the text has no certificate in it.
func NewHTTPTransport(ca string) (http.RoundTripper, error) {
	next := bounded.Transport(responseTimeout)
	if ca == "" {
		return next, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a machine without any
	}
	if !pool.AppendCertsFromPEM([]byte(ca)) {
		return nil, errors.New("the CA has no certificate in it; it is PEM text, from \"-----BEGIN CERTIFICATE-----\"")
	}
	next.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return next, nil
}

// slowError is a timeout that this package sets. Go's own error would look like a
// context's deadline.
type slowError struct{ text string }

func (e *slowError) Error() string { return e.text }
func (e *slowError) Unwrap() error { return ErrUnreachable }
func (e *slowError) Timeout() bool { return true }

// Temporary makes it a net.Error.
func (e *slowError) Temporary() bool { return false }

func slow(ctx context.Context, err error) error {
	if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() || ctx.Err() != nil {
		return err
	}
	// A connection may see a context's deadline a moment before the context does.
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 {
		return context.DeadlineExceeded
	}
	return &slowError{err.Error()}
}

// boundedTransport limits what a server's answers may hold: go-git reads
// advertisements, reports and the bodies of errors to their end, however long. It
// also keeps credentials within their scope: after a redirect, Go's client would
// send them to other ports, to subdomains, and from https to http. And it appends
// the pack of a push, of which go-git would make a copy in memory, as large as two.
type boundedTransport struct {
	next    http.RoundTripper
	product string // goes with the user agent; may be empty
}

// scopeKey is the key in a request's context for the URL prefix that its
// credentials are for.
type scopeKey struct{}

// appKey is the key in a request's context for the GitHub App that gets its token.
type appKey struct{}

// appError is a request that was not sent, since there is no token for it.
type appError struct{ err error }

func (e *appError) Error() string { return "the provider's git.github_app: " + e.err.Error() }

// Unwrap has this package's error beside the cause.
func (e *appError) Unwrap() []error {
	kind := ErrUnreachable
	if errors.Is(e.err, forge.ErrGitHubApp) {
		kind = ErrUnauthorized
	}
	return []error{e.err, kind}
}

// packKey is the key in a push's context for its pack.
type packKey struct{}

// appendPack sends a pack after the body that a request has.
func appendPack(request *http.Request, pack *Pack) {
	before := request.GetBody
	request.ContentLength += int64(pack.Finish())
	request.GetBody = func() (io.ReadCloser, error) {
		body, err := before()
		if err != nil {
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{io.MultiReader(body, pack.Reader()), body}, nil
	}
	request.Body, _ = request.GetBody()
}

func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	scope, scoped := request.Context().Value(scopeKey{}).(urlPrefix)
	app, asApp := request.Context().Value(appKey{}).(*forge.GitHubApp)
	switch {
	case scoped && !scope.holds(urlPrefixOf(request.URL)):
		request.Header.Del("Authorization")
	case asApp:
		token, err := app.Token(request.Context(), request.URL, t.next)
		if err != nil {
			return nil, &appError{err}
		}
		username, password, _ := forge.GitLogin(request.URL.Hostname(), forge.Credentials{Token: token})
		request.SetBasicAuth(username, password)
	}
	request.Header.Set("User-Agent", strings.TrimSpace(request.UserAgent()+" "+t.product))
	if pack, ok := request.Context().Value(packKey{}).(*Pack); ok && request.Body != nil {
		appendPack(request, pack)
	}
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, slow(request.Context(), err)
	}
	if forge.AsksToSignIn(response) {
		_ = response.Body.Close()
		response.StatusCode, response.Header = http.StatusUnauthorized, http.Header{}
		response.Body = io.NopCloser(strings.NewReader("it asks to sign in with a browser: the credentials are missing, wrong or expired"))
	}
	if response.StatusCode >= http.StatusBadRequest {
		response.Body = refusal(request, response.Body, redirection(request))
		return response, nil
	}
	limit := int64(maxAdvertisement)
	switch {
	case strings.HasSuffix(request.URL.Path, "/git-upload-pack"):
		limit = maxPackBytes
	case strings.HasSuffix(request.URL.Path, "/git-receive-pack"):
		limit = maxReport
	}
	response.Body = bounded.Body(response.Body, limit, tooLong(limit))
	return response, nil
}

// redirection says by which redirect a request came to another server, which gets no credentials of the first; "" where
// there was none.
func redirection(request *http.Request) string {
	first := request
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
	}
	if from, to := urlPrefixOf(first.URL), urlPrefixOf(request.URL); from.scheme == to.scheme && from.host == to.host && from.port == to.port {
		return ""
	}
	return fmt.Sprintf("%s redirects to %s://%s, which was not sent the credentials; if the repository has moved, set its new URL, and credentials for that: ",
		first.URL.Host, request.URL.Scheme, request.URL.Host)
}

// refusal is the body of an answer other than success. What is beyond the limit is
// cut off, since the status says enough. Credentials are removed before the text
// is cut any further, or half of one could be left.
func refusal(request *http.Request, body io.ReadCloser, before string) io.ReadCloser {
	defer func() { _ = body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(body, maxErrorBody))
	text = append([]byte(before), text...)
	if username, password, ok := request.BasicAuth(); ok {
		text = []byte(secret.NewScrubber([]string{password}, username).Scrub(string(text)))
	} else if token, ok := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer "); ok {
		text = []byte(secret.NewScrubber([]string{token}).Scrub(string(text)))
	}
	return io.NopCloser(bytes.NewReader(text))
}

// tooLong is the error of an answer with more bytes than this.
func tooLong(limit int64) error {
	return fmt.Errorf("%w: the server's answer is longer than %d MiB", ErrTooLarge, limit>>20)
}

// limited reads an answer, and fails, instead of ending, when more bytes come.
func limited(answer io.Reader, limit int64) io.Reader {
	return &bounded.Reader{From: answer, Left: limit, TooLong: tooLong(limit)}
}

// statusError is an answer other than success.
type statusError struct {
	code   int
	reason string // what the body says
}

func (e *statusError) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("the server answered %d %s", e.code, http.StatusText(e.code)))
	if e.reason != "" {
		text += ": " + e.reason
	}
	return text
}

// KindOfStatus is the error of this package that a status of http is; nil when there is none.
func KindOfStatus(code int) error {
	switch {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return ErrUnauthorized
	case code == http.StatusNotFound, code == http.StatusGone:
		return ErrNotFound
	case code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		return ErrUnreachable
	}
	return nil
}

// webError turns go-git's errors into ones that can be unwrapped: its
// UnexpectedError hides what it wraps, and statuses come in four forms.
func webError(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []struct {
		is   error
		code int
	}{
		{transport.ErrAuthenticationRequired, http.StatusUnauthorized},
		{transport.ErrAuthorizationFailed, http.StatusForbidden},
		{transport.ErrRepositoryNotFound, http.StatusNotFound},
	} {
		if errors.Is(err, known.is) {
			return &statusError{code: known.code, reason: wording.OneLine(strings.TrimPrefix(err.Error(), known.is.Error()+": "))}
		}
	}
	if unexpected, ok := errors.AsType[*plumbing.UnexpectedError](err); ok {
		err = unexpected.Err
	}
	if noToken, ok := errors.AsType[*appError](err); ok {
		return noToken
	}
	if status, ok := errors.AsType[*githttp.Err](err); ok {
		return &statusError{code: status.StatusCode(), reason: wording.OneLine(status.Reason)}
	}
	return err
}
