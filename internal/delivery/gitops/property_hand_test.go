package gitops_test

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// branch is a branch that a model reads and changes.
type branch interface {
	files() map[string]string
	commitByHand(change func(w fileEditor))
}

// fileEditor changes files by hand.
type fileEditor interface {
	write(name, content string)
	remove(name string)
}

type memoryBranch struct{ *gittest.MemoryRepository }

func (b memoryBranch) files() map[string]string { return b.Files("main") }

func (b memoryBranch) commitByHand(change func(w fileEditor)) {
	files := memoryFiles(b.Files("main"))
	change(files)
	b.Write("main", files)
}

// memoryFiles has the content of files by path.
type memoryFiles map[string]string

func (h memoryFiles) write(name, content string) { h[name] = content }

func (h memoryFiles) remove(name string) {
	maps.DeleteFunc(h, func(file, _ string) bool { return file == name || strings.HasPrefix(file, name+"/") })
}

type gitBranch struct{ *repository }

func (b gitBranch) commitByHand(change func(w fileEditor)) {
	b.repository.commitByHand(func(w *workTree) { change(w) })
}

// changeForeign changes a file outside the owned folders.
func (m *model) changeForeign() {
	names := []string{"README.md", "dev/x/file", "dev/drone/other", "zz/y", "clusters/one/README", "dev/.flotilla/README", "large/z/z/z"}
	name := names[m.random.IntN(len(names))]
	for owner, folders := range m.owned {
		for key := range folders {
			if !strings.HasSuffix(key, "/") && strings.HasPrefix(name, path.Join(owner.Path, key)+"/") {
				return // a change inside an owned folder would be drift
			}
		}
	}
	m.r.commitByHand(func(w fileEditor) {
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

// tamper changes an owned folder by hand, then lets its owner repair it.
func (m *model) tamper() {
	for _, i := range m.random.Perm(len(modelOwners)) {
		owner := modelOwners[i]
		for _, key := range slices.Sorted(maps.Keys(m.owned[owner])) {
			if strings.HasSuffix(key, "/") {
				continue
			}
			host, _ := splitKey(key)
			m.r.commitByHand(func(w fileEditor) {
				switch name := path.Join(owner.Path, key); m.random.IntN(6) {
				case 0:
					w.write(name+"/a.yaml", "tampered")
				case 1:
					w.write(name+"/more/c.yaml", "tampered")
				case 2:
					w.remove(name)
				case 3:
					w.remove(path.Join(owner.Path, host, owner.Name+".md"))
				case 4:
					w.remove(path.Join(owner.Path, ".flotilla", owner.Name, host+".json"))
				default:
					w.write(path.Join(owner.Path, ".flotilla", owner.Name, host+".json"), "{")
				}
			})
			edit := m.newEdit(owner, m.owned[owner])
			edit.Written = treesOf(gitops.Edit{Hosts: folderEdits(m.t, m.owned[owner])})
			m.apply(edit)
			return
		}
	}
}
