package gittest

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// Answer returns git's output in a folder without a process. ok is false for other commands, errors and clones.
func Answer(folder string, arguments ...string) (output string, ok bool) {
	if GitServes || len(arguments) < 2 {
		return "", false
	}
	if arguments[0] == "init" {
		return "", initBare(folder, arguments[1:]) == nil
	}
	r, isLocal := Local(folder).(local)
	if !isLocal {
		return "", false
	}
	err := errUnanswered
	switch strings.Join(arguments[:len(arguments)-1], " ") {
	case "rev-parse", "rev-parse --verify --quiet":
		var id git.Hash
		id, err = r.resolve(arguments[len(arguments)-1])
		output = id.String() + "\n"
	case "rev-list --count":
		output, err = r.count(arguments[2])
	case "for-each-ref --format=%(refname)":
		output, err = r.list(arguments[2], func(name string, _ git.Hash) string { return name })
	case "for-each-ref --format=%(objectname)":
		output, err = r.list(arguments[2], func(_ string, id git.Hash) string { return id.String() })
	case "ls-tree -r --name-only":
		var found map[string]git.Entry
		if found, err = r.files(arguments[3]); err == nil {
			output = strings.Join(append(slices.Sorted(maps.Keys(found)), ""), "\n")
		}
	default:
		switch arguments[0] {
		case "show":
			output, err = r.show(arguments[1:])
		case "ls-tree":
			output, err = r.entries(arguments[1], arguments[2:])
		}
	}
	return output, err == nil
}

var errUnanswered = errors.New("git has to answer")

// Files returns a branch's files, or nil for a missing branch.
func Files(t testing.TB, folder, branch string) map[string]string {
	t.Helper()
	r := local{directory: folder}
	if _, err := r.resolve("refs/heads/" + branch); err != nil {
		return nil
	}
	entries, err := r.files("refs/heads/" + branch)
	if err != nil {
		t.Fatal(err)
	}
	contents := make(map[string]string, len(entries))
	for name, e := range entries {
		contents[name] = string(r.object(e.ID).Content)
	}
	return contents
}

// Commit commits an edited checkout of one branch to another of a bare repository. It has no submodules.
func Commit(t testing.TB, folder, from, branch string, edit func(checkout string)) {
	t.Helper()
	CommitAt(t, time.Now(), folder, from, branch, edit)
}

// CommitAt is [Commit] at a time.
func CommitAt(t testing.TB, at time.Time, folder, from, branch string, edit func(checkout string)) {
	t.Helper()
	r, checkout := &local{directory: folder}, t.TempDir()
	parent, err := r.resolve("refs/heads/" + from)
	old, _ := r.resolve("refs/heads/" + branch)
	if err == nil {
		entries, err := r.files("refs/heads/" + from)
		must(t, err)
		for name, e := range entries {
			must(t, checkOut(filepath.Join(checkout, filepath.FromSlash(name)), e.Mode, r.object(e.ID).Content))
		}
	}
	edit(checkout)
	root := r.add(t, checkout)
	text := fmt.Appendf(nil, "tree %s\n", root)
	if !parent.IsZero() {
		text = fmt.Appendf(text, "parent %s\n", parent)
	}
	person := fmt.Sprintf("A Person <person@example.com> %d +0000", at.Unix())
	text = fmt.Appendf(text, "author %s\ncommitter %s\n\nby hand\n", person, person)
	id := plumbing.ComputeHash(plumbing.CommitObject, text)
	r.write(t, id, plumbing.CommitObject, text)
	pushing.Lock()
	defer pushing.Unlock()
	must(t, r.update(&packp.Command{Name: plumbing.NewBranchReferenceName(branch), Old: old, New: id}))
}

const (
	modeExecutable = "100755"
	modeLink       = "120000"
)

func checkOut(file, mode string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	switch mode {
	case git.ModeFile:
		return os.WriteFile(file, content, 0o644)
	case modeExecutable:
		return os.WriteFile(file, content, 0o755)
	case modeLink:
		return os.Symlink(string(content), file)
	}
	return fmt.Errorf("%s has mode %s, which only a clone keeps", file, mode)
}

// add writes the blobs and trees of a folder.
func (l *local) add(t testing.TB, checkout string) git.Hash {
	t.Helper()
	tree, hasher := (&git.Tip{}).Tree(), git.NewHasher()
	must(t, filepath.WalkDir(checkout, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode, read := git.ModeFile, os.ReadFile
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			mode, read = modeLink, func(name string) ([]byte, error) {
				target, err := os.Readlink(name)
				return []byte(target), err
			}
		case info.Mode()&0o100 != 0:
			mode = modeExecutable
		}
		content, err := read(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(checkout, file)
		if err != nil {
			return err
		}
		id := hasher.Blob(content)
		l.write(t, id, plumbing.BlobObject, content)
		return tree.Put(filepath.ToSlash(name), mode, id)
	}))
	return tree.Write(func(id git.Hash, content []byte) { l.write(t, id, plumbing.TreeObject, content) })
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (l *local) write(t testing.TB, id git.Hash, kind plumbing.ObjectType, content []byte) {
	t.Helper()
	if l.object(id).Kind != plumbing.InvalidObject {
		return
	}
	var compressed bytes.Buffer
	w := zlib.NewWriter(&compressed)
	fmt.Fprintf(w, "%s %d\x00%s", kind, len(content), content)
	must(t, w.Close())
	file := filepath.Join(l.directory, "objects", id.String()[:2], id.String()[2:])
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, compressed.Bytes(), 0o444))
}

func initBare(folder string, arguments []string) error {
	branch, path, isBare := "", "", false
	for i := 0; i < len(arguments); i++ {
		name, value, hasValue := strings.Cut(arguments[i], "=")
		switch {
		case arguments[i] == "--quiet" || arguments[i] == "-q":
		case arguments[i] == "--bare":
			isBare = true
		case name == "--initial-branch" && hasValue:
			branch = value
		case name == "--initial-branch" && i+1 < len(arguments):
			i++
			branch = arguments[i]
		case !strings.HasPrefix(name, "-") && path == "":
			path = arguments[i]
		default:
			return errUnanswered
		}
	}
	if !isBare || path == "" || branch == "" {
		return errUnanswered
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	if _, err := os.Stat(path); err == nil {
		return errUnanswered
	}
	return writeBare(path, branch)
}

// Init is a git.ConnectorOptions.Init.
func Init(directory string) error { return writeBare(directory, "main") }

func writeBare(path, branch string) error {
	for _, name := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(path, filepath.FromSlash(name)), 0o755); err != nil {
			return err
		}
	}
	const config = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
	return errors.Join(
		os.WriteFile(filepath.Join(path, "HEAD"), []byte("ref: refs/heads/"+branch+"\n"), 0o644),
		os.WriteFile(filepath.Join(path, "config"), []byte(config), 0o644),
	)
}

// resolve reads "<id, branch, full name or HEAD>[:<path>]".
func (l *local) resolve(revision string) (git.Hash, error) {
	name, path, hasPath := strings.Cut(revision, ":")
	references, err := l.readReferences()
	if err != nil {
		return git.Hash{}, err
	}
	if name == "HEAD" {
		head, err := os.ReadFile(filepath.Join(l.directory, "HEAD"))
		if err != nil {
			return git.Hash{}, err
		}
		name = strings.TrimPrefix(strings.TrimSpace(string(head)), "ref: ")
	}
	id, isKnown := references[name]
	_, isTag := references["refs/tags/"+name]
	if branch, isBranch := references["refs/heads/"+name]; isBranch && !isKnown && !isTag {
		id, isKnown = branch, true
	}
	if !isKnown && plumbing.IsHash(name) {
		id = plumbing.NewHash(name)
		isKnown = l.object(id).Kind != plumbing.InvalidObject
	}
	if !isKnown {
		return git.Hash{}, errUnanswered
	}
	if !hasPath {
		return id, nil
	}
	e, err := l.entry(id, path)
	return e.ID, err
}

func (l *local) entry(commit git.Hash, path string) (git.Entry, error) {
	head, err := git.ParseCommitHead(l.object(commit).Content)
	if err != nil {
		return git.Entry{}, err
	}
	found := git.Entry{ID: head.Tree}
	for segment := range strings.SplitSeq(path, "/") {
		entries, err := git.ParseTree(l.object(found.ID).Content)
		if err != nil {
			return git.Entry{}, err
		}
		i := slices.IndexFunc(entries, func(e git.Entry) bool { return e.Name == segment })
		if i < 0 {
			return git.Entry{}, errUnanswered
		}
		found = entries[i]
	}
	return found, nil
}

func (l *local) files(revision string) (map[string]git.Entry, error) {
	id, err := l.resolve(revision)
	if err != nil || l.object(id).Kind != plumbing.CommitObject {
		return nil, errors.Join(err, errUnanswered)
	}
	head, err := git.ParseCommitHead(l.object(id).Content)
	if err != nil {
		return nil, err
	}
	found := map[string]git.Entry{}
	var walk func(at string, tree git.Hash) error
	walk = func(at string, tree git.Hash) error {
		entries, err := git.ParseTree(l.object(tree).Content)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !e.IsTree() {
				found[at+e.Name] = e
			} else if err := walk(at+e.Name+"/", e.ID); err != nil {
				return err
			}
		}
		return nil
	}
	return found, walk("", head.Tree)
}

func (l *local) count(revision string) (string, error) {
	id, err := l.resolve(revision)
	if err != nil || l.object(id).Kind != plumbing.CommitObject {
		return "", errors.Join(err, errUnanswered)
	}
	seen := map[git.Hash]bool{}
	walkHistory(l, id, 1<<30, func(commit git.Hash) bool { isNew := !seen[commit]; seen[commit] = true; return isNew })
	return fmt.Sprintln(len(seen)), nil
}

func (l *local) list(name string, show func(name string, id git.Hash) string) (string, error) {
	references, err := l.readReferences()
	if err != nil {
		return "", err
	}
	var lines strings.Builder
	for _, found := range slices.Sorted(maps.Keys(references)) {
		if found == name || strings.HasPrefix(found, name+"/") {
			lines.WriteString(show(found, references[found]) + "\n")
		}
	}
	return lines.String(), nil
}

func (l *local) show(revisions []string) (string, error) {
	var all strings.Builder
	for _, revision := range revisions {
		id, err := l.resolve(revision)
		if err != nil || l.object(id).Kind != plumbing.BlobObject {
			return "", errors.Join(err, errUnanswered)
		}
		all.Write(l.object(id).Content)
	}
	return all.String(), nil
}

func (l *local) entries(revision string, paths []string) (string, error) {
	id, err := l.resolve(revision)
	if err != nil || len(paths) == 0 || l.object(id).Kind != plumbing.CommitObject {
		return "", errors.Join(err, errUnanswered)
	}
	lines := map[string]string{} // by the key that git sorts
	for _, path := range paths {
		e, err := l.entry(id, path)
		if err != nil {
			return "", err
		}
		key, kind := path, "blob"
		if e.IsTree() {
			key, kind = path+"/", "tree"
		}
		lines[key] = fmt.Sprintf("%s%s %s %s\t%s\n", strings.Repeat("0", 6-len(e.Mode)), e.Mode, kind, e.ID, path)
	}
	var sorted strings.Builder
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		sorted.WriteString(lines[key])
	}
	return sorted.String(), nil
}
