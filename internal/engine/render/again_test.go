package render_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
)

// An apply renders each folder twice: to find the changes and to write them.
func TestRenderingAgainTakesNoMoreMemory(t *testing.T) {
	t.Parallel()
	templates, subjects := compileReference(t, 1000)
	shapes := 0
	for again := range 2 {
		for _, subject := range subjects {
			if _, err := templates.Render(subject); err != nil {
				t.Fatal(err)
			}
		}
		if again == 1 && render.Shapes(templates) != shapes {
			t.Errorf("got %d shapes after the first rendering and %d after the second", shapes, render.Shapes(templates))
		}
		shapes = render.Shapes(templates)
	}
	if shapes == 0 {
		t.Error("got no shapes")
	}
}
