package gitops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/gittest"
	"github.com/flotilla/terraform-provider-flotilla/internal/reliabilitytest"
)

// TestRandomEditsAndForeignChanges plays sequences of applies, destroys, losses
// of state and changes by hand against git, and compares the branch with a model
// after each step.
func TestRandomEditsAndForeignChanges(t *testing.T) {
	t.Parallel()
	for i := range uint64(len(servings)) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			r := newRepository(t, servings[i])
			m := newModel(t, gitBranch{r}, r.remote, gitops.NewClient(), i)
			m.playSequence(25)
			r.fsck()
		})
	}
}

// TestReliabilityRandomSequences plays many more sequences against a repository
// in memory. All objects that come of it go through git's strict checks, and of
// the files after each step git makes trees of its own. Sequence n is that of
// seed n.
func TestReliabilityRandomSequences(t *testing.T) {
	t.Parallel()
	const batch = 100
	sequences := uint64(reliabilitytest.Count(batch, 10000))
	var applied, refused, tips atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for first := uint64(0); first < sequences; first += batch {
			t.Run(fmt.Sprintf("%d-%d", first, first+batch-1), func(t *testing.T) {
				t.Parallel()
				var repositories []*gittest.Memory
				var files bytes.Buffer // for git fast-import
				var trees []string     // what it has to come to
				for seed := first; seed < first+batch; seed++ {
					r := gittest.NewMemory(seed%2 == 0)
					repositories = append(repositories, r)
					client := gitops.NewClient(gitops.WithGit(git.NewClient(git.WithTransport(r))))
					m := newModel(t, memoryBranch{r}, git.Remote{URL: "http://memory/r", Branch: "main"}, client, seed)
					m.after = func() {
						if tree := r.Tree(); tree != "" {
							r.Import(&files)
							trees = append(trees, tree)
						}
					}
					m.playSequence(10)
					applied.Add(int64(m.applied))
					refused.Add(int64(m.refused))
				}
				directory := t.TempDir()
				run(t, directory, "git", "init", "--quiet", "--bare")
				feed(t, directory, gittest.Pack(repositories), "index-pack", "--strict", "--stdin")
				feed(t, directory, files.Bytes(), "fast-import", "--quiet")
				made := strings.Fields(run(t, directory, "git", "log", "--reverse", "--format=%T", "check"))
				if !slices.Equal(made, trees) {
					t.Error("git makes other trees of the same files")
				}
				tips.Add(int64(len(trees)))
			})
		}
	})
	reliabilitytest.Report(t, "55-sequences",
		"random sequences of 10 edits, prunes and foreign changes", "in memory, checked by git", fmt.Sprint(sequences),
		fmt.Sprintf("%d applies, %d of them refused as conflicts; foreign files byte-identical, owned folders as wanted; the trees of %d tips are git's own",
			applied.Load(), refused.Load(), tips.Load()))
}

// branch is what a model needs of a repository.
type branch interface {
	files() map[string]string
	byHand(change func(w hand))
}

// hand changes files as a person does.
type hand interface {
	write(name, content string)
	remove(name string)
}

// memoryBranch is a branch in memory.
type memoryBranch struct{ *gittest.Memory }

func (b memoryBranch) files() map[string]string { return b.Files() }

func (b memoryBranch) byHand(change func(w hand)) {
	files := memoryHand(b.Files())
	change(files)
	b.Commit(files)
}

// memoryHand are files by path.
type memoryHand map[string]string

func (h memoryHand) write(name, content string) { h[name] = content }

func (h memoryHand) remove(name string) {
	maps.DeleteFunc(h, func(file, _ string) bool { return file == name || strings.HasPrefix(file, name+"/") })
}

// gitBranch is a branch of a real repository.
type gitBranch struct{ *repository }

func (b gitBranch) byHand(change func(w hand)) {
	b.repository.byHand(func(w *workTree) { change(w) })
}

type model struct {
	t                *testing.T
	r                branch
	remote           git.Remote
	client           *gitops.Client
	seed             uint64
	random           *rand.Rand
	step             int
	foreign          map[string]string
	owned            map[gitops.Owner]map[string]gitops.Folder // by key
	applied, refused int
	after            func() // each step
}

func newModel(t *testing.T, r branch, remote git.Remote, client *gitops.Client, seed uint64) *model {
	t.Helper()
	return &model{
		t: t, r: r, remote: remote, client: client, seed: seed, random: rand.New(rand.NewPCG(1, seed)),
		foreign: map[string]string{}, owned: map[gitops.Owner]map[string]gitops.Folder{}, after: func() {},
	}
}

func (m *model) playSequence(steps int) {
	m.t.Helper()
	defer func() {
		if m.t.Failed() {
			m.t.Logf("in the sequence of seed %d", m.seed)
		}
	}()
	for m.step = range steps {
		m.play()
		m.compare()
		m.after()
	}
}

var modelOwners = []gitops.Owner{
	{Name: "a"}, {Name: "b", Path: "dev"}, {Name: "c", Path: "dev"}, {Name: "d", Path: "dev/drone/deep"}, {Name: "e", Path: "clusters"},
}

func (m *model) play() {
	owner := modelOwners[m.random.IntN(len(modelOwners))]
	switch m.random.IntN(8) {
	case 0:
		m.changeForeign()
	case 1:
		m.tamper()
	case 2:
		m.apply(owner, nil)
	default:
		folders := map[string]gitops.Folder{}
		for range m.random.IntN(5) {
			host := []string{"drone", "dev", "one", "clusters/one"}[m.random.IntN(4)]
			target := []string{"app", "drone", "deep", owner.Name, ""}[m.random.IntN(5)]
			if target == "" {
				folders[host+"/"] = gitops.Folder{}
				continue
			}
			folders[host+"/"+target] = rendered(m.t, "a.yaml", strconv.Itoa(m.random.IntN(3)), "b.yaml", "b")
		}
		m.apply(owner, folders)
	}
}

func (m *model) apply(owner gitops.Owner, folders map[string]gitops.Folder) {
	edit := gitops.Edit{Owner: owner, Hosts: hosts(m.t, folders)}
	if m.random.IntN(2) == 0 {
		edit.Previously = wanted(gitops.Edit{Hosts: hosts(m.t, m.owned[owner])})
	}
	m.applied++
	before := m.r.files()
	result, err := m.client.Apply(context.Background(), m.remote, edit)
	if err != nil {
		if !errors.Is(err, gitops.ErrConflict) && !errors.As(err, new(*git.BlockedError)) {
			m.t.Fatalf("step %d: %v", m.step, err)
		}
		m.refused++
		if after := m.r.files(); !maps.Equal(before, after) {
			m.t.Fatalf("step %d: %v, and the branch changed", m.step, err)
		}
		return
	}
	if other := m.overlaps(owner, folders); other != "" {
		m.t.Fatalf("step %d: %s took what belongs to %s: %v", m.step, owner.Name, other, slices.Sorted(maps.Keys(folders)))
	}
	if result.Committed == maps.Equal(before, m.r.files()) {
		m.t.Fatalf("step %d: committed = %v: %+v", m.step, result.Committed, result)
	}
	m.owned[owner] = folders
}

// overlaps finds what another owner or a person has in one of these folders, or
// around it.
func (m *model) overlaps(owner gitops.Owner, folders map[string]gitops.Folder) string {
	for key := range folders {
		if strings.HasSuffix(key, "/") {
			continue
		}
		folder := path.Join(owner.Path, key)
		for name := range m.foreign {
			if strings.HasPrefix(name, folder+"/") {
				return name
			}
		}
		for other, theirs := range m.owned {
			for key := range theirs {
				their, ok := path.Join(other.Path, key), !strings.HasSuffix(key, "/")
				if other != owner && (strings.HasPrefix(their+"/", folder+"/") || ok && strings.HasPrefix(folder+"/", their+"/")) {
					return other.Name
				}
			}
		}
	}
	return ""
}

func (m *model) changeForeign() {
	names := []string{"README.md", "dev/x/file", "dev/drone/other", "zz/y", "clusters/one/README", "dev/.flotilla/README", "large/z/z/z"}
	name := names[m.random.IntN(len(names))]
	for owner, folders := range m.owned {
		for key := range folders {
			if !strings.HasSuffix(key, "/") && strings.HasPrefix(name, path.Join(owner.Path, key)+"/") {
				return // in a folder that somebody owns, it would be drift
			}
		}
	}
	m.r.byHand(func(w hand) {
		if _, ok := m.foreign[name]; ok && m.random.IntN(2) == 0 {
			w.remove(name)
			delete(m.foreign, name)
			return
		}
		content := strconv.Itoa(m.random.Int())
		w.write(name, content)
		m.foreign[name] = content
	})
}

// tamper changes an owned folder by hand, and its owner repairs it.
func (m *model) tamper() {
	for _, owner := range modelOwners {
		for _, key := range slices.Sorted(maps.Keys(m.owned[owner])) {
			if strings.HasSuffix(key, "/") {
				continue
			}
			m.r.byHand(func(w hand) {
				switch at := path.Join(owner.Path, key); m.random.IntN(3) {
				case 0:
					w.write(at+"/a.yaml", "tampered")
				case 1:
					w.write(at+"/more/c.yaml", "tampered")
				default:
					w.remove(at)
				}
			})
			m.apply(owner, m.owned[owner])
			return
		}
	}
}

// compare checks every file of the branch.
func (m *model) compare() {
	m.t.Helper()
	want := maps.Clone(m.foreign)
	for owner, folders := range m.owned {
		for key, folder := range folders {
			i := strings.LastIndexByte(key, '/')
			host, target := key[:i], key[i+1:]
			want[path.Join(owner.Path, host, owner.Name+".md")] = "marker"
			want[path.Join(owner.Path, ".flotilla", owner.Name, host+".json")] = "record"
			if target == "" {
				continue
			}
			files, _ := folder.Files()
			for _, file := range files {
				want[path.Join(owner.Path, key, file.Name)] = string(file.Content)
			}
		}
	}
	files := m.r.files()
	for name := range files {
		if _, ok := want[name]; ok && (want[name] == "marker" || want[name] == "record") {
			want[name] = files[name]
		}
	}
	if !maps.Equal(files, want) {
		m.t.Fatalf("step %d: files = %q\nwant %q", m.step, files, want)
	}
}
