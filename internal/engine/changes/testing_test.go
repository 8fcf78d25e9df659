package changes_test

import (
	"slices"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// renderedFleet is a fleet after scheduling, hydration and rendering.
type renderedFleet struct {
	version *changes.Version
	files   map[string][]folder.File // by the assignment's key
	hosts   map[string]*schedule.Assignment
}

// renderFleet schedules, hydrates and renders a fleet. ok is false if the fleet has findings, as random fleets may.
func renderFleet(tb testing.TB, f *fleet.Fleet, config fleet.Config) (result renderedFleet, ok bool) {
	tb.Helper()
	scheduled, findings := schedule.Schedule(f)
	if len(findings) > 0 {
		return renderedFleet{}, false
	}
	hydrated, err := hydrate.Hydrate(f, config, scheduled.Assignments)
	if err != nil {
		tb.Fatal(err)
	}
	if len(hydrated.Findings) > 0 {
		return renderedFleet{}, false
	}
	templates, findings := render.Compile(f)
	if len(findings) > 0 {
		tb.Fatal(findings)
	}
	result = renderedFleet{
		version: &changes.Version{Fleet: f, Config: config, Schedule: scheduled},
		files:   map[string][]folder.File{}, hosts: map[string]*schedule.Assignment{},
	}
	for i, assignment := range scheduled.Assignments {
		files, err := templates.Render(render.Subject{
			Assignment: assignment, Environment: f.Environment, Owner: "platform", ConfigVersion: hydrated.All[i].Version,
			Config: hydrated.All[i].Values(), Secrets: hydrated.All[i].Secrets(), Encrypted: hydrated.All[i].Encrypted(), Repo: &folder.Location{URL: "https://git.example.com/gitops", Branch: "dev"},
		})
		if err != nil {
			tb.Fatal(err)
		}
		folderFiles := make([]folder.File, len(files))
		for j, file := range files {
			folderFiles[j] = folder.File{Name: file.Name, Content: file.Content}
		}
		result.files[assignment.Key()] = folderFiles
		result.hosts[assignment.Key()] = assignment
	}
	return result, true
}

// foldersOf returns the folders that differ between two fleets.
func foldersOf(before, after renderedFleet) []changes.FolderChange {
	var folders []changes.FolderChange
	for key, files := range before.files {
		folder := changes.FolderChange{
			Key:    folder.Key{Host: before.hosts[key].Host.Name, DeploymentTarget: before.hosts[key].Target.Name},
			Before: files,
		}
		wanted, isKept := after.files[key]
		folder.After, folder.Removed = wanted, !isKept
		if !isKept || !slices.EqualFunc(files, wanted, sameFile) {
			folders = append(folders, folder)
		}
	}
	for key, files := range after.files {
		if _, existed := before.files[key]; !existed {
			folders = append(folders, changes.FolderChange{
				Key: folder.Key{Host: after.hosts[key].Host.Name, DeploymentTarget: after.hosts[key].Target.Name}, After: files, Added: true,
			})
		}
	}
	return folders
}

func sameFile(a, b folder.File) bool {
	return a.Name == b.Name && string(a.Content) == string(b.Content)
}

func mustRender(tb testing.TB, f *fleet.Fleet, config fleet.Config) renderedFleet {
	tb.Helper()
	result, ok := renderFleet(tb, f, config)
	if !ok {
		tb.Fatal("the fleet has findings")
	}
	return result
}

func summarize(before, after renderedFleet) []string {
	return formatLines(changes.Summarize(before.version, after.version, foldersOf(before, after), changes.Notes{}))
}
