package measure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

const (
	// maxAnswer bounds the bytes of an answer; 20,000 series take a tenth.
	maxAnswer = 32 << 20
	// maxPage bounds a web server's answer, because there may be thousands.
	maxPage = 1 << 20
	// maxRefusal bounds the answer to a failed query.
	maxRefusal = 64 << 10
)

var errTooLarge = errors.New("the answer is too large")

type session struct {
	client  *Measurer
	server  string // scheme, host and port
	login   Login
	headers map[string]string // of the check
	most    int64             // bytes of an answer
	timeout time.Duration
	isQuery bool  // redirects are errors
	denied  error // why no request is sent
}

func (c *Measurer) session(address string, headers map[string]string, timeout time.Duration, most int64) *session {
	s := &session{client: c, headers: headers, most: most, timeout: timeout}
	if c.Login != nil {
		s.login, s.denied = c.Login(address)
	}
	if parsed, err := url.Parse(address); err == nil {
		s.server = parsed.Scheme + "://" + parsed.Host
	}
	return s
}

// http returns a client that follows no redirects: another server must not get the credentials, and would describe
// something else.
func (s *session) http() *http.Client {
	return &http.Client{Transport: s, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// RoundTrip adds credentials and limits the size of the answer.
func (s *session) RoundTrip(request *http.Request) (*http.Response, error) {
	if s.denied != nil {
		return nil, s.denied
	}
	request = request.Clone(request.Context())
	for name, value := range s.headers {
		request.Header.Set(name, value)
	}
	switch {
	case s.login.Token != "":
		request.Header.Set("Authorization", "Bearer "+s.login.Token)
	case s.login.Username != "" || s.login.Password != "":
		request.SetBasicAuth(s.login.Username, s.login.Password)
	}
	for name, value := range s.login.Headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("User-Agent", s.client.UserAgent)
	response, err := s.client.Over.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if s.isQuery && response.StatusCode/100 == 3 {
		_ = response.Body.Close()
		to, err := response.Location()
		if err != nil {
			return nil, fmt.Errorf("it answers %d", response.StatusCode)
		}
		return nil, fmt.Errorf("it redirects to %s://%s, and redirects are not followed; is it the right url?", to.Scheme, to.Host)
	}
	response.Body = bounded.Body(response.Body, s.most, errTooLarge)
	return response, nil
}

func (s *session) describeFailure(ctx, within context.Context, err error) string {
	switch {
	case ctx.Err() != nil:
		return s.server + " was not asked to the end: the read was over"
	case within.Err() != nil:
		return fmt.Sprintf("%s did not answer within %s", s.server, s.timeout)
	case errors.Is(err, errTooLarge):
		return fmt.Sprintf("%s answered with more than %d MiB", s.server, s.most>>20)
	}
	if about, ok := errors.AsType[*url.Error](err); ok {
		err = about.Err // without the URL
	}
	return s.server + " could not be asked: " + s.cleanText(err.Error())
}

// cleanText returns a text as one line. It removes credentials first, so no part of one remains.
func (s *session) cleanText(text string) string { return wording.OneLine(s.client.Scrub.Scrub(text)) }

// CheckHeaders returns the problems of headers without their values. areSecret means that no state has them.
func CheckHeaders(headers map[string]string, areSecret bool) []string {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		switch canonical := http.CanonicalHeaderKey(name); {
		case !httpguts.ValidHeaderFieldName(name):
			wrong = append(wrong, fmt.Sprintf("%q is not the name of a header", name))
		case !httpguts.ValidHeaderFieldValue(headers[name]):
			wrong = append(wrong, fmt.Sprintf("the value of %s cannot be sent", canonical))
		case slices.Contains(secretHeaders, canonical) && !areSecret:
			wrong = append(wrong, canonical+" is a credential, and would be in the state: set it in measurements.credentials of the provider")
		case slices.Contains(ownHeaders, canonical):
			wrong = append(wrong, canonical+" cannot be set")
		}
	}
	return wrong
}

var (
	secretHeaders = []string{"Authorization", "Cookie", "Proxy-Authorization"}
	ownHeaders    = []string{
		"Accept-Encoding", "Connection", "Content-Length", "Content-Type", "Expect", "Host",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent",
	}
)
