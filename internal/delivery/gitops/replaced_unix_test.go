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

// What somebody puts in the place of an owned folder, marker, record or host goes with the next apply, and with a
// destroy.
func TestALinkInThePlaceOfWhatIsOwnedIsReplaced(t *testing.T) {
	t.Parallel()
	isReplaced(t, (*repository).byHand, func(name string) error { return os.Symlink("/etc", name) })
}

func TestASubmoduleInThePlaceOfWhatIsOwnedIsReplaced(t *testing.T) {
	t.Parallel()
	isReplaced(t, (*repository).byGit, func(name string) error {
		run(t, filepath.Dir(name), "git", "rm", "-r", "--quiet", "--cached", filepath.Base(name)) // else git adds no submodule there
		run(t, filepath.Dir(name), "git", "init", "--quiet", filepath.Base(name))
		run(t, name, "git", "commit", "--quiet", "--allow-empty", "--message", "of another repository")
		return nil
	})
}

// isReplaced puts something in the place of what is owned, applies, and destroys.
func isReplaced(t *testing.T, change func(*repository, func(*workTree)), put func(name string) error) {
	t.Helper()
	for i, at := range []string{"dev/drone/app", "dev/drone/dev.md", "dev/drone", "dev/.flotilla/dev/drone.json"} {
		for _, destroy := range []bool{false, true} {
			if !acceptancetest.All() && destroy == (i%2 == 0) {
				continue
			}
			r := newRepository(t, servings[0])
			edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": rendered(t, "a", "1"), "large/app": rendered(t, "a", "1")})
			edit.Holder = "1"
			first := apply(t, r, edit)
			before := r.files()
			change(r, func(w *workTree) {
				name := filepath.Join(w.directory, at)
				if err := errors.Join(os.RemoveAll(name), put(name)); err != nil {
					t.Fatal(err)
				}
			})
			edit.Written, edit.Records = wanted(edit), first.Records
			if conflicts, err := inspect(t, r, edit.Owner).FindConflicts(t.Context(), wanted(edit), nil, ""); err != nil && at != "dev/drone" {
				t.Errorf("%s: the plan says %v, %v", at, conflicts, err)
			}
			if destroy {
				edit.Hosts, edit.Remove, edit.LeaveOthers = nil, edit.Written, true
			}
			if _, err := newClient(gitops.BranchOptions{}).Apply(t.Context(), r.remote, edit); err != nil {
				t.Errorf("%s, destroy %t: %v", at, destroy, err)
				continue
			}
			files := r.files()
			for _, of := range []map[string]string{files, before} { // a lost record has the time of its repair
				maps.DeleteFunc(of, func(name, _ string) bool { return name == at && filepath.Ext(at) == ".json" })
			}
			if !destroy && !maps.Equal(files, before) {
				t.Errorf("%s: %v", at, files)
			} else if _, ok := files["dev/drone/app/a"]; destroy && ok {
				t.Errorf("%s: %v", at, files)
			}
			r.fsck()
		}
	}
}
