package objects_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

func TestObjectsWithoutANameAreGenerated(t *testing.T) {
	for text, want := range map[string]bool{
		"apiVersion: batch/v1\nkind: Job\nmetadata:\n  generateName: a-\nspec: {}\n":              true,
		"apiVersion: batch/v1\nkind: Job\nmetadata:\n  generateName: a-\n":                        true,
		"apiVersion: batch/v1\nkind: Job\nmetadata:\n  generateName: a-\n  name: b\n":             false,
		"apiVersion: x/v1\nkind: Template\nmetadata:\n  name: b\nspec:\n  generateName: a-\n":     false,
		"apiVersion: x/v1\nkind: Template\nmetadata:\n  labels:\n    generateName: a-\n":          false,
		"apiVersion: v1\ndata:\n  a: |\n    metadata:\n      generateName: a-\nkind: ConfigMap\n": false,
	} {
		if got := (&objects.FinalObject{YAML: []byte(text)}).IsGenerated(); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
}
