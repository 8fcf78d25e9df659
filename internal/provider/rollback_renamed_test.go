package provider_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// rollbackAttributes returns noRemovals with rollback_to and further attributes.
func rollbackAttributes(commit string, further map[string]any) map[string]any {
	attributes := maps.Clone(noRemovals)
	attributes["rollback_to"] = commit
	maps.Copy(attributes, further)
	return attributes
}

// expectNoChanges applies the configuration twice more.
func expectNoChanges(t *testing.T, w *providertest.Workspace, url string, configuration providertest.Configuration) {
	t.Helper()
	tip := git(t, url, "rev-parse", "dev")
	for range 2 {
		if plan := apply(t, w, configuration); !plan.Empty() {
			t.Errorf("the next plan says %s", rolloutText(plan))
		}
	}
	if now := git(t, url, "rev-parse", "dev"); now != tip {
		t.Errorf("the next apply made commit %s", now)
	}
}

func TestARollbackOverARenameKeepsTheFoldersOfTheClusterType(t *testing.T) {
	t.Parallel()
	old, renamed := fleetOfTypes("info", nil, namedType("old"), namedType("other")), fleetOfTypes("debug", nil, namedType("new", "old"), namedType("other"))
	applyRename := func(t *testing.T) (url string, w *providertest.Workspace, first, before string) {
		url, w = bare(t), providertest.New(startProvider)
		apply(t, w, assigned(url, old, noRemovals))
		first, before = git(t, url, "rev-parse", "dev"), filesBelow(t, url, "old")
		apply(t, w, assigned(url, renamed, noRemovals))
		return url, w, first, before
	}
	expectRolledBack := func(t *testing.T, url, before string) {
		t.Helper()
		if now := filesBelow(t, url, "new"); now != before || filesBelow(t, url, "old") != "" {
			t.Errorf("new has\n%s\nwant\n%s\nand old has\n%s", now, before, filesBelow(t, url, "old"))
		}
	}
	t.Run("with the state", func(t *testing.T) {
		t.Parallel()
		url, w, first, before := applyRename(t)
		back := assigned(url, renamed, rollbackAttributes(first, nil))
		apply(t, w, back)
		expectRolledBack(t, url, before)
		expectNoChanges(t, w, url, back)
		apply(t, w, assigned(url, renamed, noRemovals))
		if now := filesBelow(t, url, "new"); now == before || now == "" || filesBelow(t, url, "old") != "" {
			t.Errorf("without rollback_to new has %s, and old has %s", now, filesBelow(t, url, "old"))
		}
	})
	t.Run("twice, over two renames", func(t *testing.T) {
		t.Parallel()
		url, w, first, before := applyRename(t)
		second := git(t, url, "rev-parse", "dev")
		newest := fleetOfTypes("debug", nil, namedType("newest", "old", "new"), namedType("other"))
		apply(t, w, assigned(url, newest, noRemovals))
		for _, commit := range []string{first, second, first} {
			apply(t, w, assigned(url, newest, rollbackAttributes(commit, nil)))
		}
		if now := filesBelow(t, url, "newest"); now != before || filesBelow(t, url, "old")+filesBelow(t, url, "new") != "" {
			t.Errorf("newest has\n%s\nwant\n%s", now, before)
		}
		expectNoChanges(t, w, url, assigned(url, newest, rollbackAttributes(first, nil)))
	})
	t.Run("after the removal of formerly", func(t *testing.T) {
		t.Parallel()
		url, w, first, before := applyRename(t)
		without := fleetOfTypes("debug", nil, namedType("new"), namedType("other"))
		apply(t, w, assigned(url, without, noRemovals))
		apply(t, w, assigned(url, without, rollbackAttributes(first, nil)))
		expectRolledBack(t, url, before)
		expectNoChanges(t, w, url, assigned(url, without, rollbackAttributes(first, nil)))
	})
	t.Run("with an imported state", func(t *testing.T) {
		t.Parallel()
		url, _, first, before := applyRename(t)
		w, back := providertest.New(startProvider), assigned(url, renamed, rollbackAttributes(first, nil))
		if diags := w.Import(t.Context(), back, assignment, url+"#dev:clusters/all:dev"); diags.Err() != nil {
			t.Fatal(diags.Err())
		}
		apply(t, w, back)
		expectRolledBack(t, url, before)
		expectNoChanges(t, w, url, back)
	})
	t.Run("without a state", func(t *testing.T) {
		t.Parallel()
		url, _, first, before := applyRename(t)
		w, back := providertest.New(startProvider), assigned(url, renamed, rollbackAttributes(first, map[string]any{"adopt": true}))
		apply(t, w, back)
		expectRolledBack(t, url, before)
		expectNoChanges(t, w, url, back)
	})
	t.Run("with an invalid fleet", func(t *testing.T) {
		t.Parallel()
		url, w, first, before := applyRename(t)
		wrong := fleetOfTypes("debug", map[string]any{"templates": []any{map[string]any{
			"name": "default", "type": "namespace", "manifests": []any{"a: {{ .ConfigData.NOTHING }}\n"},
		}}}, namedType("new", "old"), namedType("other"))
		apply(t, w, assigned(url, wrong, rollbackAttributes(first, nil)))
		expectRolledBack(t, url, before)
	})
}

// An assignment can go back to commits under each of its former names.
func TestARollbackOverARenameOfTheAssignment(t *testing.T) {
	t.Parallel()
	fleetAt := func(level string) providertest.Call {
		return fleetOfTypes(level, nil, namedType("old"), namedType("other"))
	}
	named := func(name string) map[string]any {
		further := maps.Clone(noRemovals)
		further["name"] = name
		return further
	}
	for name, runner := range map[string]func(t *testing.T, url string, configuration providertest.Configuration, w *providertest.Workspace) *providertest.Workspace{
		"with the state": func(_ *testing.T, _ string, _ providertest.Configuration, w *providertest.Workspace) *providertest.Workspace {
			return w
		},
		"with an imported state": func(t *testing.T, url string, configuration providertest.Configuration, _ *providertest.Workspace) *providertest.Workspace {
			w := providertest.New(startProvider)
			if diags := w.Import(t.Context(), configuration, assignment, url+"#dev:clusters/all:third"); diags.Err() != nil {
				t.Fatal(diags.Err())
			}
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			playAlways(t, name, "with the state")
			t.Parallel()
			url, w := bare(t), providertest.New(startProvider)
			var commits, contents []string
			for _, step := range []struct{ name, level string }{{"first", "info"}, {"second", "info"}, {"second", "debug"}, {"third", "error"}, {"third", "trace"}} {
				apply(t, w, assigned(url, fleetAt(step.level), named(step.name)))
				commits, contents = append(commits, git(t, url, "rev-parse", "dev")), append(contents, filesOfTargets(t, url))
			}
			w = runner(t, url, assigned(url, fleetAt("trace"), named("third")), w)
			for i := 0; i < len(commits); i += acceptancetest.Count(2, 1) { // one commit of each name
				back := assigned(url, fleetAt("trace"), rollbackAttributes(commits[i], map[string]any{"name": "third"}))
				apply(t, w, back)
				if got := filesOfTargets(t, url); got != contents[i] {
					t.Errorf("commit %d: the folders have\n%s\nwant\n%s", i, got, contents[i])
				}
				expectNoChanges(t, w, url, back)
			}
			// One apply may change both the name and rollback_to.
			both := assigned(url, fleetAt("trace"), rollbackAttributes(commits[2], map[string]any{"name": "fourth"}))
			apply(t, w, both)
			if got := filesOfTargets(t, url); got != contents[2] {
				t.Errorf("with another name, the folders have\n%s\nwant\n%s", got, contents[2])
			}
			expectNoChanges(t, w, url, both)
		})
	}
}

// filesOfTargets lists the files in folders of deployment targets on the branch, with their ids.
func filesOfTargets(t *testing.T, url string) string {
	t.Helper()
	var files []string
	for line := range strings.SplitSeq(filesBelow(t, url, "old")+"\n"+filesBelow(t, url, "other"), "\n") {
		if !strings.HasSuffix(line, ".md") {
			files = append(files, line)
		}
	}
	return strings.Join(files, "\n")
}
