package delivery

import (
	"cmp"
	"context"
	"errors"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// ReadOwner reads what the location's branch has of an owner: the folders that its records list, and the wanted
// ones. Where the owner has no records, and one other owner has those of all wanted folders that are there, its records
// are read: it is the same owner with its former name, before the apply that hands over.
//
// Errors: as of a look.
func (c *Service) ReadOwner(ctx context.Context, owner Owner, wanted folder.Trees) (gitops.OwnerSnapshot, error) {
	view, err := c.view(ctx, owner)
	if err != nil {
		return gitops.OwnerSnapshot{}, err
	}
	written, err := view.ReadRecords(ctx, "")
	if err == nil && len(written.Trees) == 0 && len(wanted) > 0 {
		written, err = c.formerRecords(ctx, view, owner, wanted)
	}
	if err != nil {
		return gitops.OwnerSnapshot{}, err
	}
	more, err := view.ReadTrees(ctx, wanted)
	written.Tip, written.Trees = view.Tip(), union(written.Trees, more)
	return written, err
}

// ReadOwnerAt reads what a commit in the history of the location's branch has of an owner; nothing where it has no record
// of it.
//
// Errors: git.ErrCommit where the commit is not in the history, or as of a look.
func (c *Service) ReadOwnerAt(ctx context.Context, owner Owner, commit string) (gitops.OwnerSnapshot, error) {
	view, err := c.view(ctx, owner)
	if err != nil {
		return gitops.OwnerSnapshot{}, err
	}
	return view.ReadRecords(ctx, commit)
}

// ReadSeenRecords reads what an owner's records say of its folders, at the commit of the branch that the state has seen; nothing
// where it has seen none. A plan gets the same of it whenever it is computed.
//
// Errors: git.ErrCommit where the commit is not in the history any more, or as of a look.
func (c *Service) ReadSeenRecords(ctx context.Context, owner Owner, known *OwnerState) (map[folder.Key]gitops.FolderRecord, error) {
	at := known.seenAt()
	if at == "" {
		return nil, nil
	}
	written, err := c.ReadOwnerAt(ctx, owner, at)
	return written.Records, err
}

// formerRecords are the records of the one other owner that has the wanted folders; nil where none or several have. They say
// with which name its folders are labelled.
func (c *Service) formerRecords(ctx context.Context, view *gitops.OwnerView, owner Owner, wanted folder.Trees) (gitops.OwnerSnapshot, error) {
	conflicts, err := view.FindConflicts(ctx, wanted, nil, "")
	if errors.As(err, new(*git.BlockedError)) {
		return gitops.OwnerSnapshot{}, nil
	}
	former := owner
	former.Name = ""
	for _, conflict := range conflicts {
		if conflict.Owner == "" || conflict.OwnerPath != owner.gitops().Path || former.Name != "" && conflict.Owner != former.Name {
			return gitops.OwnerSnapshot{}, err
		}
		former.Name = conflict.Owner
	}
	if err != nil || former.Name == "" {
		return gitops.OwnerSnapshot{}, err
	}
	if view, err = c.view(ctx, former); err != nil {
		return gitops.OwnerSnapshot{}, err
	}
	written, err := view.ReadRecords(ctx, "")
	for key, record := range written.Records {
		record.OwnerLabel = cmp.Or(record.OwnerLabel, former.Name)
		written.Records[key] = record
	}
	return written, err
}

// ReadTip returns the present commit of a location's branch; "" when there is no branch, or no repository.
//
// Errors: as of a look.
func (c *Service) ReadTip(ctx context.Context, at folder.Location) (string, error) {
	c.looks.forget(c.remote(at))
	return c.tip(ctx, at)
}
