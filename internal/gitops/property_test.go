package gitops_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
)

// TestRandomEditsAndForeignChanges plays sequences of applies, destroys, losses
// of state and changes by hand, and compares the branch with a model after each
// step. FLOTILLA_SEQUENCES and FLOTILLA_SEED play more, and others.
func TestRandomEditsAndForeignChanges(t *testing.T) {
	t.Parallel()
	sequences, seed := 6, uint64(1)
	if n, err := strconv.Atoi(os.Getenv("FLOTILLA_SEQUENCES")); err == nil {
		sequences = n
	}
	if n, err := strconv.ParseUint(os.Getenv("FLOTILLA_SEED"), 10, 64); err == nil {
		seed = n
	}
	for i := range sequences {
		t.Run(fmt.Sprintf("seed %d.%d", seed, i), func(t *testing.T) {
			m := &model{
				t: t, r: newRepository(t, servings[i%len(servings)]), random: rand.New(rand.NewPCG(seed, uint64(i))),
				foreign: map[string]string{}, owned: map[gitops.Owner]map[string]gitops.Folder{},
			}
			for m.step = range 25 {
				m.play()
				m.compare()
			}
			m.r.fsck()
			t.Logf("%d applies, %d of them refused", m.applied, m.refused)
		})
	}
}

type model struct {
	t                *testing.T
	r                *repository
	random           *rand.Rand
	step             int
	foreign          map[string]string
	owned            map[gitops.Owner]map[string]gitops.Folder // by key
	applied, refused int
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
	result, err := gitops.NewClient().Apply(context.Background(), m.r.remote, edit)
	if err != nil {
		if !errors.Is(err, gitops.ErrConflict) && !errors.As(err, new(*gitops.BlockedError)) {
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
	m.r.byHand(func(w *workTree) {
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
			m.r.byHand(func(w *workTree) {
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

// compare checks every file of the branch, and that git makes the same trees of
// them.
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
	if len(files) == 0 {
		return
	}
	index := path.Join(m.t.TempDir(), "index")
	command := exec.CommandContext(m.t.Context(), "sh", "-c", "git ls-tree -r main | git update-index --index-info && git write-tree")
	command.Dir, command.Env = m.r.directory, append(os.Environ(), "GIT_INDEX_FILE="+index)
	output, err := command.CombinedOutput()
	if got := m.r.git("rev-parse", "main^{tree}"); err != nil || strings.TrimSpace(string(output)) != got {
		m.t.Fatalf("step %d: the tip's tree is %s, git makes %s of it (%v)", m.step, got, output, err)
	}
}
