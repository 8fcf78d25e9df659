package gitops_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

type model struct {
	t                *testing.T
	r                branch
	remote           git.Remote
	client           *gitops.BranchClient
	seed             uint64
	random           *rand.Rand
	step             int
	foreign          map[string]string
	left             map[string]string                             // markers of hosts that were left
	owned            map[gitops.Owner]map[string]gitops.FolderEdit // by key; "<host>/" is the host
	known            map[gitops.Owner]map[string]string            // ids of the records
	past             []moment                                      // that one can go back to
	goesBack         bool                                          // the server lets one
	applied, refused int
	after            func() // each step
}

// moment is what an owner had after one of its applies.
type moment struct {
	owner  gitops.Owner
	commit string
	owned  map[string]gitops.FolderEdit
}

func newModel(t *testing.T, r branch, remote git.Remote, client *gitops.BranchClient, seed uint64) *model {
	t.Helper()
	return &model{
		t: t, r: r, remote: remote, client: client, seed: seed, random: rand.New(rand.NewPCG(1, seed)),
		foreign: map[string]string{}, left: map[string]string{}, owned: map[gitops.Owner]map[string]gitops.FolderEdit{},
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
		folders := map[string]gitops.FolderEdit{}
		for range m.random.IntN(5) {
			host := []string{"drone", "dev", "one", "clusters/one"}[m.random.IntN(4)]
			target := []string{"app", "drone", "deep", owner.Name, ""}[m.random.IntN(5)]
			if target == "" {
				folders[host+"/"] = gitops.FolderEdit{}
				continue
			}
			folders[host+"/"+target] = m.folder(owner, host+"/"+target)
		}
		m.apply(m.edit(owner, folders))
	}
}

// folder is one that is written, mostly, or kept, or goes back.
func (m *model) folder(owner gitops.Owner, key string) gitops.FolderEdit {
	switch m.random.IntN(5) {
	case 0:
		return gitops.FolderEdit{Action: gitops.Keep}
	case 1:
		if !m.goesBack {
			break
		}
		for _, i := range m.random.Perm(len(m.past)) {
			then := m.past[i]
			if folder, ok := then.owned[key]; ok && then.owner.Path == owner.Path {
				folder.Action, folder.From = gitops.RollBack, then.commit
				return folder
			}
		}
	}
	return rendered(m.t, "a.yaml", strconv.Itoa(m.random.IntN(3)), "b.yaml", "b")
}

// edit is one that the state knows more or less about, and whose plan showed
// more or less of what it removes.
func (m *model) edit(owner gitops.Owner, folders map[string]gitops.FolderEdit) gitops.Edit {
	edit := gitops.Edit{Owner: owner, Hosts: hosts(m.t, folders), LeaveOthers: m.random.IntN(6) == 0}
	if m.random.IntN(2) == 0 {
		edit.Written = wanted(gitops.Edit{Hosts: hosts(m.t, m.owned[owner])})
		if m.random.IntN(3) > 0 {
			edit.Records = m.known[owner]
		}
	}
	edit.Remove = deployedTrees{}
	all := m.random.IntN(4) > 0
	for host, h := range hosts(m.t, m.owned[owner]) {
		edit.Remove[host] = map[string]string{}
		for target := range h {
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
		edit.Owner, edit.FormerName = to, owner.Name
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
	return gitops.Owner{Name: edit.FormerName, Path: edit.Owner.Path}
}

// before is what the edit's owner has, under both names.
func (m *model) before(edit gitops.Edit) map[string]gitops.FolderEdit {
	folders := map[string]gitops.FolderEdit{}
	maps.Copy(folders, m.owned[former(edit)])
	maps.Copy(folders, m.owned[edit.Owner])
	return folders
}

// unplanned are the folders that the edit would have to remove and may not.
func (m *model) unplanned(edit gitops.Edit) []string {
	var unplanned []string
	for key := range m.before(edit) {
		host, target := cut(key)
		_, wanted := edit.Hosts[host][target]
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
	before, after := m.before(edit), map[string]gitops.FolderEdit{}
	for host, h := range edit.Hosts {
		after[host+"/"] = gitops.FolderEdit{}
		for target, folder := range h {
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
		after[key], after[host+"/"] = before[key], gitops.FolderEdit{}
	}
	marker := func(owner gitops.Owner, host string) string { return path.Join(owner.Path, host, owner.Name+".md") }
	for host := range hosts(m.t, before) {
		if _, ok := after[host+"/"]; !ok {
			m.left[marker(edit.Owner, host)] = leftText(edit.Owner.Name)
		}
	}
	for host := range hosts(m.t, after) {
		delete(m.left, marker(edit.Owner, host))
		if edit.FormerName != "" {
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
		for target, folder := range h {
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
