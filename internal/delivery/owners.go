package delivery

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// ErrDuplicate is the error of a second flotilla_assignment of one name at one location.
var ErrDuplicate = errors.New("another flotilla_assignment of this configuration has the same name, repository, branch and path")

// NewHolder returns a random text, by which an object of one Terraform state differs from that of another.
func NewHolder() string {
	var random [gitops.HolderLength]byte
	_, _ = rand.Read(random[:]) // it never fails
	return hex.EncodeToString(random[:])
}

// plans is what this process has planned.
type plans struct {
	mu      sync.Mutex
	owners  map[ownerKey]folder.Location // claims, too
	holders map[ownerKey][]string        // of claims, as they were read in the state
	folders []plannedFolders
	// replaced are owners whose object this process has destroyed, and of which it creates another one.
	replaced map[ownerKey]bool
	writes   atomic.Bool
}

// plannedFolders are the folders at one location that an owner adds, and those that it removes.
type plannedFolders struct {
	owner         string
	at            folder.Location
	tip           string // of the branch; "" where that is not known
	adds, removes folder.Trees
}

type ownerKey struct {
	location folder.Location
	name     string
}

func keyOfOwner(owner Owner) ownerKey {
	return ownerKey{
		location: folder.Location{URL: git.Spelling(owner.Location.URL), Branch: owner.Location.Branch, Path: owner.Location.Path},
		name:     owner.Name,
	}
}

// MarkWriting notes that this process writes. What it plans to destroy after that are objects that it has replaced:
// Terraform plans everything else in another process.
func (c *Service) MarkWriting() { c.plans.writes.Store(true) }

// MarkReplaced notes that this process creates another object of an owner, which takes over what the present one has.
func (c *Service) MarkReplaced(owner Owner) {
	c.plans.mu.Lock()
	defer c.plans.mu.Unlock()
	c.plans.replaced[keyOfOwner(owner)] = true
}

func (c *Service) isReplaced(owner Owner) bool {
	c.plans.mu.Lock()
	defer c.plans.mu.Unlock()
	return c.plans.replaced[keyOfOwner(owner)]
}

// IsWriting says whether Writes was called.
func (c *Service) IsWriting() bool { return c.plans.writes.Load() }

// RegisterOwner notes that an owner is planned, and fails for a second one of its name. Terraform plans a resource that it
// replaces twice; the caller has to recognise that.
func (c *Service) RegisterOwner(owner Owner) error {
	return c.plans.note(keyOfOwner(owner), owner.Location, owner.Name, ErrDuplicate)
}

func (p *plans) note(key ownerKey, at folder.Location, name string, duplicate error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, again := p.owners[key]; again {
		return fmt.Errorf("%w: %q on branch %q at path %q", duplicate, name, at.Branch, at.Path)
	}
	p.owners[key] = at
	return nil
}

func (p *plans) noteHolder(key ownerKey, holder string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holders[key] = append(p.holders[key], holder)
}

// sameNames are the locations, at other URLs, of planned owners of the same name, branch and path. They may be
// mirrors.
func (c *Service) sameNames(owner Owner) []folder.Location {
	c.plans.mu.Lock()
	defer c.plans.mu.Unlock()
	own := keyOfOwner(owner)
	var locations []folder.Location
	for key, location := range c.plans.owners {
		if key != own && key.name == own.name && key.location.Branch == own.location.Branch && key.location.Path == own.location.Path {
			locations = append(locations, location)
		}
	}
	return locations
}

// checkDuplicate fails for an owner at a mirror of a location where another planned owner of its name is: the tip
// of the one is the tip of the other. With afresh both are read again.
func (c *Service) checkDuplicate(ctx context.Context, owner Owner, afresh bool) error {
	for _, location := range c.sameNames(owner) {
		if afresh {
			c.looks.forget(c.remote(location))
			c.looks.forget(c.remote(owner.Location))
		}
		there, err := c.tip(ctx, location)
		if err != nil {
			continue // the error is reported for that owner
		}
		here, err := c.tip(ctx, owner.Location)
		if err != nil {
			return err
		}
		if here != "" && here == there {
			return fmt.Errorf(
				"%w: %q on branch %q at path %q, which is also at %s",
				ErrDuplicate,
				owner.Name,
				owner.Location.Branch,
				owner.Location.Path,
				location.URL,
			)
		}
	}
	return nil
}

// RegisterPlan notes what an owner adds and removes, and returns what is wrong with that beside what other owners
// of this process do: see overlaps.
func (c *Service) RegisterPlan(ctx context.Context, desired Desired, o *Plan) []PlanProblem {
	adds := desired.After
	if desired.State != nil && o.Identity != Moved {
		adds = desired.After.Without(desired.State.Trees)
	}
	own := []plannedFolders{{owner: desired.Owner.Name, at: desired.Owner.Location, adds: adds, removes: o.there().Without(desired.After)}}
	if len(o.Cleared) > 0 {
		former := desired.State.Owner
		own = append(own, plannedFolders{owner: former.Name, at: former.Location, removes: o.Cleared})
	}
	return c.overlaps(ctx, own)
}

// RegisterDestroy notes what a destroy removes, and returns what is wrong with that likewise.
func (c *Service) RegisterDestroy(ctx context.Context, known *OwnerState, o *Plan) []PlanProblem {
	return c.overlaps(ctx, []plannedFolders{{owner: known.Owner.Name, at: known.Owner.Location, removes: o.Remove}})
}

// overlaps finds folders that two owners add, and those that one owner removes and another one adds. Terraform
// applies the two in any order, in a process that does not know the plan of the other: so clusters could remove
// what they run in between. Whichever of the two is planned second reports it.
func (c *Service) overlaps(ctx context.Context, own []plannedFolders) []PlanProblem {
	own = slices.DeleteFunc(own, func(p plannedFolders) bool { return len(p.adds)+len(p.removes) == 0 })
	for i := range own {
		own[i].tip, _ = c.tip(ctx, own[i].at) // an error is reported where the location is read
	}
	c.plans.mu.Lock()
	defer c.plans.mu.Unlock()
	var problems []PlanProblem
	for _, mine := range own {
		problems = append(problems, c.plans.overlaps(mine)...)
	}
	c.plans.folders = append(c.plans.folders, own...)
	return problems
}

func (p *plans) overlaps(mine plannedFolders) []PlanProblem {
	var problems []PlanProblem
	for _, other := range p.folders {
		if other.at.Branch != mine.at.Branch ||
			git.Spelling(other.at.URL) != git.Spelling(mine.at.URL) && (mine.tip == "" || mine.tip != other.tip) {
			continue
		}
		if both := sameFolders(mine.at.Path, mine.adds, other.at.Path, other.adds); len(both) > 0 {
			problems = append(problems, PlanProblem{Attribute: "gitops_repo", Summary: "Two assignments have the same folders", Detail: fmt.Sprintf(
				"The assignments %q and %q of this configuration both add %s: %s. Give one of them another path, or take the deployment targets out of one of the fleets",
				other.owner,
				mine.owner,
				wording.Count(len(both), "folder", "folders"),
				wording.List(both, wording.Named),
			)})
		}
		handed := sameFolders(mine.at.Path, mine.adds, other.at.Path, other.removes)
		from, to := other.owner, mine.owner
		if len(handed) == 0 {
			handed = sameFolders(mine.at.Path, mine.removes, other.at.Path, other.adds)
			from, to = mine.owner, other.owner
		}
		if len(handed) > 0 {
			problems = append(problems, handover(from, to, handed))
		}
	}
	return problems
}

// handover is the error of folders that are removed and added in one apply.
func handover(from, to string, folders []string) PlanProblem {
	problem := PlanProblem{Attribute: "gitops_repo", Summary: "One apply would remove and add the same folders", Detail: fmt.Sprintf(
		"The assignment %q removes %s that the assignment %q adds: %s. Terraform applies the two in any order, and clusters could remove what they run in between.",
		from,
		wording.Count(len(folders), "folder", "folders"),
		to,
		wording.List(folders, wording.Named),
	)}
	if from == to {
		problem.Detail += "\n\nIf the resource only has another address now, declare it: moved { from = <old address>, to = <new address> }. " +
			"If this is another resource, apply the removal first, and add this one in the next apply"
		return problem
	}
	problem.Detail += fmt.Sprintf(
		"\n\nIf it is one assignment whose address has changed, declare it: moved { from = <old address>, to = <new address> }. "+
			"To hand folders over, apply twice: first set adopt = true on %q while %q keeps them, then take them out of %q",
		to,
		from,
		from,
	)
	return problem
}

// sameFolders are the paths of folders that two owners have.
func sameFolders(onePath string, one folder.Trees, otherPath string, other folder.Trees) []string {
	if len(one) == 0 || onePath != otherPath && !isBelow(onePath, otherPath) && !isBelow(otherPath, onePath) {
		return nil
	}
	var same []string
	folders := make(map[string]bool, len(other))
	for _, key := range other.Keys() {
		folders[path.Join(otherPath, key.String())] = true
	}
	for _, key := range one.Keys() {
		if folder := path.Join(onePath, key.String()); folders[folder] {
			same = append(same, folder)
		}
	}
	return same
}

func isBelow(at, above string) bool { return above == "" || strings.HasPrefix(at, above+"/") }

// IsSameLocation reports whether two locations are one, or mirrors of each other. Their URLs decide where the
// repositories cannot be reached.
func (c *Service) IsSameLocation(ctx context.Context, one, other folder.Location) bool {
	if one.Path != other.Path || one.Branch != other.Branch {
		return false
	}
	if git.Spelling(one.URL) == git.Spelling(other.URL) {
		return true
	}
	here, err := c.tip(ctx, one)
	if err != nil || here == "" {
		return false
	}
	there, err := c.tip(ctx, other)
	return err == nil && here == there
}
