package hydrate_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// readKalypso reads Kalypso's sample control plane and its tutorial, for one environment.
func readKalypso(t *testing.T, environment string) *fleetBuilder {
	t.Helper()
	root := filepath.Join("..", "..", "..", "..", "shared", "kalypso")
	if _, err := os.Stat(root); err != nil {
		t.Skip("shared/kalypso is absent")
	}
	documents := map[string]any{}
	for _, folder := range []string{"control-plane/main", "control-plane/" + environment, "tutorial/app", "tutorial/main", "tutorial/" + environment} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			documents[path] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	decoded, findings := fleet.DecodeControlPlane(environment, documents)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	scheduled, findings := schedule.Schedule(decoded.Fleet)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return &fleetBuilder{*decoded.Fleet, decoded.Config, scheduled.Assignments}
}

func TestKalypsoSampleIsHydratedAsByKalypso(t *testing.T) {
	t.Parallel()
	for _, environment := range []string{"dev", "stage"} {
		t.Run(environment, func(t *testing.T) {
			t.Parallel()
			g := readKalypso(t, environment)
			result := g.hydrate(t)
			equal(t, "findings", findingLines(result.Findings), "")
			for i, assignment := range g.assignments {
				path := filepath.Join(
					"..",
					"..",
					"..",
					"..",
					"shared",
					"kalypso",
					"tutorial",
					"expected",
					environment,
					assignment.Key(),
					"platform-config.yaml",
				)
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				var expected struct{ Data map[string]any }
				if err := yaml.Unmarshal(text, &expected); err != nil {
					t.Fatal(err)
				}
				equal(t, assignment.Key(), result.All[i].JSON, canonical(t, expected.Data))
			}
		})
	}
}
