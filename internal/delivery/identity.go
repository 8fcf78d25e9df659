package delivery

import (
	"context"
	"errors"
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Identity says how an owner relates to what the state knows of it.
type Identity string

// The identities.
const (
	Created Identity = "created" // there is no state
	Same    Identity = "same"    // the same location and name, perhaps with another spelling of the URL
	Renamed Identity = "renamed" // the same location and another name: records are handed over
	Moved   Identity = "moved"   // a different location: it is written, and then the old one is cleared
)

// former is the location where an owner was before.
type formerLocation struct {
	identity Identity
	gone     error // why the former location cannot be read; nil where it can, or need not
	apart    bool  // it is the same by its history, and has another tip or cannot be read
}

// identify finds out whether the owner is where the state says that it was. Two locations are the same, or
// mirrors of each other, when the tip of the one is the tip of the other: equal URLs are not needed. They still are when
// others have pushed to one of them since, also between a plan and its apply: the new location has the commit that the
// state knows then.
func (p *Planner) identify(ctx context.Context, known *OwnerState, owner Owner) (formerLocation, error) {
	if known == nil {
		return formerLocation{identity: Created}, nil
	}
	was, is := known.Owner.Location, owner.Location
	here := Same
	if known.Owner.Name != owner.Name {
		here = Renamed
	}
	if was == is {
		return formerLocation{identity: here}, nil
	}
	then, gone := p.reader.tip(ctx, was)
	if ctx.Err() != nil {
		return formerLocation{}, gone
	}
	if gone == nil && then == "" {
		gone = fmt.Errorf("branch %q %w", was.Branch, git.ErrNoBranch)
	}
	if was.Path != is.Path {
		return formerLocation{identity: Moved, gone: gone}, nil
	}
	now, err := p.reader.tip(ctx, is)
	if err != nil {
		return formerLocation{}, err
	}
	if now != "" && gone == nil && now == then {
		return formerLocation{identity: here}, nil
	}
	if contains, err := p.reader.contains(ctx, owner, now, known.Tip); contains || err != nil {
		return formerLocation{identity: here, apart: !errors.Is(gone, git.ErrNoBranch)}, err
	}
	return formerLocation{identity: Moved, gone: gone}, nil // the plan warns of what is gone, and nothing is cleared there
}

// FindRelocated returns what the state knows of an owner at another branch or URL than before, where nothing is at the former
// one any more and the new one is the same: its records are of this state, or its branch is the one that the open pull
// request goes into now. A branch or a repository was renamed. It is nil where that is not so.
func (r *Refresher) FindRelocated(ctx context.Context, known *OwnerState, at folder.Location) *OwnerState {
	was := known.Owner.Location
	if was == at || was.Path != at.Path || known.Holder == "" || !known.Proposed && known.Current().Count() > 0 {
		return nil
	}
	if tip, err := r.reader.tip(ctx, was); tip != "" || err != nil && !isGone(err) {
		return nil
	}
	relocated := *known
	relocated.Owner.Location, relocated.Drift = at, Drift{}
	view, err := r.reader.view(ctx, relocated.Owner)
	if err != nil || view.Tip() == "" {
		return nil // reported where the location is read
	}
	records, err := view.ReadRecords(ctx, "")
	isSame := records.Holder == known.Holder || was.URL == at.URL && at.Branch == known.Drift.Into
	if err != nil || !isSame {
		return nil
	}
	if len(known.Replaced) > 0 { // what the request removes is on the branch, and so are other records
		relocated.Trees, relocated.Records = known.Trees.Clone(), nil
		for key, tree := range known.Replaced {
			if !known.Trees.Has(key.Host, key.DeploymentTarget) {
				folder.Put(relocated.Trees, key, tree)
			}
		}
	}
	if err := relocated.compare(ctx, view); err != nil {
		return nil
	}
	if relocated.Tip, relocated.Proposed = view.Tip(), false; len(relocated.Drift.Trees) > 0 && known.Settings.PullRequest {
		relocated.Drift.Cause = RequestOpen
	}
	return &relocated
}

// isGone says whether a repository does not exist.
func isGone(err error) bool { return errors.Is(err, git.ErrNotFound) }

// Identify says whether an owner is new, the same, renamed or moved.
//
// Errors: as of a look.
func (p *Planner) Identify(ctx context.Context, known *OwnerState, owner Owner) (Identity, error) {
	former, err := p.identify(ctx, known, owner)
	return former.identity, err
}
