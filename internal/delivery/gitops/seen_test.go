package gitops_test

import (
	"errors"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
)

func TestAFolderThatIsNotWhatThePlanSawIsNotWritten(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		byHand func(w *workTree)
		want   string // the folder in the error; "" for none
	}{
		"nothing":                                {func(*workTree) {}, ""},
		"another file of the folder":             {func(w *workTree) { w.write("dev/drone/app/more", "x") }, "dev/drone/app"},
		"the folder is gone":                     {func(w *workTree) { w.remove("dev/drone/app") }, "dev/drone/app"},
		"the folder has become what is wanted":   {func(w *workTree) { w.write("dev/drone/app/a", "2") }, ""},
		"the folder that goes has changed":       {func(w *workTree) { w.write("dev/drone/old/a", "x") }, "dev/drone/old"},
		"the folder that goes is gone":           {func(w *workTree) { w.remove("dev/drone/old") }, ""},
		"another folder of the owner changed":    {func(w *workTree) { w.write("dev/drone/same/a", "x") }, ""},
		"another folder of the owner is gone":    {func(w *workTree) { w.remove("dev/large/same") }, ""},
		"a folder of somebody else has appeared": {func(w *workTree) { w.write("elsewhere/a", "x") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t, serving{config: anyObject, remote: overHTTP})
			before := devEdit(t, map[string]gitops.FolderEdit{
				"drone/app": rendered(
					t,
					"a",
					"1",
				), "drone/old": rendered(t, "a", "1"), "drone/same": rendered(t, "a", "1"), "large/same": rendered(t, "a", "1"),
			})
			first := apply(t, r, before)
			edit := devEdit(t, map[string]gitops.FolderEdit{
				"drone/app": rendered(t, "a", "2"), "drone/same": rendered(t, "a", "1"), "large/same": rendered(t, "a", "1"),
			})
			edit.Written, edit.Records, edit.Seen = before.Wanted(), first.Records, before.Wanted()
			edit.Remove = deployedTrees{"drone": {"old": ""}}
			r.byHand(test.byHand)
			files := r.files()
			_, err := newClient(gitops.BranchOptions{}).Apply(t.Context(), r.remote, edit)
			changed := (*gitops.ChangedError)(nil)
			if test.want != "" {
				if !errors.As(err, &changed) || !errors.Is(err, gitops.ErrUnplanned) || len(changed.Folders) != 1 ||
					changed.Folders[0].Folder != test.want {
					t.Errorf("error %v", err)
				}
				if now := r.files(); sprint(now) != sprint(files) {
					t.Errorf("was written: %v", now)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			now := r.files()
			for _, folder := range []string{"dev/drone/same/a", "dev/large/same/a", "elsewhere/a"} {
				if now[folder] != files[folder] {
					t.Errorf("%s was %q and is %q", folder, files[folder], now[folder])
				}
			}
			if now["dev/drone/app/a"] != "2" || now["dev/drone/old/a"] != "" {
				t.Errorf("the files are %v", now)
			}
		})
	}
}
