package changes_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

func TestOneChangeOfThousandsOfAssignmentsIsUnder20Lines(t *testing.T) {
	t.Parallel()
	assignments := acceptancetest.Count(500, 5_000)
	f, config := fleettest.Reference(assignments, 1)
	before := mustRender(t, f, config)
	linesAfter := func(change func(*fleet.Fleet, fleet.Config)) []string {
		f, config := fleettest.Reference(assignments, 1)
		config = maps.Clone(config)
		change(f, config)
		return summarize(before, mustRender(t, f, config))
	}
	linesForEachFolder := func(change func(*changes.FolderChange)) []string {
		folders := foldersOf(renderedFleet{}, before)
		for i := range folders {
			folders[i].Added = false
			folders[i].Before = folders[i].After
			change(&folders[i])
		}
		older, newer := *before.version, *before.version
		older.Provider, newer.Provider = "1.2.0", "1.3.0"
		return formatLines(changes.Summarize(&older, &newer, folders, changes.Notes{}))
	}
	edit := func(edited *changes.FolderChange, old, replacement string) {
		edited.Before = make([]folder.File, len(edited.After))
		for i, file := range edited.After {
			edited.Before[i] = folder.File{Name: file.Name, Content: []byte(strings.ReplaceAll(string(file.Content), old, replacement))}
		}
	}
	count := len(before.files)
	for name, test := range map[string]struct {
		lines []string
		want  []string // parts of lines
	}{
		"one value": {
			linesAfter(func(_ *fleet.Fleet, config fleet.Config) {
				config["platform"] = strings.Replace(config["platform"], "0911", "0912", 1)
			}),
			[]string{fmt.Sprintf(",%d by=config_container:platform", count-2), "files=platform-config.yaml keys=data.EMERGENCY at="},
		},
		"another template": {
			linesAfter(func(f *fleet.Fleet, _ fleet.Config) {
				f.Templates = []fleet.Template{{Name: "default", Type: "namespace", Manifests: []string{
					"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {{ .Namespace }}\n  labels: {team: {{ .Workspace }}}\n",
				}}}
			}),
			[]string{" by=template:default:new"},
		},
		"another name of the environment": {
			linesAfter(func(f *fleet.Fleet, _ fleet.Config) { f.Environment = "stage" }),
			[]string{"files=namespace.yaml keys=metadata.labels.environment,metadata.name at=", " by=environment:stage"},
		},
		"a label of every cluster type": {
			linesAfter(func(f *fleet.Fleet, _ fleet.Config) {
				for i := range f.ClusterTypes {
					f.ClusterTypes[i].Reconciler = "argocd"
				}
			}),
			[]string{" by=cluster_type:edge-0000,cluster_type:edge-0001,"},
		},
		"another quota for every workspace": {
			linesAfter(func(f *fleet.Fleet, _ fleet.Config) {
				for i := range f.Workspaces {
					f.Workspaces[i].ResourceQuota = map[string]string{"limits.cpu": fmt.Sprint(i + 100)}
				}
			}),
			[]string{" by=workspace:team-0000"},
		},
		"another version of the provider": {
			linesForEachFolder(func(folder *changes.FolderChange) { edit(folder, "managed-by: flotilla", "managed-by: boats") }),
			[]string{" by=provider:1.2.0:1.3.0"},
		},
		"somebody's script": {
			linesForEachFolder(func(folder *changes.FolderChange) {
				edit(folder, "managed-by: flotilla", "managed-by: me")
				folder.Drift = "by hand, since commit 1a2b3c4d"
			}),
			[]string{" by=drift:by hand, since commit 1a2b3c4d"},
		},
		"an unknown value": {
			linesForEachFolder(func(folder *changes.FolderChange) { folder.WaitsFor = `config container "platform"` }),
			[]string{fmt.Sprintf(`,%d names=config container "platform"`, count-2)},
		},
		"everything removed": {
			linesForEachFolder(func(folder *changes.FolderChange) { folder.Removed, folder.Before = true, nil }),
			[]string{fmt.Sprintf(" removed=%d", count)},
		},
		"everything added": {
			formatLines(changes.Summarize(nil, before.version, foldersOf(renderedFleet{}, before), changes.Notes{})),
			[]string{fmt.Sprintf(" added=%d", count), " by=target_policy:"},
		},
	} {
		if len(test.lines) >= 20 {
			t.Errorf("%s: %d lines", name, len(test.lines))
		}
		text := strings.Join(test.lines, "\n")
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no line contains %s:\n%s", name, want, text)
			}
		}
	}
}
