package origin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
)

// webClient sends requests to chart repositories and registries.
type webClient struct {
	options ResolverOptions
	http    *http.Client
}

func newWebClient(options ResolverOptions) *webClient {
	if options.Over == nil {
		options.Over = bounded.NewGuarded(askTime)
	}
	c := &webClient{options: options}
	c.http = &http.Client{Transport: c, CheckRedirect: checkRedirect}
	return c
}

// RoundTrip checks access for every request, so redirects carry no credentials along, and limits responses.
func (c *webClient) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("User-Agent", c.options.UserAgent)
	request, err := c.approach(request)
	if err != nil {
		return nil, err
	}
	response, err := c.options.Over.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = bounded.Body(response.Body, maxDownload,
		fmt.Errorf("%w: the answer of %s has more than %d MiB", git.ErrTooLarge, request.URL.Host, maxDownload>>20))
	return response, nil
}

const (
	maxDownload  = 64 << 20 // bytes of one response
	maxRedirects = 5
)

func checkRedirect(_ *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("%s redirects more than %d times", via[0].URL.Host, maxRedirects)
	}
	return nil
}

// download requests the identity encoding, since some servers call gzip archives compressed responses.
func (c *webClient) download(ctx context.Context, address string, about *sourceLimits) ([]byte, error) {
	response, err := c.open(ctx, address, "identity", about)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return io.ReadAll(response.Body)
}

// open leaves the body encoded. The caller must close it.
func (c *webClient) open(ctx context.Context, address, encoding string, about *sourceLimits) (*http.Response, error) {
	request, err := http.NewRequestWithContext(context.WithValue(ctx, sourceLimitsKey{}, about), http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("its URL cannot be parsed")
	}
	request.Header.Set("Accept-Encoding", encoding)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, withoutURL(err)
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, statusError(response.StatusCode, request.URL.Path)
	}
	return response, nil
}

func firstOf(request *http.Request) *url.URL {
	if hops := access.Hops(request); len(hops) > 0 {
		return hops[0]
	}
	return request.URL
}

// withoutURL removes a URL, which may have a signature after a redirect.
func withoutURL(err error) error {
	request, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	if at, wrong := url.Parse(request.URL); wrong == nil && !errors.Is(err, access.ErrDenied) {
		return fmt.Errorf("%s: %w", at.Host, request.Err)
	}
	return request.Err
}

func statusError(code int, what string) error {
	err := fmt.Errorf("its server answers %d %s for %s", code, http.StatusText(code), what)
	if kind := git.KindOfStatus(code); kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}
