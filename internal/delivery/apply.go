package delivery

import (
	"context"
	"errors"
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// Contents returns what a folder of an owner shall have.
type Contents func(host, deploymentTarget string) gitops.Folder

// Order is an intent with everything that is needed to apply it.
type Order struct {
	Intent
	// Decisions say what happens to each folder; their trees are all known.
	Decisions rollout.Decisions
	Contents  Contents
	// Subject begins the commit message; "" counts what changed.
	Subject string
}

// Done is the outcome of an order.
type Done struct {
	Commit      string
	PullRequest string            // URL; "" where there is none
	Records     map[string]string // ids of the owner's records, by host
	Identity    Identity
	Problems    []Problem // warnings about what follows the commit
}

// ErrHeld is the error of an order, or a destroy, that protection or another problem prevents: its text
// says why, and nothing was written.
var ErrHeld = errors.New("nothing was written")

// HeldError is an ErrHeld with its problems as diagnostics.
type HeldError struct{ Problems []Problem }

func (e *HeldError) Error() string {
	if len(e.Problems) == 0 {
		return ErrHeld.Error()
	}
	return fmt.Sprintf("%s: %s", e.Problems[0].Summary, e.Problems[0].Detail)
}

// Is makes it an ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Apply writes what an order wants: one commit at the location, or none where everything is there. A former
// location is cleared after that. It removes what Plan says, and nothing else: folders that others wrote
// under the owner's name since then are a gitops.ErrUnplanned.
//
// Errors: *HeldError with what protection holds and with conflicts, ErrDuplicate, ErrProposed, or as of
// gitops.Client.Apply. With all but ErrProposed nothing was written, unless the text says that this is
// not known.
func (c *Client) Apply(ctx context.Context, order Order) (Done, error) {
	release, err := c.names.take(ctx, order.Owner.Location.Branch+" "+order.Owner.Location.Path+" "+order.Owner.Name)
	if err != nil {
		return Done{}, err
	}
	defer release()
	if err := c.checkDuplicate(ctx, order.Owner, true); err != nil {
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

// clearFormer removes what the owner had at its former location, or only its records where the folders are
// to stay, unless that turns out to be the same location.
func (c *Client) clearFormer(ctx context.Context, order Order, letGo bool, commit string, done *Done) {
	known := order.Known
	if c.owners.isPlanned(known.Owner) || errors.Is(c.checkDuplicate(ctx, known.Owner, true), ErrDuplicate) {
		return // another assignment of the same configuration has it now
	}
	before, _ := c.tip(ctx, known.Owner.Location) // as Plan has seen it
	c.looks.forget(c.remote(known.Owner.Location))
	tip, err := c.tip(ctx, known.Owner.Location)
	if err == nil && tip != before && tip == commit && known.Owner.Location.Path == order.Owner.Location.Path {
		return // the commit arrived there, too
	}
	settings := known.Settings
	if known.Owner.Location.URL == order.Owner.Location.URL && settings.Head == order.Settings.Head {
		settings.Head = "" // the new location is proposed from there
	}
	if _, _, _, err := c.write(ctx, settings, known.Owner, c.removal(known, order.Subject, letGo)); err != nil && !isGone(err) {
		done.Problems = append(done.Problems, Problem{
			Attribute: "gitops_repo", Summary: "Folders remain in the former repository", Warning: true,
			Detail: fmt.Sprintf("The new location is written, but the old one could not be cleared: %s.", err),
		})
	}
}

// removal is an edit that removes all that is known of an owner; with leave, only its records.
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

// Destroy removes what is known of an owner; with leave, only its records. Protection holds it here, too,
// since Terraform does not plan the destroying half of a replacement. A repository that does not exist any
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
