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
	"net/url"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/armor"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
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
	next := bounded.NewGuarded(responseTimeout)
	if ca == "" {
		return next, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a machine without any
	}
	if !pool.AppendCertsFromPEM([]byte(armor.Normalize(ca))) {
		return nil, errors.New("the CA has no certificate in it; it is PEM text, from \"-----BEGIN CERTIFICATE-----\"")
	}
	next.Each(func(t *http.Transport) { t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12} })
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

// targetKey is the key in a request's context for the repository that it is about.
type targetKey struct{}

// target is a repository, and what it gets.
type target struct {
	remote Remote
	permit Permit
}

// services are the ends of the URLs that Git's protocol adds to that of a repository.
var services = []string{"/info/refs", "/git-upload-pack", "/git-receive-pack"}

// repositoryAt is the URL of the repository that a request is about.
func repositoryAt(u *url.URL) string {
	at := url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	for _, service := range services {
		if strings.HasSuffix(at.Path, service) {
			at.Path, at.RawPath = strings.TrimSuffix(at.Path, service), strings.TrimSuffix(at.RawPath, service)
			break
		}
	}
	return at.String()
}

// isElsewhere reports whether a request is about another repository than that of the configuration.
func (t *target) isElsewhere(request *http.Request) bool {
	own, err := access.Parse(t.remote.URL)
	at, wrong := access.Parse(repositoryAt(request.URL))
	return err != nil || wrong != nil || !at.Equal(own)
}

// approach asks package access about a request, and takes the credentials off one that gets none.
func (t *target) approach(request *http.Request) (*http.Request, *forge.GitHubApp, error) {
	asked := t.remote.request()
	if t.isElsewhere(request) {
		asked.URL, asked.From, asked.Redirect = repositoryAt(request.URL), []string{t.remote.URL}, true
		for _, hop := range access.Hops(request) {
			asked.From = append(asked.From, repositoryAt(hop))
		}
	}
	permit, err := t.remote.Credentials.Decide(asked)
	if err != nil {
		return nil, nil, err
	}
	if permit.PublicOnly {
		request = request.WithContext(bounded.PublicOnly(request.Context()))
	}
	if !permit.Keeps || permit.Grant.Login != t.permit.Grant.Login {
		request.Header.Del("Authorization")
		return request, nil, nil
	}
	return request, permit.Login.App, nil
}

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
	about, ok := request.Context().Value(targetKey{}).(*target)
	if !ok {
		return nil, errors.New("a request was not sent: it is about no repository")
	}
	request, app, err := about.approach(request)
	if err != nil {
		return nil, err
	}
	if app != nil {
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
		if about.isElsewhere(request) {
			_ = response.Body.Close()
			response.Body = io.NopCloser(strings.NewReader(redirection(about.remote, request)))
			return response, nil
		}
		response.Body = refusal(request, response.Body)
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

// redirection is what is said in place of the answer of another repository: where that is, and no word of it.
func redirection(from Remote, request *http.Request) string {
	before := from.URL
	if at, err := access.Parse(from.URL); err == nil {
		before = at.Server()
	}
	return fmt.Sprintf(
		"%s redirects to %s://%s, which was not sent the credentials; if the repository has moved, set its new URL, and credentials for that",
		before,
		request.URL.Scheme,
		request.URL.Host,
	)
}

// refusal is the body of an answer other than success. What is beyond the limit is
// cut off, since the status says enough. Credentials are removed before the text
// is cut any further, or half of one could be left.
func refusal(request *http.Request, body io.ReadCloser) io.ReadCloser {
	defer func() { _ = body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(body, maxErrorBody))
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
	if request, ok := errors.AsType[*url.Error](err); ok && errors.Is(err, access.ErrDenied) {
		return request.Err // without the URL, which may hold a secret
	}
	if status, ok := errors.AsType[*githttp.Err](err); ok {
		return &statusError{code: status.StatusCode(), reason: wording.OneLine(status.Reason)}
	}
	return err
}
