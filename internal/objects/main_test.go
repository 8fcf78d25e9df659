package objects_test

import (
	"os"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/objects"
)

func TestMain(m *testing.M) {
	objects.RunIfWorker()
	os.Exit(m.Run())
}
