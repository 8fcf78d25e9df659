// Package gitops reads and writes folders of rendered manifests on a branch of a Git repository. It knows neither Terraform
// nor fleets.
//
//   - An [Owner] is one flotilla_assignment.
//   - A host is a cluster type or a cluster. It has a folder for each deployment target.
//   - A record is a file that lists an owner's folders on a host.
//   - A marker is a file that keeps a host's folder from being empty.
//
// A [Branch] is a tip as it was read, and an [OwnerView] is the part of one owner. An [Edit] is the target state of an
// owner. A [BranchClient] edits the trees of a tip in memory, and pushes one commit as a compare-and-swap. Content of
// others is carried over by id and never read.
//
// Layout, below the owner's path:
//
//	<host>/<owner>.md                  the marker
//	<host>/<deployment target>/...     a folder, flat
//	.flotilla/<owner>/<host>.json      the record
//	.flotilla/.claims/<claim>.json     the record of a [Claim]
//
// The name of a host is "<cluster type>" or "clusters/<cluster>".
package gitops

import (
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// BranchClient reads and writes branches. It is safe for concurrent use. Edits of one branch wait for each other.
type BranchClient struct {
	options  BranchOptions
	branches wait.Locks
}

// BranchOptions are settings. The zero value has the defaults.
type BranchOptions struct {
	// Git reaches repositories. Default: without options.
	Git *git.Connector
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Signer signs commits. Default: none does.
	Signer *git.Signer
	// AllowedSigners verify records. Default: all records are believed.
	AllowedSigners *git.Verifier
}

// NewBranchClient returns a BranchClient.
func NewBranchClient(options BranchOptions) *BranchClient {
	if options.Git == nil {
		options.Git = git.NewConnector(git.ConnectorOptions{})
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &BranchClient{options: options}
}
