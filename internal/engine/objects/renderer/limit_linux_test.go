//go:build !race

package renderer

import (
	"encoding/json"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// The kernel refuses the allocation. Waiting until the memory is filled takes a slow machine longer than the limit of time.
func TestALargeAllocationIsRefused(t *testing.T) {
	loose := &Loose{}
	t.Cleanup(loose.Close)
	archive, err := loose.writeArchive(map[string]string{
		"Chart.yaml":         "apiVersion: v2\nname: till\nversion: 1.0.0\n",
		"templates/all.yaml": `{{ repeat 2000000000 "x" | len }}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	request := &objects.Request{Artifact: artifact.Artifact{Pin: folder.Pin{Digest: "the files"}}, Helm: &objects.Helm{ReleaseName: "till"}}
	message, err := json.Marshal(renderOrder{archive, request})
	if err != nil {
		t.Fatal(err)
	}
	var w worker
	if err := w.start(512 << 20); err != nil {
		t.Fatal(err)
	}
	answer, err := w.exchange(t.Context(), message)
	if status, outOfMemory := w.end(); err == nil || status == exitMemory || !outOfMemory {
		t.Errorf("got answer %q, error %v, status %d and out of memory %t, want a crash of the runtime", answer, err, status, outOfMemory)
	}
}
