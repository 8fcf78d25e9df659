package delivery

import (
	"cmp"
	"context"
	"errors"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// Written reads what the location's branch has of an owner: the folders that its records list, and the wanted
// ones. Where the owner has no records, and one other owner has those of all wanted folders that are there, its records
// are read: it is the same owner with its former name, before the apply that hands over.
//
// Errors: as of a look.
func (c *Client) Written(ctx context.Context, owner Owner, wanted folder.Trees) (gitops.Written, error) {
	view, err := c.view(ctx, owner)
	if err != nil {
		return gitops.Written{}, err
	}
	written, err := view.Records(ctx, "")
	if err == nil && len(written.Trees) == 0 && len(wanted) > 0 {
		written, err = c.formerRecords(ctx, view, owner, wanted)
	}
	if err != nil {
		return gitops.Written{}, err
	}
	more, err := view.Deployed(ctx, wanted)
	written.Tip, written.Trees = view.Tip(), union(written.Trees, more)
	return written, err
}

// WrittenAt reads what a commit in the history of the location's branch has of an owner; nothing where it has no record
// of it.
//
// Errors: git.ErrCommit where the commit is not in the history, or as of a look.
func (c *Client) WrittenAt(ctx context.Context, owner Owner, commit string) (gitops.Written, error) {
	view, err := c.view(ctx, owner)
	if err != nil {
		return gitops.Written{}, err
	}
	return view.Records(ctx, commit)
}

// SeenRecords reads what an owner's records say of its folders, at the commit of the branch that the state has seen; nothing
// where it has seen none. A plan gets the same of it whenever it is computed.
//
// Errors: git.ErrCommit where the commit is not in the history any more, or as of a look.
func (c *Client) SeenRecords(ctx context.Context, owner Owner, known *State) (map[folder.Key]gitops.FolderRecord, error) {
	at := known.seenAt()
	if at == "" {
		return nil, nil
	}
	written, err := c.WrittenAt(ctx, owner, at)
	return written.Records, err
}

// formerRecords are the records of the one other owner that has the wanted folders; nil where none or several have. They say
// with which name its folders are labelled.
func (c *Client) formerRecords(ctx context.Context, view *gitops.OwnerView, owner Owner, wanted folder.Trees) (gitops.Written, error) {
	conflicts, err := view.Conflicts(ctx, wanted, nil, "")
	if errors.As(err, new(*git.BlockedError)) {
		return gitops.Written{}, nil
	}
	former := owner
	former.Name = ""
	for _, conflict := range conflicts {
		if conflict.Owner == "" || conflict.OwnerPath != owner.gitops().Path || former.Name != "" && conflict.Owner != former.Name {
			return gitops.Written{}, err
		}
		former.Name = conflict.Owner
	}
	if err != nil || former.Name == "" {
		return gitops.Written{}, err
	}
	if view, err = c.view(ctx, former); err != nil {
		return gitops.Written{}, err
	}
	written, err := view.Records(ctx, "")
	for key, record := range written.Records {
		record.OwnerLabel = cmp.Or(record.OwnerLabel, former.Name)
		written.Records[key] = record
	}
	return written, err
}

// Tip returns the present commit of a location's branch; "" when there is no branch, or no repository.
//
// Errors: as of a look.
func (c *Client) Tip(ctx context.Context, at Location) (string, error) {
	c.looks.forget(c.remote(at))
	return c.tip(ctx, at)
}
