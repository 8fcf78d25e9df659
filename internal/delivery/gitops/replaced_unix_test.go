//go:build unix

package gitops_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// Apply and destroy replace a link in the place of an owned folder, marker, record or host.
func TestALinkInThePlaceOfAnOwnedObjectIsReplaced(t *testing.T) {
	t.Parallel()
	checkReplaced(t, (*repository).commitByHand, func(name string) error { return os.Symlink("/etc", name) })
}

func TestASubmoduleInThePlaceOfAnOwnedObjectIsReplaced(t *testing.T) {
	t.Parallel()
	checkReplaced(t, (*repository).commitByGit, func(name string) error {
		run(t, filepath.Dir(name), "git", "rm", "-r", "--quiet", "--cached", filepath.Base(name)) // otherwise git adds no submodule there
		run(t, filepath.Dir(name), "git", "init", "--quiet", filepath.Base(name))
		run(t, name, "git", "commit", "--quiet", "--allow-empty", "--message", "of another repository")
		return nil
	})
}

// checkReplaced replaces an owned object by hand, then applies or destroys.
func checkReplaced(t *testing.T, change func(*repository, func(*workTree)), put func(name string) error) {
	t.Helper()
	for i, replaced := range []string{"dev/drone/app", "dev/drone/dev.md", "dev/drone", "dev/.flotilla/dev/drone.json"} {
		for _, destroy := range []bool{false, true} {
			if !acceptancetest.All() && destroy == (i%2 == 0) {
				continue
			}
			r := newRepository(t, servings[0])
			edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1"), "large/app": newFolder(t, "a", "1")})
			edit.Holder = "1"
			first := apply(t, r, edit)
			before := r.files()
			change(r, func(w *workTree) {
				name := filepath.Join(w.directory, replaced)
				if err := errors.Join(os.RemoveAll(name), put(name)); err != nil {
					t.Fatal(err)
				}
			})
			edit.Written, edit.Records = treesOf(edit), first.Records
			if conflicts, err := readOwner(t, r, edit.Owner).FindConflicts(t.Context(), treesOf(edit), nil, ""); err != nil && replaced != "dev/drone" {
				t.Errorf("%s: got conflicts %v, %v", replaced, conflicts, err)
			}
			if destroy {
				edit.Hosts, edit.Remove, edit.LeaveOthers = nil, edit.Written, true
			}
			if _, err := newClient(gitops.BranchOptions{}).Apply(t.Context(), r.remote, edit); err != nil {
				t.Errorf("%s, destroy %t: %v", replaced, destroy, err)
				continue
			}
			files := r.files()
			for _, content := range []map[string]string{files, before} { // a repaired record has a new time
				maps.DeleteFunc(content, func(name, _ string) bool { return name == replaced && filepath.Ext(replaced) == ".json" })
			}
			if !destroy && !maps.Equal(files, before) {
				t.Errorf("%s: %v", replaced, files)
			} else if _, ok := files["dev/drone/app/a"]; destroy && ok {
				t.Errorf("%s: %v", replaced, files)
			}
			r.fsck()
		}
	}
}
