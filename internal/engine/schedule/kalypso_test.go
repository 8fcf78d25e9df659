package schedule_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// readKalypso reads Kalypso's sample control plane and its tutorial, for one environment.
func readKalypso(t *testing.T, environment string) *fleet.Decoded {
	t.Helper()
	root := filepath.Join("..", "..", "..", "..", "shared", "kalypso")
	if _, err := os.Stat(root); err != nil {
		t.Skip("shared/kalypso is absent: Kalypso's sample cannot be read")
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
	return decoded
}

func TestKalypsoTutorialIsScheduledAsByKalypso(t *testing.T) {
	for environment, want := range map[string][]string{
		"dev":   {"drone/hello-world-app-functional-test", "large/hello-world-app-performance-test"},
		"stage": {"drone/hello-world-app-uat-test", "large/hello-world-app-uat-test"},
	} {
		t.Run(environment, func(t *testing.T) {
			decoded := readKalypso(t, environment)
			if !decoded.Known || !decoded.ContainersKnown {
				t.Fatalf("known = %t, containers known = %t, want everything known", decoded.Known, decoded.ContainersKnown)
			}
			result, findings := schedule.Schedule(decoded.Fleet)
			if len(findings) > 0 {
				t.Fatal(findings)
			}
			var keys []string
			for _, assignment := range result.Assignments {
				keys = append(keys, assignment.Key())
				if want := environment + "-" + assignment.Host.Name + "-" + assignment.Target.Name; assignment.Namespace != want {
					t.Errorf("namespace %q, want %q", assignment.Namespace, want)
				}
			}
			if !slices.Equal(keys, want) {
				t.Errorf("assignments %q, want %q", keys, want)
			}
			if environment == "dev" && (len(result.IdlePolicies) != 1 || result.IdlePolicies[0].Name != "observability-policy") {
				t.Errorf("idle policies %v, want observability-policy alone", result.IdlePolicies)
			}
		})
	}
}
