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

// written is an object as Flotilla renders it, with the folder that has it.
type written struct {
	host   string
	fields map[string]any
}

// adopted adopts documents, gives the result to fleet, and renders that: the result, and the objects of the folders.
func adopted(t testing.TB, documents map[string]any, options map[string]any) (*adopt.Adoption, []written) {
	t.Helper()
	result, all, _ := adoptedOf(t, documents, options)
	return result, all
}

// adoptedOf is as adopted, and returns what was rendered of folders of the documents, too.
func adoptedOf(
	t testing.TB,
	documents map[string]any,
	options map[string]any,
) (result *adopt.Adoption, all []written, made []objects.FinalObject) {
	t.Helper()
	folders := &renderer.Loose{}
	defer folders.Close()
	var given any
	if options != nil {
		given = options
	}
	result, known, findings := adopt.Adopt(
		"prod",
		documents,
		given,
		func(files map[string]string, request *objects.Request) (*objects.Rendering, error) {
			result, err := folders.Render(t.Context(), files, request)
			if err == nil {
				made = append(made, result.Objects...)
			}
			return result, err
		},
	)
	if len(findings) > 0 || !known {
		t.Fatal(known, findings)
	}
	return result, rendered(t, result.Fleet), made
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

// adoptWith adopts documents, of which folders are rendered as by the provider.
func adoptWith(t testing.TB, environment, documents, options any) (*adopt.Adoption, bool, fleet.Findings) {
	t.Helper()
	folders := &renderer.Loose{}
	defer folders.Close()
	return adopt.Adopt(environment, documents, options, func(files map[string]string, request *objects.Request) (*objects.Rendering, error) {
		return folders.Render(t.Context(), files, request)
	})
}

func renderedFiles(t testing.TB, input map[string]any, each func(key, name string)) (all []written) {
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
				all = append(all, written{assignment.Host.Name, value.(map[string]any)})
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
