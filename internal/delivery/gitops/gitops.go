// Package gitops writes folders of rendered manifests into a branch of a Git
// repository, and reads what is there. It knows trees, commits, ownership,
// drift and history; it knows neither Terraform nor the fleet.
//
// Its words: an [Owner] is one flotilla_assignment; a host is a cluster type or a
// cluster, and has one folder for each deployment target; a record is the file
// that lists the folders that an owner has on a host; the marker is a file that
// keeps a host's folder from being empty; the tip is the newest commit of the
// branch. An [Edit] is what one owner wants, a [Branch] is the tip as it was read,
// and an [OwnerView] is the part of it that one owner needs.
//
// Package git does the rest: a [Client] opens the tip of a branch along the paths
// of one [Owner], edits its trees in memory, and pushes one commit as a
// compare-and-swap. What belongs to others is carried over by id and never read.
//
// Layout, below the owner's path:
//
//	<host>/<owner>.md                  the marker: keeps the host's folder existing
//	<host>/<deployment target>/...     an owned folder, flat
//	.flotilla/<owner>/<host>.json      the record of what is owned there
//	.flotilla/.claims/<claim>.json     the record of the clusters that a [Claim] has
//
// where a host is "<cluster type>" or "clusters/<cluster>".
package gitops

import (
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// BranchClient reaches repositories. It is safe for concurrent use; edits that go to
// the same branch through one Client wait for each other, so that a process never
// races itself.
type BranchClient struct {
	options  BranchOptions
	branches wait.Locks // by URL and branch that is pushed to
}

// BranchOptions are the settings of a Client. The zero value has the defaults.
type BranchOptions struct {
	// Git reaches repositories. Default: a git.Client without options.
	Git *git.Client
	// Now is the clock that dates commits. Default: the machine's.
	Now func() time.Time
	// Signer signs every commit. Default: none is signed.
	Signer *git.Signer
	// AllowedSigners are the keys by which views tell records that none of them has signed. Default: all are believed.
	AllowedSigners *git.Verifier
}

// NewBranchClient returns a Client. Nothing is shared between two of them.
func NewBranchClient(options BranchOptions) *BranchClient {
	if options.Git == nil {
		options.Git = git.NewClient(git.Options{})
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &BranchClient{options: options}
}
