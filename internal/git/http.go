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

// responseTimeout includes the hooks of a push.
const responseTimeout = 5 * time.Minute

// The maximum sizes of answers.
const (
	maxAdvertisement = 64 << 20 // a million refs
	maxReport        = 4 << 20  // with the output of hooks
	maxErrorBody     = 64 << 10
)

// NewHTTPTransport returns the default of ConnectorOptions.Over, with more trusted certificates, as PEM, unless empty.
func NewHTTPTransport(ca string) (http.RoundTripper, error) {
	next := bounded.NewGuarded(responseTimeout)
	if ca == "" {
		return next, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // the machine may have none
	}
	if !pool.AppendCertsFromPEM([]byte(armor.Normalize(ca))) {
		return nil, errors.New("the CA has no certificate in it; it is PEM text, from \"-----BEGIN CERTIFICATE-----\"")
	}
	next.Each(func(t *http.Transport) { t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12} })
	return next, nil
}

// slowError differs from a context's deadline, unlike Go's own error.
type slowError struct{ text string }

func (e *slowError) Error() string { return e.text }
func (e *slowError) Unwrap() error { return ErrUnreachable }
func (e *slowError) Timeout() bool { return true }

// Temporary implements net.Error.
func (e *slowError) Temporary() bool { return false }

func slow(ctx context.Context, err error) error {
	if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() || ctx.Err() != nil {
		return err
	}
	// A connection may see a context's deadline before the context does.
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 {
		return context.DeadlineExceeded
	}
	return &slowError{err.Error()}
}

// boundedTransport limits answers, which go-git reads to their end. It keeps credentials within their scope: after a redirect,
// Go would send them to other ports, to subdomains, and from https to http. It appends the pack of a push, which go-git would
// copy into memory twice.
type boundedTransport struct {
	next    http.RoundTripper
	product string // may be empty
}

type targetKey struct{}

// target is the repository of a request and the decision about it.
type target struct {
	remote Remote
	permit Permit
}

var services = []string{"/info/refs", "/git-upload-pack", "/git-receive-pack"}

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

func (t *target) isElsewhere(request *http.Request) bool {
	own, err := access.Parse(t.remote.URL)
	at, wrong := access.Parse(repositoryAt(request.URL))
	return err != nil || wrong != nil || !at.Equal(own)
}

// approach asks package access about a request, and removes credentials unless it may have them.
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

// appError means that there is no token for a request.
type appError struct{ err error }

func (e *appError) Error() string { return "the provider's git.github_app: " + e.err.Error() }

func (e *appError) Unwrap() []error {
	kind := ErrUnreachable
	if errors.Is(e.err, forge.ErrGitHubApp) {
		kind = ErrUnauthorized
	}
	return []error{e.err, kind}
}

type packKey struct{}

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

// redirection explains a redirect without any text of its answer.
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

// refusal returns the body of an error response. It removes credentials before anything cuts the text, or a part of one could
// remain.
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

func tooLong(limit int64) error {
	return fmt.Errorf("%w: the server's answer is longer than %d MiB", ErrTooLarge, limit>>20)
}

func limited(answer io.Reader, limit int64) io.Reader {
	return &bounded.Reader{From: answer, Left: limit, TooLong: tooLong(limit)}
}

type statusError struct {
	code   int
	reason string // from the body
}

func (e *statusError) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("the server answered %d %s", e.code, http.StatusText(e.code)))
	if e.reason != "" {
		text += ": " + e.reason
	}
	return text
}

// KindOfStatus returns the error for an HTTP status, or nil.
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

// webError makes go-git's errors unwrappable: its UnexpectedError hides the cause, and statuses come in four forms.
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
		return request.Err // without the URL, which may contain a secret
	}
	if status, ok := errors.AsType[*githttp.Err](err); ok {
		return &statusError{code: status.StatusCode(), reason: wording.OneLine(status.Reason)}
	}
	return err
}
