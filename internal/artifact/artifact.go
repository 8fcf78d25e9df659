// Package artifact is what manifests point to, pinned: artifacts, which never change, and the text in which pins reach a
// fleet. It is pure: package origin resolves and fetches.
package artifact

import (
	"cmp"
	"context"

	"github.com/flotilla/terraform-provider-flotilla/internal/folder"
)

// Artifact is what manifests point to, pinned: its content never changes.
type Artifact struct {
	Storage string // "git", "helm" or "oci", as manifests have it
	Repo    string
	Chart   string // of storages "helm" and "oci"; "" for none
	Pin     folder.Pin
}

// ID names the content: artifacts with equal content may have one ID, and those with one ID have equal content.
func (a Artifact) ID() string {
	return cmp.Or(a.Pin.Digest, a.Pin.Commit)
}

// Fetcher gets the content of artifacts.
type Fetcher interface {
	// Fetch returns the path of a tar archive on this machine, which has the files of the artifact: regular files and
	// symbolic links, with clean paths relative to the artifact's root, in order, each once. A chart's files are below
	// the folder of its name, as in its own archive. The archive was checked against the pin, and is bounded. Nothing
	// is fetched twice.
	Fetch(ctx context.Context, artifact Artifact) (path string, err error)
}
