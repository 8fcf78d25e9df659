package render_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
)

// An apply renders each folder twice: once to see what changes, and once to write it.
func TestWhatIsRenderedAgainTakesNoMoreMemory(t *testing.T) {
	t.Parallel()
	templates, subjects := reference(t, 1000)
	kept := 0
	for again := range 2 {
		for _, subject := range subjects {
			if _, err := templates.Render(subject); err != nil {
				t.Fatal(err)
			}
		}
		if again == 1 && render.Shapes(templates) != kept {
			t.Errorf("%d shapes are kept, and %d after each folder was rendered again", kept, render.Shapes(templates))
		}
		kept = render.Shapes(templates)
	}
	if kept == 0 {
		t.Error("no shape is kept")
	}
}
