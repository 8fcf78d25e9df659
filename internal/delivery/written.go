package delivery

import (
	"cmp"
	"context"
	"errors"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// Written is what a branch has of an owner.
type Written struct {
	// Tip is the branch's commit; "" when there is no branch, or no repository.
	Tip string
	// Records are what the owner's records say of each folder.
	Records map[rollout.Key]gitops.FolderRecord
	// Trees are the folders as they are, those of the records and of others that were asked for.
	Trees rollout.Trees
}

// Written reads what the location's branch has of an owner: the folders that its records list, and the wanted
// ones. Where the owner has no records, and one other owner has those of all wanted folders that are there, its records
// are read: it is the same owner with its former name, before the apply that hands over.
//
// Errors: as of a look.
func (c *Client) Written(ctx context.Context, owner Owner, wanted rollout.Trees) (Written, error) {
	view, err := c.view(ctx, owner, owner.Location.Branch)
	if err != nil {
		return Written{}, err
	}
	records, err := view.Records(ctx, "")
	if err != nil {
		return Written{}, err
	}
	if len(records.Hosts) == 0 && len(wanted) > 0 {
		if records, err = c.formerRecords(ctx, view, owner, wanted); err != nil {
			return Written{}, err
		}
	}
	written := writtenIn(view.Commit, records)
	more, err := view.Deployed(ctx, wanted)
	written.Trees = union(written.Trees, more)
	return written, err
}

// WrittenAt reads what a commit in the history of the location's branch has of an owner; nothing where it has no record
// of it.
//
// Errors: git.ErrCommit where the commit is not in the history, or as of a look.
func (c *Client) WrittenAt(ctx context.Context, owner Owner, commit string) (Written, error) {
	view, err := c.view(ctx, owner, owner.Location.Branch)
	if err != nil {
		return Written{}, err
	}
	records, err := view.Records(ctx, commit)
	return writtenIn(commit, records), err
}

func writtenIn(tip string, records gitops.Records) Written {
	written := Written{Tip: tip, Records: map[rollout.Key]gitops.FolderRecord{}, Trees: records.Present()}
	for host, folders := range records.Hosts {
		for target, folder := range folders {
			written.Records[rollout.Key{Host: host, DeploymentTarget: target}] = folder
		}
	}
	return written
}

// formerRecords are the records of the one other owner that has the wanted folders; nil where none or several have. They say
// with which name its folders are labelled.
func (c *Client) formerRecords(ctx context.Context, view *gitops.OwnerView, owner Owner, wanted rollout.Trees) (gitops.Records, error) {
	conflicts, err := view.Conflicts(ctx, wanted, nil, "")
	var blocked *git.BlockedError
	if errors.As(err, &blocked) {
		return gitops.Records{}, nil
	}
	former := owner
	former.Name = ""
	for _, conflict := range conflicts {
		if conflict.Owner == "" || conflict.OwnerPath != owner.gitops().Path || former.Name != "" && conflict.Owner != former.Name {
			return gitops.Records{}, err
		}
		former.Name = conflict.Owner
	}
	if err != nil || former.Name == "" {
		return gitops.Records{}, err
	}
	if view, err = c.view(ctx, former, former.Location.Branch); err != nil {
		return gitops.Records{}, err
	}
	records, err := view.Records(ctx, "")
	for _, targets := range records.Hosts {
		for target, record := range targets {
			record.OwnerLabel = cmp.Or(record.OwnerLabel, former.Name)
			targets[target] = record
		}
	}
	return records, err
}

// Tip returns the present commit of a location's branch; "" when there is no branch, or no repository.
//
// Errors: as of a look.
func (c *Client) Tip(ctx context.Context, at Location) (string, error) {
	c.looks.forget(c.remote(at))
	return c.tip(ctx, at)
}
