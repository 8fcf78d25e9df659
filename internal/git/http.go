package git

import (
	"bufio"
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

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"

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

func asSlowError(ctx context.Context, err error) error {
	if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() || ctx.Err() != nil {
		return err
	}
	// A connection may see a context's deadline before the context does.
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 {
		return context.DeadlineExceeded
	}
	return &slowError{err.Error()}
}

// boundedTransport limits answers. It adds the credentials to requests within their scope, and removes them after a redirect:
// Go would send them to other ports, to subdomains, and from https to http. It returns every answer but success as an error.
type boundedTransport struct {
	next    http.RoundTripper
	product string // may be empty
	remote  Remote
	permit  Permit
}

var services = []string{refsPath, "/" + transport.UploadPackServiceName, "/" + transport.ReceivePackServiceName}

func repositoryAt(u *url.URL) *url.URL {
	at := &url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	for _, service := range services {
		if strings.HasSuffix(at.Path, service) {
			at.Path, at.RawPath = strings.TrimSuffix(at.Path, service), strings.TrimSuffix(at.RawPath, service)
			break
		}
	}
	return at
}

func (t *boundedTransport) isElsewhere(request *http.Request) bool {
	own, err := access.Parse(t.remote.URL)
	at, wrong := access.Parse(repositoryAt(request.URL).String())
	return err != nil || wrong != nil || !at.Equal(own)
}

// authorize asks package access about a request, and adds the credentials that it may have.
func (t *boundedTransport) authorize(request *http.Request) (*http.Request, error) {
	asked := t.remote.request()
	if t.isElsewhere(request) {
		asked.URL, asked.From, asked.Redirect = repositoryAt(request.URL).String(), []string{t.remote.URL}, true
		for _, hop := range access.Hops(request) {
			asked.From = append(asked.From, repositoryAt(hop).String())
		}
	}
	permit, err := t.remote.Credentials.Decide(asked)
	if err != nil {
		return nil, err
	}
	if permit.PublicOnly {
		request = request.WithContext(bounded.PublicOnly(request.Context()))
	}
	request.Header.Del("Authorization")
	if !permit.Keeps || permit.Grant.Login != t.permit.Grant.Login {
		return request, nil
	}
	login := permit.Login.Web()
	if login.App != nil {
		token, err := login.App.Token(request.Context(), request.URL, t.next)
		if err != nil {
			return nil, &appError{err}
		}
		login = forge.Credentials{Token: token}
	}
	login.SignGit(request)
	return request, nil
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

func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	request, err := t.authorize(request.Clone(request.Context()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", strings.TrimSpace(request.UserAgent()+" "+t.product))
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, asSlowError(request.Context(), err)
	}
	signsIn := forge.AsksToSignIn(response)
	if signsIn || response.StatusCode >= http.StatusBadRequest {
		defer func() { _ = response.Body.Close() }()
	}
	switch {
	case signsIn:
		return nil, t.explain(&statusError{
			http.StatusUnauthorized, "it asks to sign in with a browser: the credentials are missing, wrong or expired",
		})
	case response.StatusCode < http.StatusBadRequest:
	case t.isElsewhere(request):
		return nil, t.explain(&statusError{response.StatusCode, redirection(t.remote, request)})
	default:
		return nil, t.explain(&statusError{response.StatusCode, refusal(request, response.Body)})
	}
	limit := int64(maxAdvertisement)
	switch {
	case strings.HasSuffix(request.URL.Path, transport.UploadPackServiceName):
		limit = maxPackBytes
	case strings.HasSuffix(request.URL.Path, transport.ReceivePackServiceName):
		limit = maxReport
	}
	response.Body = bounded.Body(response.Body, limit, tooLong(limit))
	return response, nil
}

// explain adds why no credentials were sent.
func (t *boundedTransport) explain(err *statusError) error {
	switch {
	case !errors.Is(KindOfStatus(err.code), ErrUnauthorized):
		return err
	case t.permit.Withheld != "":
		return fmt.Errorf("%w; the credentials were not sent: %s; add credentials for this URL", err, t.permit.Withheld)
	case t.permit.Grant.Login == access.Anonymous && !t.remote.IsGitOps:
		return fmt.Errorf("%w; no credentials were sent: %s", err, noCredentials)
	}
	return err
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

// refusal returns the reason in an error response. It removes credentials before the text is cut, or a part could remain.
func refusal(request *http.Request, body io.Reader) string {
	text, _ := io.ReadAll(io.LimitReader(body, maxErrorBody))
	said := string(text)
	if username, password, ok := request.BasicAuth(); ok {
		said = secret.NewScrubber([]string{password}, username).Scrub(said)
	} else if token, ok := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer "); ok {
		said = secret.NewScrubber([]string{token}).Scrub(said)
	}
	return wording.OneLine(said)
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

// webWire speaks the smart protocol over http(s). It has no state, so fetches do not read the refs again.
type webWire struct {
	client *http.Client
	at     *url.URL // of the repository; the requests after the refs follow their redirects
}

const refsPath = "/info/refs"

func (w *webWire) references(ctx context.Context) (*packp.AdvRefs, error) {
	advertised, at, err := w.advertised(ctx, transport.UploadPackServiceName)
	if err == nil {
		w.at = at
	}
	return advertised, err
}

// advertised also returns the URL of the repository after redirects.
func (w *webWire) advertised(ctx context.Context, service string) (advertised *packp.AdvRefs, at *url.URL, err error) {
	to := w.at.JoinPath(refsPath)
	to.RawQuery = "service=" + service
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return nil, nil, err
	}
	response, err := w.do(request)
	if err == nil {
		defer func() { _ = response.Body.Close() }()
		at = repositoryAt(response.Request.URL)
		advertised, err = readAdvertisement(response.Body)
	}
	if err != nil && Classify(err) == nil && !errors.Is(err, errOtherHash) && !errors.As(err, new(*pktline.ErrorLine)) &&
		!errors.As(err, new(*statusError)) {
		err = fmt.Errorf(
			"%w: the answer is not that of a Git server; is this the URL of a repository, and does it need credentials?",
			ErrUnreachable,
		)
	}
	return advertised, at, err
}

func (w *webWire) fetch(ctx context.Context, request *packp.UploadPackRequest, read func(io.Reader) error) error {
	content, err := encodeFetch(request)
	if err != nil {
		return err
	}
	body := func() io.Reader { return bytes.NewReader(content) }
	response, err := w.post(ctx, w.at, transport.UploadPackServiceName, len(content), body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	return readFetched(request, response.Body, read)
}

func (w *webWire) push(ctx context.Context, pack *Pack, prepare prepareFunc) (*packp.ReportStatus, error) {
	advertised, at, err := w.advertised(ctx, transport.ReceivePackServiceName)
	if err != nil {
		return nil, err
	}
	request, err := prepare(advertised)
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	if err := request.Encode(&content); err != nil {
		return nil, err
	}
	body := func() io.Reader { return io.MultiReader(bytes.NewReader(content.Bytes()), pack.Reader()) }
	response, err := w.post(ctx, at, transport.ReceivePackServiceName, content.Len()+pack.Finish(), body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer := bufio.NewReader(response.Body)
	if _, err := answer.Peek(1); errors.Is(err, io.EOF) {
		return nil, nil
	}
	report, err := readReport(request, answer)
	if err != nil {
		return nil, err
	}
	return report, report.Error()
}

func (w *webWire) close() {}

// post sends a body of a known length, since some servers accept no other. The client may repeat it over another connection.
func (w *webWire) post(ctx context.Context, at *url.URL, service string, length int, body func() io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.JoinPath(service).String(), body())
	if err != nil {
		return nil, err
	}
	request.ContentLength = int64(length)
	request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(body()), nil }
	request.Header.Set("Accept", "application/x-"+service+"-result")
	request.Header.Set("Content-Type", "application/x-"+service+"-request")
	return w.do(request)
}

// do returns errors without the URL, which may contain a secret. Without an answer, the repository is unreachable.
func (w *webWire) do(request *http.Request) (*http.Response, error) {
	request.Header.Set("User-Agent", capability.DefaultAgent())
	response, err := w.client.Do(request)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
		if Classify(err) == nil && !errors.As(err, new(*statusError)) {
			err = fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
	}
	if err == nil && response.StatusCode/100 != 2 {
		_ = response.Body.Close()
		err = &statusError{code: response.StatusCode}
	}
	return response, err
}

// checkRedirect follows redirects of the refs, like git.
func checkRedirect(request *http.Request, via []*http.Request) error {
	switch {
	case via[0].Method != http.MethodGet:
		return errors.New("the server redirects a request after the one for its refs; set the URL to the repository's new URL")
	case len(via) >= 10:
		return errors.New("the server redirects too often")
	}
	return nil
}
