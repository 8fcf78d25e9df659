package delivery

import (
	"context"
	"errors"
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// Contents gives what is in a folder that an owner is to have.
type Contents func(host, deploymentTarget string) gitops.Folder

// Order is an intent with all that it takes to carry it out.
type Order struct {
	Intent
	// Decisions say what happens to each folder; their trees are all known.
	Decisions rollout.Decisions
	Contents  Contents
	// Subject begins the commit message; "" counts what changed.
	Subject string
}

// Done is what came of an order.
type Done struct {
	Commit      string
	PullRequest string            // URL; "" where there is none
	Records     map[string]string // ids of the owner's records, by host
	Identity    Identity
	Problems    []Problem // warnings: of what comes after the commit
}

// ErrHeld is the error of an order, or a destroy, that was not carried out: its text says why, and
// nothing was written.
var ErrHeld = errors.New("nothing was written")

// HeldError is an ErrHeld with what somebody has to be told.
type HeldError struct{ Problems []Problem }

func (e *HeldError) Error() string {
	if len(e.Problems) == 0 {
		return ErrHeld.Error()
	}
	return fmt.Sprintf("%s: %s", e.Problems[0].Summary, e.Problems[0].Detail)
}

// Is makes it an ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Apply carries an order out: one commit at the place, or none where everything is there. A former place
// is cleared after that. What is removed is what Plan says, and nothing else: folders that somebody else
// wrote under the owner's name since are a gitops.ErrUnplanned.
//
// Errors: *HeldError with what protection holds or is in the way, ErrTwice, ErrProposed, or as of
// gitops.Client.Apply. With all but ErrProposed nothing was written, unless the text says that this is
// not known.
func (c *Client) Apply(ctx context.Context, order Order) (Done, error) {
	release, err := c.names.take(ctx, order.Owner.Place.Branch+" "+order.Owner.Place.Path+" "+order.Owner.Name)
	if err != nil {
		return Done{}, err
	}
	defer release()
	if err := c.twice(ctx, order.Owner, true); err != nil {
		return Done{}, err
	}
	outlook, err := c.Plan(ctx, order.Intent)
	if err != nil {
		return Done{}, err
	}
	if outlook.HasError() {
		return Done{}, held(outlook)
	}
	if err := c.owners.writes(order.Owner, order.Known == nil); err != nil {
		return Done{}, err
	}
	edit := c.edit(order, outlook)
	result, commit, url, err := c.write(ctx, order.Settings, order.Owner, edit)
	if err != nil {
		return Done{}, err
	}
	done := Done{Commit: commit, PullRequest: url, Records: result.Records, Identity: outlook.Identity}
	if outlook.Cleared != nil || outlook.LetGo {
		c.clearFormer(ctx, order, outlook.LetGo, commit, &done)
	}
	return done, nil
}

func held(o *Outlook) error {
	e := &HeldError{}
	for _, problem := range o.Problems {
		if !problem.Warning {
			e.Problems = append(e.Problems, problem)
		}
	}
	return e
}

func (c *Client) edit(order Order, outlook *Outlook) gitops.Edit {
	edit := gitops.Edit{
		Owner: order.Owner.gitops(), Hosts: make(map[string]gitops.Host, len(order.Decisions)),
		Previously: gitops.Deployed(outlook.Before), Remove: gitops.Deployed(outlook.Remove),
		Author: c.author, Subject: order.Subject, Release: c.release, Adopt: order.Adopt,
	}
	switch outlook.Identity {
	case Renamed:
		edit.Formerly = order.Known.Owner.Name
		edit.Previously, edit.Records = gitops.Deployed(order.Known.Trees), order.Known.Records
	case Same:
		edit.Previously, edit.Records = gitops.Deployed(order.Known.Trees), order.Known.Records
	case Created, Moved:
	}
	for host, targets := range order.Decisions {
		folders := make(map[string]gitops.Folder, len(targets))
		for target, decision := range targets {
			folder := gitops.Folder{Action: gitops.Keep}
			if decision.Action != rollout.Keep {
				folder = order.Contents(host, target)
			}
			folders[target] = folder
		}
		edit.Hosts[host] = gitops.Host{Folders: folders}
	}
	return edit
}

// clearFormer removes what the owner had at its former place, or lets go of it, unless that turns out to
// be the same place.
func (c *Client) clearFormer(ctx context.Context, order Order, letGo bool, commit string, done *Done) {
	known := order.Known
	if c.owners.isPlanned(known.Owner) || errors.Is(c.twice(ctx, known.Owner, true), ErrTwice) {
		return // another assignment of the same configuration has it now
	}
	before, _ := c.tip(ctx, known.Owner.Place) // as Plan has seen it
	c.looks.forget(c.remote(known.Owner.Place))
	tip, err := c.tip(ctx, known.Owner.Place)
	if err == nil && tip != before && tip == commit && known.Owner.Place.Path == order.Owner.Place.Path {
		return // the commit arrived there, too
	}
	settings := known.Settings
	if known.Owner.Place.URL == order.Owner.Place.URL && settings.Head == order.Settings.Head {
		settings.Head = "" // the new place is proposed from there
	}
	if _, _, _, err := c.write(ctx, settings, known.Owner, c.removal(known, order.Subject, letGo)); err != nil && !isGone(err) {
		done.Problems = append(done.Problems, Problem{
			Attribute: "gitops_repo", Summary: "Folders remain in the former repository", Warning: true,
			Detail: fmt.Sprintf("The new place is written, but the old one could not be cleared: %s.", err),
		})
	}
}

// removal is an edit that removes all that is known of an owner, or lets go of it.
func (c *Client) removal(known *Known, subject string, leave bool) gitops.Edit {
	edit := gitops.Edit{
		Owner: known.Owner.gitops(), Previously: gitops.Deployed(known.Trees), Remove: gitops.Deployed(known.Trees), LeaveOthers: true,
		Author: c.author, Subject: subject, Release: c.release,
	}
	if leave {
		edit.Remove, edit.LeaveOthers, edit.Keep = nil, false, true
	}
	return edit
}

// Destroy removes what is known of an owner, or lets go of it. It is held by protection here, too:
// Terraform asks nobody before the destroying half of a replacement. A repository that does not exist any
// more has nothing to remove.
//
// Errors: as of Apply.
func (c *Client) Destroy(ctx context.Context, known *Known, protection rollout.Protection, leave bool, subject string) error {
	if c.owners.livesOn(known.Owner) {
		return nil
	}
	if outlook := c.PlanDestroy(ctx, known, protection, leave, nil); outlook.HasError() {
		return held(outlook)
	}
	_, _, _, err := c.write(ctx, known.Settings, known.Owner, c.removal(known, subject, leave))
	if isGone(err) {
		return nil
	}
	return err
}
