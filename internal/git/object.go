package git

import (
	"bytes"
	"crypto/sha1" // of Git's object ids
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// File is a regular file of a folder.
type File = folder.File

// RawObject is a Git object without its header.
type RawObject struct {
	Kind    plumbing.ObjectType
	Content []byte
}

// The modes that this package writes. Existing entries keep theirs, even old group-writable ones.
const (
	ModeFile      = "100644"
	ModeTree      = "40000"
	modeSymlink   = "120000"
	modeSubmodule = "160000"
)

// EmptyTree needs no storage in git.
var EmptyTree = plumbing.NewHash("4b825dc642cb6eb9a060e54bf8d69288fbee4904")

// Hasher computes ids with crypto/sha1: go-git's collision-detecting hash takes three times as long, and a plan hashes every
// file. The server detects collisions.
type Hasher struct {
	sha    hash.Hash
	header []byte
	sum    Hash // a field, because an interface's argument escapes
}

// NewHasher returns a Hasher, which is not safe for concurrent use.
func NewHasher() *Hasher {
	return &Hasher{sha: sha1.New(), header: make([]byte, 0, 32)}
}

// Blob returns the id of a file.
func (h *Hasher) Blob(content []byte) Hash { return h.object(plumbing.BlobObject, content) }

func (h *Hasher) object(kind plumbing.ObjectType, content []byte) Hash {
	h.header = append(append(h.header[:0], kind.String()...), ' ')
	h.header = strconv.AppendInt(h.header, int64(len(content)), 10)
	h.header = append(h.header, 0)
	h.sha.Reset()
	h.sha.Write(h.header)
	h.sha.Write(content)
	h.sha.Sum(h.sum[:0])
	return h.sum
}

// BlobID is `git hash-object`.
func BlobID(content []byte) Hash { return NewHasher().Blob(content) }

// TreeID returns the id, in hex, that `git write-tree` gives to these files, in any order. Slashes in names make folders.
// Unsafe names, names equal under case folding, and no files are errors.
func TreeID(files []File) (string, error) {
	nowhere := func(Hash, []byte) {}
	id, err := folderTree(NewHasher(), files, nowhere, nowhere)
	if err != nil {
		return "", err
	}
	return id.String(), nil
}

// folderTree passes every file to blob and every tree to tree, the folder last, and returns its id.
func folderTree(h *Hasher, files []File, blob, tree func(Hash, []byte)) (Hash, error) {
	if len(files) == 0 {
		return Hash{}, errors.New("the folder has no files")
	}
	byName := func(a, b File) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(files, byName) {
		files = slices.Clone(files)
		slices.SortFunc(files, byName)
	}
	for i, file := range files {
		check := CheckName
		if strings.Contains(file.Name, "/") {
			check = CheckPath
		}
		if err := check(file.Name); err != nil {
			return Hash{}, err
		}
		if i > 0 && files[i-1].Name == file.Name {
			return Hash{}, fmt.Errorf("name %q: there are two files of this name", file.Name)
		}
	}
	return levelTree(h, files, 0, blob, tree)
}

// levelTree is folderTree for a folder whose path has below bytes, slash included. Files are sorted by full name: git's order.
func levelTree(h *Hasher, files []File, below int, blob, tree func(Hash, []byte)) (Hash, error) {
	entries := make([]Entry, 0, len(files))
	for first := 0; first < len(files); {
		name, _, isFolder := strings.Cut(files[first].Name[below:], "/")
		e, next := Entry{Name: name, Mode: ModeFile}, first+1
		if isFolder {
			folder := files[first].Name[:below+len(name)+1]
			for next < len(files) && strings.HasPrefix(files[next].Name, folder) {
				next++
			}
			var err error
			if e.ID, err = levelTree(h, files[first:next], len(folder), blob, tree); err != nil {
				return Hash{}, err
			}
			e.Mode = ModeTree
		} else {
			e.ID = h.Blob(files[first].Content)
			blob(e.ID, files[first].Content)
		}
		entries, first = append(entries, e), next
	}
	if err := checkFolding(files[0].Name[:below], entries); err != nil {
		return Hash{}, err
	}
	content := encodeTree(entries)
	id := h.object(plumbing.TreeObject, content)
	tree(id, content)
	return id, nil
}

// checkFolding compares pairs while that is cheaper than a map. Most folders have four files.
func checkFolding(at string, entries []Entry) error {
	clash := func(a, b string) error {
		if a == b {
			return fmt.Errorf("name %q: there are a file and a folder of this name", at+a)
		}
		return fmt.Errorf("names %q and %q are the same on a file system that ignores case; rename one", at+a, at+b)
	}
	if len(entries) <= 16 {
		for i, e := range entries {
			for _, other := range entries[:i] {
				if len(e.Name) == len(other.Name) && strings.EqualFold(e.Name, other.Name) {
					return clash(other.Name, e.Name)
				}
			}
		}
		return nil
	}
	seen := make(map[string]string, len(entries))
	for _, e := range entries {
		if other, ok := seen[folded(e.Name)]; ok {
			return clash(other, e.Name)
		}
		seen[folded(e.Name)] = e.Name
	}
	return nil
}

// Entry is a line of a tree. Its mode keeps the spelling, so that rewriting does not change it.
type Entry struct {
	Name string
	Mode string
	ID   Hash
}

// The kinds of entries, for errors.
const (
	KindFile      = "a file"
	KindFolder    = "a folder"
	KindSymlink   = "a symbolic link"
	KindSubmodule = "a submodule"
)

// IsTree reports whether it is a folder.
func (e Entry) IsTree() bool { return e.Mode == ModeTree || e.Mode == "0"+ModeTree }

// IsFile reports whether it is a file, executable or not.
func (e Entry) IsFile() bool { return e.Kind() == KindFile }

// Kind returns the kind in words.
func (e Entry) Kind() string {
	switch {
	case e.IsTree():
		return KindFolder
	case e.Mode == modeSymlink:
		return KindSymlink
	case e.Mode == modeSubmodule:
		return KindSubmodule
	default:
		return KindFile
	}
}

// compareEntries implements git's order: a tree sorts as if its name ended in a slash.
func compareEntries(a, b Entry) int { return a.compare(b.Name, b.IsTree()) }

func (e *Entry) compare(name string, tree bool) int {
	n := min(len(e.Name), len(name))
	if c := strings.Compare(e.Name[:n], name[:n]); c != 0 {
		return c
	}
	return int(following(e.Name, e.IsTree(), n)) - int(following(name, tree, n))
}

func following(name string, tree bool, n int) byte {
	switch {
	case n < len(name):
		return name[n]
	case tree:
		return '/'
	default:
		return 0
	}
}

// Search finds an entry in a sorted tree, or returns nil.
func Search(entries []Entry, name string, tree bool) *Entry {
	low, high := 0, len(entries)
	for low < high {
		middle := int(uint(low+high) >> 1)
		switch c := entries[middle].compare(name, tree); {
		case c == 0:
			return &entries[middle]
		case c < 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return nil
}

var errMalformedTree = errors.New("a tree in the repository is malformed (git fsck tells more)")

// ParseTree parses a tree. Wrong order, duplicates and names that lead elsewhere are errors, as for git fsck. Other unusual
// names are allowed.
func ParseTree(content []byte) ([]Entry, error) {
	text := string(content) // shared by all names and modes
	count := strings.Count(text, "\x00")
	entries := make([]Entry, 0, min(count, len(text)/24+1))
	for len(text) > 0 {
		mode, rest, ok := strings.Cut(text, " ")
		if !ok || !isMode(mode) {
			return nil, errMalformedTree
		}
		name, rest, ok := strings.Cut(rest, "\x00")
		if !ok || leadsElsewhere(name) || len(rest) < len(Hash{}) {
			return nil, errMalformedTree
		}
		e := Entry{Name: name, Mode: mode}
		copy(e.ID[:], rest)
		text = rest[len(e.ID):]
		if n := len(entries); n > 0 && (compareEntries(entries[n-1], e) >= 0 || isTwice(entries, e)) {
			return nil, errMalformedTree
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func leadsElsewhere(name string) bool {
	return name == "" || name == "." || name == ".." || strings.EqualFold(name, ".git") || strings.Contains(name, "/")
}

// isTwice reports whether the folder next is also a file. Only names that begin with its name sort between the two.
func isTwice(entries []Entry, next Entry) bool {
	last := entries[len(entries)-1]
	return next.IsTree() && strings.HasPrefix(last.Name, next.Name) && Search(entries, next.Name, false) != nil
}

func isMode(mode string) bool {
	if len(mode) < 5 || len(mode) > 7 {
		return false
	}
	for i := range len(mode) {
		if mode[i] < '0' || mode[i] > '7' {
			return false
		}
	}
	return true
}

func encodeTree(entries []Entry) []byte {
	size := 0
	for _, e := range entries {
		size += len(e.Mode) + 1 + len(e.Name) + 1 + len(e.ID)
	}
	content := make([]byte, 0, size)
	for _, e := range entries {
		content = append(append(content, e.Mode...), ' ')
		content = append(append(content, e.Name...), 0)
		content = append(content, e.ID[:]...)
	}
	return content
}

// ParseID parses an object id in hex.
func ParseID(text string) (id Hash, err error) {
	var buffer [2 * len(id)]byte
	if len(text) != copy(buffer[:], text) {
		return id, fmt.Errorf("%q is not an object id", text)
	}
	if _, err := hex.Decode(id[:], buffer[:len(text)]); err != nil || len(text) != len(buffer) {
		return Hash{}, fmt.Errorf("%q is not an object id", text)
	}
	return id, nil
}

// IsID compares an id with one in hex without allocating.
func IsID(text string, id Hash) bool {
	parsed, err := ParseID(text)
	return err == nil && parsed == id
}

type objectStore map[Hash]RawObject

// Has reports whether an object was fetched.
func (s objectStore) Has(id Hash) bool {
	_, ok := s[id]
	return ok || id == EmptyTree
}

// Fetched returns the fetched objects in no order.
func (s objectStore) Fetched() iter.Seq2[Hash, RawObject] { return maps.All(s) }

// Entries parses a fetched tree.
func (s objectStore) Entries(id Hash) ([]Entry, error) {
	if id == EmptyTree {
		return nil, nil
	}
	o, ok := s[id]
	if !ok {
		return nil, fmt.Errorf("tree %s was not fetched", id)
	}
	if o.Kind != plumbing.TreeObject {
		return nil, errMalformedTree
	}
	return ParseTree(o.Content)
}

// Blob returns a fetched file.
func (s objectStore) Blob(id Hash) ([]byte, error) {
	o, ok := s[id]
	if !ok || o.Kind != plumbing.BlobObject {
		return nil, fmt.Errorf("blob %s was not fetched", id)
	}
	return o.Content, nil
}

// CommitText returns the content of a fetched commit.
func (s objectStore) CommitText(id Hash) ([]byte, bool) {
	o, ok := s[id]
	return o.Content, ok && o.Kind == plumbing.CommitObject
}

func (s objectStore) missing(ids []Hash) []Hash {
	missing := slices.DeleteFunc(slices.Clone(ids), s.Has)
	slices.SortFunc(missing, func(a, b Hash) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(missing)
}
