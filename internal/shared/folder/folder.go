// Package folder has the folders of assignments in a GitOps repository.
package folder

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Trees maps hosts and deployment targets to tree ids; "" is an unknown tree. A host without folders has an empty map.
type Trees map[string]map[string]string

// Count returns the number of folders.
func (t Trees) Count() int {
	count := 0
	for _, targets := range t {
		count += len(targets)
	}
	return count
}

// CountKnown returns the number of folders with a known tree.
func (t Trees) CountKnown() int {
	count := 0
	for _, tree := range All(t) {
		if tree != "" {
			count++
		}
	}
	return count
}

// Has reports whether a folder is in t.
func (t Trees) Has(host, target string) bool {
	_, ok := t[host][target]
	return ok
}

// Equal reports whether both have the same trees.
func (t Trees) Equal(other Trees) bool {
	return maps.EqualFunc(t, other, maps.Equal[map[string]string])
}

// Without returns the folders that other lacks, without empty hosts.
func (t Trees) Without(other Trees) Trees {
	left := Trees{}
	for key, tree := range All(t) {
		if !other.Has(key.Host, key.DeploymentTarget) {
			Put(left, key, tree)
		}
	}
	return left
}

// All iterates over the folders in any order.
func All[T any, M ~map[string]map[string]T](folders M) iter.Seq2[Key, T] {
	return func(yield func(Key, T) bool) {
		for host, targets := range folders {
			for target, value := range targets {
				if !yield(Key{host, target}, value) {
					return
				}
			}
		}
	}
}

// Put sets the value of a key.
func Put[T any, M ~map[string]map[string]T](folders M, key Key, value T) {
	if folders[key.Host] == nil {
		folders[key.Host] = map[string]T{}
	}
	folders[key.Host][key.DeploymentTarget] = value
}

// Clone returns a deep copy.
func (t Trees) Clone() Trees {
	clone := make(Trees, len(t))
	for host, targets := range t {
		clone[host] = maps.Clone(targets)
	}
	return clone
}

// Key identifies a folder: one deployment target on one host.
type Key struct{ Host, DeploymentTarget string }

// IsCluster reports whether a host is a single cluster.
func IsCluster(host string) bool { return strings.HasPrefix(host, "clusters/") }

func (k Key) String() string { return k.Host + "/" + k.DeploymentTarget }

// MarshalText makes keys of JSON objects.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText parses a key. Hosts may have slashes, deployment targets have none.
func (k *Key) UnmarshalText(text []byte) error {
	at := bytes.LastIndexByte(text, '/')
	if at < 1 {
		return fmt.Errorf("%q is not <host>/<deployment target>", text)
	}
	k.Host, k.DeploymentTarget = string(text[:at]), string(text[at+1:])
	return nil
}

// Compare orders keys by host, then by deployment target.
func (k Key) Compare(other Key) int {
	return cmp.Or(strings.Compare(k.Host, other.Host), strings.Compare(k.DeploymentTarget, other.DeploymentTarget))
}

// Keys returns the keys in order.
func (t Trees) Keys() []Key {
	keys := make([]Key, 0, t.Count())
	for _, host := range slices.Sorted(maps.Keys(t)) {
		for _, target := range slices.Sorted(maps.Keys(t[host])) {
			keys = append(keys, Key{host, target})
		}
	}
	return keys
}

// KeyTexts returns the keys as text.
func KeyTexts(keys []Key) []string {
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = key.String()
	}
	return texts
}

// File is one file of a folder. Its name has slashes in subfolders.
type File struct {
	Name    string
	Content []byte
}

// Final objects are in ObjectsFolder: in ObjectsFile, and in numbered files if it would be too large.
const (
	ObjectsFolder = "objects"
	ObjectsFile   = "objects.yaml"
)

// IsInObjectsFolder reports whether a file is in the folder of final objects.
func IsInObjectsFolder(name string) bool { return strings.HasPrefix(name, ObjectsFolder+"/") }

var objectsFile = regexp.MustCompile(`^objects(-[1-9][0-9]*)?\.yaml$`)

// ObjectsFileAt returns the name of the i-th file of final objects.
func ObjectsFileAt(i int) string {
	if i == 0 {
		return ObjectsFile
	}
	return fmt.Sprintf("objects-%d.yaml", i+1)
}

// IsObjectsFile reports whether a file has final objects.
func IsObjectsFile(name string) bool {
	return IsInObjectsFolder(name) && objectsFile.MatchString(path.Base(name))
}

// Location is the place of an owner's folders. An empty Path is the root.
type Location struct{ URL, Branch, Path string }

// Change is a folder that is added, changed, moved or removed.
type Change struct {
	Key
	Action Action
	// From is the former name of a renamed host. A folder that moves and changes is Changed.
	From          string
	Before, After string
	// Was is the earlier tree; "" for none.
	Was string
}

// Action is the change of a folder.
type Action string

// The actions.
const (
	Added   Action = "added"
	Changed Action = "changed"
	Moved   Action = "moved"
	Removed Action = "removed"
)

// CountChanges counts added, changed, moved and removed folders in words. A folder that moves and changes counts twice.
func CountChanges(changes []Change) []string {
	counts := map[Action]int{}
	for _, change := range changes {
		if counts[change.Action]++; change.From != "" && change.Action != Moved {
			counts[Moved]++
		}
	}
	return wording.Counts([]int{counts[Added], counts[Changed], counts[Moved], counts[Removed]}, "added", "changed", "moved", "removed")
}

// Origin returns the key before the change.
func (c Change) Origin() Key {
	if c.From == "" {
		return c.Key
	}
	return Key{c.From, c.DeploymentTarget}
}

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
