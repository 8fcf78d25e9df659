// Package artifact defines artifacts, the immutable content behind pinned manifests, and encodes pins for a fleet. It is
// pure; package origin resolves and fetches.
package artifact

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Artifact identifies the immutable content behind pinned manifests.
type Artifact struct {
	Storage string // "git", "helm" or "oci"
	Repo    string
	Chart   string // for storages "helm" and "oci"; otherwise ""
	Pin     folder.Pin
	// Signed requires a signature by a key trusted for the repository.
	Signed bool
	// Sources are the allowed URL prefixes; nil allows any.
	Sources []string
}

// IsPinned reports whether the artifact has a commit or a digest.
func (a Artifact) IsPinned() bool {
	return cmp.Or(a.Pin.Digest, a.Pin.Commit) != ""
}

// URL returns the URL of the artifact's repository. In a registry, a chart has its own.
func (a Artifact) URL() string { return RepositoryURL(folder.Manifests{Repo: a.Repo, Chart: a.Chart}) }

// Key identifies the content in every cache. It includes the repository because knowing a commit or digest proves no
// access to it.
func (a Artifact) Key() string {
	return fmt.Sprintf("%q", []string{a.Storage, normalize(a.Repo), a.Chart, cmp.Or(a.Pin.Digest, a.Pin.Commit)})
}

var defaultPorts = map[string]string{"http": "80", "https": "443", "ssh": "22"}

// normalize returns one spelling for equivalent URLs. Spellings that another server could answer stay different.
func normalize(repo string) string {
	at, err := url.Parse(repo)
	if err != nil || at.Host == "" {
		return repo
	}
	host := strings.ToLower(at.Host)
	if port, has := defaultPorts[at.Scheme]; has && at.Port() == port {
		host = strings.TrimSuffix(host, ":"+port)
	}
	at.Host = host
	return strings.TrimRight(at.String(), "/")
}

// Fetcher fetches the content of artifacts.
type Fetcher interface {
	// Keys returns an identifier of the keys trusted to sign an artifact, or "" if it needs no signature. It fails if a
	// required signature has no trusted key. Cached results depend on it.
	Keys(artifact Artifact) (string, error)
	// Fetch returns the path of an entry of package diskcache: a bounded tar archive, checked against the pin and any
	// required signature. It has regular files and symbolic links, sorted and unique, with clean paths relative to the
	// artifact's root. Files of a chart are below a folder with the chart's name, as in its own archive. Fetch downloads
	// nothing while the entry exists; a caller that misses the entry must call Fetch again.
	Fetch(ctx context.Context, artifact Artifact) (path string, err error)
}
