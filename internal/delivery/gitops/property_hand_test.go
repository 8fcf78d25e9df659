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
type memoryBranch struct{ *gittest.MemoryRepository }

func (b memoryBranch) files() map[string]string { return b.Files("main") }

func (b memoryBranch) byHand(change func(w hand)) {
	files := memoryHand(b.Files("main"))
	change(files)
	b.Write("main", files)
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
			edit.Written = wanted(gitops.Edit{Hosts: hosts(m.t, m.owned[owner])})
			m.apply(edit)
			return
		}
	}
}
