// Package gitops reads and writes folders of rendered manifests on a branch of a Git repository. It knows trees, commits,
// ownership, drift and history, but neither Terraform nor the fleet.
//
// Terms:
//
//   - An [Owner] is one flotilla_assignment.
//   - A host is a cluster type or a cluster. It has a folder for each deployment target.
//   - A record is a file that lists an owner's folders on a host.
//   - A marker is a file that keeps a host's folder from being empty.
//   - The tip is the newest commit of the branch.
//
// A [Branch] is a tip as it was read, and an [OwnerView] is the part of one owner. An [Edit] is the target state of an
// owner. A [BranchClient] edits the trees of a tip in memory, along the paths of the owner, and pushes one commit as a
// compare-and-swap. Content of others is carried over by id and never read. Package git has the protocol.
//
// Layout, below the owner's path:
//
//	<host>/<owner>.md                  the marker
//	<host>/<deployment target>/...     a folder, flat
//	.flotilla/<owner>/<host>.json      the record
//	.flotilla/.claims/<claim>.json     the record of a [Claim]
//
// A host is "<cluster type>" or "clusters/<cluster>".
package gitops

import (
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// BranchClient reads and writes branches. It is safe for concurrent use. Edits of one branch wait for each other, so a
// process never races itself.
type BranchClient struct {
	options  BranchOptions
	branches wait.Locks // by URL and target branch
}

// BranchOptions are the settings of a BranchClient. The zero value has the defaults.
type BranchOptions struct {
	// Git reaches repositories. Default: a git.Connector without options.
	Git *git.Connector
	// Now is the clock for commit times. Default: time.Now.
	Now func() time.Time
	// Signer signs every commit. Default: commits are not signed.
	Signer *git.Signer
	// AllowedSigners verify records: views report records that none of the keys has signed. Default: all records are
	// believed.
	AllowedSigners *git.Verifier
}

// NewBranchClient returns a BranchClient that shares nothing with others.
func NewBranchClient(options BranchOptions) *BranchClient {
	if options.Git == nil {
		options.Git = git.NewConnector(git.ConnectorOptions{})
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &BranchClient{options: options}
}
