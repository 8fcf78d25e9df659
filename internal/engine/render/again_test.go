package render_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
)

// An apply renders each folder twice: to find the changes and to write them.
func TestRenderingAgainTakesNoMoreMemory(t *testing.T) {
	t.Parallel()
	templates, subjects := compileReference(t, 1000)
	kept := 0
	for again := range 2 {
		for _, subject := range subjects {
			if _, err := templates.Render(subject); err != nil {
				t.Fatal(err)
			}
		}
		if again == 1 && render.Shapes(templates) != kept {
			t.Errorf("got %d shapes after the first rendering and %d after the second", kept, render.Shapes(templates))
		}
		kept = render.Shapes(templates)
	}
	if kept == 0 {
		t.Error("no shape is kept")
	}
}
