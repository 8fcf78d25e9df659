package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

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
