// Package artifact defines artifacts, the immutable content behind pinned manifests. It is pure; package origin fetches.
package artifact

import (
	"archive/tar"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
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

// URL returns the URL of the repository. In a registry, a chart has its own.
func (a Artifact) URL() string { return RepositoryURL(folder.Manifests{Repo: a.Repo, Chart: a.Chart}) }

// Key identifies the content in caches. It has the repository, because knowing a digest proves no access.
func (a Artifact) Key() string {
	return fmt.Sprintf("%q", []string{a.Storage, normalize(a.Repo), a.Chart, cmp.Or(a.Pin.Digest, a.Pin.Commit)})
}

var defaultPorts = map[string]string{"http": "80", "https": "443", "ssh": "22"}

// normalize returns one spelling for URLs that certainly are equivalent.
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

// Fetcher fetches artifacts.
type Fetcher interface {
	// Keys identifies the keys trusted to sign an artifact, "" if it needs no signature. It fails if a required signature has
	// no trusted key.
	Keys(artifact Artifact) (string, error)
	// Fetch returns the path in package diskcache of a bounded tar archive, checked against the pin and any required
	// signature. It has files and symbolic links, sorted, with clean paths; a chart has a folder of its name. A caller that
	// misses the entry must call Fetch again.
	Fetch(ctx context.Context, artifact Artifact) (path string, err error)
}

// WriteArchive writes files and symbolic links as the tar archive of a [Fetcher]. Equal content gives equal bytes.
func WriteArchive[T string | []byte](to io.Writer, files map[string]T, links map[string]string) error {
	writer := tar.NewWriter(to)
	names := slices.AppendSeq(slices.Collect(maps.Keys(files)), maps.Keys(links))
	slices.Sort(names)
	for _, name := range names {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(files[name])), Mode: 0o644}
		if target, isLink := links[name]; isLink {
			header = &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}
		}
		if err := writer.WriteHeader(header); err != nil {
			return err
		}
		if _, err := writer.Write([]byte(files[name])); err != nil {
			return err
		}
	}
	return writer.Close()
}
