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

// call sends one request without an SDK, with a body unless that is nil, and reads the answer into a value unless that is nil.
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

// pullOf is call for a pull request, which is the answer.
func pullOf[P any](ctx context.Context, s session, method string, to *url.URL, body any, convert func(*P) *request) (*request, error) {
	var pull P
	if err := s.call(ctx, method, to, body, &pull); err != nil {
		return nil, err
	}
	return convert(&pull), nil
}

// exchange sends one request, with what every request to its kind of Git host needs, and with a body unless that is nil.
// Whoever calls it closes the body of the answer.
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
	request, err := http.NewRequestWithContext(ctx, method, with(to, query).String(), content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return s.client.Do(request)
}

// pull is the URL of a pull request, or of something of it.
func (s session) pull(number int, segments ...string) *url.URL {
	return s.at.resource(append([]string{s.at.kind.pulls, strconv.Itoa(number)}, segments...)...)
}

// branchRef is before the name of a branch in what is not sent by an SDK.
const branchRef = "refs/heads/"

// with is a URL with a query.
func with(to *url.URL, query url.Values) *url.URL {
	at := *to
	at.RawQuery = query.Encode()
	return &at
}

// joined is JoinPath for segments that are not escaped yet.
func joined(to *url.URL, segments ...string) *url.URL {
	escaped := make([]string, len(segments))
	for i, segment := range segments {
		escaped[i] = url.PathEscape(segment)
	}
	return to.JoinPath(escaped...)
}
