package gitops

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// directory is one tree of the tip that may be edited. Its entries stay as they
// were read; what changed lies over them until it is written.
type directory struct {
	id      plumbing.Hash // what it is at the tip; zero when it is new
	loaded  bool
	sealed  bool              // a folder that this commit writes; nothing else may go into it
	entries []entry           // at the tip, in git's order
	changed map[string]*entry // by name; nil takes the entry away
	below   map[string]*directory
	folded  map[string]string // names by their folded form, made when first needed
}

// find returns the entry of this name as it is after the changes.
func (d *directory) find(name string) (entry, bool) {
	if e, ok := d.changed[name]; ok {
		if e == nil {
			return entry{}, false
		}
		return *e, true
	}
	// A name is sorted as a folder's or as a file's.
	for _, tree := range []bool{true, false} {
		if e := search(d.entries, name, tree); e != nil {
			return *e, true
		}
	}
	return entry{}, false
}

// each calls yield for every entry after the changes, those at the tip first.
func (d *directory) each(yield func(entry)) {
	for _, e := range d.entries {
		if _, ok := d.changed[e.name]; !ok {
			yield(e)
		}
	}
	for _, e := range d.changed {
		if e != nil {
			yield(*e)
		}
	}
}

func (d *directory) put(e entry) {
	if d.changed == nil {
		d.changed = map[string]*entry{}
	}
	d.changed[e.name] = &e
	if d.folded != nil {
		d.folded[folded(e.name)] = e.name
	}
}

func (d *directory) drop(name string) {
	if _, ok := d.find(name); !ok {
		return
	}
	if d.changed == nil {
		d.changed = map[string]*entry{}
	}
	d.changed[name] = nil
	if d.folded != nil {
		delete(d.folded, folded(name))
	}
}

// checkNew tells whether an entry of this name would be another's on a file
// system where case does not count.
func (d *directory) checkNew(at, name string) error {
	if _, ok := d.find(name); ok {
		return nil
	}
	if d.folded == nil {
		d.folded = map[string]string{}
		d.each(func(e entry) { d.folded[folded(e.name)] = e.name })
	}
	if other, ok := d.folded[folded(name)]; ok {
		return fmt.Errorf("%q cannot be written: %q is there, the same path where case does not count",
			path.Join(at, name), path.Join(at, other))
	}
	return nil
}

// workspace is a tip with the directories that somebody opened.
type workspace struct {
	*tip
	top *directory
}

func newWorkspace(t *tip) *workspace {
	top := &directory{id: t.root}
	if t.root.IsZero() {
		top.loaded = true
	}
	return &workspace{tip: t, top: top}
}

// open loads the directories at these paths and on the way to them; those that
// do not exist are passed over. It takes a request for each level of trees that
// is not here yet, however many paths there are.
func (w *workspace) open(ctx context.Context, paths []string) error {
	for {
		var missing []plumbing.Hash
		for _, p := range paths {
			ids, err := w.advance(p)
			if err != nil {
				return err
			}
			missing = append(missing, ids...)
		}
		if len(missing) == 0 {
			return nil
		}
		if err := w.need(ctx, missing); err != nil {
			return err
		}
	}
}

// advance loads what is here on the way to a path, and returns the id of the
// first tree that is not.
func (w *workspace) advance(p string) ([]plumbing.Hash, error) {
	d, rest := w.top, p
	for {
		if !d.loaded {
			if _, ok := w.objects[d.id]; !ok && d.id != emptyTree {
				return []plumbing.Hash{d.id}, nil
			}
			entries, err := w.tree(d.id)
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

// child returns the subdirectory of this name, not necessarily loaded; nil when
// there is none.
func (d *directory) child(name string) *directory {
	if below, ok := d.below[name]; ok {
		return below
	}
	e, ok := d.find(name)
	if !ok || !e.isTree() {
		return nil
	}
	return d.adopt(name, &directory{id: e.id})
}

func (d *directory) adopt(name string, below *directory) *directory {
	if d.below == nil {
		d.below = map[string]*directory{}
	}
	d.below[name] = below
	return below
}

// at returns an opened directory; nil when it does not exist.
func (w *workspace) at(p string) *directory {
	d := w.top
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

// lookup returns the entry at a path whose directory was opened.
func (w *workspace) lookup(p string) (entry, bool) {
	d := w.at(parent(p))
	if d == nil {
		return entry{}, false
	}
	return d.look(path.Base(p))
}

// look is find, for one who must not take a folder that another edit has
// written into for what it was: it has no id until the commit is made.
func (d *directory) look(name string) (entry, bool) {
	if below, ok := d.below[name]; ok && below.edited() {
		return entry{name: name, mode: modeTree}, true
	}
	return d.find(name)
}

func (d *directory) edited() bool {
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

// blocked tells whether something that is not a folder stands at the path or on
// the way to it.
func (w *workspace) blocked(p string) error {
	d := w.top
	for i, rest := 0, p; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		i += len(name) + 1
		if _, ok := d.below[name]; !ok {
			if e, ok := d.find(name); ok && !e.isTree() {
				return &BlockedError{Path: p[:i-1], Kind: e.kind(), Want: "a folder"}
			}
		}
		if d = d.child(name); d == nil || !d.loaded {
			return nil
		}
	}
	return nil
}

// put writes an entry, making the directories on the way. Nothing may block the
// way; see blocked.
func (w *workspace) put(p, mode string, id plumbing.Hash) error {
	d, at := w.top, ""
	segments := strings.Split(p, "/")
	for _, name := range segments[:len(segments)-1] {
		below := d.child(name)
		if below == nil {
			if err := d.checkNew(at, name); err != nil {
				return err
			}
			below = d.adopt(name, &directory{loaded: true})
			// A place for it among the names; its id comes with write.
			d.put(entry{name: name, mode: modeTree})
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
	d.put(entry{name: name, mode: mode, id: id})
	if mode == modeTree {
		d.adopt(name, &directory{id: id, loaded: true, sealed: true})
	}
	return nil
}

// remove takes the entry at a path away; it is no error when there is none.
// Directories that it leaves empty go when the tree is written.
func (w *workspace) remove(p string) {
	if d := w.at(parent(p)); d != nil {
		delete(d.below, path.Base(p))
		d.drop(path.Base(p))
	}
}

// write hashes every directory that changed, from the deepest up, gives store
// the trees that are new, and returns the root's id. Directories that became
// empty are left out; only the root may be an empty tree.
func (w *workspace) write(store func(plumbing.Hash, []byte)) plumbing.Hash {
	id, empty := w.top.write(newHasher(), store)
	if empty {
		store(emptyTree, nil)
		return emptyTree
	}
	return id
}

func (d *directory) write(h *hasher, store func(plumbing.Hash, []byte)) (id plumbing.Hash, empty bool) {
	for name, below := range d.below {
		if !below.edited() {
			continue
		}
		belowID, belowEmpty := below.write(h, store)
		if belowEmpty {
			d.drop(name)
			continue
		}
		if e, ok := d.find(name); !ok || e.id != belowID {
			d.put(entry{name: name, mode: modeTree, id: belowID})
		}
	}
	if len(d.changed) == 0 {
		return d.id, d.id == emptyTree || d.id.IsZero()
	}
	merged := make([]entry, 0, len(d.entries)+len(d.changed))
	d.each(func(e entry) { merged = append(merged, e) })
	if len(merged) == 0 {
		return emptyTree, true
	}
	slices.SortFunc(merged, compareEntries)
	content := encodeTree(merged)
	id = h.object(plumbing.TreeObject, content)
	if id != d.id {
		store(id, content)
	}
	return id, false
}

// parent is path.Dir with "" for the root.
func parent(p string) string {
	i := strings.LastIndexByte(p, '/')
	if i < 0 {
		return ""
	}
	return p[:i]
}
