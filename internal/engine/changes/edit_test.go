package changes_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

func TestDriftIsReportedBesideChangesOfTheFleet(t *testing.T) {
	t.Parallel()
	f, config := sample()
	before := mustRender(t, f, config)
	f, config = sample()
	f.Workloads[1].DeploymentTargets[0].Manifests.Tag = "v1.1.0"
	after := mustRender(t, f, config)
	folders := append(foldersOf(before, after), changes.FolderChange{
		Key: folder.Key{Host: "small", DeploymentTarget: "hello-live"}, Drift: "by hand, since commit 1a2b3c4d",
		Before: oneFile("namespace.yaml", "extra: 1\n"), After: oneFile("namespace.yaml", "{}\n"),
	})
	equalLines(t, formatLines(changes.Summarize(before.version, after.version, folders, changes.Notes{})), []string{
		"count hosts=2 changed=2",
		"file files=reconciler.yaml keys=GitRepository spec.ref.tag at=large/reports-nightly by=workload:reports",
		"file files=namespace.yaml keys=extra:removed at=small/hello-live by=drift:by hand, since commit 1a2b3c4d",
	})
}

func TestEditsAreReportedBesideChangesOfTheirFolder(t *testing.T) {
	t.Parallel()
	f, config := sample()
	before := mustRender(t, f, config)
	f, config = sample()
	f.Workloads[1].DeploymentTargets[0].Manifests.Tag = "v1.1.0"
	after := mustRender(t, f, config)
	const byHand = "by hand, since commit 1a2b3c4d"
	for name, test := range map[string]struct {
		edit func(files []folder.File) []folder.File
		back string
		want []string
	}{
		"nothing else": {
			func(files []folder.File) []folder.File { return files }, "",
			[]string{"file files=reconciler.yaml keys=GitRepository spec.ref.tag at=large/reports-nightly by=workload:reports"},
		},
		"a file": {
			func(files []folder.File) []folder.File { return append(files, oneFile("x.yaml", "x: 1\n")...) }, "",
			[]string{
				"file files=reconciler.yaml keys=GitRepository spec.ref.tag at=large/reports-nightly by=workload:reports",
				"file files=x.yaml keys=removed_file at=large/reports-nightly by=drift:" + byHand,
			},
		},
		"a file beside a rollback": {
			func(files []folder.File) []folder.File { return append(files, oneFile("x.yaml", "x: 1\n")...) }, "5e6f7a8b",
			[]string{
				"file files=reconciler.yaml keys=GitRepository spec.ref.tag at=large/reports-nightly by=rollback:5e6f7a8b",
				"file files=x.yaml keys=removed_file at=large/reports-nightly by=drift:" + byHand,
			},
		},
		"the changed key": {
			func(files []folder.File) []folder.File {
				return editFile(files, "reconciler.yaml", "v1.0.0", "v0")
			}, "",
			[]string{"file files=reconciler.yaml keys=GitRepository spec.ref.tag at=large/reports-nightly by=workload:reports"},
		},
		"the changed file removed": {
			func(files []folder.File) []folder.File {
				return slices.DeleteFunc(files, func(file folder.File) bool { return file.Name == "reconciler.yaml" })
			}, "",
			[]string{"file files=reconciler.yaml keys=new_file at=large/reports-nightly by=drift:" + byHand},
		},
	} {
		folders := foldersOf(before, after)
		change := &folders[0]
		change.Edit, change.Back, change.Written = byHand, test.back, change.Before
		change.Before = test.edit(slices.Clone(change.Before))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := formatLines(changes.Summarize(before.version, after.version, folders, changes.Notes{}))
			equalLines(t, lines, append([]string{"count hosts=1 changed=1"}, test.want...))
		})
	}
}

func editFile(files []folder.File, name, from, to string) []folder.File {
	for i := range files {
		if files[i].Name == name {
			files[i].Content = bytes.Replace(files[i].Content, []byte(from), []byte(to), 1)
		}
	}
	return files
}
