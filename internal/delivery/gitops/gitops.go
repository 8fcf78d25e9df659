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
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
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

// The errors of this package. Others are errors of package git, context errors, or sentences about invalid input.
var (
	// ErrConflict reports a folder of another owner, or with files of others.
	ErrConflict = errors.New("folder does not belong to this assignment")
	// ErrUnplanned reports folders of the owner that the edit neither wants nor may remove.
	ErrUnplanned = errors.New("folders that the plan did not show")
	// ErrRace reports that others moved the branch before each push, up to the limit.
	ErrRace = errors.New("others kept moving the branch")
)

// completeError has a complete text, and matches another error.
type completeError struct {
	text string
	of   error
}

func (e *completeError) Error() string { return e.text }
func (e *completeError) Unwrap() error { return e.of }

func newCompleteError(err error) error { return &completeError{err.Error(), err} }

func joinTexts[T any](all []T, text func(T) string) string {
	var texts []string
	for _, one := range all[:min(len(all), wording.Named)] {
		texts = append(texts, text(one))
	}
	if more := len(all) - wording.Named; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// ChangedError is an ErrUnplanned with the changed folders.
type ChangedError struct {
	Folders []ChangedFolder
}

// ChangedFolder is one folder of a ChangedError.
type ChangedFolder struct {
	folder.Key
	// Folder is the path in the repository.
	Folder string
	// Commit is the last commit that changed the folder, if known. Apply does not set it.
	Commit string
}

func (e *ChangedError) Error() string { return joinTexts(e.Folders, ChangedFolder.String) }

func (f ChangedFolder) String() string {
	text := fmt.Sprintf("folder %q has changed since the plan", f.Folder)
	if f.Commit != "" {
		text += ", by commit " + f.Commit
	}
	return text
}

func (e *ChangedError) Unwrap() error { return ErrUnplanned }

// describeError adds the remote to an error, unless its text is complete.
func describeError(remote git.Remote, err error) error {
	if changed, ok := errors.AsType[*ChangedError](err); ok {
		return changed
	}
	if told, ok := errors.AsType[*completeError](err); ok {
		return told
	}
	return remote.Describe(err, ErrRace)
}
