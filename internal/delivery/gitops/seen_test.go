package gitops_test

import (
	"errors"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
)

func TestAFolderChangedAfterThePlanIsNotWritten(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		byHand func(w *workTree)
		want   string // the folder in the error; "" for none
	}{
		"nothing":                          {func(*workTree) {}, ""},
		"an additional file":               {func(w *workTree) { w.write("dev/drone/app/more", "x") }, "dev/drone/app"},
		"a removed folder":                 {func(w *workTree) { w.remove("dev/drone/app") }, "dev/drone/app"},
		"a folder with the wanted content": {func(w *workTree) { w.write("dev/drone/app/a", "2") }, ""},
		"a change in the folder to remove": {func(w *workTree) { w.write("dev/drone/old/a", "x") }, "dev/drone/old"},
		"no more folder to remove":         {func(w *workTree) { w.remove("dev/drone/old") }, ""},
		"a change in another folder":       {func(w *workTree) { w.write("dev/drone/same/a", "x") }, ""},
		"the removal of another folder":    {func(w *workTree) { w.remove("dev/large/same") }, ""},
		"a foreign folder":                 {func(w *workTree) { w.write("elsewhere/a", "x") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t, serving{config: anyObject, remote: overHTTP})
			before := devEdit(t, map[string]gitops.FolderEdit{
				"drone/app": newFolder(
					t,
					"a",
					"1",
				), "drone/old": newFolder(t, "a", "1"), "drone/same": newFolder(t, "a", "1"), "large/same": newFolder(t, "a", "1"),
			})
			first := apply(t, r, before)
			edit := devEdit(t, map[string]gitops.FolderEdit{
				"drone/app": newFolder(t, "a", "2"), "drone/same": newFolder(t, "a", "1"), "large/same": newFolder(t, "a", "1"),
			})
			edit.Written, edit.Records, edit.Seen = before.Wanted(), first.Records, before.Wanted()
			edit.Remove = deployedTrees{"drone": {"old": ""}}
			r.commitByHand(test.byHand)
			files := r.files()
			_, err := newClient(gitops.BranchOptions{}).Apply(t.Context(), r.remote, edit)
			changed := (*gitops.ChangedError)(nil)
			if test.want != "" {
				if !errors.As(err, &changed) || !errors.Is(err, gitops.ErrUnplanned) || len(changed.Folders) != 1 ||
					changed.Folders[0].Folder != test.want {
					t.Errorf("got error %v, want one about %s", err, test.want)
				}
				if now := r.files(); sprint(now) != sprint(files) {
					t.Errorf("the branch changed: %v", now)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			now := r.files()
			for _, folder := range []string{"dev/drone/same/a", "dev/large/same/a", "elsewhere/a"} {
				if now[folder] != files[folder] {
					t.Errorf("%s: got %q, want %q", folder, now[folder], files[folder])
				}
			}
			if now["dev/drone/app/a"] != "2" || now["dev/drone/old/a"] != "" {
				t.Errorf("got files %v", now)
			}
		})
	}
}
