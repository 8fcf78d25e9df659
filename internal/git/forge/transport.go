package forge

import (
	"bytes"
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

// responseTimeout is how long a Git host may take to answer. A merge is answered when it is done.
const responseTimeout = 2 * time.Minute

const (
	maxAnswer    = 32 << 20 // a page of pull requests with long bodies
	maxErrorBody = 64 << 10
	maxTries     = 4
)

// firstBackoff doubles with each try.
const firstBackoff = 250 * time.Millisecond

// transport is below all SDKs. It binds credentials to one server, waits and
// retries where that is safe, and returns everything but success as an error. A
// RoundTripper should not interpret answers; this one does, because each SDK drops
// some part of them, Gitea's even the reason why a merge failed.
type transport struct {
	next      http.RoundTripper
	origins   []string
	secrets   secret.Scrubber
	patience  time.Duration
	userAgent string
	reason    func(body []byte) (more []string, kindWord string) // as Kind has it

	sign       func(*http.Request) // as Kind has it; nil where requests are signed already
	app        *GitHubApp          // gets a token to sign with; nil for none
	repository *url.URL            // that app gets a token for
}

func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if t.app != nil {
		return t.asApp(request)
	}
	body, err := readBody(request)
	if err != nil {
		return nil, err
	}
	// The API is that of the repository's server, or the configuration names it.
	if _, err := access.Decide(access.Request{URL: origin(request.URL), Sources: t.origins}, nil); err != nil {
		return nil, failf(ErrUnreachable, "a request to %s was not sent: the credentials are for %s", origin(request.URL), t.origins[0])
	}
	ctx := request.Context()
	for try := 1; ; try++ {
		response, err := t.once(request, body)
		if err == nil {
			return response, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		rest, worth := t.again(request, err, try)
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

// asApp signs with a token that lasts.
func (t *transport) asApp(request *http.Request) (*http.Response, error) {
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

// readBody takes the body out of a request, so that it can be sent again.
func readBody(request *http.Request) ([]byte, error) {
	if request.Body == nil {
		return nil, nil
	}
	defer func() { _ = request.Body.Close() }()
	return io.ReadAll(request.Body)
}

// again says whether, and after how long, to try again: a limited request was not
// executed and may be repeated; one that failed, only if it just reads.
func (t *transport) again(request *http.Request, err error, try int) (time.Duration, bool) {
	if try == maxTries {
		return 0, false
	}
	backoff := min(firstBackoff<<(try-1)+rand.N(firstBackoff), t.patience)
	if limit := (*limited)(nil); errors.As(err, &limit) {
		rest := limit.wait
		if rest == 0 {
			rest = min(backoff*4, t.patience)
		}
		return rest, rest <= t.patience
	}
	if request.Method != http.MethodGet {
		return 0, false
	}
	if said := (*answer)(nil); errors.As(err, &said) {
		return backoff, said.status >= http.StatusInternalServerError && said.status != http.StatusNotImplemented
	}
	return backoff, !errors.Is(err, ErrUnreachable) // a redirect or a web page stays one
}

func (t *transport) once(request *http.Request, body []byte) (*http.Response, error) {
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
		return nil, t.refusal(response, kind)
	case AsksToSignIn(response):
		_ = response.Body.Close()
		return nil, &answer{status: http.StatusUnauthorized, words: "it asks to sign in with a browser: the token is missing, wrong or expired"}
	case response.StatusCode >= http.StatusMultipleChoices:
		_ = response.Body.Close()
		return nil, t.moved(response)
	case kind == "text/html" && response.StatusCode != http.StatusNoContent && response.ContentLength != 0:
		_ = response.Body.Close()
		return nil, failf(ErrUnreachable, "the Git host answered with a web page instead of its API's answer; is the URL of the API right?")
	}
	response.Body = bounded.Body(response.Body, maxAnswer, errTooLong)
	return response, nil
}

// AsksToSignIn recognises how Azure DevOps answers clients that are not signed in:
// by a web page with status 203, or by a redirect to one.
func AsksToSignIn(response *http.Response) bool {
	if to, err := response.Location(); err == nil && response.StatusCode/100 == 3 {
		return strings.HasSuffix(to.Path, "/_signin")
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return kind == "text/html" && response.StatusCode == http.StatusNonAuthoritativeInfo
}

// moved is the error for a redirect. None is followed: another server must not get
// the credentials, and for a repository that has moved, a list by the owner's old
// name would be empty instead of an error.
func (t *transport) moved(response *http.Response) error {
	to, err := response.Location()
	if err != nil {
		return failf(ErrUnreachable, "the Git host answered %s and does not say where to", response.Status)
	}
	// Credentials are removed before the text is escaped again.
	to = &url.URL{Scheme: to.Scheme, Host: to.Host, Path: t.secrets.Scrub(to.Path)}
	return failf(ErrUnreachable, "the Git host redirects to %q, and redirects are not followed; set the URL to the repository's new URL", to)
}

// refusal reads an answer other than success.
func (t *transport) refusal(response *http.Response, kind string) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody)) // the status says enough
	said := answer{status: response.StatusCode}
	if kind != "text/html" {
		// Credentials are removed before the text is cut, or half of one could be left.
		var more []string
		if t.reason != nil {
			more, said.kindWord = t.reason(text)
		}
		said.words = wording.OneLine(t.secrets.Scrub(strings.Join(append([]string{words(text)}, more...), "; ")))
	}
	spent := response.Header.Get("X-Ratelimit-Remaining") == "0"
	after := response.Header.Get("Retry-After")
	switch {
	case said.status == http.StatusTooManyRequests:
	case said.status == http.StatusForbidden && (spent || after != "" || strings.Contains(strings.ToLower(said.words), "rate limit")):
	default:
		return &said
	}
	return &limited{answer: said, wait: limitedFor(response.Header, said.words)}
}

// limitedFor is how long a Git host accepts no requests; 0 when it does not say.
// GitHub: "Best practices for using the REST API"; GitLab: "User and IP rate
// limits".
func limitedFor(header http.Header, words string) time.Duration {
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
			return max(time.Unix(at, 0).Sub(now), 0) + time.Second // the Git host's clock is not ours
		}
	}
	if strings.Contains(strings.ToLower(words), "secondary rate limit") {
		return time.Minute // GitHub: "wait for at least one minute"
	}
	return 0
}

// words is the text in the body of an error of any Git host.
func words(body []byte) string {
	var fields map[string]any
	if json.Unmarshal(body, &fields) != nil {
		return string(body)
	}
	var found []string
	for _, name := range []string{"message", "error", "error_description", "errors"} {
		for _, text := range texts(fields[name]) {
			if text != "" && !slices.Contains(found, text) {
				found = append(found, text)
			}
		}
	}
	if len(found) == 0 {
		return string(body)
	}
	return strings.Join(found, "; ")
}

// texts flattens a message of a Git host: a string, a list, or an object of them.
func texts(value any) []string {
	switch value := value.(type) {
	case string:
		return []string{value}
	case []any:
		var found []string
		for _, item := range value {
			found = append(found, texts(item)...)
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
			for _, text := range texts(value[name]) {
				found = append(found, name+" "+text)
			}
		}
		return found
	}
	return nil
}
