package gitops_test

import (
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// workTree is a clone for changes by hand.
type workTree struct {
	r         *repository
	directory string
}

func (w *workTree) write(name, content string) {
	w.r.t.Helper()
	file := filepath.Join(w.directory, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		w.r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		w.r.t.Fatal(err)
	}
}

func (w *workTree) remove(name string) {
	w.r.t.Helper()
	if err := os.RemoveAll(filepath.Join(w.directory, filepath.FromSlash(name))); err != nil {
		w.r.t.Fatal(err)
	}
}

func (w *workTree) push() {
	w.r.t.Helper()
	run(w.r.t, w.directory, "git", "add", "--all")
	run(w.r.t, w.directory, "git", "commit", "--quiet", "--allow-empty", "--message", "by hand")
	run(w.r.t, w.directory, "git", "push", "--quiet", "origin", "HEAD:main")
}

// commitByHand commits a change to the branch without the product. In `make acceptance` and on mirrors, git clones, commits and
// pushes.
func (r *repository) commitByHand(change func(w *workTree)) {
	r.t.Helper()
	if r.mirror || acceptancetest.All() {
		r.commitByGit(change)
		return
	}
	gittest.Commit(r.t, r.directory, "main", "main", func(checkout string) { change(&workTree{r: r, directory: checkout}) })
}

// commitByGit commits a change in a clone by git. The clone may have submodules.
func (r *repository) commitByGit(change func(w *workTree)) {
	r.t.Helper()
	w := r.clone()
	change(w)
	w.push()
}

// objects reads the repository without running git.
type objects struct {
	t       testing.TB
	storage *filesystem.Storage
}

func (r *repository) objects() objects {
	r.t.Helper()
	r.update()
	return objects{r.t, filesystem.NewStorage(osfs.New(r.directory), cache.NewObjectLRUDefault())}
}

// tip returns the commit of main, or zero.
func (o objects) tip() git.Hash {
	ref, err := o.storage.Reference("refs/heads/main")
	if err != nil {
		return git.Hash{}
	}
	return ref.Hash()
}

func (o objects) read(id git.Hash) string {
	o.t.Helper()
	object, err := o.storage.EncodedObject(plumbing.AnyObject, id)
	if err != nil {
		o.t.Fatal(err)
	}
	r, err := object.Reader()
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	content, err := io.ReadAll(r)
	if err != nil {
		o.t.Fatal(err)
	}
	return string(content)
}

// heads returns the ids of a commit's tree and parents.
func (o objects) heads(commit git.Hash) (tree git.Hash, parents []git.Hash) {
	o.t.Helper()
	for line := range strings.Lines(o.read(commit)) {
		switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); name {
		case "tree":
			tree = plumbing.NewHash(value)
		case "parent":
			parents = append(parents, plumbing.NewHash(value))
		default:
			return tree, parents
		}
	}
	return tree, parents
}

// walk calls do for the files, links and submodules of a tree, with git's modes.
func (o objects) walk(tree git.Hash, folder string, do func(name, mode, content string)) {
	o.t.Helper()
	for rest := o.read(tree); rest != ""; {
		header, after, _ := strings.Cut(rest, "\x00")
		mode, name, _ := strings.Cut(header, " ")
		id := git.Hash([]byte(after[:20]))
		rest = after[20:]
		switch mode {
		case "40000":
			o.walk(id, path.Join(folder, name), do)
		case "160000":
			do(path.Join(folder, name), mode, "")
		default:
			do(path.Join(folder, name), mode, o.read(id))
		}
	}
}

// tip returns the commit of main.
func (r *repository) tip() string {
	r.t.Helper()
	id := r.objects().tip()
	if id.IsZero() {
		r.t.Fatal("there is no branch main")
	}
	return id.String()
}

// countCommits counts the commits of main, which has no merges.
func (r *repository) countCommits() int {
	r.t.Helper()
	o := r.objects()
	for count, id := 0, o.tip(); ; count++ {
		if id.IsZero() {
			return count
		}
		_, parents := o.heads(id)
		id = git.Hash{}
		if len(parents) > 0 {
			id = parents[0]
		}
	}
}

// files returns the files of main with their content.
func (r *repository) files() map[string]string {
	r.t.Helper()
	files := map[string]string{}
	o := r.objects()
	if o.tip().IsZero() {
		return files
	}
	tree, _ := o.heads(o.tip())
	o.walk(tree, "", func(name, mode, content string) {
		switch mode {
		case "160000":
		case "120000":
			files[name] = "-> " + content
		default:
			files[name] = content
		}
	})
	return files
}

// commitFirst makes the first commit, with one file.
func (r *repository) commitFirst(name, content string) {
	r.t.Helper()
	if r.mirror {
		r.commitByHand(func(w *workTree) { w.write(name, content) })
		return
	}
	gittest.CommitAt(r.t, time.Unix(1_700_000_000, 0), r.directory, "main", "main", func(checkout string) {
		(&workTree{r: r, directory: checkout}).write(name, content)
	})
}
