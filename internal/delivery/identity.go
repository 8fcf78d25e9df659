package delivery

import (
	"context"
	"errors"
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Identity is the relation of an owner to its state.
type Identity string

// Identities of an owner.
const (
	Created Identity = "created" // no state
	Same    Identity = "same"    // same location and name, perhaps another spelling of the URL
	Renamed Identity = "renamed" // records are handed over
	Moved   Identity = "moved"   // another location, whose content is then removed from the former one
)

// formerLocation compares an owner's location with its state.
type formerLocation struct {
	identity   Identity
	unreadable error // error of reading the former location
	isSeparate bool  // same by history, but with another tip or unreadable
}

// identify compares the owner's location with the state. Two locations are the same, or mirrors, if they have the same tip,
// or if the new one has the commit of the state in its history: others may push to one of them.
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
		return formerLocation{identity: Moved, unreadable: gone}, nil
	}
	now, err := p.reader.tip(ctx, is)
	if err != nil {
		return formerLocation{}, err
	}
	if now != "" && gone == nil && now == then {
		return formerLocation{identity: here}, nil
	}
	if contains, err := p.reader.hasCommit(ctx, owner, now, known.Tip); contains || err != nil {
		return formerLocation{identity: here, isSeparate: !errors.Is(gone, git.ErrNoBranch)}, err
	}
	return formerLocation{identity: Moved, unreadable: gone}, nil // the plan warns, and clears nothing there
}

// FindRelocated returns the state at another branch or URL if that was renamed: nothing is at the former location, and the
// new one has records of this state, or is the base of the open pull request. Otherwise it returns nil.
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
		return nil
	}
	records, err := view.ReadRecords(ctx, "")
	isSame := records.Holder == known.Holder || was.URL == at.URL && at.Branch == known.Drift.Into
	if err != nil || !isSame {
		return nil
	}
	if len(known.Replaced) > 0 { // the branch still has the folders to be removed, and other records
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

func isGone(err error) bool { return errors.Is(err, git.ErrNotFound) }

// Identify compares an owner's location and name with the state.
func (p *Planner) Identify(ctx context.Context, known *OwnerState, owner Owner) (Identity, error) {
	former, err := p.identify(ctx, known, owner)
	return former.identity, err
}
