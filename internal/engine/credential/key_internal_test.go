package credential

import "testing"

// hasEnding is a table of its own, for speed.
func TestEveryEndingIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	for _, known := range endings {
		if !hasEnding(known.text) || kindOf("my_"+known.text) != known.kind {
			t.Errorf("%s is no ending", known.text)
		}
	}
}
