package forge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// responseTimeout is long because a Git host answers a merge when it is done.
const responseTimeout = 2 * time.Minute

const (
	maxAnswer    = 32 << 20 // a page of pull requests with long bodies
	maxErrorBody = 64 << 10
	maxTries     = 4
	firstBackoff = 250 * time.Millisecond
)

// transport is below all SDKs. It binds credentials to one server, waits, retries if that is safe, and returns every answer but
// success as an error: a RoundTripper should not, but each SDK drops parts of answers, Gitea's even why a merge failed.
type transport struct {
	next      http.RoundTripper
	origins   []string
	secrets   secret.Scrubber
	patience  time.Duration
	userAgent string
	reason    func(body []byte) (more []string, kindWord string) // GitHostKind.reason

	sign       func(*http.Request) // GitHostKind.sign; nil for signed requests
	app        *GitHubApp          // may be nil
	repository *url.URL            // of the App's token
}

func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if t.app != nil {
		return t.signAsApp(request)
	}
	body, err := readBody(request)
	if err != nil {
		return nil, err
	}
	// The API's server is the repository's or configured.
	if _, err := access.Decide(access.Request{URL: access.OriginOf(request.URL), Sources: t.origins}, nil); err != nil {
		return nil, failf(ErrUnreachable, "a request to %s was not sent: the credentials are for %s", access.OriginOf(request.URL), t.origins[0])
	}
	ctx := request.Context()
	for try := 1; ; try++ {
		response, err := t.sendOnce(request, body)
		if err == nil {
			return response, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		rest, worth := t.retryAfter(request, err, try)
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < rest {
			worth = false
		}
		if !worth {
			return nil, err
		}
		if err := wait.For(ctx, rest); err != nil {
			return nil, err
		}
	}
}

func (t *transport) signAsApp(request *http.Request) (*http.Response, error) {
	token, err := t.app.Token(request.Context(), t.repository, t.next)
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	signed := *t
	signed.app, signed.secrets = nil, append(secret.NewScrubber([]string{token}), t.secrets...)
	signed.sign = func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	return signed.RoundTrip(request)
}

func readBody(request *http.Request) ([]byte, error) {
	if request.Body == nil {
		return nil, nil
	}
	defer func() { _ = request.Body.Close() }()
	return io.ReadAll(request.Body)
}

// retryAfter returns whether and when to retry. A rate-limited request was not executed. A failed one is repeated only
// if it just reads.
func (t *transport) retryAfter(request *http.Request, err error, try int) (time.Duration, bool) {
	if try == maxTries {
		return 0, false
	}
	backoff := min(firstBackoff<<(try-1)+rand.N(firstBackoff), t.patience)
	if limit := (*limited)(nil); errors.As(err, &limit) {
		rest := cmp.Or(limit.wait, min(backoff*4, t.patience))
		return rest, rest <= t.patience
	}
	if request.Method != http.MethodGet {
		return 0, false
	}
	if said := (*answer)(nil); errors.As(err, &said) {
		return backoff, said.status >= http.StatusInternalServerError && said.status != http.StatusNotImplemented
	}
	return backoff, !errors.Is(err, ErrUnreachable) // these do not change
}

func (t *transport) sendOnce(request *http.Request, body []byte) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("User-Agent", t.userAgent)
	if t.sign != nil {
		t.sign(request)
	}
	request.Body = http.NoBody
	if body != nil {
		request.Body = io.NopCloser(bytes.NewReader(body))
		request.ContentLength = int64(len(body))
	}
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	switch kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); {
	case response.StatusCode >= http.StatusBadRequest:
		defer func() { _ = response.Body.Close() }()
		return nil, t.readError(response, kind)
	case AsksToSignIn(response):
		_ = response.Body.Close()
		return nil, &answer{status: http.StatusUnauthorized, words: "it asks to sign in with a browser: the token is missing, wrong or expired"}
	case response.StatusCode >= http.StatusMultipleChoices:
		_ = response.Body.Close()
		return nil, t.redirectError(response)
	case kind == "text/html" && response.StatusCode != http.StatusNoContent && response.ContentLength != 0:
		_ = response.Body.Close()
		return nil, failf(ErrUnreachable, "the Git host answered with a web page instead of its API's answer; is the URL of the API right?")
	}
	response.Body = bounded.Body(response.Body, maxAnswer, errTooLong)
	return response, nil
}

// AsksToSignIn recognizes Azure DevOps' answers to clients without a login: a page with status 203, or a redirect to one.
func AsksToSignIn(response *http.Response) bool {
	if to, err := response.Location(); err == nil && response.StatusCode/100 == 3 {
		return strings.HasSuffix(to.Path, "/_signin")
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return kind == "text/html" && response.StatusCode == http.StatusNonAuthoritativeInfo
}

// redirectError describes a redirect. None is followed: another server must not get the credentials, and a list by the former
// owner of a moved repository would be empty, not an error.
func (t *transport) redirectError(response *http.Response) error {
	to, err := response.Location()
	if err != nil {
		return failf(ErrUnreachable, "the Git host answered %s and does not say where to", response.Status)
	}
	// Credentials go before the text is escaped again.
	to = &url.URL{Scheme: to.Scheme, Host: to.Host, Path: t.secrets.Scrub(to.Path)}
	return failf(ErrUnreachable, "the Git host redirects to %q, and redirects are not followed; set the URL to the repository's new URL", to)
}

func (t *transport) readError(response *http.Response, kind string) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody)) // the status is enough
	said := answer{status: response.StatusCode}
	if kind != "text/html" {
		// Credentials go before the text is truncated, or a part of one could remain.
		var more []string
		if t.reason != nil {
			more, said.kindWord = t.reason(text)
		}
		said.words = wording.OneLine(t.secrets.Scrub(strings.Join(append([]string{errorText(text)}, more...), "; ")))
	}
	spent := response.Header.Get("X-Ratelimit-Remaining") == "0"
	after := response.Header.Get("Retry-After")
	switch {
	case said.status == http.StatusTooManyRequests:
	case said.status == http.StatusForbidden && (spent || after != "" || strings.Contains(strings.ToLower(said.words), "rate limit")):
	default:
		return &said
	}
	return &limited{answer: said, wait: rateLimitWait(response.Header, said.words)}
}

// rateLimitWait returns how long a Git host accepts no requests, or 0. GitHub: "Best practices for using the REST API"; GitLab:
// "User and IP rate limits".
func rateLimitWait(header http.Header, words string) time.Duration {
	now := time.Now()
	if after := header.Get("Retry-After"); after != "" {
		if seconds, err := strconv.Atoi(after); err == nil && seconds >= 0 {
			return time.Duration(seconds)*time.Second + time.Millisecond
		}
		if at, err := http.ParseTime(after); err == nil {
			return max(at.Sub(now), time.Millisecond)
		}
	}
	for _, name := range []string{"X-Ratelimit-Reset", "Ratelimit-Reset"} {
		if at, err := strconv.ParseInt(header.Get(name), 10, 64); err == nil && at > 0 {
			return max(time.Unix(at, 0).Sub(now), 0) + time.Second // clocks differ
		}
	}
	if strings.Contains(strings.ToLower(words), "secondary rate limit") {
		return time.Minute // GitHub: "wait for at least one minute"
	}
	return 0
}

func errorText(body []byte) string {
	var fields map[string]any
	if json.Unmarshal(body, &fields) != nil {
		return string(body)
	}
	var found []string
	for _, name := range []string{"message", "error", "error_description", "errors"} {
		for _, text := range flattenMessage(fields[name]) {
			if text != "" && !slices.Contains(found, text) {
				found = append(found, text)
			}
		}
	}
	return cmp.Or(strings.Join(found, "; "), string(body))
}

func flattenMessage(value any) []string {
	switch value := value.(type) {
	case string:
		return []string{value}
	case []any:
		var found []string
		for _, item := range value {
			found = append(found, flattenMessage(item)...)
		}
		return found
	case map[string]any:
		if message, ok := value["message"].(string); ok && message != "" {
			return []string{message}
		}
		if code, ok := value["code"].(string); ok { // GitHub: {resource, field, code}
			return []string{strings.TrimSpace(fmt.Sprint(value["resource"], " ", value["field"], " ", code))}
		}
		var found []string
		for _, name := range slices.Sorted(maps.Keys(value)) {
			for _, text := range flattenMessage(value[name]) {
				found = append(found, name+" "+text)
			}
		}
		return found
	}
	return nil
}

// call sends a request without an SDK and decodes the answer. body and into may be nil.
func (s session) call(ctx context.Context, method string, to *url.URL, body, into any) error {
	response, err := s.exchange(ctx, method, to, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if into == nil {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	return json.NewDecoder(response.Body).Decode(into)
}

func callForRequest[P any](
	ctx context.Context, s session, method string, to *url.URL, body any, convert func(*P) *request,
) (*request, error) {
	var pull P
	if err := s.call(ctx, method, to, body, &pull); err != nil {
		return nil, err
	}
	return convert(&pull), nil
}

// exchange sends a request with its kind's query. body may be nil. The caller closes the answer.
func (s session) exchange(ctx context.Context, method string, to *url.URL, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	query := to.Query()
	for name, values := range s.at.kind.query {
		if !query.Has(name) {
			query[name] = values
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, withQuery(to, query).String(), content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return s.client.Do(request)
}

// pull returns the URL of a pull request, or one below it.
func (s session) pull(number int, segments ...string) *url.URL {
	return s.at.resource(append([]string{s.at.kind.pulls, strconv.Itoa(number)}, segments...)...)
}

const branchRef = "refs/heads/"

func withQuery(to *url.URL, query url.Values) *url.URL {
	at := *to
	at.RawQuery = query.Encode()
	return &at
}

// joinSegments escapes segments.
func joinSegments(to *url.URL, segments ...string) *url.URL {
	escaped := make([]string, len(segments))
	for i, segment := range segments {
		escaped[i] = url.PathEscape(segment)
	}
	return to.JoinPath(escaped...)
}
