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

// model is the expected content of a branch.
type model struct {
	t                *testing.T
	r                branch
	remote           git.Remote
	client           *gitops.BranchClient
	seed             uint64
	random           *rand.Rand
	step             int
	foreign          map[string]string
	leftMarkers      map[string]string                             // markers of removed hosts
	owned            map[gitops.Owner]map[string]gitops.FolderEdit // by "<host>/<target>", and "<host>/" for the host itself
	recordIDs        map[gitops.Owner]map[string]string
	past             []pastApply // possible rollbacks
	canRollBack      bool        // the server serves old commits
	applied, refused int
	afterStep        func()
}

// pastApply is the content of an owner after one of its applies.
type pastApply struct {
	owner  gitops.Owner
	commit string
	owned  map[string]gitops.FolderEdit
}

func newModel(t *testing.T, r branch, remote git.Remote, client *gitops.BranchClient, seed uint64) *model {
	t.Helper()
	return &model{
		t: t, r: r, remote: remote, client: client, seed: seed, random: rand.New(rand.NewPCG(1, seed)),
		foreign: map[string]string{}, leftMarkers: map[string]string{}, owned: map[gitops.Owner]map[string]gitops.FolderEdit{},
		recordIDs: map[gitops.Owner]map[string]string{}, canRollBack: true, afterStep: func() {},
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
		m.afterStep()
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
		m.apply(m.newEdit(owner, nil))
	case 3:
		m.removeLeftMarkers()
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
			folders[host+"/"+target] = m.randomFolder(owner, host+"/"+target)
		}
		m.apply(m.newEdit(owner, folders))
	}
}

// randomFolder returns a folder to write, keep or roll back.
func (m *model) randomFolder(owner gitops.Owner, key string) gitops.FolderEdit {
	switch m.random.IntN(5) {
	case 0:
		return gitops.FolderEdit{Action: gitops.Keep}
	case 1:
		if !m.canRollBack {
			break
		}
		for _, i := range m.random.Perm(len(m.past)) {
			earlier := m.past[i]
			if folder, ok := earlier.owned[key]; ok && earlier.owner.Path == owner.Path {
				folder.Action, folder.From = gitops.RollBack, earlier.commit
				return folder
			}
		}
	}
	return newFolder(m.t, "a.yaml", strconv.Itoa(m.random.IntN(3)), "b.yaml", "b")
}

// newEdit returns an edit with a random part of the state and of the planned removals.
func (m *model) newEdit(owner gitops.Owner, folders map[string]gitops.FolderEdit) gitops.Edit {
	edit := gitops.Edit{Owner: owner, Hosts: folderEdits(m.t, folders), LeaveOthers: m.random.IntN(6) == 0}
	if m.random.IntN(2) == 0 {
		edit.Written = treesOf(gitops.Edit{Hosts: folderEdits(m.t, m.owned[owner])})
		if m.random.IntN(3) > 0 {
			edit.Records = m.recordIDs[owner]
		}
	}
	edit.Remove = deployedTrees{}
	all := m.random.IntN(4) > 0
	for host, h := range folderEdits(m.t, m.owned[owner]) {
		edit.Remove[host] = map[string]string{}
		for target := range h {
			if all || m.random.IntN(2) == 0 {
				edit.Remove[host][target] = ""
			}
		}
	}
	return edit
}

// rename gives the owner's folders to another name, sometimes with a change.
func (m *model) rename(owner gitops.Owner) {
	for _, i := range m.random.Perm(len(modelOwners)) {
		to := modelOwners[i]
		if to.Path != owner.Path || to == owner {
			continue
		}
		folders := maps.Clone(m.owned[owner])
		for _, key := range slices.Sorted(maps.Keys(folders)) {
			if m.random.IntN(4) == 0 && !strings.HasSuffix(key, "/") {
				folders[key] = m.randomFolder(owner, key)
			}
		}
		edit := m.newEdit(owner, folders)
		edit.Owner, edit.FormerName = to, owner.Name
		m.apply(edit)
		return
	}
}

// removeLeftMarkers removes some markers of removed hosts by hand.
func (m *model) removeLeftMarkers() {
	for _, name := range slices.Sorted(maps.Keys(m.leftMarkers)) {
		if m.random.IntN(2) == 0 {
			m.r.commitByHand(func(w fileEditor) { w.remove(name) })
			delete(m.leftMarkers, name)
		}
	}
}

func (m *model) apply(edit gitops.Edit) {
	m.t.Helper()
	m.applied++
	before := m.r.files()
	result, err := m.client.Apply(context.Background(), m.remote, edit)
	unplanned := m.unplannedRemovals(edit)
	if err != nil {
		switch {
		case errors.Is(err, gitops.ErrUnplanned) && len(unplanned) > 0 && !edit.LeaveOthers:
		case errors.Is(err, gitops.ErrConflict), errors.As(err, new(*git.BlockedError)):
		default:
			m.t.Fatalf("step %d: %v", m.step, err)
		}
		m.refused++
		if after := m.r.files(); !maps.Equal(before, after) {
			m.t.Fatalf("step %d: the branch changed in spite of %v", m.step, err)
		}
		return
	}
	if len(unplanned) > 0 && !edit.LeaveOthers {
		m.t.Fatalf("step %d: unplanned removals of %v are accepted", m.step, unplanned)
	}
	if other := m.findOverlap(edit); other != "" {
		m.t.Fatalf("step %d: %s wrote folders of %s: %v", m.step, edit.Owner.Name, other, edit.Wanted())
	}
	if result.Committed == maps.Equal(before, m.r.files()) {
		m.t.Fatalf("step %d: committed = %v: %+v", m.step, result.Committed, result)
	}
	m.applyToModel(edit)
	m.recordIDs[edit.Owner] = result.Records
	if got := len(folderEdits(m.t, m.owned[edit.Owner])); got != len(result.Records) {
		m.t.Fatalf("step %d: %d hosts, records %v", m.step, got, result.Records)
	}
	if m.past = append(m.past, pastApply{edit.Owner, result.Commit, m.owned[edit.Owner]}); result.Commit == "" {
		m.past = m.past[:len(m.past)-1]
	}
}

func formerOwner(edit gitops.Edit) gitops.Owner {
	return gitops.Owner{Name: edit.FormerName, Path: edit.Owner.Path}
}

// foldersBefore returns the folders of the edit's owner under both names.
func (m *model) foldersBefore(edit gitops.Edit) map[string]gitops.FolderEdit {
	folders := map[string]gitops.FolderEdit{}
	maps.Copy(folders, m.owned[formerOwner(edit)])
	maps.Copy(folders, m.owned[edit.Owner])
	return folders
}

// unplannedRemovals returns the folders that the edit leaves out without planning their removal.
func (m *model) unplannedRemovals(edit gitops.Edit) []string {
	var unplanned []string
	for key := range m.foldersBefore(edit) {
		host, target := splitKey(key)
		_, wanted := edit.Hosts[host][target]
		_, planned := edit.Remove[host][target]
		if target != "" && !wanted && !planned {
			unplanned = append(unplanned, key)
		}
	}
	return unplanned
}

func splitKey(key string) (host, target string) {
	i := strings.LastIndexByte(key, '/')
	return key[:i], key[i+1:]
}

func (m *model) applyToModel(edit gitops.Edit) {
	before, after := m.foldersBefore(edit), map[string]gitops.FolderEdit{}
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
	for _, key := range m.unplannedRemovals(edit) {
		host, _ := splitKey(key)
		after[key], after[host+"/"] = before[key], gitops.FolderEdit{}
	}
	marker := func(owner gitops.Owner, host string) string { return path.Join(owner.Path, host, owner.Name+".md") }
	for host := range folderEdits(m.t, before) {
		if _, ok := after[host+"/"]; !ok {
			m.leftMarkers[marker(edit.Owner, host)] = leftMarker(edit.Owner.Name)
		}
	}
	for host := range folderEdits(m.t, after) {
		delete(m.leftMarkers, marker(edit.Owner, host))
		if edit.FormerName != "" {
			delete(m.leftMarkers, marker(formerOwner(edit), host))
		}
	}
	delete(m.owned, formerOwner(edit))
	m.owned[edit.Owner] = after
}

// findOverlap returns another owner or a foreign file in or around one of the written folders, "" for none.
func (m *model) findOverlap(edit gitops.Edit) string {
	for host, h := range edit.Hosts {
		for target, folder := range h {
			if folder.Action == gitops.Keep {
				continue
			}
			if other := m.findBlocker(edit, host+"/"+target); other != "" {
				return other
			}
		}
	}
	return ""
}

func (m *model) findBlocker(edit gitops.Edit, key string) string {
	folder := path.Join(edit.Owner.Path, key)
	for _, files := range []map[string]string{m.foreign, m.leftMarkers} {
		for name := range files {
			if strings.HasPrefix(name, folder+"/") {
				return name
			}
		}
	}
	for other, theirs := range m.owned {
		if other == edit.Owner || other == formerOwner(edit) {
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

// compare compares every file of the branch with the model.
func (m *model) compare() {
	m.t.Helper()
	want := maps.Clone(m.foreign)
	maps.Copy(want, m.leftMarkers)
	records := map[string]map[string]string{} // trees
	for owner, folders := range m.owned {
		for key, folder := range folders {
			host, target := splitKey(key)
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
