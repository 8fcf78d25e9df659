package gitops_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

func TestAFolderOfAnotherOwnerIsAConflict(t *testing.T) {
	t.Parallel()
	type side struct {
		owner gitops.Owner
		key   string
	}
	// The folders are equal, or one is inside the other.
	for name, test := range map[string]struct{ theirs, ours side }{
		"the same path, host and target": {
			side{gitops.Owner{Name: "a", Path: "dev"}, "drone/app"}, side{gitops.Owner{Name: "b", Path: "dev"}, "drone/app"},
		},
		"at the root": {
			side{gitops.Owner{Name: "a"}, "drone/app"}, side{gitops.Owner{Name: "b"}, "drone/app"},
		},
		"a single cluster": {
			side{gitops.Owner{Name: "a", Path: "dev"}, "clusters/one/app"}, side{gitops.Owner{Name: "b", Path: "dev"}, "clusters/one/app"},
		},
		"the same name at another path": {
			side{gitops.Owner{Name: "a", Path: "dev"}, "clusters/one/app"}, side{gitops.Owner{Name: "a", Path: "dev/clusters"}, "one/app"},
		},
		"theirs from above": {
			side{gitops.Owner{Name: "a"}, "clusters/one/app"}, side{gitops.Owner{Name: "b", Path: "clusters"}, "one/app"},
		},
		"ours inside theirs": {
			side{gitops.Owner{Name: "a"}, "dev/app"}, side{gitops.Owner{Name: "b", Path: "dev/app"}, "drone/app"},
		},
		"ours deep inside theirs": {
			side{gitops.Owner{Name: "a"}, "dev/app"}, side{gitops.Owner{Name: "b", Path: "dev/app/more"}, "drone/app"},
		},
		"theirs inside ours": {
			side{gitops.Owner{Name: "b", Path: "dev/drone/app"}, "more/app"}, side{gitops.Owner{Name: "a", Path: "dev"}, "drone/app"},
		},
		"theirs inside ours, from between": {
			side{gitops.Owner{Name: "b", Path: "dev/drone"}, "app/more"}, side{gitops.Owner{Name: "a", Path: "dev"}, "drone/app"},
		},
		"our folder as their host": {
			side{gitops.Owner{Name: "b", Path: "dev/drone"}, "app/"}, side{gitops.Owner{Name: "a", Path: "dev"}, "drone/app"},
		},
		"their clusters in our folder": {
			side{gitops.Owner{Name: "b", Path: "dev/drone"}, "clusters/one/app"}, side{gitops.Owner{Name: "a", Path: "dev"}, "drone/clusters"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t, servings[0])
			content := newFolder(t, "a.yaml", "a")
			theirs := gitops.Edit{Owner: test.theirs.owner, Hosts: folderEdits(t, map[string]gitops.FolderEdit{test.theirs.key: content})}
			apply(t, r, theirs)
			before := r.files()
			ours := gitops.Edit{Owner: test.ours.owner, Hosts: folderEdits(t, map[string]gitops.FolderEdit{test.ours.key: content, "free/app": content})}

			conflicts, err := readOwner(t, r, ours.Owner).FindConflicts(context.Background(), treesOf(ours), nil, "")
			if err != nil || len(conflicts) == 0 {
				t.Errorf("conflicts = %+v, %v", conflicts, err)
			}
			for _, conflict := range conflicts {
				if conflict.Owner != test.theirs.owner.Name || conflict.OwnerPath != test.theirs.owner.Path {
					t.Errorf("conflict = %+v", conflict)
				}
			}
			for _, previously := range []deployedTrees{nil, treesOf(ours)} {
				ours.Written = previously
				_, err = newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, ours)
				if !errors.Is(err, gitops.ErrConflict) || !strings.Contains(err.Error(), `"`+test.theirs.owner.Name+`"`) {
					t.Errorf("previously %v: err = %v", previously, err)
				}
				if got := r.files(); !maps.Equal(got, before) {
					t.Errorf("files = %v, want %v", got, before)
				}
			}
		})
	}
}

func TestAnOwnerInsideADriftedFolderIsNotOverwritten(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	ours := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "a")})
	apply(t, r, ours)
	r.commitByHand(func(w *workTree) {
		w.write("dev/drone/app/deep/er/.flotilla/team-x/drone.json", `{"deployment_targets":{}}`)
		w.write("dev/drone/app/deep/er/drone/team-x.md", "x")
	})
	before := r.files()
	for _, edit := range []gitops.Edit{
		ours,
		devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "b")}),
		{Owner: dev},
		{Owner: dev, Written: treesOf(ours)},
	} {
		_, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit)
		if !errors.Is(err, gitops.ErrConflict) || !strings.Contains(err.Error(), "team-x") {
			t.Errorf("err = %v", err)
		}
	}
	if got := r.files(); !maps.Equal(got, before) {
		t.Errorf("files = %v, want %v", got, before)
	}
}

func TestAHostIsNotSetUpInsideAnotherOwnersFolder(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		a, b := gitops.Owner{Name: "a"}, gitops.Owner{Name: "b", Path: "dev"}
		apply(t, r, gitops.Edit{Owner: a, Hosts: folderEdits(t, map[string]gitops.FolderEdit{"dev/drone": newFolder(t, "a", "a")})})
		before := r.files()
		for _, host := range []string{"drone/", "clusters/one/"} {
			inside := host == "drone/"
			edit := gitops.Edit{Owner: b, Hosts: folderEdits(t, map[string]gitops.FolderEdit{host: {}}), Adopt: true}
			conflicts, err := readOwner(t, r, b).FindConflicts(context.Background(), treesOf(edit), nil, "")
			if err != nil || (len(conflicts) == 1) != inside || inside && (conflicts[0].Owner != "a" || conflicts[0].IsAdoptable()) {
				t.Errorf("host %q: %v, %v", host, conflicts, err)
			}
			_, err = newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit)
			if errors.Is(err, gitops.ErrConflict) != inside || !inside && err != nil {
				t.Errorf("host %q: %v", host, err)
			}
			if inside && !maps.Equal(r.files(), before) {
				t.Error("the branch changed")
			}
		}
	})
}

func TestADeepFolderInThePlaceOfAnOwnedFolderIsRepaired(t *testing.T) {
	t.Parallel()
	for _, serving := range someServings(t) {
		r := newRepository(t, serving)
		edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "a")})
		apply(t, r, edit)
		before := r.files()
		r.commitByHand(func(w *workTree) { w.write("dev/drone/app/"+strings.Repeat("d/", 300)+"x", "x") })
		if result := apply(t, r, edit); !result.Committed || !maps.Equal(r.files(), before) {
			t.Errorf("%s: %+v", serving.name, result)
		}
	}
}

func TestUnrecordedFilesAreAConflictUnlessWanted(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a.yaml", "a: 1\n"), "drone/two": newFolder(t, "b.yaml", "b")})
		r.commitByHand(func(w *workTree) {
			w.write("dev/drone/app/a.yaml", "a: 1\n")
			w.write("dev/drone/two/b.yaml", "something else")
		})
		_, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit)
		if !errors.Is(err, gitops.ErrConflict) || !strings.Contains(err.Error(), `"dev/drone/two"`) ||
			strings.Contains(err.Error(), "drone/app") {
			t.Errorf("err = %v", err)
		}
		conflicts, err := readOwner(t, r, dev).FindConflicts(context.Background(), treesOf(edit), nil, "")
		if err != nil || len(conflicts) != 1 || conflicts[0].Folder != "dev/drone/two" || conflicts[0].Owner != "" {
			t.Errorf("conflicts = %+v, %v", conflicts, err)
		}
		r.commitByHand(func(w *workTree) { w.write("dev/drone/two/b.yaml", "b") })
		if result := apply(t, r, edit); !result.Committed || len(changedKeys(result, "added"))+len(changedKeys(result, "changed")) != 0 {
			t.Errorf("adopted: %+v", result)
		}
		if conflicts, err := readOwner(t, r, dev).FindConflicts(context.Background(), treesOf(edit), nil, ""); err != nil || len(conflicts) != 0 {
			t.Errorf("conflicts = %+v, %v", conflicts, err)
		}
	})
}

func TestOwnersOfOneHostRemoveOnlyTheirOwnFolders(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		a := gitops.Edit{
			Owner: gitops.Owner{Name: "team-a", Path: "dev"},
			Hosts: folderEdits(t, map[string]gitops.FolderEdit{"drone/a": newFolder(t, "a", "a")}),
		}
		b := gitops.Edit{
			Owner: gitops.Owner{Name: "team-b", Path: "dev"},
			Hosts: folderEdits(t, map[string]gitops.FolderEdit{"drone/b": newFolder(t, "a", "a")}),
		}
		below := gitops.Edit{
			Owner: gitops.Owner{Name: "team-c", Path: "dev/drone/c"},
			Hosts: folderEdits(t, map[string]gitops.FolderEdit{"x/c": newFolder(t, "a", "a")}),
		}
		apply(t, r, a)
		withA := r.files()
		apply(t, r, b)
		apply(t, r, below)
		for _, edit := range []gitops.Edit{a, b, below} {
			if result := apply(t, r, edit); result.Committed {
				t.Errorf("%s: %+v", edit.Owner.Name, result)
			}
		}
		apply(t, r, gitops.Edit{Owner: below.Owner, Written: treesOf(below)})
		apply(t, r, gitops.Edit{Owner: b.Owner})
		if got := withoutLeftMarkers(r.files()); !maps.Equal(got, withA) {
			t.Errorf("files = %q, want %q", got, withA)
		}
		// A folder of the state is not removed if another owner's record has it.
		if result := apply(t, r, gitops.Edit{Owner: b.Owner, Written: treesOf(a)}); result.Committed {
			t.Errorf("another owner's folder is removed: %+v", result)
		}
		apply(t, r, gitops.Edit{Owner: a.Owner})
		if got := withoutLeftMarkers(r.files()); len(got) != 0 {
			t.Errorf("files = %q", got)
		}
		r.commitByHand(func(w *workTree) { w.remove("dev") })
		if r.git("rev-parse", "main^{tree}") != "4b825dc642cb6eb9a060e54bf8d69288fbee4904" {
			t.Error("the branch has files")
		}
		apply(t, r, a)
		if got := r.files(); !equalExceptRecords(got, withA) {
			t.Errorf("files = %q, want %q", got, withA)
		}
		r.fsck()
	})
}

func TestNothingIsWrittenThroughLinksSubmodulesAndFiles(t *testing.T) {
	t.Parallel()
	link := func(at string) func(w *workTree) {
		return func(w *workTree) {
			w.write("elsewhere/x", "x")
			w.remove(at)
			if err := os.MkdirAll(filepath.Dir(filepath.Join(w.directory, at)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("/tmp", filepath.Join(w.directory, at)); err != nil {
				t.Fatal(err)
			}
		}
	}
	file := func(at string) func(w *workTree) { return func(w *workTree) { w.remove(at); w.write(at, "x") } }
	submodule := func(at string) func(w *workTree) {
		return func(w *workTree) {
			run(t, w.directory, "git", "update-index", "--add", "--cacheinfo", "160000,1111111111111111111111111111111111111111,"+at)
			run(t, w.directory, "git", "commit", "--quiet", "--message", "submodule")
			w.write("dev-keep", "x")
			run(t, w.directory, "git", "add", "dev-keep")
			run(t, w.directory, "git", "commit", "--quiet", "--message", "by hand")
			run(t, w.directory, "git", "push", "--quiet", "origin", "HEAD:main")
		}
	}
	for name, test := range map[string]struct {
		change func(w *workTree)
		pushed bool
		path   string
	}{
		"a link as the path":           {link("dev"), false, "dev"},
		"a file as the path":           {file("dev"), false, "dev"},
		"a submodule as the path":      {submodule("dev"), true, "dev"},
		"a link as the host":           {link("dev/drone"), false, "dev/drone"},
		"a submodule as the host":      {submodule("dev/drone"), true, "dev/drone"},
		"a link as the folder":         {link("dev/drone/app"), false, "dev/drone/app"},
		"a file as the folder":         {file("dev/drone/app"), false, "dev/drone/app"},
		"a link as clusters":           {link("dev/clusters"), false, "dev/clusters"},
		"a link as the records":        {link("dev/.flotilla"), false, "dev/.flotilla"},
		"a link as the owner's record": {link("dev/.flotilla/dev"), false, "dev/.flotilla/dev"},
		"a link as the marker":         {link("dev/drone/dev.md"), false, "dev/drone/dev.md"},
		"a folder as the marker":       {file("dev/drone/dev.md/x"), false, "dev/drone/dev.md"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t, servings[0])
			edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "a"), "clusters/one/app": newFolder(t, "a", "a")})
			if test.pushed {
				test.change(r.clone())
			} else {
				r.commitByHand(test.change)
			}
			tip := r.tip()
			_, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit)
			var blocked *git.BlockedError
			if !errors.As(err, &blocked) || blocked.Path != test.path {
				t.Errorf("err = %v", err)
			}
			view, err := readOwnerWith(context.Background(), newClient(gitops.BranchOptions{}), r.remote, dev)
			if err == nil {
				_, err = view.FindConflicts(context.Background(), treesOf(edit), nil, "")
			}
			if !errors.As(err, &blocked) || blocked.Path != test.path {
				t.Errorf("conflicts: err = %v", err)
			}
			if r.tip() != tip {
				t.Error("the branch moved")
			}
		})
	}
}

func TestPathsThatDifferOnlyInCaseAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Dev/x", "dev/DRONE/x", "dev/drone/APP/x", "dev/drone/App", "dev/drone/DEV.md", "dev/.Flotilla/x", "dev/.flotilla/DEV/x", "dev/Clusters/x", "dev/clu\u017fters/x", "dev/dro\u200cne/x", "dev/drone./x", "dev/drone /x"} {
		r := newRepository(t, servings[0])
		r.commitByHand(func(w *workTree) { w.write(name, "x") })
		tip := r.tip()
		edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "a"), "clusters/one/app": newFolder(t, "a", "a")})
		if _, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit); err == nil ||
			!strings.Contains(err.Error(), "case") {
			t.Errorf("%s: err = %v", name, err)
		}
		if r.tip() != tip {
			t.Errorf("%s: the branch moved", name)
		}
	}
	for name, edit := range map[string]gitops.Edit{
		"hosts":   devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "a"), "Drone/app": newFolder(t, "a", "a")}),
		"targets": devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "a"), "drone/App": newFolder(t, "a", "a")}),
		"marker":  devEdit(t, map[string]gitops.FolderEdit{"drone/Dev.md": newFolder(t, "a", "a")}),
	} {
		r := newRepository(t, servings[0])
		if _, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit); err == nil ||
			!strings.Contains(err.Error(), "case") || r.git("for-each-ref") != "" {
			t.Errorf("%s: err = %v", name, err)
		}
	}
}

func TestHostileRecordsChangeNoOtherFiles(t *testing.T) {
	t.Parallel()
	for name, record := range map[string]string{
		"a path out":    `{"deployment_targets":{"../../other":{"tree":"4b825dc642cb6eb9a060e54bf8d69288fbee4904"}}}`,
		"the host":      `{"deployment_targets":{"":{"tree":"4b825dc642cb6eb9a060e54bf8d69288fbee4904"}}}`,
		"no tree id":    `{"deployment_targets":{"keep":{"tree":"x"}}}`,
		"not JSON":      `{`,
		"another shape": `{"deployment_targets":[]}`,
		"empty":         ``,
	} {
		r := newRepository(t, servings[0])
		r.commitByHand(func(w *workTree) {
			w.write("other/file", "x")
			w.write("dev/drone/keep/file", "x")
			w.write("dev/.flotilla/dev/drone.json", record)
		})
		apply(t, r, gitops.Edit{Owner: dev})
		files := r.files()
		if files["other/file"] != "x" || files["dev/drone/keep/file"] != "x" || len(files) != 3 || files["dev/drone/dev.md"] != leftMarker("dev") {
			t.Errorf("%s: files = %q", name, files)
		}
	}
}
