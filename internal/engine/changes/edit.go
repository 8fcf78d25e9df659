package changes

import "github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

// edit separates repairs of a folder from other changes.
type edit struct {
	causes *causeSet
	wanted map[string]map[Key]bool // changes since the last apply, by file
}

// editOf returns nil for a folder without an edit.
func (s *summary) editOf(of *FolderChange) *edit {
	if of.Edit == "" || of.Written == nil {
		return nil
	}
	e := &edit{s.internCauses([]Cause{{Kind: ByDrift, Name: of.Edit}}), map[string]map[Key]bool{}}
	eachDifference(&FolderChange{Before: of.Written, After: of.After}, func(name string, before, after *folder.File) {
		keys := map[Key]bool{}
		for _, key := range diffOf(name, before, after).keys {
			keys[key.anyHow()] = true
		}
		e.wanted[name] = keys
	})
	return e
}

// anyHow omits how a key changes, because an edit may have removed it.
func (k Key) anyHow() Key {
	if k.Path != "" {
		k.How = Changed
	}
	return k
}

func (e *edit) has(file string, key Key) bool {
	if e == nil {
		return false
	}
	wanted := e.wanted[file]
	return !wanted[key.anyHow()] && !wanted[Key{How: NewFile}] && !wanted[Key{How: RemovedFile}]
}

func (e *edit) without(diffs []*fileDiff) []*fileDiff {
	if e == nil {
		return diffs
	}
	var others []*fileDiff
	for _, diff := range diffs {
		other := *diff
		other.keys = nil
		for i := range diff.keys {
			if !e.has(diff.file, diff.keys[i].Key) {
				other.keys = append(other.keys, diff.keys[i])
			}
		}
		others = append(others, &other)
	}
	return others
}
