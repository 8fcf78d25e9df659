package git

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Directory is an editable tree: its changes lie over the entries of the tip.
type Directory struct {
	id      Hash // at the tip; zero for a new one
	loaded  bool
	sealed  bool              // written by this commit as a whole
	entries []Entry           // at the tip, in git's order
	changed map[string]*Entry // by name; nil removes the entry
	below   map[string]*Directory
	folded  map[string]string // names by folded form, made when needed
}

// Find returns an entry after the changes.
func (d *Directory) Find(name string) (Entry, bool) {
	if e, ok := d.changed[name]; ok {
		if e == nil {
			return Entry{}, false
		}
		return *e, true
	}
	// A folder's name sorts differently.
	for _, tree := range []bool{true, false} {
		if e := Search(d.entries, name, tree); e != nil {
			return *e, true
		}
	}
	return Entry{}, false
}

// Each visits every entry, unchanged ones first.
func (d *Directory) Each(yield func(Entry)) {
	for _, e := range d.entries {
		if _, ok := d.changed[e.Name]; !ok {
			yield(e)
		}
	}
	for _, e := range d.changed {
		if e != nil {
			yield(*e)
		}
	}
}

func (d *Directory) put(e Entry) {
	if d.changed == nil {
		d.changed = map[string]*Entry{}
	}
	d.changed[e.Name] = &e
	if d.folded != nil {
		d.folded[folded(e.Name)] = e.Name
	}
}

func (d *Directory) drop(name string) {
	if _, ok := d.Find(name); !ok {
		return
	}
	if d.changed == nil {
		d.changed = map[string]*Entry{}
	}
	d.changed[name] = nil
	if d.folded != nil {
		delete(d.folded, folded(name))
	}
}

// checkNew returns an error for a collision on a file system that ignores case.
func (d *Directory) checkNew(at, name string) error {
	if other := d.sameName(name); other != "" {
		return fmt.Errorf("%q cannot be written: %q exists, which is the same path on a file system that ignores case",
			path.Join(at, name), path.Join(at, other))
	}
	return nil
}

// sameName returns another entry with that name on a file system that ignores case.
func (d *Directory) sameName(name string) string {
	if _, ok := d.Find(name); ok {
		return ""
	}
	if d.folded == nil {
		d.folded = map[string]string{}
		d.Each(func(e Entry) { d.folded[folded(e.Name)] = e.Name })
	}
	return d.folded[folded(name)]
}

// Tree has opened, editable directories. Trees of one tip are independent, and not safe for concurrent use.
type Tree struct {
	*Tip
	top *Directory
}

// Tree returns the tip's tree without opened directories.
func (t *Tip) Tree() *Tree {
	return &Tree{Tip: t, top: &Directory{id: t.Root, loaded: t.Root.IsZero()}}
}

// Open loads the directories at these paths and their parents, with one request for each missing level.
func (t *Tree) Open(ctx context.Context, paths []string) error {
	for {
		var missing []Hash
		for _, p := range paths {
			ids, err := t.advance(p)
			if err != nil {
				return err
			}
			missing = append(missing, ids...)
		}
		if len(missing) == 0 {
			return nil
		}
		if err := t.Need(ctx, missing); err != nil {
			return err
		}
	}
}

// OpenFetched is Open for one directory. It reports whether that needs no request.
func (t *Tree) OpenFetched(p string) bool {
	missing, err := t.advance(p)
	return err == nil && len(missing) == 0 && t.Directory(p) != nil
}

// advance loads fetched directories on the way, and returns the first missing tree.
func (t *Tree) advance(p string) ([]Hash, error) {
	d, rest := t.top, p
	for {
		if !d.loaded {
			if _, ok := t.objectStore[d.id]; !ok && d.id != EmptyTree {
				return []Hash{d.id}, nil
			}
			entries, err := t.Entries(d.id)
			if err != nil {
				return nil, err
			}
			d.entries, d.loaded = entries, true
		}
		if rest == "" {
			return nil, nil
		}
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if d = d.child(name); d == nil {
			return nil, nil
		}
	}
}

func (d *Directory) child(name string) *Directory {
	if below, ok := d.below[name]; ok {
		return below
	}
	e, ok := d.Find(name)
	if !ok || !e.IsTree() {
		return nil
	}
	return d.adopt(name, &Directory{id: e.ID})
}

func (d *Directory) adopt(name string, below *Directory) *Directory {
	if d.below == nil {
		d.below = map[string]*Directory{}
	}
	d.below[name] = below
	return below
}

// Directory returns an opened directory, or nil.
func (t *Tree) Directory(p string) *Directory {
	d := t.top
	for rest := p; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if d = d.child(name); d == nil {
			return nil
		}
	}
	if !d.loaded {
		return nil
	}
	return d
}

// Lookup returns an entry of an opened directory.
func (t *Tree) Lookup(p string) (Entry, bool) {
	d := t.Directory(Parent(p))
	if d == nil {
		return Entry{}, false
	}
	return d.Look(path.Base(p))
}

// Look is Find with folders into which another edit wrote. They have no id yet.
func (d *Directory) Look(name string) (Entry, bool) {
	if below, ok := d.below[name]; ok && below.edited() {
		return Entry{Name: name, Mode: ModeTree}, true
	}
	return d.Find(name)
}

func (d *Directory) edited() bool {
	if len(d.changed) > 0 {
		return true
	}
	for _, below := range d.below {
		if below.edited() {
			return true
		}
	}
	return false
}

// Blocked returns a *BlockedError if the path, or a parent, is not a folder.
func (t *Tree) Blocked(p string) error {
	d := t.top
	for i, rest := 0, p; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		i += len(name) + 1
		if _, ok := d.below[name]; !ok {
			if e, ok := d.Find(name); ok && !e.IsTree() {
				return &BlockedError{Path: p[:i-1], Kind: e.Kind(), Want: "a folder"}
			}
		}
		if d = d.child(name); d == nil || !d.loaded {
			return nil
		}
	}
	return nil
}

// CheckNew returns an error for a path that differs only in case from one that stays.
func (t *Tree) CheckNew(p string, goes func(other string) bool) error {
	d, at := t.top, ""
	for rest := p; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if other := d.sameName(name); other != "" && !goes(path.Join(at, other)) {
			return d.checkNew(at, name)
		}
		at = path.Join(at, name)
		if d = d.child(name); d == nil || !d.loaded {
			return nil
		}
	}
	return nil
}

// Put writes an entry and its parents.
func (t *Tree) Put(p, mode string, id Hash) error {
	d, at := t.top, ""
	segments := strings.Split(p, "/")
	for _, name := range segments[:len(segments)-1] {
		below := d.child(name)
		if below == nil {
			if err := d.checkNew(at, name); err != nil {
				return err
			}
			below = d.adopt(name, &Directory{loaded: true})
			// A placeholder, without an id until write.
			d.put(Entry{Name: name, Mode: ModeTree})
		}
		if !below.loaded || below.sealed {
			return fmt.Errorf("nothing can be written into %q", path.Join(at, name))
		}
		d, at = below, path.Join(at, name)
	}
	name := segments[len(segments)-1]
	if err := d.checkNew(at, name); err != nil {
		return err
	}
	delete(d.below, name)
	d.put(Entry{Name: name, Mode: mode, ID: id})
	if mode == ModeTree {
		d.adopt(name, &Directory{id: id, loaded: true, sealed: true})
	}
	return nil
}

// Remove removes an entry. Write removes empty directories.
func (t *Tree) Remove(p string) {
	if d := t.Directory(Parent(p)); d != nil {
		delete(d.below, path.Base(p))
		d.drop(path.Base(p))
	}
}

// Write hashes changed directories, passes trees to store, and returns the root's id. Only the root may be empty.
func (t *Tree) Write(store func(Hash, []byte)) Hash {
	id, empty := t.top.write(NewHasher(), store)
	if empty {
		store(EmptyTree, nil)
		return EmptyTree
	}
	return id
}

func (d *Directory) write(h *Hasher, store func(Hash, []byte)) (id Hash, empty bool) {
	for name, below := range d.below {
		if !below.edited() {
			continue
		}
		belowID, belowEmpty := below.write(h, store)
		if belowEmpty {
			d.drop(name)
			continue
		}
		if e, ok := d.Find(name); !ok || e.ID != belowID {
			d.put(Entry{Name: name, Mode: ModeTree, ID: belowID})
		}
	}
	if len(d.changed) == 0 {
		return d.id, d.id == EmptyTree || d.id.IsZero()
	}
	merged := make([]Entry, 0, len(d.entries)+len(d.changed))
	d.Each(func(e Entry) { merged = append(merged, e) })
	if len(merged) == 0 {
		return EmptyTree, true
	}
	slices.SortFunc(merged, compareEntries)
	content := encodeTree(merged)
	id = h.object(plumbing.TreeObject, content)
	if id != d.id {
		store(id, content)
	}
	return id, false
}

// Parent is path.Dir with "" for the root.
func Parent(p string) string {
	return p[:max(strings.LastIndexByte(p, '/'), 0)]
}
