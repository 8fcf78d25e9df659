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

// Intent is what an owner is to have.
type Intent struct {
	Owner    Owner
	Known    *Known // nil where there is no state
	Settings Settings
	// After are the folders that it has then; a tree that is not known yet is "".
	After      rollout.Trees
	Protection rollout.Protection
	// Adopt takes over folders of others, of nobody, and of its own name that no state knows.
	Adopt bool
	// Leave lets the folders at a former place stay, as a destroy with on_destroy = "keep" does.
	Leave bool
	// Clusters names the clusters that hosts stand for; nil where nobody knows.
	Clusters func(hosts []string) []string
}

// Problem is something that somebody has to be told of.
type Problem struct {
	Attribute string // of flotilla_assignment, "gitops_repo" for one
	Summary   string // a short sentence without a full stop
	Detail    string
	Warning   bool
}

// Outlook is what applying an intent would do.
type Outlook struct {
	Identity Identity
	// Before is what the owner has at the place now.
	Before rollout.Trees
	// Remove are those of Before that go.
	Remove rollout.Trees
	// Cleared is what goes at the former place, with Identity Moved.
	Cleared rollout.Trees
	// LetGo says that the folders at the former place stay there, and are nobody's from then on.
	LetGo bool
	// Adopted are folders that are taken over.
	Adopted []gitops.Conflict
	// Problems are in the order in which they are to be told. With one that is no warning, nothing can be
	// applied.
	Problems []Problem
}

// HasError says whether any problem is more than a warning.
func (o *Outlook) HasError() bool {
	return slices.ContainsFunc(o.Problems, func(p Problem) bool { return !p.Warning })
}

func (o *Outlook) add(attribute, summary, format string, arguments ...any) {
	o.Problems = append(o.Problems, Problem{Attribute: attribute, Summary: summary, Detail: fmt.Sprintf(format, arguments...)})
}

func (o *Outlook) warn(attribute, summary, format string, arguments ...any) {
	o.Problems = append(o.Problems, Problem{Attribute: attribute, Summary: summary, Detail: fmt.Sprintf(format, arguments...), Warning: true})
}

// Plan finds out what applying the intent would do. It writes nothing. A place that is as the state knows
// it, where nothing comes that is not there, is not looked at.
//
// The error is one of a look at the repository. What is wrong with the intent is among the problems.
func (c *Client) Plan(ctx context.Context, intent Intent) (*Outlook, error) {
	if err := c.twice(ctx, intent.Owner, false); err != nil {
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
		if len(intent.Known.Drift.Touched) > 0 { // somebody else may have written under this name
			err = c.arrive(ctx, intent, intent.Owner, o)
		}
	case Renamed:
		o.Before = intent.Known.Current()
		formerly := Owner{Place: intent.Owner.Place, Name: intent.Known.Owner.Name}
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

// arrive finds what an owner has at the place that the state does not know.
func (c *Client) arrive(ctx context.Context, intent Intent, owner Owner, o *Outlook) error {
	view, err := c.view(ctx, owner, owner.Place.Branch)
	if err != nil {
		return err
	}
	if view.Missing {
		o.warn("gitops_repo", "Repository does not exist yet",
			"There is no repository at this path: apply creates a bare one, unless something else does before.")
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
		o.add("name", "Another assignment of this name is there",
			"The repository has %s of an assignment called %q at this place, which this state does not know and this fleet does not want: %s.\n\n"+
				"Should another configuration write there, give this one another name. If they are left from before, set adopt = true: "+
				"they are then removed, within what protection allows.",
			wording.Count(len(unwanted), "folder", "folders"), owner.Name, wording.List(unwanted, wording.Named))
	}
	return nil
}

// leave says what becomes of a former place.
func (c *Client) leave(intent Intent, former former, o *Outlook) {
	if o.Identity != Moved {
		return
	}
	at := intent.Known.Owner.Place
	switch {
	case former.gone != nil && isGone(former.gone):
		o.warn("gitops_repo", "Former repository is gone", "There is nothing to clear at %s: %s.", at.URL, former.gone)
	case former.gone != nil:
		o.warn("gitops_repo", "Former repository cannot be looked at", "What is on branch %q at %s stays there: %s.", at.Branch, at.URL, former.gone)
	case intent.Leave:
		o.LetGo = true
		o.warn("on_destroy", "Folders stay", "The folders on branch %q at path %q of the former place stay there, and are nobody's.", at.Branch, at.Path)
	default:
		o.Cleared = intent.Known.Current()
	}
}

// protect holds what would go to the limits of protection.
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

// conflicts finds folders that are not the owner's to write.
func (c *Client) conflicts(ctx context.Context, intent Intent, o *Outlook) error {
	view, err := c.view(ctx, intent.Owner, intent.Owner.Place.Branch)
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
			o.add("gitops_repo", "Folder belongs to somebody else", "%s.", conflict)
		case !intent.Adopt:
			o.add("gitops_repo", "Folder belongs to somebody else", "%s. To take it over, with what is in it, set adopt = true.", conflict)
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

// Unseen is what can be said of an intent before the repository can be looked at.
func Unseen(intent Intent) *Outlook {
	o := &Outlook{Identity: Created, Before: rollout.Trees{}}
	if intent.Known != nil {
		o.Identity, o.Before = Same, intent.Known.Current()
	}
	o.Remove = without(o.Before, intent.After)
	o.protect(intent)
	return o
}

// dropTaken drops from what is known what others have taken over: no destroy removes that. Where nobody can be
// asked, all of it stays known.
func (c *Client) dropTaken(ctx context.Context, known *Known) *Known {
	view, err := c.view(ctx, known.Owner, known.Owner.Place.Branch)
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
			o.warn("on_destroy", "Folders stay", "%s on %s: their folders stay in the repository, and are nobody's until an assignment takes them.",
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
