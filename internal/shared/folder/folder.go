// Package folder names the folders that assignments have in a GitOps repository, where they are, and what they hold.
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
)

// Trees maps each host to its deployment targets, and those to the ids of the trees of their folders.
// A host without deployment targets is there, with an empty map. An empty id is a tree that is not
// known yet.
type Trees map[string]map[string]string

// Count returns how many folders there are.
func (t Trees) Count() int {
	count := 0
	for _, targets := range t {
		count += len(targets)
	}
	return count
}

// CountKnown returns how many folders have a tree that is known.
func (t Trees) CountKnown() int {
	count := 0
	for _, tree := range All(t) {
		if tree != "" {
			count++
		}
	}
	return count
}

// Has says whether the folder is among them.
func (t Trees) Has(host, target string) bool {
	_, ok := t[host][target]
	return ok
}

// Equal says whether two have the same folders with the same trees.
func (t Trees) Equal(other Trees) bool {
	return maps.EqualFunc(t, other, maps.Equal[map[string]string])
}

// Without returns the folders that other has not. Hosts without any are left out.
func (t Trees) Without(other Trees) Trees {
	left := Trees{}
	for key, tree := range All(t) {
		if !other.Has(key.Host, key.DeploymentTarget) {
			Put(left, key, tree)
		}
	}
	return left
}

// All are the values of folders by host and deployment target, in any order.
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

// Put sets the value of a folder.
func Put[T any, M ~map[string]map[string]T](folders M, key Key, value T) {
	if folders[key.Host] == nil {
		folders[key.Host] = map[string]T{}
	}
	folders[key.Host][key.DeploymentTarget] = value
}

// Clone returns a copy.
func (t Trees) Clone() Trees {
	clone := make(Trees, len(t))
	for host, targets := range t {
		clone[host] = maps.Clone(targets)
	}
	return clone
}

// Key names a folder: one deployment target on one host.
type Key struct{ Host, DeploymentTarget string }

// IsCluster reports whether a host is a single cluster: its folder is below that of all single clusters.
func IsCluster(host string) bool { return strings.HasPrefix(host, "clusters/") }

func (k Key) String() string { return k.Host + "/" + k.DeploymentTarget }

// MarshalText writes the key as String does, so that it can be a key in JSON.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText has written. A host may have slashes in its name, a deployment target has none.
func (k *Key) UnmarshalText(text []byte) error {
	at := bytes.LastIndexByte(text, '/')
	if at < 1 {
		return fmt.Errorf("%q is not <host>/<deployment target>", text)
	}
	k.Host, k.DeploymentTarget = string(text[:at]), string(text[at+1:])
	return nil
}

// Compare orders folders by host, and then by deployment target.
func (k Key) Compare(other Key) int {
	return cmp.Or(strings.Compare(k.Host, other.Host), strings.Compare(k.DeploymentTarget, other.DeploymentTarget))
}

// Keys returns the folders in order.
func (t Trees) Keys() []Key {
	keys := make([]Key, 0, t.Count())
	for _, host := range slices.Sorted(maps.Keys(t)) {
		for _, target := range slices.Sorted(maps.Keys(t[host])) {
			keys = append(keys, Key{host, target})
		}
	}
	return keys
}

// KeyTexts are the folders as String names them.
func KeyTexts(keys []Key) []string {
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = key.String()
	}
	return texts
}

// File is one file of a folder. Its name has slashes where it is in a folder below.
type File struct {
	Name    string
	Content []byte
}

// The final objects of an assignment are in a folder of their own, in files of this name, or with a number behind it.
const (
	ObjectsFolder = "objects"
	ObjectsFile   = "objects.yaml"
)

// IsInObjectsFolder says whether a file is in the folder of final objects.
func IsInObjectsFolder(name string) bool { return strings.HasPrefix(name, ObjectsFolder+"/") }

var objectsFile = regexp.MustCompile(`^objects(-[1-9][0-9]*)?\.yaml$`)

// ObjectsFileAt returns the name of a file of final objects, of which an assignment has several if they are too large for one.
func ObjectsFileAt(i int) string {
	if i == 0 {
		return ObjectsFile
	}
	return fmt.Sprintf("objects-%d.yaml", i+1)
}

// IsObjectsFile reports whether a file in an assignment's folder has final objects.
func IsObjectsFile(name string) bool {
	return IsInObjectsFolder(name) && objectsFile.MatchString(path.Base(name))
}

// Location is where an owner's folders are. Path is relative to the repository's root; "" is the root.
type Location struct{ URL, Branch, Path string }
