package origin

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// login is what a URL of http or https gets of the provider's credentials: those of the longest prefix. The plain ones are
// for repositories of Git, and are not sent to whatever else manifests name.
func (c *Client) login(address string) (username, password string, bearer bool) {
	at, err := url.Parse(address)
	if err != nil {
		return "", "", false
	}
	own := git.Credentials{ByURL: c.options.Credentials.ByURL}.For(address)
	return forge.GitLogin(at.Host, own.Web())
}

// registryCredential are those of a repository of a registry: the provider's, or docker's.
func (c *Client) registryCredential(repository string) auth.CredentialFunc {
	return func(ctx context.Context, host string) (auth.Credential, error) {
		username, password, bearer := c.login(webURL(repository))
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

func (c *Client) dockerConfig() string {
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

// webURL is where a repository of a registry is asked: by https, and on this machine by http.
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

type registryKey struct{}

// forRegistry marks requests whose credentials oras sends, which may be a token that the registry gave.
func forRegistry(ctx context.Context) context.Context {
	return context.WithValue(ctx, registryKey{}, true)
}

func isForRegistry(ctx context.Context) bool { return ctx.Value(registryKey{}) != nil }
