package pipeline_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// BenchmarkKalypsoTemplates measures a first plan with the custom templates of Kalypso's sample: rendering, checks, trees and
// objects of every folder.
func BenchmarkKalypsoTemplates(b *testing.B) {
	templates := kalypsoTemplates(b)
	for _, size := range []int{1_000, 5_000, fleettest.ReferenceAssignments} {
		b.Run(fmt.Sprintf("assignments=%d", size), func(b *testing.B) {
			f, config := fleettest.Reference(size, 1)
			f.Templates = templates
			for i := range f.ClusterTypes {
				f.ClusterTypes[i].Reconciler = "arc-flux"
				if i%4 == 3 {
					f.ClusterTypes[i].Reconciler = "argocd"
				}
			}
			input := fleettest.Input(withoutSchemas(f), config)
			for _, container := range input["config_containers"].([]any) {
				convertToTexts(container.(map[string]any)["data"].(map[string]any))
			}
			value := valueOf(b, input)
			measure(b, func() int {
				result, findings := pipeline.Compute(value)
				if len(findings) > 0 {
					b.Fatal(findings)
				}
				rendering := result.Render(b.Context(), pipeline.Destination{Owner: "platform"}, nil)
				if len(rendering.Findings) > 0 || len(rendering.Record(0).Objects) == 0 {
					b.Fatal(rendering.Findings)
				}
				return len(rendering.Trees)
			})
		})
	}
}

// kalypsoTemplates returns the templates of Kalypso's sample control plane.
func kalypsoTemplates(b *testing.B) []fleet.Template {
	b.Helper()
	files, err := filepath.Glob("../../../../shared/kalypso/control-plane/main/templates/*.yaml")
	if err != nil || len(files) == 0 {
		b.Skip("shared/kalypso is absent")
	}
	documents := map[string]any{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		documents[file] = string(content)
	}
	decoded, findings := fleet.DecodeControlPlane("dev", documents)
	if len(findings) > 0 {
		b.Fatal(findings)
	}
	return decoded.Fleet.Templates
}

// convertToTexts replaces values by texts, as in Kalypso.
func convertToTexts(values map[string]any) {
	for key, value := range values {
		if _, isText := value.(string); isText {
			continue
		}
		text, err := fleet.CanonicalJSON(value)
		if err != nil {
			panic(err) // the value was read from JSON
		}
		values[key] = text
	}
}
