package gittest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// Host is a Git host in memory, for high load. As git.ConnectorOptions.Over, it serves http URLs with any host: the path
// without ".git" is the repository's name. It is safe for concurrent use.
type Host struct {
	mu           sync.Mutex
	repositories map[string]*MemoryRepository
}

// NewHost returns an empty host.
func NewHost() *Host { return &Host{repositories: map[string]*MemoryRepository{}} }

// Create makes an empty repository; see [NewRepository].
func (h *Host) Create(name string, filters bool) *MemoryRepository {
	repository := NewRepository(filters)
	h.Alias(name, repository)
	return repository
}

// Alias gives a repository a second name.
func (h *Host) Alias(name string, repository *MemoryRepository) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.repositories[name] = repository
}

// RoundTrip serves a request.
func (h *Host) RoundTrip(r *http.Request) (*http.Response, error) {
	at, _, _ := requested(r)
	h.mu.Lock()
	repository, ok := h.repositories[strings.TrimSuffix(strings.Trim(at, "/"), ".git")]
	h.mu.Unlock()
	if !ok {
		return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	return repository.RoundTrip(r)
}

// MemoryRepository is a repository in memory at every http URL. It is safe for concurrent use. Check its content by git: see [Pack].
type MemoryRepository struct {
	filters  bool
	mu       sync.Mutex
	objects  map[git.Hash]git.RawObject
	branches map[string]git.Hash
}

// NewRepository returns an empty repository. filters adds filters and requests by object ID.
func NewRepository(filters bool) *MemoryRepository {
	return &MemoryRepository{filters: filters, objects: map[git.Hash]git.RawObject{}, branches: map[string]git.Hash{}}
}

// RoundTrip serves a request.
func (r *MemoryRepository) RoundTrip(request *http.Request) (*http.Response, error) {
	return (&session{store: r, shallow: true, filters: r.filters, ids: r.filters}).RoundTrip(request)
}

func (r *MemoryRepository) references(advertised *packp.AdvRefs) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, tip := range r.branches {
		advertised.References[plumbing.NewBranchReferenceName(name).String()] = tip
	}
	return nil
}

func (r *MemoryRepository) object(id git.Hash) git.RawObject {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects[id]
}

func (r *MemoryRepository) receive(pack io.Reader, command *packp.Command) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	branch := command.Name.Short()
	if command.Old != r.branches[branch] {
		return errors.New("fetch first")
	}
	if err := git.ReadPack(pack, r.objects); err != nil {
		return err
	}
	r.branches[branch] = command.New
	return nil
}

// Branches returns the branches.
func (r *MemoryRepository) Branches() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.branches))
}

// Tip returns the commit of a branch, or zero.
func (r *MemoryRepository) Tip(branch string) git.Hash {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.branches[branch]
}

// Tree returns the ID of a branch's tree, or zero.
func (r *MemoryRepository) Tree(branch string) git.Hash {
	head, _ := git.ParseCommitHead(r.object(r.Tip(branch)).Content)
	return head.Tree
}

// Commits counts the commits of a branch that another commit, or zero, lacks.
func (r *MemoryRepository) Commits(branch string, since git.Hash) int {
	known := map[git.Hash]bool{}
	visit := func(id git.Hash) bool { seen := known[id]; known[id] = true; return !seen }
	walkHistory(r, since, 1<<30, visit)
	before := len(known)
	walkHistory(r, r.Tip(branch), 1<<30, visit)
	return len(known) - before
}

// Files returns a branch's files.
func (r *MemoryRepository) Files(branch string) map[string]string {
	files := map[string]string{}
	r.eachFile(branch, func(name string, e git.Entry) { files[name] = string(r.object(e.ID).Content) })
	return files
}

func (r *MemoryRepository) eachFile(branch string, visit func(name string, e git.Entry)) {
	var walk func(at string, id git.Hash)
	walk = func(at string, id git.Hash) {
		entries, _ := git.ParseTree(r.object(id).Content)
		for _, e := range entries {
			if e.IsTree() {
				walk(at+e.Name+"/", e.ID)
			} else {
				visit(at+e.Name, e)
			}
		}
	}
	walk("", r.Tree(branch))
}

// Write makes a person's commit of these files only.
func (r *MemoryRepository) Write(branch string, files map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := (&git.Tip{}).Tree()
	for name, content := range files {
		id := git.NewHasher().Blob([]byte(content))
		r.objects[id] = git.RawObject{Kind: plumbing.BlobObject, Content: []byte(content)}
		if err := w.Put(name, git.ModeFile, id); err != nil {
			panic(err)
		}
	}
	root := w.Write(func(id git.Hash, content []byte) {
		r.objects[id] = git.RawObject{Kind: plumbing.TreeObject, Content: content}
	})
	text := fmt.Sprintf("tree %s\n", root)
	if tip := r.branches[branch]; !tip.IsZero() {
		text += fmt.Sprintf("parent %s\n", tip)
	}
	text += "author A <a@example.com> 0 +0000\ncommitter A <a@example.com> 0 +0000\n\nby hand\n"
	id := plumbing.ComputeHash(plumbing.CommitObject, []byte(text))
	r.objects[id] = git.RawObject{Kind: plumbing.CommitObject, Content: []byte(text)}
	r.branches[branch] = id
}

// Import makes git fast-import commit the files of a branch to the branch check.
func (r *MemoryRepository) Import(w io.Writer, branch string) {
	_, _ = io.WriteString(w, "commit refs/heads/check\ncommitter A <a@example.com> 0 +0000\ndata 0\ndeleteall\n")
	r.eachFile(branch, func(name string, e git.Entry) { fmt.Fprintf(w, "M %s %s %s\n", e.Mode, e.ID, name) })
}

// Pack returns all objects of some repositories.
func Pack(repositories ...*MemoryRepository) []byte {
	w := git.NewPack()
	for _, r := range repositories {
		r.mu.Lock()
		for id, o := range r.objects {
			w.Add(id, o)
		}
		r.mu.Unlock()
	}
	pack, _ := io.ReadAll(w.Reader()) // it is in memory
	return pack
}
