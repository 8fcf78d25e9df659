// Package artifact defines artifacts, the immutable content behind pinned manifests. It is pure; package origin fetches.
package artifact

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"oras.land/oras-go/v2/registry"

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

// The errors of [ParseRepository] omit the URL, which may have a secret.
var (
	ErrTagInURL    = errors.New("the URL has a tag")
	ErrDigestInURL = errors.New("the URL has a digest")
	errRepository  = errors.New("it is not the repository of a registry, such as oci://registry.example.com/team/app")
)

const registryScheme = "oci://"

// IsRegistry reports whether a URL belongs to a registry.
func IsRegistry(repo string) bool {
	return len(repo) >= len(registryScheme) && strings.EqualFold(repo[:len(registryScheme)], registryScheme)
}

// RepositoryURL returns the URL of the repository. In a registry, a chart has its own below repo.
func RepositoryURL(m folder.Manifests) string {
	if !IsRegistry(m.Repo) {
		return m.Repo
	}
	repository := registryScheme + strings.TrimRight(m.Repo[len(registryScheme):], "/")
	if m.Chart != "" {
		repository += "/" + m.Chart
	}
	return repository
}

// ParseRepository parses the URL of a registry.
func ParseRepository(m folder.Manifests) (registry.Reference, error) {
	if !IsRegistry(m.Repo) {
		return registry.Reference{}, errRepository
	}
	// A chart would hide a tag or digest in repo.
	own, err := registry.ParseReference(strings.TrimRight(m.Repo[len(registryScheme):], "/"))
	if err == nil && own.Reference != "" {
		if own.ValidateReferenceAsDigest() == nil {
			return registry.Reference{}, ErrDigestInURL
		}
		return registry.Reference{}, ErrTagInURL
	}
	if reference, err := registry.ParseReference(RepositoryURL(m)[len(registryScheme):]); err == nil && reference.Reference == "" {
		return reference, nil
	}
	return registry.Reference{}, errRepository
}

// TagOf returns the tag of a version, with "_" for "+": https://helm.sh/docs/topics/registries.
func TagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

// Image returns the reference of an image by digest, tag or exact version, or "" for a range of versions.
func Image(m folder.Manifests) string {
	if !IsRegistry(m.Repo) {
		return ""
	}
	pinned, digest := m.Pinned()
	at, err := ParseRepository(pinned)
	if err != nil || digest == "" && pinned.Tag == "" && pinned.Version != "" && !IsVersion(pinned.Version) {
		return ""
	}
	if at.Reference = cmp.Or(digest, pinned.Tag, TagOf(pinned.Version), "latest"); at.ValidateReference() != nil {
		return ""
	}
	return at.String()
}

// ParseVersion parses a complete semantic version as reconcilers do, with an optional "v" and "_" for "+". It refuses a tag
// such as 2024, which would be the greatest.
func ParseVersion(text string) (*semver.Version, bool) {
	version, err := semver.StrictNewVersion(strings.ReplaceAll(strings.TrimPrefix(text, "v"), "_", "+"))
	return version, err == nil
}

// IsVersion reports whether a text is a complete semantic version, which publishers never move.
func IsVersion(text string) bool {
	_, ok := ParseVersion(text)
	return ok
}

// IsMovable reports whether the publisher could publish the pin's version again.
func IsMovable(manifests folder.Manifests) bool {
	if manifests.Storage == "git" {
		return manifests.Pin.Commit != "" && IsVersion(manifests.Tag)
	}
	return manifests.Pin.Digest != "" && IsVersion(manifests.Pin.Version)
}

// DescribeRepublished describes a version whose content differs between two pins, or returns "".
func DescribeRepublished(before, after folder.Manifests) string {
	was, is := before.Pin, after.Pin
	if before.Storage != after.Storage || normalize(before.Repo) != normalize(after.Repo) || before.Chart != after.Chart {
		return ""
	}
	if !IsMovable(before) || !IsMovable(after) {
		return ""
	}
	if after.Storage == "git" {
		if before.Tag != after.Tag || was.Commit == is.Commit {
			return ""
		}
		return fmt.Sprintf("tag %q of repository %q has moved from commit %s to %s", after.Tag, after.Repo, was.Commit, is.Commit)
	}
	if was.Version != is.Version || was.Digest == is.Digest {
		return ""
	}
	what := "version"
	if after.Chart != "" {
		what = fmt.Sprintf("chart %q", after.Chart)
	}
	return fmt.Sprintf("%s %s of repository %q has other content than before: its digest was %s and is %s now",
		what, is.Version, after.Repo, was.Digest, is.Digest)
}
