package delivery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// mostListed is how many folders a warning lists, one on a line.
const mostListed = 50

// Intent is what an owner wants.
type Intent struct {
	Owner    Owner
	Known    *Known // nil where there is no state
	Settings Settings
	// After are the folders that it has then; a tree that is not known yet is "".
	After      rollout.Trees
	Protection rollout.Protection
	// Adopt takes over folders of other owners, folders without an owner, and folders of the same name that
	// the state does not know.
	Adopt bool
	// Leave lets the folders at a former location stay, as a destroy with on_destroy = "keep" does.
	Leave bool
	// Clusters names the clusters of hosts; nil where they are not known.
	Clusters func(hosts []string) []string
}

// Problem is a diagnostic: an error, or a warning.
type Problem struct {
	Attribute string // of flotilla_assignment, "gitops_repo" for one
	Summary   string // a short sentence without a full stop
	Detail    string
	Warning   bool
}

// Outlook is what applying an intent would do.
type Outlook struct {
	Identity Identity
	// Before is what the owner has at the location now.
	Before rollout.Trees
	// Remove are those of Before that go.
	Remove rollout.Trees
	// Cleared is what goes at the former location, with Identity Moved.
	Cleared rollout.Trees
	// LetGo says that the folders at the former location stay there, without an owner.
	LetGo bool
	// Adopted are folders that are taken over.
	Adopted []gitops.Conflict
	// Problems are in the order in which they are reported. With one that is not a warning, nothing can be
	// applied.
	Problems []Problem
}

// HasError reports whether any problem is an error.
func (o *Outlook) HasError() bool {
	return slices.ContainsFunc(o.Problems, func(p Problem) bool { return !p.Warning })
}

func (o *Outlook) add(attribute, summary, format string, arguments ...any) {
	o.Problems = append(o.Problems, Problem{Attribute: attribute, Summary: summary, Detail: fmt.Sprintf(format, arguments...)})
}

func (o *Outlook) warn(attribute, summary, format string, arguments ...any) {
	o.Problems = append(o.Problems, Problem{Attribute: attribute, Summary: summary, Detail: fmt.Sprintf(format, arguments...), Warning: true})
}

// Plan finds out what applying the intent would do. It writes nothing. A location that is as the state knows
// it, and to which no folder is added, is not read.
//
// The error is one of a look at the repository. What is wrong with the intent is among the problems.
func (c *Client) Plan(ctx context.Context, intent Intent) (*Outlook, error) {
	if err := c.checkDuplicate(ctx, intent.Owner, false); err != nil {
		return nil, err
	}
	former, err := c.identify(ctx, intent.Known, intent.Owner)
	if err != nil {
		return nil, err
	}
	o := &Outlook{Identity: former.identity, Before: rollout.Trees{}}
	switch o.Identity {
	case Same:
		o.Before = intent.Known.Current()
		if len(intent.Known.Drift.Touched) > 0 { // others may have written under this name
			err = c.arrive(ctx, intent, intent.Owner, o)
		}
	case Renamed:
		o.Before = intent.Known.Current()
		formerly := Owner{Location: intent.Owner.Location, Name: intent.Known.Owner.Name}
		if err = c.arrive(ctx, intent, formerly, o); err == nil {
			err = c.arrive(ctx, intent, intent.Owner, o)
		}
	case Created, Moved:
		err = c.arrive(ctx, intent, intent.Owner, o)
	}
	if err != nil {
		return nil, err
	}
	o.Remove = without(o.Before, intent.After)
	c.leave(intent, former, o)
	o.protect(intent)
	if o.Identity != Same || hasMore(intent.After, o.Before) {
		err = c.conflicts(ctx, intent, o)
	}
	return o, err
}

// arrive finds folders of the owner at the location that the state does not know.
func (c *Client) arrive(ctx context.Context, intent Intent, owner Owner, o *Outlook) error {
	view, err := c.view(ctx, owner, owner.Location.Branch)
	if err != nil {
		return err
	}
	if view.Missing {
		o.warn("gitops_repo", "Repository does not exist yet",
			"There is no repository at this path. The apply creates a bare one, unless it exists by then.")
	}
	owned, err := view.Owned(ctx)
	if err != nil {
		return err
	}
	var unwanted []string
	for _, key := range rollout.Trees(owned).Keys() {
		if o.Before[key.Host] == nil {
			o.Before[key.Host] = map[string]string{}
		}
		if _, known := o.Before[key.Host][key.DeploymentTarget]; known {
			continue
		}
		o.Before[key.Host][key.DeploymentTarget] = owned[key.Host][key.DeploymentTarget]
		if !intent.After.Has(key.Host, key.DeploymentTarget) {
			unwanted = append(unwanted, key.String())
		}
	}
	if len(unwanted) > 0 && !intent.Adopt {
		o.add("name", "Another assignment has this name",
			"The repository has %s of an assignment called %q at this location that this state does not know and this fleet does not want: %s.\n\n"+
				"If another configuration writes there, give this assignment another name. If the folders are from an earlier apply of this "+
				"assignment, set adopt = true: they are then removed, within what protection allows.",
			wording.Count(len(unwanted), "folder", "folders"), owner.Name, wording.List(unwanted, wording.Named))
	}
	return nil
}

// leave plans what happens to a former location.
func (c *Client) leave(intent Intent, former former, o *Outlook) {
	if o.Identity != Moved {
		return
	}
	at := intent.Known.Owner.Location
	switch {
	case former.gone != nil && isGone(former.gone):
		o.warn("gitops_repo", "Former repository is gone", "There is nothing to clear at %s: %s.", at.URL, former.gone)
	case former.gone != nil:
		o.warn("gitops_repo", "Former repository cannot be read", "The folders on branch %q at %s stay there: %s. Remove them by hand if they are not needed.", at.Branch, at.URL, former.gone)
	case intent.Leave:
		o.LetGo = true
		o.warn("on_destroy", "Folders stay", "The folders on branch %q at path %q of the former location stay there, and no assignment manages them.", at.Branch, at.Path)
	default:
		o.Cleared = intent.Known.Current()
	}
}

// protect checks what would be removed against the limits of protection.
func (o *Outlook) protect(intent Intent) {
	before, after := o.Before, intent.After
	removal := rollout.RemovalOf(before, after)
	if o.Cleared != nil {
		removal.Add(rollout.RemovalOf(o.Cleared, rollout.Trees{}))
	}
	o.refuse(intent.Protection, removal, intent.Clusters)
}

func (o *Outlook) refuse(protection rollout.Protection, removal rollout.Removal, clusters func([]string) []string) {
	var names []string
	if clusters != nil {
		names = clusters(removal.Hosts())
	}
	for _, refusal := range protection.Check(removal, names) {
		o.add("protection", refusal.Summary, "%s", refusal.Detail)
	}
}

// conflicts finds folders that the owner may not write.
func (c *Client) conflicts(ctx context.Context, intent Intent, o *Outlook) error {
	view, err := c.view(ctx, intent.Owner, intent.Owner.Location.Branch)
	if err != nil {
		return err
	}
	formerly := ""
	if o.Identity == Renamed {
		formerly = intent.Known.Owner.Name
	}
	found, err := view.Conflicts(ctx, gitops.Deployed(intent.After), gitops.Deployed(o.Before), formerly)
	if err != nil {
		return err
	}
	var adopted []string
	for _, conflict := range found {
		switch {
		case !conflict.Adoptable():
			o.add("gitops_repo", "Folder does not belong to this assignment", "%s.", conflict)
		case !intent.Adopt:
			o.add("gitops_repo", "Folder does not belong to this assignment", "%s. To take it over, with what is in it, set adopt = true.", conflict)
		default:
			o.Adopted = append(o.Adopted, conflict)
			text := conflict.String()
			adopted = append(adopted, strings.ToUpper(text[:1])+text[1:]+".")
		}
	}
	if len(adopted) > 0 {
		o.warn("adopt", "Folders are taken over", "%s", wording.Lines(adopted, mostListed))
	}
	return nil
}

// Unseen is the outlook of an intent while the repository cannot be read yet.
func Unseen(intent Intent) *Outlook {
	o := &Outlook{Identity: Created, Before: rollout.Trees{}}
	if intent.Known != nil {
		o.Identity, o.Before = Same, intent.Known.Current()
	}
	o.Remove = without(o.Before, intent.After)
	o.protect(intent)
	return o
}

// dropTaken removes folders that other owners have taken over from what is known: a destroy does not remove those.
// Where the repository cannot be read, all of it stays known.
func (c *Client) dropTaken(ctx context.Context, known *Known) *Known {
	view, err := c.view(ctx, known.Owner, known.Owner.Location.Branch)
	if err != nil {
		return known
	}
	current := gitops.Deployed(known.Current())
	conflicts, err := view.Conflicts(ctx, current, current, "")
	if err != nil || len(conflicts) == 0 {
		return known
	}
	own := *known
	own.Trees, own.Drift.Trees = known.Trees.Clone(), maps.Clone(known.Drift.Trees)
	for _, conflict := range conflicts {
		delete(own.Trees[conflict.Host], conflict.DeploymentTarget)
		delete(own.Drift.Trees, rollout.Key{Host: conflict.Host, DeploymentTarget: conflict.DeploymentTarget})
	}
	return &own
}

// PlanDestroy holds a destroy to what protection allows.
func (c *Client) PlanDestroy(ctx context.Context, known *Known, protection rollout.Protection, leave bool, clusters func([]string) []string) *Outlook {
	o := &Outlook{Identity: Same, Before: c.dropTaken(ctx, known).Current()}
	removal := rollout.RemovalOf(o.Before, nil)
	if leave {
		if removal.Total > 0 {
			o.warn("on_destroy", "Folders stay", "%s on %s: their folders stay in the repository, and no assignment manages them until one adopts them.",
				wording.Count(removal.Total, "assignment", "assignments"), wording.Count(len(removal.Hosts()), "host", "hosts"))
		}
		return o
	}
	o.Remove = o.Before
	o.refuse(protection, removal, clusters)
	return o
}

// without returns the folders of one that the other has not. Hosts without any are left out.
func without(one, other rollout.Trees) rollout.Trees {
	left := rollout.Trees{}
	for host, targets := range one {
		for target, tree := range targets {
			if !other.Has(host, target) {
				if left[host] == nil {
					left[host] = map[string]string{}
				}
				left[host][target] = tree
			}
		}
	}
	return left
}

func hasMore(one, other rollout.Trees) bool { return len(without(one, other)) > 0 }
