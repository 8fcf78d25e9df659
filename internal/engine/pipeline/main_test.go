package pipeline_test

import (
	"os"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
)

func TestMain(m *testing.M) {
	renderer.RunIfWorker()
	os.Exit(m.Run())
}
