package adopt_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/adopt"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// written is an object as Flotilla renders it, with the folder that has it.
type written struct {
	host   string
	fields map[string]any
}

// adopted adopts documents, gives the result to fleet, and renders that: the result, and the objects of the folders.
func adopted(t testing.TB, documents map[string]any, options map[string]any) (*adopt.Result, []written) {
	t.Helper()
	var given any
	if options != nil {
		given = options
	}
	result, known, findings := adopt.Adopt("prod", documents, given)
	if len(findings) > 0 || !known {
		t.Fatal(known, findings)
	}
	return result, rendered(t, result.Fleet)
}

// rendered renders what was adopted: of that, only reconciler.yaml is written.
func rendered(t testing.TB, input map[string]any) []written {
	t.Helper()
	return renderedFiles(t, input, func(key, name string) {
		if name != "reconciler.yaml" {
			t.Errorf("%s/%s is written, which was not there", key, name)
		}
	})
}

// renderedWith renders any fleet.
func renderedWith(t testing.TB, input map[string]any) []written {
	t.Helper()
	return renderedFiles(t, input, func(string, string) {})
}

func adoptAll(documents map[string]any) (*adopt.Result, bool, fleet.Findings) {
	return adopt.Adopt("prod", documents, map[string]any{"repository": map[string]any{"url": "https://example.com/fleet"}})
}

func renderedFiles(t testing.TB, input map[string]any, each func(key, name string)) (all []written) {
	t.Helper()
	decoded, findings := fleet.Decode(input)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	scheduled, findings := schedule.Schedule(decoded.Fleet)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	hydrated, err := hydrate.Hydrate(decoded.Fleet, decoded.Config, scheduled.Assignments)
	if err != nil || len(hydrated.Findings) > 0 {
		t.Fatal(err, hydrated.Findings)
	}
	templates, findings := render.Compile(decoded.Fleet)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	if findings, _ := templates.Arrange(scheduled.Assignments); len(findings) > 0 {
		t.Fatal(findings)
	}
	for i, assignment := range scheduled.Assignments {
		subject := render.Subject{
			Assignment: assignment, Owner: "platform", Environment: decoded.Environment,
			Config: hydrated.Snapshots[i].Values(), ConfigVersion: hydrated.Snapshots[i].Version,
		}
		files, err := templates.Render(subject)
		if err != nil {
			t.Fatal(err)
		}
		if findings := templates.Check(subject, files); len(findings) > 0 {
			t.Fatal(findings)
		}
		for _, file := range files {
			each(assignment.Key(), file.Name)
			for _, document := range fleet.SplitYAML(string(file.Content)) {
				value, err := fleet.ParseYAML(document.Text)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, written{assignment.Host.Name, value.(map[string]any)})
			}
		}
	}
	return all
}

// readRepository reads the YAML files of a folder.
func readRepository(t testing.TB, root string) map[string]any {
	t.Helper()
	documents := map[string]any{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		if extension := filepath.Ext(path); extension != ".yaml" && extension != ".yml" && extension != ".json" {
			return nil
		}
		content, err := os.ReadFile(path)
		relative, _ := filepath.Rel(root, path)
		documents[filepath.ToSlash(relative)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

// identity is what tells objects apart on a host.
func identity(object map[string]any) string {
	apiVersion, _ := object["apiVersion"].(string)
	group, _, _ := strings.Cut(apiVersion, "/")
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	return group + " " + kind + " " + namespace + "/" + name
}
