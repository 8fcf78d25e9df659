package gitops

import (
	"bytes"
	"crypto/sha1" // the hash that Git names objects with
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// File is one file of a flat folder. It is written as a regular file.
type File struct {
	Name    string
	Content []byte
}

// object is a Git object as it is hashed, without its header.
type object struct {
	kind    plumbing.ObjectType
	content []byte
}

// The modes that this package writes. Modes of others are carried over as they
// were, old group-writable ones included.
const (
	modeFile      = "100644"
	modeTree      = "40000"
	modeSymlink   = "120000"
	modeSubmodule = "160000"
)

// emptyTree is the tree without entries; git knows it without being told.
var emptyTree = plumbing.NewHash("4b825dc642cb6eb9a060e54bf8d69288fbee4904")

// hasher names objects, one after the other. crypto/sha1 and not go-git's
// collision-detecting one: a third of the time, and a plan hashes every file of
// the fleet. The server that takes the objects looks for collisions itself.
type hasher struct {
	sha    hash.Hash
	header []byte
	sum    plumbing.Hash // here, and not on the stack: an interface's argument escapes
}

func newHasher() *hasher {
	return &hasher{sha: sha1.New(), header: make([]byte, 0, 32)}
}

func (h *hasher) object(kind plumbing.ObjectType, content []byte) plumbing.Hash {
	h.header = append(append(h.header[:0], kindName(kind)...), ' ')
	h.header = strconv.AppendInt(h.header, int64(len(content)), 10)
	h.header = append(h.header, 0)
	h.sha.Reset()
	h.sha.Write(h.header)
	h.sha.Write(content)
	h.sha.Sum(h.sum[:0])
	return h.sum
}

// kindName is kind.String for constants, which need no memory.
func kindName(kind plumbing.ObjectType) string {
	switch kind {
	case plumbing.BlobObject:
		return "blob"
	case plumbing.TreeObject:
		return "tree"
	case plumbing.CommitObject:
		return "commit"
	default:
		return kind.String()
	}
}

// TreeID returns the id, in hex, that `git write-tree` gives to a folder of
// these files, in whatever order they come. It is an error when there are none,
// when a name is not one safe path segment, or when two names are equal under
// case folding.
func TreeID(files []File) (string, error) {
	_, id, err := folderTree(newHasher(), files, nil)
	if err != nil {
		return "", err
	}
	return id.String(), nil
}

// folderTree hashes the files and their tree, and returns the tree's content
// and id. blob, when not nil, is given every file.
func folderTree(h *hasher, files []File, blob func(plumbing.Hash, []byte)) ([]byte, plumbing.Hash, error) {
	if len(files) == 0 {
		return nil, plumbing.ZeroHash, errors.New("the folder has no files")
	}
	byName := func(a, b File) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(files, byName) {
		files = slices.Clone(files)
		slices.SortFunc(files, byName)
	}
	size := 0
	for i, file := range files {
		if err := checkName(file.Name); err != nil {
			return nil, plumbing.ZeroHash, err
		}
		if i > 0 && files[i-1].Name == file.Name {
			return nil, plumbing.ZeroHash, fmt.Errorf("name %q: there are two files of this name", file.Name)
		}
		size += len(modeFile) + 1 + len(file.Name) + 1 + len(plumbing.ZeroHash)
	}
	if err := checkFolding(files); err != nil {
		return nil, plumbing.ZeroHash, err
	}
	content := make([]byte, 0, size)
	for _, file := range files {
		id := h.object(plumbing.BlobObject, file.Content)
		if blob != nil {
			blob(id, file.Content)
		}
		content = append(content, modeFile...)
		content = append(content, ' ')
		content = append(content, file.Name...)
		content = append(content, 0)
		content = append(content, id[:]...)
	}
	return content, h.object(plumbing.TreeObject, content), nil
}

// checkFolding compares pairs as long as that is cheaper than a map: an
// assignment's folder has four files.
func checkFolding(files []File) error {
	clash := func(a, b string) error {
		return fmt.Errorf("names %q and %q are the same where case does not count", a, b)
	}
	if len(files) <= 16 {
		for i := range files {
			for j := range i {
				if len(files[i].Name) == len(files[j].Name) && strings.EqualFold(files[i].Name, files[j].Name) {
					return clash(files[j].Name, files[i].Name)
				}
			}
		}
		return nil
	}
	seen := make(map[string]string, len(files))
	for _, file := range files {
		folded := strings.ToLower(file.Name)
		if other, ok := seen[folded]; ok {
			return clash(other, file.Name)
		}
		seen[folded] = file.Name
	}
	return nil
}

// entry is a line of a tree. The mode is kept as it was written, so that
// rewriting a tree changes nothing about the entries of others.
type entry struct {
	name string
	mode string
	id   plumbing.Hash
}

func (e entry) isTree() bool { return e.mode == modeTree || e.mode == "0"+modeTree }

// kind says what an entry is, in words for an error.
func (e entry) kind() string {
	switch {
	case e.isTree():
		return "a folder"
	case e.mode == modeSymlink:
		return "a symbolic link"
	case e.mode == modeSubmodule:
		return "a submodule"
	default:
		return "a file"
	}
}

// compareEntries is git's order: a tree's name counts as if it ended in a slash.
func compareEntries(a, b entry) int { return a.compare(b.name, b.isTree()) }

func (e *entry) compare(name string, tree bool) int {
	n := min(len(e.name), len(name))
	if c := strings.Compare(e.name[:n], name[:n]); c != 0 {
		return c
	}
	return int(following(e.name, e.isTree(), n)) - int(following(name, tree, n))
}

// following is the byte that counts after the first n of a name.
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

// search finds an entry in a tree's order; nil when there is none.
func search(entries []entry, name string, tree bool) *entry {
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

// parseTree reads a tree. A tree that is not in git's order, or names an entry
// twice, is an error: it cannot be edited without changing it for others.
func parseTree(content []byte) ([]entry, error) {
	text := string(content) // one copy that all names and modes share
	count := strings.Count(text, "\x00")
	entries := make([]entry, 0, min(count, len(text)/24+1))
	for len(text) > 0 {
		mode, rest, ok := strings.Cut(text, " ")
		if !ok || !isMode(mode) {
			return nil, errMalformedTree
		}
		name, rest, ok := strings.Cut(rest, "\x00")
		if !ok || name == "" || strings.Contains(name, "/") || len(rest) < len(plumbing.ZeroHash) {
			return nil, errMalformedTree
		}
		e := entry{name: name, mode: mode}
		copy(e.id[:], rest)
		text = rest[len(e.id):]
		if n := len(entries); n > 0 && compareEntries(entries[n-1], e) >= 0 {
			return nil, errMalformedTree
		}
		entries = append(entries, e)
	}
	return entries, nil
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

func encodeTree(entries []entry) []byte {
	var b bytes.Buffer
	for _, e := range entries {
		b.WriteString(e.mode)
		b.WriteByte(' ')
		b.WriteString(e.name)
		b.WriteByte(0)
		b.Write(e.id[:])
	}
	return b.Bytes()
}

// parseID reads an object id in hex.
func parseID(text string) (id plumbing.Hash, err error) {
	var buffer [2 * len(id)]byte
	if len(text) != copy(buffer[:], text) {
		return id, fmt.Errorf("%q is not an object id", text)
	}
	if _, err := hex.Decode(id[:], buffer[:len(text)]); err != nil || len(text) != len(buffer) {
		return plumbing.ZeroHash, fmt.Errorf("%q is not an object id", text)
	}
	return id, nil
}

// isID compares an id with one in hex, and allocates nothing for it.
func isID(text string, id plumbing.Hash) bool {
	parsed, err := parseID(text)
	return err == nil && parsed == id
}
