package gitops_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
)

func TestAdoptTakesOverFoldersInOneCommit(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		// One owner at the same path, and one whose path is below.
		theirs := gitops.Edit{Owner: gitops.Owner{Name: "theirs", Path: "dev"}, Hosts: hosts(t, map[string]gitops.Folder{
			"drone/app": version(rendered(t, "a", "1"), "v1"), "drone/same": version(rendered(t, "a", "1"), "v1"), "drone/keep": rendered(t, "a", "1"),
		})}
		below := gitops.Edit{Owner: gitops.Owner{Name: "below", Path: "dev/clusters"}, Hosts: hosts(t, map[string]gitops.Folder{"one/app": version(rendered(t, "a", "1"), "v1")})}
		apply(t, r, theirs)
		apply(t, r, below)
		ours := devEdit(t, map[string]gitops.Folder{
			"drone/app": version(rendered(t, "a", "2"), "v2"), "drone/same": version(rendered(t, "a", "1"), "v1"), "clusters/one/app": version(rendered(t, "a", "1"), "v1"),
		})
		if _, err := gitops.NewClient().Apply(context.Background(), r.remote, ours); !errors.Is(err, gitops.ErrConflict) {
			t.Errorf("without adopt: %v", err)
		}
		ours.Adopt = true
		result := apply(t, r, ours)
		if !result.Committed || !slices.Equal(result.Changes, []gitops.FolderChange{
			{Host: "drone", DeploymentTarget: "app", Action: gitops.Changed, Before: "v1", After: "v2"},
		}) || len(result.Adopted) != 3 {
			t.Errorf("result = %+v", result)
		}
		message := r.git("log", "-1", "--format=%B")
		if want := "Taken over:\n- clusters/one/app from below at dev/clusters\n- drone/app from theirs at dev\n- drone/same from theirs at dev\n"; !strings.Contains(message, want) {
			t.Errorf("message = %q", message)
		}
		if again := apply(t, r, ours); again.Committed {
			t.Errorf("again: %+v", again)
		}
		owned, err := inspect(t, r, theirs.Owner).Owned(context.Background())
		if want := map[string]string{"keep": rendered(t, "a", "1").Tree}; err != nil || !maps.Equal(owned["drone"], want) {
			t.Errorf("theirs = %v, %v", owned, err)
		}
		// The former owner finds out, and leaves what is not its own.
		if _, err := gitops.NewClient().Apply(context.Background(), r.remote, theirs); !errors.Is(err, gitops.ErrConflict) || !strings.Contains(err.Error(), `"dev"`) {
			t.Errorf("theirs again: %v", err)
		}
		apply(t, r, gitops.Edit{Owner: theirs.Owner, Previously: wanted(theirs)})
		apply(t, r, gitops.Edit{Owner: below.Owner, Previously: wanted(below)})
		files := r.files()
		if files["dev/drone/app/a"] != "2" || files["dev/drone/same/a"] != "1" || files["dev/clusters/one/app/a"] != "1" || files["dev/drone/keep/a"] != "" {
			t.Errorf("files = %v", files)
		}
		if again := apply(t, r, ours); again.Committed {
			t.Errorf("at last: %+v", again)
		}
		r.fsck()
	})
}

func TestAdoptTakesNothingThatIsNotAnotherOwnersFolder(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	r.byHand(func(w *workTree) { w.write("dev/drone/app/a", "by hand") })
	apply(t, r, gitops.Edit{Owner: gitops.Owner{Name: "inside", Path: "dev/large/app"}, Hosts: hosts(t, map[string]gitops.Folder{"x/y": rendered(t, "a", "1")})})
	before := r.files()
	for _, at := range []string{"drone/app", "large/app"} {
		edit := devEdit(t, map[string]gitops.Folder{at: rendered(t, "a", "2")})
		edit.Adopt = true
		if _, err := gitops.NewClient().Apply(context.Background(), r.remote, edit); !errors.Is(err, gitops.ErrConflict) {
			t.Errorf("%s: %v", at, err)
		}
	}
	if got := r.files(); !maps.Equal(got, before) {
		t.Errorf("files = %v", got)
	}
}
