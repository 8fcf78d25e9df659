package credential_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/credential"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// BenchmarkFind searches all containers of the reference fleet. fleet.BenchmarkDecode includes this search.
func BenchmarkFind(b *testing.B) {
	input := fleettest.Input(fleettest.Reference(fleettest.ReferenceAssignments, 1))
	b.ReportAllocs()
	for b.Loop() {
		for _, container := range input["config_containers"].([]any) {
			if found := credential.Find(container.(map[string]any)["data"]); len(found) > 0 {
				b.Fatal(found)
			}
		}
	}
}
