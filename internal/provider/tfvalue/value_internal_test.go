package tfvalue

import "testing"

func TestAMessageBecomesASentence(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"": "", "it is wrong": "It is wrong.", "is it?": "Is it?", "\u00fcbung is wrong": "\u00dcbung is wrong.", "fleet.name is wrong": "fleet.name is wrong.",
	} {
		if got := Sentence(message); got != want {
			t.Errorf("%q becomes %q, want %q", message, got, want)
		}
	}
}
