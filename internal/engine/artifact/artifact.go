// Package artifact is what manifests point to, pinned: artifacts, which never change, and the text in which pins reach a
// fleet. It is pure: package origin resolves and fetches.
package artifact

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Artifact is what manifests point to, pinned: its content never changes.
type Artifact struct {
	Storage string // "git", "helm" or "oci", as manifests have it
	Repo    string
	Chart   string // of storages "helm" and "oci"; "" for none
	Pin     folder.Pin
	// Signed says that its content may be used only if a key that is trusted for its repository has signed it.
	Signed bool
	// Sources are the beginnings of the URLs that may be requested for it; nil: any.
	Sources []string
}

// IsPinned reports whether the artifact has a commit or a digest.
func (a Artifact) IsPinned() bool {
	return cmp.Or(a.Pin.Digest, a.Pin.Commit) != ""
}

// Key identifies the content of the artifact in every cache. The repository is part of it: a commit or a digest alone does
// not prove that the repository gives the content to whoever names it.
func (a Artifact) Key() string {
	return fmt.Sprintf("%q", []string{a.Storage, normalize(a.Repo), a.Chart, cmp.Or(a.Pin.Digest, a.Pin.Commit)})
}

var defaultPorts = map[string]string{"http": "80", "https": "443", "ssh": "22"}

// normalize returns one spelling for the URLs of a repository. Spellings that another server could answer stay different.
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

// Fetcher gets the content of artifacts.
type Fetcher interface {
	// Keys identifies the keys of which one has to have signed an artifact; "" if it needs no signature. It is an error if an artifact
	// needs one and no key is trusted for it. Results that are kept depend on it.
	Keys(artifact Artifact) (string, error)
	// Fetch returns the path of an entry of package diskcache, whose content is a tar archive with the files of the artifact:
	// regular files and symbolic links, with clean paths relative to the artifact's root, in order, each once. A chart's files
	// are below the folder of its name, as in its own archive. The archive was checked against the pin, and is bounded. The
	// artifact has the signature that it needs. Nothing is fetched twice while its entry is there: a caller that does not find
	// the entry calls Fetch again.
	Fetch(ctx context.Context, artifact Artifact) (path string, err error)
}
