package gitops_test

import (
	"bytes"
	"context"
	"encoding/json"
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
			t.Parallel()
			r := newRepository(t, servings[i])
			m := newModel(t, gitBranch{r}, r.remote, gitops.NewClient(), i)
			m.playSequence(reliabilitytest.Count(15, 25))
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
					m.goesBack = seed%2 == 0
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
	left             map[string]string                         // markers of hosts that were left
	owned            map[gitops.Owner]map[string]gitops.Folder // by key; "<host>/" is the host
	known            map[gitops.Owner]map[string]string        // ids of the records
	past             []moment                                  // that one can go back to
	goesBack         bool                                      // the server lets one
	applied, refused int
	after            func() // each step
}

// moment is what an owner had after one of its applies.
type moment struct {
	owner  gitops.Owner
	commit string
	owned  map[string]gitops.Folder
}

func newModel(t *testing.T, r branch, remote git.Remote, client *gitops.Client, seed uint64) *model {
	t.Helper()
	return &model{
		t: t, r: r, remote: remote, client: client, seed: seed, random: rand.New(rand.NewPCG(1, seed)),
		foreign: map[string]string{}, left: map[string]string{}, owned: map[gitops.Owner]map[string]gitops.Folder{},
		known: map[gitops.Owner]map[string]string{}, goesBack: true, after: func() {},
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
	{Name: "f", Path: "dev"}, {Name: "g"},
}

func (m *model) play() {
	owner := modelOwners[m.random.IntN(len(modelOwners))]
	switch m.random.IntN(10) {
	case 0:
		m.changeForeign()
	case 1:
		m.tamper()
	case 2:
		m.apply(m.edit(owner, nil))
	case 3:
		m.removeLeft()
	case 4:
		m.rename(owner)
	default:
		folders := map[string]gitops.Folder{}
		for range m.random.IntN(5) {
			host := []string{"drone", "dev", "one", "clusters/one"}[m.random.IntN(4)]
			target := []string{"app", "drone", "deep", owner.Name, ""}[m.random.IntN(5)]
			if target == "" {
				folders[host+"/"] = gitops.Folder{}
				continue
			}
			folders[host+"/"+target] = m.folder(owner, host+"/"+target)
		}
		m.apply(m.edit(owner, folders))
	}
}

// folder is one that is written, mostly, or kept, or goes back.
func (m *model) folder(owner gitops.Owner, key string) gitops.Folder {
	switch m.random.IntN(5) {
	case 0:
		return gitops.Folder{Action: gitops.Keep}
	case 1:
		if !m.goesBack {
			break
		}
		for _, i := range m.random.Perm(len(m.past)) {
			then := m.past[i]
			if folder, ok := then.owned[key]; ok && then.owner.Path == owner.Path {
				folder.Action, folder.From = gitops.GoBack, then.commit
				return folder
			}
		}
	}
	return rendered(m.t, "a.yaml", strconv.Itoa(m.random.IntN(3)), "b.yaml", "b")
}

// edit is one that the state knows more or less about, and whose plan showed
// more or less of what it removes.
func (m *model) edit(owner gitops.Owner, folders map[string]gitops.Folder) gitops.Edit {
	edit := gitops.Edit{Owner: owner, Hosts: hosts(m.t, folders), LeaveOthers: m.random.IntN(6) == 0}
	if m.random.IntN(2) == 0 {
		edit.Previously = wanted(gitops.Edit{Hosts: hosts(m.t, m.owned[owner])})
		if m.random.IntN(3) > 0 {
			edit.Records = m.known[owner]
		}
	}
	edit.Remove = gitops.Deployed{}
	all := m.random.IntN(4) > 0
	for host, h := range hosts(m.t, m.owned[owner]) {
		edit.Remove[host] = map[string]string{}
		for target := range h.Folders {
			if all || m.random.IntN(2) == 0 {
				edit.Remove[host][target] = ""
			}
		}
	}
	return edit
}

// rename gives what an owner has to another name, now and then with a change.
func (m *model) rename(owner gitops.Owner) {
	for _, i := range m.random.Perm(len(modelOwners)) {
		to := modelOwners[i]
		if to.Path != owner.Path || to == owner {
			continue
		}
		folders := maps.Clone(m.owned[owner])
		for _, key := range slices.Sorted(maps.Keys(folders)) {
			if m.random.IntN(4) == 0 && !strings.HasSuffix(key, "/") {
				folders[key] = m.folder(owner, key)
			}
		}
		edit := m.edit(owner, folders)
		edit.Owner, edit.Formerly = to, owner.Name
		m.apply(edit)
		return
	}
}

// removeLeft does what a person may do with a host that was left.
func (m *model) removeLeft() {
	for _, name := range slices.Sorted(maps.Keys(m.left)) {
		if m.random.IntN(2) == 0 {
			m.r.byHand(func(w hand) { w.remove(name) })
			delete(m.left, name)
		}
	}
}

func (m *model) apply(edit gitops.Edit) {
	m.t.Helper()
	m.applied++
	before := m.r.files()
	result, err := m.client.Apply(context.Background(), m.remote, edit)
	unplanned := m.unplanned(edit)
	if err != nil {
		switch {
		case errors.Is(err, gitops.ErrUnplanned) && len(unplanned) > 0 && !edit.LeaveOthers:
		case errors.Is(err, gitops.ErrConflict), errors.As(err, new(*git.BlockedError)):
		default:
			m.t.Fatalf("step %d: %v", m.step, err)
		}
		m.refused++
		if after := m.r.files(); !maps.Equal(before, after) {
			m.t.Fatalf("step %d: %v, and the branch changed", m.step, err)
		}
		return
	}
	if len(unplanned) > 0 && !edit.LeaveOthers {
		m.t.Fatalf("step %d: nobody was told of %v", m.step, unplanned)
	}
	if other := m.overlaps(edit); other != "" {
		m.t.Fatalf("step %d: %s took what belongs to %s: %v", m.step, edit.Owner.Name, other, edit.Wanted())
	}
	if result.Committed == maps.Equal(before, m.r.files()) {
		m.t.Fatalf("step %d: committed = %v: %+v", m.step, result.Committed, result)
	}
	m.applyToModel(edit)
	m.known[edit.Owner] = result.Records
	if got := len(hosts(m.t, m.owned[edit.Owner])); got != len(result.Records) {
		m.t.Fatalf("step %d: %d hosts, records %v", m.step, got, result.Records)
	}
	if m.past = append(m.past, moment{edit.Owner, result.Commit, m.owned[edit.Owner]}); result.Commit == "" {
		m.past = m.past[:len(m.past)-1]
	}
}

// former is the edit's owner by the name that it had.
func former(edit gitops.Edit) gitops.Owner {
	return gitops.Owner{Name: edit.Formerly, Path: edit.Owner.Path}
}

// before is what the edit's owner has, under both names.
func (m *model) before(edit gitops.Edit) map[string]gitops.Folder {
	folders := map[string]gitops.Folder{}
	maps.Copy(folders, m.owned[former(edit)])
	maps.Copy(folders, m.owned[edit.Owner])
	return folders
}

// unplanned are the folders that the edit would have to remove and may not.
func (m *model) unplanned(edit gitops.Edit) []string {
	var unplanned []string
	for key := range m.before(edit) {
		host, target := cut(key)
		_, wanted := edit.Hosts[host].Folders[target]
		_, planned := edit.Remove[host][target]
		if target != "" && !wanted && !planned {
			unplanned = append(unplanned, key)
		}
	}
	return unplanned
}

func cut(key string) (host, target string) {
	i := strings.LastIndexByte(key, '/')
	return key[:i], key[i+1:]
}

// applyToModel does with the model what an edit does with the branch.
func (m *model) applyToModel(edit gitops.Edit) {
	before, after := m.before(edit), map[string]gitops.Folder{}
	for host, h := range edit.Hosts {
		after[host+"/"] = gitops.Folder{}
		for target, folder := range h.Folders {
			key := host + "/" + target
			if folder.Action == gitops.Keep {
				if kept, ok := before[key]; ok {
					after[key] = kept
				}
				continue
			}
			folder.Action, folder.From = gitops.Write, ""
			after[key] = folder
		}
	}
	for _, key := range m.unplanned(edit) {
		host, _ := cut(key)
		after[key], after[host+"/"] = before[key], gitops.Folder{}
	}
	marker := func(owner gitops.Owner, host string) string { return path.Join(owner.Path, host, owner.Name+".md") }
	for host := range hosts(m.t, before) {
		if _, ok := after[host+"/"]; !ok {
			m.left[marker(edit.Owner, host)] = leftText(edit.Owner.Name)
		}
	}
	for host := range hosts(m.t, after) {
		delete(m.left, marker(edit.Owner, host))
		if edit.Formerly != "" {
			delete(m.left, marker(former(edit), host))
		}
	}
	delete(m.owned, former(edit))
	m.owned[edit.Owner] = after
}

// overlaps finds what another owner or a person has in one of the folders that
// are written, or around it.
func (m *model) overlaps(edit gitops.Edit) string {
	for host, h := range edit.Hosts {
		for target, folder := range h.Folders {
			if folder.Action == gitops.Keep {
				continue
			}
			if by := m.inTheWay(edit, host+"/"+target); by != "" {
				return by
			}
		}
	}
	return ""
}

func (m *model) inTheWay(edit gitops.Edit, key string) string {
	folder := path.Join(edit.Owner.Path, key)
	for _, files := range []map[string]string{m.foreign, m.left} {
		for name := range files {
			if strings.HasPrefix(name, folder+"/") {
				return name
			}
		}
	}
	for other, theirs := range m.owned {
		if other == edit.Owner || other == former(edit) {
			continue
		}
		for key := range theirs {
			their, ok := path.Join(other.Path, key), !strings.HasSuffix(key, "/")
			if strings.HasPrefix(their+"/", folder+"/") || ok && strings.HasPrefix(folder+"/", their+"/") {
				return other.Name
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
	for _, i := range m.random.Perm(len(modelOwners)) {
		owner := modelOwners[i]
		for _, key := range slices.Sorted(maps.Keys(m.owned[owner])) {
			if strings.HasSuffix(key, "/") {
				continue
			}
			host, _ := cut(key)
			m.r.byHand(func(w hand) {
				switch at := path.Join(owner.Path, key); m.random.IntN(6) {
				case 0:
					w.write(at+"/a.yaml", "tampered")
				case 1:
					w.write(at+"/more/c.yaml", "tampered")
				case 2:
					w.remove(at)
				case 3:
					w.remove(path.Join(owner.Path, host, owner.Name+".md"))
				case 4:
					w.remove(path.Join(owner.Path, ".flotilla", owner.Name, host+".json"))
				default:
					w.write(path.Join(owner.Path, ".flotilla", owner.Name, host+".json"), "{")
				}
			})
			edit := m.edit(owner, m.owned[owner])
			edit.Previously = wanted(gitops.Edit{Hosts: hosts(m.t, m.owned[owner])})
			m.apply(edit)
			return
		}
	}
}

// compare checks every file of the branch.
func (m *model) compare() {
	m.t.Helper()
	want := maps.Clone(m.foreign)
	maps.Copy(want, m.left)
	records := map[string]map[string]string{} // trees
	for owner, folders := range m.owned {
		for key, folder := range folders {
			host, target := cut(key)
			want[path.Join(owner.Path, host, owner.Name+".md")] = "marker"
			record := path.Join(owner.Path, ".flotilla", owner.Name, host+".json")
			want[record] = "record"
			if records[record] == nil {
				records[record] = map[string]string{}
			}
			if target == "" {
				continue
			}
			records[record][target] = folder.Tree
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
		for name, content := range files {
			if other, ok := want[name]; !ok || other != content {
				m.t.Errorf("step %d: %s = %q, want %q", m.step, name, content, other)
			}
			delete(want, name)
		}
		m.t.Fatalf("step %d: missing: %q", m.step, want)
	}
	for name, trees := range records {
		var record struct {
			Targets map[string]struct{ Tree string } `json:"deployment_targets"`
		}
		if err := json.Unmarshal([]byte(files[name]), &record); err != nil {
			m.t.Fatalf("step %d: %s: %v", m.step, name, err)
		}
		got := map[string]string{}
		for target, folder := range record.Targets {
			got[target] = folder.Tree
		}
		if !maps.Equal(got, trees) {
			m.t.Fatalf("step %d: %s lists %v, want %v", m.step, name, got, trees)
		}
	}
}
