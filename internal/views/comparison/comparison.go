// Package comparison puts two sides next to each other, deployment target by deployment target: two owners, or one owner
// at two commits. What is where comes from their records; values come from files of configuration, of which only those are
// needed whose values may differ. It decides without Git and Terraform; [Read] gathers what it decides from.
package comparison

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Side is what one side has, by folder.
type Side map[folder.Key]Folder

// Folder is one deployment target on one host.
type Folder struct {
	Workload, Workspace string
	Manifests           *folder.Manifests // nil where the record does not say
	Policies            []string
	// Config names the values: folders with the same have the same values, on whichever side.
	Config string
	// Tree is the id of the folder's tree.
	Tree string
}

// Values are the values of configuration by key.
type Values = map[string]string

// Input is what is compared.
type Input struct {
	Left, Right Side
	Pairs       Pairs
	// Values are those that were read, by Folder.Config.
	Values map[string]Values
	// Files compares the files of folders, too: those of two owners always differ, by their names and namespaces.
	Files bool
}

// Pairs says what is the same under two names: the names on the right side by those on the left side.
type Pairs struct{ DeploymentTargets, Hosts map[string]string }

// unpaired returns the names in the pairs that their side does not have, as in `hosts: the left side has no "edge"`.
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

// namesOn returns names on a side, each once, in order.
func namesOn(side Side, name func(folder.Key) string) []string {
	var names []string
	for key := range side {
		names = append(names, name(key))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// State says on which sides something is.
type State string

// The states.
const (
	OnlyLeft  State = "only_left"
	OnlyRight State = "only_right"
	Different State = "different"
)

// Aspect is what can differ of a deployment target that both sides have.
type Aspect string

// The aspects.
const (
	ByHosts    Aspect = "hosts"
	ByVersion  Aspect = "version"
	ByValues   Aspect = "values"
	ByPolicies Aspect = "policies"
	ByFiles    Aspect = "files"
)

// Aspects are all of them, in this order.
var Aspects = []Aspect{ByHosts, ByVersion, ByValues, ByPolicies, ByFiles}

// Counts are numbers of deployment targets.
type Counts struct {
	OnlyLeft  int `json:"only_left"`
	OnlyRight int `json:"only_right"`
	Different int `json:"different"`
	Same      int `json:"same"`
	// Unread are those, of the different ones, of whose values it is not known which differ.
	Unread int `json:"unread"`
}

// Target is a deployment target that is not the same on both sides.
type Target struct {
	// Name is its name on the left side; on the right one, where only that has it.
	Name string `json:"name"`
	// RightName is its name on the right side, where that is another one.
	RightName string   `json:"right_name,omitempty"`
	Workload  string   `json:"workload"`
	Workspace string   `json:"workspace,omitempty"`
	State     State    `json:"state"`
	Differs   []Aspect `json:"differs,omitempty"`
	Left      Part     `json:"left"`
	Right     Part     `json:"right"`
	// Keys are those whose values differ, in order. KeysUnknown says that not all values could be read; then there are none.
	Keys        []Key `json:"keys,omitempty"`
	MoreKeys    int   `json:"more_keys,omitempty"` // that were cut
	KeysUnknown bool  `json:"keys_unknown,omitempty"`
}

// Has says whether the target differs by an aspect.
func (t *Target) Has(aspect Aspect) bool { return slices.Contains(t.Differs, aspect) }

// Part is what one side has of a deployment target.
type Part struct {
	// Versions are the different manifests, each with its hosts; the one with the most hosts comes first.
	Versions []Version `json:"versions,omitempty"`
	// OnlyHosts and OnlyPolicies are those that the other side does not have for it.
	OnlyHosts    []string `json:"only_hosts,omitempty"`
	OnlyPolicies []string `json:"only_policies,omitempty"`
	MoreHosts    int      `json:"more_hosts,omitempty"` // that were cut from OnlyHosts
}

// Version is what manifests are on some hosts.
type Version struct {
	Manifests *folder.Manifests `json:"manifests,omitempty"` // nil where the records do not say
	Hosts     []string          `json:"hosts"`
	MoreHosts int               `json:"more_hosts,omitempty"` // that were cut
}

// Count is how many hosts have it.
func (v *Version) Count() int { return len(v.Hosts) + v.MoreHosts }

// Key is a key of the configuration whose values differ: on a host that both sides have, or among the values of all hosts.
type Key struct {
	Key   string `json:"key"`
	State State  `json:"state"`
	// Left and Right are the different values of each side, in order. Hosts without the key add none.
	Left  []string `json:"left,omitempty"`
	Right []string `json:"right,omitempty"`
	More  int      `json:"more,omitempty"` // values that were cut
}

// Compare compares. The targets are in the order of their names on the left side.
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

// entry is a folder with its host as both sides know it.
type entry struct {
	host, id string
	key      folder.Key
	Folder
}

// targets are all deployment targets, in order.
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

// renamed gives what is on the right side the name that it has on the left side. What has such a name without being it gets a
// name that the left side cannot have.
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

// both calls do with the folders of each host that both sides have.
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

// part groups the folders of one side by their manifests.
func part(entries []entry) Part {
	var versions []Version
	number := map[folder.Manifests]int{}
	for i := range entries {
		version := versionOf(entries[i].Manifests)
		at, ok := number[version]
		if !ok {
			at = len(versions)
			number[version] = at
			versions = append(versions, Version{Manifests: entries[i].Manifests})
		}
		versions[at].Hosts = append(versions[at].Hosts, entries[i].host)
	}
	for i := range versions {
		slices.Sort(versions[i].Hosts)
	}
	slices.SortStableFunc(versions, func(a, b Version) int { return len(b.Hosts) - len(a.Hosts) })
	return Part{Versions: versions}
}

// versionOf makes manifests comparable; the zero value is none.
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

// without are the hosts of the one that the other does not have.
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

// policiesOf are the policies of all folders, in order.
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

// lacking are the texts of one sorted list that the other one does not have.
func lacking(one, other []string) []string {
	var left []string
	for _, text := range one {
		if _, has := slices.BinarySearch(other, text); !has {
			left = append(left, text)
		}
	}
	return left
}
