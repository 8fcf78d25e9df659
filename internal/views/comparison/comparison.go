// Package comparison compares two owners, or one owner at two commits, by deployment target. Records give the places, and files
// of configuration the values. Only [Read] uses a repository.
package comparison

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Side has the folders of one side.
type Side map[folder.Key]Folder

// Folder is one deployment target on one host.
type Folder struct {
	Workload, Workspace string
	Manifests           *folder.Manifests // nil if the record lacks them
	Policies            []string
	// Config identifies the values, on both sides.
	Config string
	Tree   string
}

// Values has values of configuration by key.
type Values = map[string]string

// Input has both sides of a comparison.
type Input struct {
	Left, Right Side
	Pairs       Pairs
	// Values has the values by Folder.Config.
	Values map[string]Values
	// Files also compares files, which always differ between owners, by names and namespaces.
	Files bool
}

// Pairs maps names on the left side to names on the right side.
type Pairs struct{ DeploymentTargets, Hosts map[string]string }

// unpaired returns names that their side lacks, as in `hosts: the left side has no "edge"`.
func (in *Input) unpaired() (all []string) {
	for _, of := range []struct {
		attribute string
		pairs     map[string]string
		name      func(folder.Key) string
	}{
		{"deployment_targets", in.Pairs.DeploymentTargets, func(key folder.Key) string { return key.DeploymentTarget }},
		{"hosts", in.Pairs.Hosts, func(key folder.Key) string { return key.Host }},
	} {
		left, right := namesOn(in.Left, of.name), namesOn(in.Right, of.name)
		for _, name := range slices.Sorted(maps.Keys(of.pairs)) {
			if !slices.Contains(left, name) {
				all = append(all, fmt.Sprintf("%s: the left side has no %q%s", of.attribute, name, wording.DidYouMean(name, left)))
			}
			if other := of.pairs[name]; !slices.Contains(right, other) {
				all = append(all, fmt.Sprintf("%s[%q]: the right side has no %q%s", of.attribute, name, other, wording.DidYouMean(other, right)))
			}
		}
	}
	return all
}

func namesOn(side Side, name func(folder.Key) string) []string {
	var names []string
	for key := range side {
		names = append(names, name(key))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// State names the sides that have a deployment target.
type State string

// The states.
const (
	OnlyLeft  State = "only_left"
	OnlyRight State = "only_right"
	Different State = "different"
)

// Aspect is a possible difference.
type Aspect string

// The aspects.
const (
	ByHosts    Aspect = "hosts"
	ByVersion  Aspect = "version"
	ByValues   Aspect = "values"
	ByPolicies Aspect = "policies"
	ByFiles    Aspect = "files"
)

// Aspects lists all aspects in order.
var Aspects = []Aspect{ByHosts, ByVersion, ByValues, ByPolicies, ByFiles}

// Counts counts deployment targets.
type Counts struct {
	OnlyLeft  int `json:"only_left"`
	OnlyRight int `json:"only_right"`
	Different int `json:"different"`
	Same      int `json:"same"`
	// Unread counts the different ones with unknown keys.
	Unread int `json:"unread"`
}

// Target is a deployment target that differs.
type Target struct {
	// Name is that on the left side, or else on the right.
	Name      string   `json:"name"`
	RightName string   `json:"right_name,omitempty"`
	Workload  string   `json:"workload"`
	Workspace string   `json:"workspace,omitempty"`
	State     State    `json:"state"`
	Differs   []Aspect `json:"differs,omitempty"`
	Left      Part     `json:"left"`
	Right     Part     `json:"right"`
	// Keys lists the keys with different values. KeysUnknown: not all values could be read.
	Keys        []Key `json:"keys,omitempty"`
	MoreKeys    int   `json:"more_keys,omitempty"`
	KeysUnknown bool  `json:"keys_unknown,omitempty"`
}

// Has reports whether the target differs by an aspect.
func (t *Target) Has(aspect Aspect) bool { return slices.Contains(t.Differs, aspect) }

// Part is one side of a deployment target.
type Part struct {
	// Versions lists the different manifests, most hosts first.
	Versions []Version `json:"versions,omitempty"`
	// OnlyHosts and OnlyPolicies list what the other side lacks.
	OnlyHosts    []string `json:"only_hosts,omitempty"`
	OnlyPolicies []string `json:"only_policies,omitempty"`
	MoreHosts    int      `json:"more_hosts,omitempty"`
}

// Count returns the number of hosts.
func (p *Part) Count() (hosts int) {
	for i := range p.Versions {
		hosts += p.Versions[i].Count()
	}
	return hosts
}

// Version is the manifests on some hosts.
type Version struct {
	Manifests *folder.Manifests `json:"manifests,omitempty"` // nil if the records lack them
	Hosts     []string          `json:"hosts"`
	MoreHosts int               `json:"more_hosts,omitempty"`
}

// Count returns the number of hosts.
func (v *Version) Count() int { return len(v.Hosts) + v.MoreHosts }

// Key is a key with different values, on a host of both sides or among all hosts.
type Key struct {
	Key   string `json:"key"`
	State State  `json:"state"`
	// Left and Right list the different values of each side.
	Left  []string `json:"left,omitempty"`
	Right []string `json:"right,omitempty"`
	More  int      `json:"more,omitempty"`
}

// Compare compares both sides, ordered by the names on the left.
func Compare(in Input) ([]Target, Counts) {
	var targets []Target
	var counts Counts
	for _, p := range in.targets() {
		target := p.compare(&in)
		switch target.State {
		case OnlyLeft:
			counts.OnlyLeft++
		case OnlyRight:
			counts.OnlyRight++
		default:
			if len(target.Differs) == 0 {
				counts.Same++
				continue
			}
			counts.Different++
			if target.KeysUnknown {
				counts.Unread++
			}
		}
		targets = append(targets, target)
	}
	return targets, counts
}

// pair is a deployment target with the folders of both sides.
type pair struct {
	name        string
	left, right []entry // by host
}

// entry is a folder with the left name of its host.
type entry struct {
	host, id string
	key      folder.Key
	Folder
}

func (in *Input) targets() []*pair {
	byName := map[string]*pair{}
	at := func(id string) *pair {
		if byName[id] == nil {
			byName[id] = &pair{name: id}
		}
		return byName[id]
	}
	for key, is := range in.Left {
		p := at(key.DeploymentTarget)
		p.left = append(p.left, entry{key.Host, key.Host, key, is})
	}
	target, host := renamed(in.Pairs.DeploymentTargets), renamed(in.Pairs.Hosts)
	for key, is := range in.Right {
		p := at(target(key.DeploymentTarget))
		p.right = append(p.right, entry{key.Host, host(key.Host), key, is})
	}
	all := slices.SortedFunc(maps.Values(byName), func(a, b *pair) int { return strings.Compare(a.name, b.name) })
	for _, p := range all {
		for _, entries := range [][]entry{p.left, p.right} {
			slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.id, b.id) })
		}
	}
	return all
}

// renamed returns a function from right names to left names. A colliding name becomes one that the left side cannot have.
func renamed(names map[string]string) func(string) string {
	back := make(map[string]string, len(names))
	for left, right := range names {
		back[right] = left
	}
	return func(name string) string {
		if left, paired := back[name]; paired {
			return left
		}
		if _, taken := names[name]; taken {
			return name + "\x00"
		}
		return name
	}
}

// both calls do for the hosts that both sides have.
func (p *pair) both(do func(left, right *entry)) {
	for l, r := 0, 0; l < len(p.left) && r < len(p.right); {
		switch strings.Compare(p.left[l].id, p.right[r].id) {
		case -1:
			l++
		case 1:
			r++
		default:
			do(&p.left[l], &p.right[r])
			l, r = l+1, r+1
		}
	}
}

func (p *pair) compare(in *Input) Target {
	first := slices.Concat(p.left, p.right)[0]
	target := Target{
		Name: first.key.DeploymentTarget, Workload: first.Workload, Workspace: first.Workspace,
		Left: part(p.left), Right: part(p.right), State: Different,
	}
	switch {
	case len(p.right) == 0:
		target.State = OnlyLeft
		return target
	case len(p.left) == 0:
		target.State = OnlyRight
		return target
	}
	if name := p.right[0].key.DeploymentTarget; name != target.Name {
		target.RightName = name
	}
	target.Left.OnlyHosts, target.Right.OnlyHosts = without(p.left, p.right), without(p.right, p.left)
	left, right := policiesOf(p.left), policiesOf(p.right)
	target.Left.OnlyPolicies, target.Right.OnlyPolicies = lacking(left, right), lacking(right, left)
	byVersion, byPolicies, byFiles := !sameManifests(target.Left.Versions, target.Right.Versions), !slices.Equal(left, right), false
	p.both(func(left, right *entry) {
		byVersion = byVersion || versionOf(left.Manifests) != versionOf(right.Manifests)
		byPolicies = byPolicies || !slices.Equal(sorted(left.Policies), sorted(right.Policies))
		byFiles = byFiles || in.Files && left.Tree != right.Tree
	})
	byValues := p.compareValues(in.Values, &target)
	byHosts := len(target.Left.OnlyHosts)+len(target.Right.OnlyHosts) > 0
	for i, is := range []bool{byHosts, byVersion, byValues, byPolicies, byFiles && !byVersion && !byValues && !byPolicies} {
		if is {
			target.Differs = append(target.Differs, Aspects[i])
		}
	}
	return target
}

func part(entries []entry) Part {
	var groups wording.Groups[folder.Manifests, *entry]
	for i := range entries {
		groups.Add(versionOf(entries[i].Manifests), &entries[i])
	}
	var versions []Version
	for _, alike := range groups.All() {
		version := Version{Manifests: alike[0].Manifests}
		for _, e := range alike {
			version.Hosts = append(version.Hosts, e.host)
		}
		slices.Sort(version.Hosts)
		versions = append(versions, version)
	}
	slices.SortStableFunc(versions, func(a, b Version) int { return len(b.Hosts) - len(a.Hosts) })
	return Part{Versions: versions}
}

// versionOf makes manifests comparable; zero for none.
func versionOf(manifests *folder.Manifests) folder.Manifests {
	if manifests == nil {
		return folder.Manifests{}
	}
	return *manifests
}

func sameManifests(left, right []Version) bool {
	if len(left) != len(right) {
		return false
	}
	has := map[folder.Manifests]bool{}
	for i := range left {
		has[versionOf(left[i].Manifests)] = true
	}
	return !slices.ContainsFunc(right, func(v Version) bool { return !has[versionOf(v.Manifests)] })
}

func without(one, other []entry) []string {
	has := make(map[string]bool, len(other))
	for i := range other {
		has[other[i].id] = true
	}
	var hosts []string
	for i := range one {
		if !has[one[i].id] {
			hosts = append(hosts, one[i].host)
		}
	}
	slices.Sort(hosts)
	return hosts
}

func policiesOf(entries []entry) []string {
	has := map[string]bool{}
	for i := range entries {
		for _, policy := range entries[i].Policies {
			has[policy] = true
		}
	}
	return slices.Sorted(maps.Keys(has))
}

func sorted(texts []string) []string {
	if slices.IsSorted(texts) {
		return texts
	}
	return slices.Sorted(slices.Values(texts))
}

// lacking compares sorted lists.
func lacking(one, other []string) []string {
	var left []string
	for _, text := range one {
		if _, has := slices.BinarySearch(other, text); !has {
			left = append(left, text)
		}
	}
	return left
}
