package origin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
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

// sourceLimits has the origin of a request's URL and its allowed targets.
type sourceLimits struct {
	sources []string
	from    []string
	// registry is oci://host/path if oras sends its credentials.
	registry string
}

type sourceLimitsKey struct{}

// approach checks access and adds only the credentials meant for the URL.
func (c *webClient) approach(request *http.Request) (*http.Request, error) {
	about, ok := request.Context().Value(sourceLimitsKey{}).(*sourceLimits)
	if !ok {
		return nil, errors.New("a request was not sent: it is about no repository")
	}
	hops := access.Hops(request)
	asked := access.Request{URL: request.URL.String(), Sources: about.sources, From: slices.Clone(about.from), Redirect: len(hops) > 0}
	for _, hop := range hops {
		asked.From = append(asked.From, hop.String())
	}
	permit, err := c.options.Credentials.Decide(asked)
	if err != nil {
		return nil, err
	}
	if permit.PublicOnly {
		request = request.WithContext(bounded.PublicOnly(request.Context()))
	}
	switch {
	case about.registry == "":
		request.Header.Del("Authorization")
		permit.Login.Web().SignGit(request)
	case permit.Keeps:
	case len(hops) > 0:
		request.Header.Del("Authorization")
	case request.Header.Get("Authorization") != "" || request.Method != http.MethodGet && request.Method != http.MethodHead:
		if !c.sharesLogin(request.Context(), about.registry, request.URL) {
			return nil, fmt.Errorf(
				"%w: the registry gives tokens at %s, which gets no credentials of the registry; if it is the registry's, add an entry with the same "+
					"credentials and that URL to git.credentials of the provider",
				access.ErrDenied, access.OriginOf(request.URL))
		}
	}
	return request, nil
}

// sharesLogin reports whether a registry and its token server have the same credentials in the configuration. Otherwise a
// registry could request a token with another registry's credentials.
func (c *webClient) sharesLogin(ctx context.Context, repository string, realm *url.URL) bool {
	own, there := c.login(webURL(repository)), c.login(access.OriginOf(realm)+realm.EscapedPath())
	if own != (forge.Credentials{}) {
		return own == there
	}
	store, err := credentials.NewFileStore(c.dockerConfig())
	if err != nil {
		return false
	}
	first, firstErr := store.Get(ctx, credentials.ServerAddressFromHostname(registryHost(repository)))
	second, secondErr := store.Get(ctx, credentials.ServerAddressFromHostname(realm.Host))
	return firstErr == nil && secondErr == nil && first == second
}

// login omits credentials without a URL, which serve only the GitOps repository.
func (c *webClient) login(address string) forge.Credentials {
	return c.options.Credentials.Web(address, "")
}

// registryCredential returns the credentials of the provider or else docker, only for the repository's server.
func (c *webClient) registryCredential(repository string, at registry.Reference) auth.CredentialFunc {
	return func(ctx context.Context, host string) (auth.Credential, error) {
		if host != at.Host() {
			return auth.EmptyCredential, nil
		}
		username, password, bearer := forge.GitLogin(host, c.login(webURL(repository)))
		switch {
		case bearer:
			return auth.Credential{AccessToken: password}, nil
		case username != "" || password != "":
			return auth.Credential{Username: username, Password: password}, nil
		}
		store, err := credentials.NewFileStore(c.dockerConfig())
		if err != nil {
			return auth.EmptyCredential, fmt.Errorf("docker's %s cannot be read: %w", c.dockerConfig(), err)
		}
		return store.Get(ctx, credentials.ServerAddressFromHostname(host))
	}
}

func (c *webClient) dockerConfig() string {
	if c.options.DockerConfig != "" {
		return c.options.DockerConfig
	}
	directory := os.Getenv("DOCKER_CONFIG")
	if directory == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return filepath.Join(os.TempDir(), "flotilla", "none")
		}
		directory = filepath.Join(home, ".docker")
	}
	return filepath.Join(directory, "config.json")
}

// webURL has http on this machine.
func webURL(repository string) string {
	rest := repository[len("oci://"):]
	if isOnThisMachine(rest) {
		return "http://" + rest
	}
	return "https://" + rest
}

func isOnThisMachine(repository string) bool {
	authority, _, _ := strings.Cut(repository, "/")
	at, err := url.Parse("oci://" + authority)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(at.Hostname())
	return strings.EqualFold(at.Hostname(), "localhost") || err == nil && address.IsLoopback()
}

func registryHost(repository string) string {
	reference, err := artifact.ParseRepository(folder.Manifests{Repo: repository})
	if err != nil {
		return ""
	}
	return reference.Host()
}

// forRegistry marks requests with credentials from oras.
func forRegistry(ctx context.Context, repository string, sources []string) context.Context {
	return context.WithValue(ctx, sourceLimitsKey{}, &sourceLimits{sources: sources, from: []string{repository}, registry: repository})
}
