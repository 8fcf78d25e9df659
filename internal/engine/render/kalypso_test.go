package render_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

const kalypsoSample = "../../../../shared/kalypso"

// readKalypso reads Kalypso's sample control plane and tutorial for one environment.
func readKalypso(t *testing.T, environment string) *fleet.Decoded {
	t.Helper()
	if _, err := os.Stat(kalypsoSample); err != nil {
		t.Skip("shared/kalypso is absent")
	}
	documents := map[string]any{}
	for _, folder := range []string{"control-plane/main", "control-plane/" + environment, "tutorial/app", "tutorial/main", "tutorial/" + environment} {
		for path, content := range readFolder(t, filepath.Join(kalypsoSample, folder)) {
			documents[folder+"/"+path] = string(content)
		}
	}
	decoded, findings := fleet.DecodeControlPlane(environment, documents)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return decoded
}

func readFolder(t *testing.T, root string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(relative)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// renderFleet schedules, hydrates, renders and checks a fleet. It returns the files by path.
func renderFleet(t *testing.T, decoded *fleet.Decoded) map[string][]byte {
	t.Helper()
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
	files := map[string][]byte{}
	for i, assignment := range scheduled.Assignments {
		subject := render.Subject{
			Assignment:    assignment,
			Owner:         "platform",
			Environment:   decoded.Environment,
			Config:        hydrated.All[i].Values(),
			ConfigVersion: hydrated.All[i].Version,
		}
		rendered, err := templates.Render(subject)
		if err != nil {
			t.Fatal(err)
		}
		if findings := templates.Check(subject, rendered); len(findings) > 0 {
			t.Fatal(findings)
		}
		for _, file := range rendered {
			files[assignment.Key()+"/"+file.Name] = file.Content
		}
	}
	return files
}

// documentsOf returns the YAML documents of a file.
func documentsOf(t *testing.T, content []byte) []any {
	t.Helper()
	var documents []any
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents
		}
		if err != nil {
			t.Fatalf("%s\n%s", err, content)
		}
		documents = append(documents, document)
	}
}

func TestKalypsoTutorialIsRenderedAsByKalypso(t *testing.T) {
	for _, environment := range []string{"dev", "stage"} {
		t.Run(environment, func(t *testing.T) {
			files := renderFleet(t, readKalypso(t, environment))
			want := readFolder(t, filepath.Join(kalypsoSample, "tutorial", "expected", environment))
			for path, content := range want {
				if !reflect.DeepEqual(documentsOf(t, files[path]), documentsOf(t, content)) {
					t.Errorf("%s is\n%s\nwant\n%s", path, files[path], content)
				}
			}
			for path := range files {
				if _, ok := want[path]; !ok {
					t.Errorf("%s is written, but not by Kalypso", path)
				}
			}
		})
	}
}

func TestKalypsoTutorialHasTheSameConfigurationWithBuiltinTemplates(t *testing.T) {
	decoded := readKalypso(t, "dev")
	decoded.Fleet.Templates = nil
	for i := range decoded.Fleet.ClusterTypes {
		clusterType := &decoded.Fleet.ClusterTypes[i]
		clusterType.Reconciler, clusterType.NamespaceService, clusterType.ConfigType = "flux", "default", "configmap"
	}
	files := renderFleet(t, decoded)
	for path, content := range readFolder(t, filepath.Join(kalypsoSample, "tutorial", "expected", "dev")) {
		if filepath.Base(path) != "platform-config.yaml" {
			continue
		}
		got, want := documentsOf(t, files[path])[0].(map[string]any), documentsOf(t, content)[0].(map[string]any)
		if !reflect.DeepEqual(got["data"], want["data"]) {
			t.Errorf("%s: got data %v, want %v", path, got["data"], want["data"])
		}
	}
}
