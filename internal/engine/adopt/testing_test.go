package adopt_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/adopt"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
)

func TestMain(m *testing.M) {
	renderer.RunIfWorker()
	os.Exit(m.Run())
}

// renderedObject is a rendered object with its host.
type renderedObject struct {
	host   string
	fields map[string]any
}

// adoptAndRender adopts documents and renders the adopted fleet. It returns the adoption and the rendered objects.
func adoptAndRender(t testing.TB, documents map[string]any, options map[string]any) (*adopt.Adoption, []renderedObject) {
	t.Helper()
	result, all, _ := adoptAndRenderAll(t, documents, options)
	return result, all
}

// adoptAndRenderAll is like adoptAndRender, and also returns the objects from folders of the documents.
func adoptAndRenderAll(
	t testing.TB,
	documents map[string]any,
	options map[string]any,
) (result *adopt.Adoption, all []renderedObject, fromFolders []objects.FinalObject) {
	t.Helper()
	folders := &renderer.Loose{}
	defer folders.Close()
	var optionsValue any
	if options != nil {
		optionsValue = options
	}
	result, known, findings := adopt.Adopt(
		"prod",
		documents,
		optionsValue,
		func(files map[string]string, request *objects.Request) (*objects.Rendering, error) {
			result, err := folders.Render(t.Context(), files, request)
			if err == nil {
				fromFolders = append(fromFolders, result.Objects...)
			}
			return result, err
		},
	)
	if len(findings) > 0 || !known {
		t.Fatal(known, findings)
	}
	return result, renderAdopted(t, result.Fleet), fromFolders
}

// renderAdopted renders an adopted fleet and checks that its folders have only a reconciler.yaml.
func renderAdopted(t testing.TB, input map[string]any) []renderedObject {
	t.Helper()
	return renderFiles(t, input, func(key, name string) {
		if name != "reconciler.yaml" {
			t.Errorf("got file %s/%s, want only reconciler.yaml", key, name)
		}
	})
}

// renderFleet renders any fleet.
func renderFleet(t testing.TB, input map[string]any) []renderedObject {
	t.Helper()
	return renderFiles(t, input, func(string, string) {})
}

// adoptDocuments adopts documents and renders their folders as the provider does.
func adoptDocuments(t testing.TB, environment, documents, options any) (*adopt.Adoption, bool, fleet.Findings) {
	t.Helper()
	folders := &renderer.Loose{}
	defer folders.Close()
	return adopt.Adopt(environment, documents, options, func(files map[string]string, request *objects.Request) (*objects.Rendering, error) {
		return folders.Render(t.Context(), files, request)
	})
}

func renderFiles(t testing.TB, input map[string]any, each func(key, name string)) (all []renderedObject) {
	t.Helper()
	decoded, findings := fleet.Decode(input)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	value, err := decoded.Value()
	if err != nil {
		t.Fatal(err)
	}
	computed, wrong := pipeline.Compute(value)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	for i, assignment := range computed.Schedule.Assignments {
		files, problems, err := computed.CheckedFiles(t.Context(), i, pipeline.Destination{Owner: "platform"})
		if err != nil || len(problems) > 0 {
			t.Fatal(err, problems)
		}
		for _, file := range files {
			each(assignment.Key(), file.Name)
			for _, document := range fleet.SplitYAML(string(file.Content)) {
				value, err := fleet.ParseYAML(document.Text)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, renderedObject{assignment.Host.Name, value.(map[string]any)})
			}
		}
	}
	return all
}

// readRepository reads the texts of a folder.
func readRepository(t testing.TB, root string) map[string]any {
	t.Helper()
	documents := map[string]any{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		relative, _ := filepath.Rel(root, path)
		if utf8.Valid(content) {
			documents[filepath.ToSlash(relative)] = string(content)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

// identity returns the unique name of an object on a host.
func identity(object map[string]any) string {
	apiVersion, _ := object["apiVersion"].(string)
	group, _, _ := strings.Cut(apiVersion, "/")
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	return group + " " + kind + " " + namespace + "/" + name
}
