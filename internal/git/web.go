package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

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

// post sends a body of a known length, since some servers accept no other. The client may send it again over another
// connection.
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
