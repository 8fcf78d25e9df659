package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

const (
	defaultMaxRemovedPercent = 50
	// alwaysRemovable is the number of assignments below the default limit: half of a small fleet is no mass deletion.
	alwaysRemovable = 10
	// fewestOfShare is the smallest size of a host (in assignments) or a workload (in hosts) whose share the default limit
	// protects. Any limit protects emptied hosts of at least this size.
	fewestOfShare = 5
)

// Protection limits the removals of one plan.
type Protection struct {
	MaxRemoved        *int64   // assignments; nil: no limit of its own
	MaxRemovedPercent *int64   // of all assignments, of each host and of each workload; nil: the default
	AllowEmpty        bool     // a fleet that assigns nothing may remove everything
	EmptiedHosts      []string // hosts that stay in the fleet and may lose everything
}

// Removal is the set of folders that a plan removes.
type Removal struct {
	Keys  []folder.Key // in order
	Total int          // number of deployed assignments
	Left  int          // number of assignments that remain or are added
	// Emptied counts the assignments of hosts that stay and lose all of at least fewestOfShare.
	Emptied map[string]int
	// ByHost and ByWorkload have the losses of hosts that stay, in workloads that stay.
	ByHost, ByWorkload map[string]Loss
	// Everything reports a destroy.
	Everything bool
}

// Loss is the loss of a host, or of a workload in hosts.
type Loss struct{ Lost, Had, Left int }

// Fleet distinguishes a loss from a change of the fleet.
type Fleet struct {
	// IsAddition reports whether an incomplete rollout added the folder, and may take it back; nil: none.
	IsAddition func(folder.Key) bool
	// Workloads maps all deployment targets of the fleet to workloads; nil: each deployed target is a workload.
	Workloads map[string]string
}

// RemovalOf compares the deployed folders with those after the plan. after is nil for a destroy.
func RemovalOf(deployed, after folder.Trees, of Fleet) Removal {
	deployed = without(deployed, of.IsAddition)
	r := Removal{
		Keys: deployed.Without(after).Keys(), Total: deployed.Count(), Left: after.Count(), Emptied: map[string]int{}, Everything: after == nil,
	}
	for host, targets := range deployed {
		now, stays := after[host]
		if stays && len(now) == 0 && len(targets) >= fewestOfShare {
			r.Emptied[host] = len(targets)
		}
	}
	if len(r.Keys) > 0 && r.Left > 0 {
		r.addLosses(deployed, after, of)
	}
	return r
}

// addLosses counts losses. Another deployment target of the workload on the host prevents one.
func (r *Removal) addLosses(deployed, after folder.Trees, of Fleet) {
	if of.Workloads == nil {
		of.Workloads = map[string]string{}
		for key := range folder.All(after) {
			of.Workloads[key.DeploymentTarget] = key.DeploymentTarget
		}
	}
	workloadsOf := func(targets map[string]string) map[string]bool {
		found := map[string]bool{}
		for target := range targets {
			name, stays := of.Workloads[target]
			name = cmp.Or(name, target)
			found[name] = found[name] || stays
		}
		return found
	}
	r.ByHost, r.ByWorkload = map[string]Loss{}, map[string]Loss{}
	left := map[string]int{}
	for _, targets := range after {
		for name := range workloadsOf(targets) {
			left[name]++
		}
	}
	for host, targets := range deployed {
		now, hostStays := after[host]
		if !hostStays {
			continue
		}
		here := workloadsOf(now)
		ofHost := Loss{Left: len(here)}
		for name, stays := range workloadsOf(targets) {
			ofHost.Had++
			ofWorkload := r.ByWorkload[name]
			ofWorkload.Had, ofWorkload.Left = ofWorkload.Had+1, left[name]
			if _, has := here[name]; stays && !has {
				ofHost.Lost++
				ofWorkload.Lost++
			}
			r.ByWorkload[name] = ofWorkload
		}
		if ofHost.Lost > 1 || !folder.IsCluster(host) { // a cluster keeps the folders of its cluster type
			r.ByHost[host] = ofHost
		}
	}
}

func without(folders folder.Trees, drops func(folder.Key) bool) folder.Trees {
	if drops == nil {
		return folders
	}
	left := folders.Clone()
	for host, targets := range left {
		maps.DeleteFunc(targets, func(target, _ string) bool { return drops(folder.Key{Host: host, DeploymentTarget: target}) })
	}
	return left
}

// ClearanceOf returns the removal of all folders at a location that the owner leaves for another one.
func ClearanceOf(deployed, after folder.Trees) Removal {
	r := RemovalOf(deployed, folder.Trees{}, Fleet{})
	r.Left = after.Count()
	return r
}

// Hosts returns the hosts that lose an assignment, in order.
func (r Removal) Hosts() []string {
	hosts := map[string]bool{}
	for _, key := range r.Keys {
		hosts[key.Host] = true
	}
	return slices.Sorted(maps.Keys(hosts))
}

// Refusal is a removal that protection holds.
type Refusal struct {
	Summary string // without a full stop
	Detail  string
	Remedy  string
}

// Check returns nil if the removal is allowed.
func (p Protection) Check(removal Removal, clusters []string) *Refusal {
	where := wording.Count(len(removal.Hosts()), "host", "hosts")
	if len(clusters) > 0 {
		where += " with " + wording.Count(len(clusters), "cluster", "clusters")
	}
	allows := p.allowing(removal)
	if removal.Left == 0 && removal.Total > 0 && len(removal.Keys) == removal.Total && !removal.Everything && !p.AllowEmpty {
		return &Refusal{"Nothing would be left", fmt.Sprintf("%s deployed on %s, and this plan would remove all of them: %s.",
			wording.Count(removal.Total, "assignment is", "assignments are"), where, list(removal.Keys)),
			remedy(append([]string{"allow_empty = true"}, allows...)...)}
	}
	var summary string
	var details []string
	add := func(title, detail string) { summary, details = cmp.Or(summary, title), append(details, detail) }
	if reason := p.exceeded(len(removal.Keys), removal.Total); reason != "" {
		add("Mass deletion", fmt.Sprintf("This plan would remove %d of %s on %s, %s: %s.",
			len(removal.Keys), wording.Count(removal.Total, "assignment", "assignments"), where, reason, list(removal.Keys)))
	}
	if names := p.emptied(removal); len(names) > 0 {
		add("A host would lose everything", fmt.Sprintf("This plan would leave nothing on %s that the fleet still has: %s.",
			wording.OneOrMany(len(names), "a host", "hosts"), listLosses(names, func(host string) string {
				return fmt.Sprintf("%q loses all %d", host, max(removal.Emptied[host], removal.ByHost[host].Had))
			})))
	}
	if names := p.diminished(removal); len(names) > 0 {
		add("A host would lose too much", fmt.Sprintf("This plan would take from %s that the fleet still has %s of the workloads that are "+
			"there: %s.", wording.OneOrMany(len(names), "a host", "hosts"), p.limit(), listLosses(names, func(host string) string {
			return fmt.Sprintf("%q loses %d of %d", host, removal.ByHost[host].Lost, removal.ByHost[host].Had)
		})))
	}
	if names := p.withdrawn(removal); len(names) > 0 {
		add("A workload would lose too many hosts", fmt.Sprintf("This plan would take %s that the fleet still has from %s of the hosts: %s.",
			wording.OneOrMany(len(names), "a workload", "workloads"), p.limit(), listLosses(names, func(name string) string {
				return fmt.Sprintf("%q leaves %d of %d", name, removal.ByWorkload[name].Lost, removal.ByWorkload[name].Had)
			})))
	}
	if len(details) == 0 {
		return nil
	}
	allowed := remedy(allows...)
	if removal.Everything {
		allowed = strings.TrimSuffix(allowed, ".") + ", apply that, and then destroy."
	}
	return &Refusal{summary, strings.Join(details, " "), allowed}
}

// share returns the maximum percentage of each host and workload, and the smallest one protected; ok is false without a limit.
func (p Protection) share() (percent int64, fewest int, ok bool) {
	switch {
	case p.MaxRemovedPercent != nil:
		return *p.MaxRemovedPercent, 1, true
	case p.MaxRemoved == nil:
		return defaultMaxRemovedPercent, fewestOfShare, true
	}
	return 0, 0, false
}

func (p Protection) limit() string {
	if p.MaxRemovedPercent != nil {
		return fmt.Sprintf("more than max_removed_percent = %d", *p.MaxRemovedPercent)
	}
	return fmt.Sprintf("more than the default of %d %%", defaultMaxRemovedPercent)
}

// exceeds reports whether a loss exceeds the share. A single one of several may go.
func (p Protection) exceeds(loss Loss) bool {
	percent, fewest, ok := p.share()
	if !ok || loss.Lost == 0 || loss.Had < fewest || percent == 100 {
		return false
	}
	return loss.Left == 0 || loss.Lost > 1 && int64(loss.Lost)*100 > int64(loss.Had)*percent
}

// emptied returns hosts that would lose everything.
func (p Protection) emptied(removal Removal) []string {
	if removal.Everything || removal.Left == 0 {
		return nil
	}
	found := maps.Clone(removal.Emptied)
	for host, loss := range removal.ByHost {
		if loss.Left == 0 && p.exceeds(loss) {
			found[host] = loss.Had
		}
	}
	maps.DeleteFunc(found, func(host string, _ int) bool { return slices.Contains(p.EmptiedHosts, host) })
	return slices.Sorted(maps.Keys(found))
}

// diminished returns hosts that would lose more than their share.
func (p Protection) diminished(removal Removal) []string {
	return lossesOf(removal.ByHost, func(host string, loss Loss) bool {
		return loss.Left > 0 && p.exceeds(loss) && !slices.Contains(p.EmptiedHosts, host)
	})
}

func (p Protection) withdrawn(removal Removal) []string {
	return lossesOf(removal.ByWorkload, func(_ string, loss Loss) bool { return p.exceeds(loss) })
}

func lossesOf(losses map[string]Loss, holds func(string, Loss) bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(losses)), func(name string) bool { return !holds(name, losses[name]) })
}

// allowing returns the settings that allow the removal, without allow_empty.
func (p Protection) allowing(removal Removal) []string {
	removed, total := len(removal.Keys), removal.Total
	percent, isOver := 0, p.exceeded(removed, total) != ""
	if isOver {
		percent = (removed*100 + total - 1) / total
	}
	raise := func(losses map[string]Loss, names []string) {
		for _, name := range names {
			if isOver = true; losses[name].Left == 0 {
				percent = 100
			}
			percent = max(percent, (losses[name].Lost*100+losses[name].Had-1)/losses[name].Had)
		}
	}
	raise(removal.ByHost, p.diminished(removal))
	raise(removal.ByWorkload, p.withdrawn(removal))
	var settings []string
	if isOver && (p.MaxRemoved != nil || p.MaxRemovedPercent == nil) {
		settings = append(settings, fmt.Sprintf("max_removed = %d", removed))
	}
	if isOver && p.MaxRemovedPercent != nil {
		settings = append(settings, fmt.Sprintf("max_removed_percent = %d", max(percent, int(*p.MaxRemovedPercent))))
	}
	if names := p.emptied(removal); len(names) > 0 {
		settings = append(settings,
			fmt.Sprintf("emptied_hosts = [%s]", strings.Join(wording.Quoted(append(slices.Clone(p.EmptiedHosts), names...)), ", ")))
	}
	return settings
}

func remedy(settings ...string) string {
	return fmt.Sprintf("If that is meant, set protection = { %s }.", strings.Join(settings, ", "))
}

// exceeded describes the exceeded limit of all assignments, or returns "".
func (p Protection) exceeded(removed, total int) string {
	share := func(percent int64) bool { return int64(removed)*100 > int64(total)*percent }
	switch {
	case removed == 0:
		return ""
	case p.MaxRemoved != nil && int64(removed) > *p.MaxRemoved:
		return fmt.Sprintf("more than max_removed = %d", *p.MaxRemoved)
	case p.MaxRemovedPercent != nil && (removed > 1 || *p.MaxRemovedPercent == 0) && share(*p.MaxRemovedPercent):
		return p.limit()
	case p.MaxRemoved == nil && p.MaxRemovedPercent == nil && removed > alwaysRemovable && share(defaultMaxRemovedPercent):
		return p.limit()
	}
	return ""
}

func list(keys []folder.Key) string { return wording.List(folder.KeyTexts(keys), wording.Named) }

func listLosses(names []string, text func(name string) string) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = text(name)
	}
	return wording.List(texts, wording.Named)
}
