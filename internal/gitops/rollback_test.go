package gitops_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
)

func TestAnEditGoesBackToACommit(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		edit := devEdit(t, map[string]gitops.Folder{
			"drone/app": version(rendered(t, "a", "1"), "v1"), "drone/gone": version(rendered(t, "a", "1", "b", "2"), "v1"), "clusters/one/app": version(rendered(t, "a", "1"), "v1"),
		})
		first := apply(t, r, edit)
		then := r.files()
		edit = devEdit(t, map[string]gitops.Folder{"drone/app": version(rendered(t, "a", "2"), "v2"), "large/new": rendered(t, "a", "1")})
		second := apply(t, r, edit)
		other := team(t, "other", "1")
		apply(t, r, other)
		for name, content := range r.files() {
			if strings.Contains(name, "other") {
				then[name] = content
			}
		}
		r.git("gc", "--quiet", "--prune=now")

		asOf, err := inspect(t, r, dev).AsOf(context.Background(), first.Commit)
		want := gitops.Deployed{
			"drone":        {"app": rendered(t, "a", "1").Tree, "gone": rendered(t, "a", "1", "b", "2").Tree},
			"clusters/one": {"app": rendered(t, "a", "1").Tree},
		}
		if err != nil || !reflect.DeepEqual(asOf, want) {
			t.Errorf("as of the first commit: %v, %v\nwant %v", asOf, err, want)
		}

		back := gitops.Edit{Owner: dev, From: first.Commit, Previously: wanted(edit)}
		result := apply(t, r, back)
		if !result.Committed || len(result.Added) != 2 || len(result.Changed) != 1 || len(result.Removed) != 1 ||
			result.Changes[1].Before != "v2" || result.Changes[1].After != "v1" {
			t.Errorf("result = %+v", result)
		}
		if got := r.files(); !maps.Equal(got, then) {
			t.Errorf("files = %q\nwant %q", got, then)
		}
		if got, want := r.git("log", "-1", "--format=%s"), "dev: 2 added, 1 changed, 1 removed, back to "+first.Commit[:12]; got != want {
			t.Errorf("subject = %q, want %q", got, want)
		}
		r.fsck()
		if again := apply(t, r, back); again.Committed {
			t.Errorf("again: %+v", again)
		}
		if forth := apply(t, r, gitops.Edit{Owner: dev, From: second.Commit}); !forth.Committed || r.files()["dev/drone/app/a"] != "2" {
			t.Errorf("forth: %+v", forth)
		}
		back.Head = "flotilla/dev"
		if proposed := apply(t, r, back); !proposed.Committed || r.git("show", "flotilla/dev:dev/drone/gone/b") != "2" {
			t.Errorf("proposed: %+v", proposed)
		}
		r.fsck()
	})
}

func TestACommitThatOneCannotGoBackToIsAClearError(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		r.byHand(func(w *workTree) { w.write("README.md", "x") })
		byHand := r.git("rev-parse", "main")
		apply(t, r, devEdit(t, map[string]gitops.Folder{"drone/app": rendered(t, "a", "1")}))
		aside := r.git("-c", "user.name=A", "-c", "user.email=a@example.com", "commit-tree", "-p", "main", "-m", "aside", "main^{tree}")
		r.git("update-ref", "refs/heads/aside", aside)
		r.byHand(func(w *workTree) {
			w.write("dev/drone/app/deep/x", "by hand")
		})
		deep := r.git("rev-parse", "main")
		tip := deep
		for from, want := range map[string]string{
			byHand: "has no record", aside: "not in the history", strings.Repeat("1", 40): "not in the history", deep: "a folder", "main": "not an object id",
		} {
			_, err := gitops.NewClient().Apply(context.Background(), r.remote, gitops.Edit{Owner: dev, From: from})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: err = %v, want %q", from, err, want)
			}
			if _, err := inspect(t, r, dev).AsOf(context.Background(), from); !errors.Is(err, git.ErrCommit) || !strings.Contains(err.Error(), want) {
				t.Errorf("as of %s: err = %v, want %q", from, err, want)
			}
		}
		if got := r.git("rev-parse", "main"); got != tip {
			t.Error("the branch moved")
		}
	})
}
