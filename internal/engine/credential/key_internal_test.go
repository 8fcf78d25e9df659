package credential

import "testing"

// hasEnding has a table of its own, for speed.
func TestHasEndingKnowsEveryEnding(t *testing.T) {
	t.Parallel()
	for _, known := range endings {
		if !hasEnding(known.text) || kindOf("my_"+known.text) != known.kind {
			t.Errorf("%s is not known as an ending", known.text)
		}
	}
}
