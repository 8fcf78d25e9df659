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

// ErrDuplicate reports a second flotilla_assignment of one name at one location.
var ErrDuplicate = errors.New("another flotilla_assignment of this configuration has the same name, repository, branch and path")

// NewHolder returns a random text that distinguishes an object in one state from the same object in another.
func NewHolder() string {
	var random [gitops.HolderLength]byte
	_, _ = rand.Read(random[:])
	return hex.EncodeToString(random[:])
}

// Registry remembers the plans of this process, to find resources that collide.
type Registry struct {
	reader *Reader

	mu       sync.Mutex
	owners   map[ownerKey]folder.Location // claims, too
	holders  map[ownerKey][]string        // of claims, as read from the state
	folders  []plannedFolders
	replaced map[ownerKey]bool // owners whose object this process destroys and creates again
	writes   atomic.Bool
}

type plannedFolders struct {
	owner         string
	at            folder.Location
	tip           string // of the branch; "" if unknown
	adds, removes folder.Trees
}

type ownerKey struct {
	location folder.Location
	name     string
}

func newOwnerKey(owner Owner) ownerKey {
	return ownerKey{
		location: folder.Location{URL: git.Spelling(owner.Location.URL), Branch: owner.Location.Branch, Path: owner.Location.Path},
		name:     owner.Name,
	}
}

// MarkWriting records that this process applies. Objects that it then plans to destroy are being replaced.
func (r *Registry) MarkWriting() { r.writes.Store(true) }

// MarkReplaced records that a new object takes over the content of an owner.
func (r *Registry) MarkReplaced(owner Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replaced[newOwnerKey(owner)] = true
}

func (r *Registry) isReplaced(owner Owner) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.replaced[newOwnerKey(owner)]
}

// IsWriting reports whether MarkWriting was called.
func (r *Registry) IsWriting() bool { return r.writes.Load() }

// RegisterOwner remembers a planned owner, and fails for a second one of its name. Terraform plans a replaced resource
// twice; callers must recognize that.
func (r *Registry) RegisterOwner(owner Owner) error {
	return r.register(newOwnerKey(owner), owner.Location, owner.Name, ErrDuplicate)
}

func (r *Registry) register(key ownerKey, at folder.Location, name string, duplicate error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.owners[key]; again {
		return fmt.Errorf("%w: %q on branch %q at path %q", duplicate, name, at.Branch, at.Path)
	}
	r.owners[key] = at
	return nil
}

func (r *Registry) registerHolder(key ownerKey, holder string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holders[key] = append(r.holders[key], holder)
}

// findSameNames returns the locations of planned owners of the same name at other URLs, which may be mirrors.
func (r *Registry) findSameNames(owner Owner) []folder.Location {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := newOwnerKey(owner)
	var locations []folder.Location
	for key, location := range r.owners {
		if key != own && key.name == own.name && key.location.Branch == own.location.Branch && key.location.Path == own.location.Path {
			locations = append(locations, location)
		}
	}
	return locations
}

// checkDuplicate fails for an owner at a mirror of a location with another planned owner of its name.
func (r *Registry) checkDuplicate(ctx context.Context, owner Owner, afresh bool) error {
	for _, location := range r.findSameNames(owner) {
		if afresh {
			r.reader.forget(location)
			r.reader.forget(owner.Location)
		}
		there, err := r.reader.tip(ctx, location)
		if err != nil {
			continue
		}
		here, err := r.reader.tip(ctx, owner.Location)
		if err != nil {
			return err
		}
		if here != "" && here == there {
			return fmt.Errorf("%w: %q on branch %q at path %q, which is also at %s", ErrDuplicate, owner.Name,
				owner.Location.Branch, owner.Location.Path, location.URL)
		}
	}
	return nil
}

// RegisterPlan remembers a plan, and returns collisions with other plans.
func (r *Registry) RegisterPlan(ctx context.Context, desired Desired, plan *Plan) []PlanProblem {
	adds := desired.After
	if desired.State != nil && plan.Identity != Moved {
		adds = desired.After.Without(desired.State.Trees)
	}
	removes := plan.folders().Without(desired.After)
	own := []plannedFolders{{owner: desired.Owner.Name, at: desired.Owner.Location, adds: adds, removes: removes}}
	if len(plan.Cleared) > 0 {
		former := desired.State.Owner
		own = append(own, plannedFolders{owner: former.Name, at: former.Location, removes: plan.Cleared})
	}
	return r.addFolders(ctx, own)
}

// RegisterDestroy is RegisterPlan for a destroy.
func (r *Registry) RegisterDestroy(ctx context.Context, known *OwnerState, plan *Plan) []PlanProblem {
	return r.addFolders(ctx, []plannedFolders{{owner: known.Owner.Name, at: known.Owner.Location, removes: plan.Remove}})
}

// addFolders returns an error for folders that two owners add, or that one removes and the other adds. Terraform applies
// both in any order, so clusters could remove running workloads in between.
func (r *Registry) addFolders(ctx context.Context, own []plannedFolders) []PlanProblem {
	own = slices.DeleteFunc(own, func(p plannedFolders) bool { return len(p.adds)+len(p.removes) == 0 })
	for i := range own {
		own[i].tip, _ = r.reader.tip(ctx, own[i].at)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var problems []PlanProblem
	for _, mine := range own {
		problems = append(problems, r.findOverlaps(mine)...)
	}
	r.folders = append(r.folders, own...)
	return problems
}

func (r *Registry) findOverlaps(mine plannedFolders) []PlanProblem {
	var problems []PlanProblem
	for _, other := range r.folders {
		if other.at.Branch != mine.at.Branch ||
			git.Spelling(other.at.URL) != git.Spelling(mine.at.URL) && (mine.tip == "" || mine.tip != other.tip) {
			continue
		}
		if both := findCommonFolders(mine.at.Path, mine.adds, other.at.Path, other.adds); len(both) > 0 {
			problems = append(problems, newError("gitops_repo", "Two assignments have the same folders",
				"The assignments %q and %q of this configuration both add %s: %s. Give one of them another path, or take the "+
					"deployment targets out of one of the fleets.",
				other.owner, mine.owner, wording.Count(len(both), "folder", "folders"), wording.List(both, wording.Named)))
		}
		handed := findCommonFolders(mine.at.Path, mine.adds, other.at.Path, other.removes)
		from, to := other.owner, mine.owner
		if len(handed) == 0 {
			handed = findCommonFolders(mine.at.Path, mine.removes, other.at.Path, other.adds)
			from, to = mine.owner, other.owner
		}
		if len(handed) > 0 {
			problems = append(problems, newHandoverProblem(from, to, handed))
		}
	}
	return problems
}

func newHandoverProblem(from, to string, folders []string) PlanProblem {
	problem := newError("gitops_repo", "One apply would remove and add the same folders",
		"The assignment %q removes %s that the assignment %q adds: %s. Terraform applies the two in any order, and clusters "+
			"could remove what they run in between.",
		from, wording.Count(len(folders), "folder", "folders"), to, wording.List(folders, wording.Named))
	if from == to {
		problem.Detail += "\n\nIf the resource only has another address now, declare it: moved { from = <old address>, to = <new address> }. " +
			"If this is another resource, apply the removal first, and add this one in the next apply."
		return problem
	}
	problem.Detail += fmt.Sprintf(
		"\n\nIf it is one assignment whose address has changed, declare it: moved { from = <old address>, to = <new address> }. "+
			"To hand folders over, apply twice: first set adopt = true on %q while %q keeps them, then take them out of %q.",
		to, from, from)
	return problem
}

func findCommonFolders(onePath string, one folder.Trees, otherPath string, other folder.Trees) []string {
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
