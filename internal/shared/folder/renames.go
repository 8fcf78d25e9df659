package folder

import (
	"maps"
	"slices"
)

// Renames maps former names of hosts to present ones.
type Renames map[string]string

// RenameTrees returns the folders under the present names of their hosts.
func (r Renames) RenameTrees(of Trees) Trees {
	if len(r) == 0 {
		return of
	}
	renamed := make(Trees, len(of))
	for host, targets := range of {
		now := r.Host(host)
		if renamed[now] == nil {
			renamed[now] = map[string]string{}
		}
		maps.Copy(renamed[now], targets)
	}
	return renamed
}

// WithFormerNames adds each folder under the former names of its host.
func (r Renames) WithFormerNames(of Trees) Trees {
	if len(r) == 0 {
		return of
	}
	both := maps.Clone(of)
	for former, now := range r {
		if targets, has := of[now]; has {
			both[former] = targets
		}
	}
	return both
}

// FindMerges returns the former names of hosts with folders under both names.
func (r Renames) FindMerges(of Trees) map[string]string {
	merges := map[string]string{}
	for former, now := range r {
		if len(of[former]) > 0 && len(of[now]) > 0 {
			merges[former] = now
		}
	}
	return merges
}

// RenameHosts returns a map by host under the present names.
func RenameHosts[T any](r Renames, of map[string]T) map[string]T { return renameBy(r, of, r.Host) }

// RenameKeys returns a map under the present names of hosts.
func RenameKeys[T any](r Renames, of map[Key]T) map[Key]T {
	return renameBy(r, of, r.Key)
}

func renameBy[K comparable, T any](r Renames, of map[K]T, present func(K) K) map[K]T {
	if of == nil || len(r) == 0 {
		return of
	}
	renamed := make(map[K]T, len(of))
	for key, value := range of {
		renamed[present(key)] = value
	}
	return renamed
}

// Key returns the key under the present name of its host.
func (r Renames) Key(of Key) Key {
	return Key{Host: r.Host(of.Host), DeploymentTarget: of.DeploymentTarget}
}

// FormerNames returns the former names of a host, in order.
func (r Renames) FormerNames(host string) []string {
	var names []string
	for former, now := range r {
		if now == host {
			names = append(names, former)
		}
	}
	slices.Sort(names)
	return names
}

// Former has names from before renames, to read old commits.
type Former struct {
	Hosts  Renames  `json:"hosts,omitempty"`
	Owners []string `json:"owners,omitempty"` // in order
}

// Next returns the former names after an edit that renames hosts, and the owner from before (or "") to owner. It drops a former
// name that a host has again.
func (f Former) Next(renames Renames, isHost func(name string) bool, before, owner string) Former {
	hosts := Renames{}
	add := func(former, now string) {
		if now = renames.Host(now); !isHost(former) && isHost(now) {
			hosts[former] = now
		}
	}
	for former, now := range f.Hosts {
		add(former, now)
	}
	for former, now := range renames {
		add(former, now)
	}
	owners := append(slices.Clone(f.Owners), before)
	slices.Sort(owners)
	owners = slices.DeleteFunc(slices.Compact(owners), func(name string) bool { return name == "" || name == owner })
	return Former{hosts, owners}
}

// Host returns the present name of a host.
func (r Renames) Host(name string) string {
	if now, renamed := r[name]; renamed {
		return now
	}
	return name
}
