package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

const (
	// DefaultMaxRemovedPercent is the limit where protection sets none.
	DefaultMaxRemovedPercent = 50
	// AlwaysRemovable is how many assignments may be removed whatever the percentage is, unless it is 0: half of
	// a small fleet is no mass deletion.
	AlwaysRemovable = 10
	// EmptiedHost is how many assignments a host must have for their removal, all at once, to be held by
	// itself.
	EmptiedHost = 5
)

// Protection is what may be removed at once.
type Protection struct {
	MaxRemoved        *int64   // number of assignments; nil: no limit of its own
	MaxRemovedPercent *int64   // from 0 to 100, of all that are deployed; nil: the default
	AllowEmpty        bool     // a fleet that assigns nothing may remove everything
	EmptiedHosts      []string // hosts that stay in the fleet and may lose all that they have
}

// Removal is what a plan removes.
type Removal struct {
	Keys  []Key // in order
	Total int   // assignments that are deployed
	Left  int   // assignments that remain or are added
	// Emptied are hosts that stay in the fleet and lose all of their assignments, of which they have at least
	// EmptiedHost, with the number of these.
	Emptied map[string]int
	// Everything says that nothing is wanted at all: a destroy.
	Everything bool
}

// RemovalOf compares what is deployed at a location with what will be. It leaves out folders that a rollout which is not
// complete has added, as isAddition reports, so that the rollout can take them back; nil: there are none.
func RemovalOf(deployed, after Trees, isAddition func(Key) bool) Removal {
	r := Removal{Emptied: map[string]int{}, Left: after.Count(), Everything: after == nil}
	deployed = without(deployed, isAddition)
	for _, key := range deployed.Keys() {
		r.Total++
		if !after.Has(key.Host, key.DeploymentTarget) {
			r.Keys = append(r.Keys, key)
		}
	}
	for host, targets := range deployed {
		now, stays := after[host]
		if stays && len(now) == 0 && len(targets) >= EmptiedHost {
			r.Emptied[host] = len(targets)
		}
	}
	return r
}

// without returns the folders that a function does not report.
func without(folders Trees, drops func(Key) bool) Trees {
	if drops == nil {
		return folders
	}
	left := folders.Clone()
	for host, targets := range left {
		maps.DeleteFunc(targets, func(target, _ string) bool { return drops(Key{Host: host, DeploymentTarget: target}) })
	}
	return left
}

// ClearanceOf is the removal of all that is deployed at a location which the owner leaves for another one, where it
// will have after. Each location counts for itself: what is at the new one makes no removal at the old one smaller.
func ClearanceOf(deployed, after Trees) Removal {
	r := RemovalOf(deployed, Trees{}, nil)
	r.Left = after.Count()
	return r
}

// Hosts are those that lose an assignment, in order.
func (r Removal) Hosts() []string {
	hosts := map[string]bool{}
	for _, key := range r.Keys {
		hosts[key.Host] = true
	}
	return slices.Sorted(maps.Keys(hosts))
}

// Refusal is a removal that protection holds.
type Refusal struct {
	Summary string // a short sentence without a full stop
	Detail  string // the folders that would go, and the limit that holds them
	Remedy  string // the setting that allows it
}

// Check returns why protection holds a removal; nothing where the removal is allowed. clusters names the
// clusters of the hosts that lose something, as far as they are known.
func (p Protection) Check(removal Removal, clusters []string) []Refusal {
	where := wording.Count(len(removal.Hosts()), "host", "hosts")
	if len(clusters) > 0 {
		where += " with " + wording.Count(len(clusters), "cluster", "clusters")
	}
	if removal.Left == 0 && removal.Total > 0 && len(removal.Keys) == removal.Total && !removal.Everything && !p.AllowEmpty {
		return []Refusal{{"Nothing would be left", fmt.Sprintf("%s deployed on %s, and this plan would remove all of them: %s.",
			wording.Count(removal.Total, "assignment is", "assignments are"), where, list(removal.Keys)),
			remedy(append([]string{"allow_empty = true"}, p.raised(removal)...)...)}}
	}
	var refusals []Refusal
	if reason := p.exceeded(len(removal.Keys), removal.Total); reason != "" {
		allowed := remedy(p.raised(removal)...)
		if removal.Everything {
			allowed = strings.TrimSuffix(allowed, ".") + ", apply that, and then destroy."
		}
		refusals = append(refusals, Refusal{"Mass deletion", fmt.Sprintf("This plan would remove %d of %s on %s, %s: %s.",
			len(removal.Keys), wording.Count(removal.Total, "assignment", "assignments"), where, reason, list(removal.Keys)), allowed})
	}
	if removal.Everything || removal.Left == 0 {
		return refusals
	}
	var emptied []string
	allowed := slices.Clone(p.EmptiedHosts)
	for _, host := range slices.Sorted(maps.Keys(removal.Emptied)) {
		if !slices.Contains(p.EmptiedHosts, host) {
			emptied, allowed = append(emptied, fmt.Sprintf("%q loses all %d", host, removal.Emptied[host])), append(allowed, host)
		}
	}
	if len(emptied) > 0 {
		refusals = append(refusals, Refusal{"A host would lose everything", fmt.Sprintf("This plan would leave nothing on %s that the fleet still has: %s.",
			wording.OneOrMany(len(emptied), "a host", "hosts"), wording.List(emptied, wording.Named)),
			remedy(fmt.Sprintf("emptied_hosts = [%s]", strings.Join(wording.Quoted(allowed), ", ")))})
	}
	return refusals
}

// remedy says which settings allow a removal.
func remedy(settings ...string) string {
	return fmt.Sprintf("If that is meant, set protection = { %s }.", strings.Join(settings, ", "))
}

// raised are the limits with which the removal is allowed; none when it is.
func (p Protection) raised(removal Removal) []string {
	removed := len(removal.Keys)
	if p.exceeded(removed, removal.Total) == "" {
		return nil
	}
	var limits []string
	if p.MaxRemoved != nil || p.MaxRemovedPercent == nil {
		limits = append(limits, fmt.Sprintf("max_removed = %d", removed))
	}
	if p.MaxRemovedPercent != nil {
		limits = append(limits, fmt.Sprintf("max_removed_percent = %d", (removed*100+removal.Total-1)/removal.Total))
	}
	return limits
}

// exceeded says which limit is exceeded, or "".
func (p Protection) exceeded(removed, total int) string {
	share := func(percent int64) bool { return int64(removed)*100 > int64(total)*percent }
	switch {
	case removed == 0:
		return ""
	case p.MaxRemoved != nil && int64(removed) > *p.MaxRemoved:
		return fmt.Sprintf("more than max_removed = %d", *p.MaxRemoved)
	case p.MaxRemovedPercent != nil && (removed > AlwaysRemovable || *p.MaxRemovedPercent == 0) && share(*p.MaxRemovedPercent):
		return fmt.Sprintf("more than max_removed_percent = %d", *p.MaxRemovedPercent)
	case p.MaxRemoved == nil && p.MaxRemovedPercent == nil && removed > AlwaysRemovable && share(DefaultMaxRemovedPercent):
		return fmt.Sprintf("more than the default of %d %%", DefaultMaxRemovedPercent)
	}
	return ""
}

func list(keys []Key) string { return wording.List(folder.Texts(keys), wording.Named) }
