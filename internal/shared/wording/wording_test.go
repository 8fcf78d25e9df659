package wording_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

func TestCountsAndListsReadAsSentences(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ got, want string }{
		{wording.Count(0, "host", "hosts"), "0 hosts"},
		{wording.Count(1, "host", "hosts"), "1 host"},
		{wording.Count(2, "policy", "policies"), "2 policies"},
		{strings.Join(wording.Counts([]int{0, 2, 1}, "changed", "added", "removed"), ", "), "2 added, 1 removed"},
		{wording.AllCounts([]int{0, 2, 1}, "changed", "added", "removed"), "0 changed, 2 added, 1 removed"},
		{wording.List(nil, 2), ""},
		{wording.List([]string{"a", "b"}, 2), "a, b"},
		{wording.List([]string{"a", "b", "c", "d"}, 2), "a, b and 2 more"},
		{wording.Lines([]string{"a", "b"}, 2), "a\nb"},
		{wording.Lines([]string{"a", "b", "c"}, 2), "a\nb\n… and 1 more"},
		{wording.OneLine(" two\r\n\tlines\xff "), "two lines"},
		{wording.OneLine("\x1b[31mred\x1b[0m \u202etxt\u009b"), "\ufffd[31mred\ufffd[0m \ufffdtxt\ufffd"},
		{wording.Visible("a\r\n\tb\x07\u200b"), "a\n\tb\ufffd\ufffd"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
	if long := wording.OneLine(strings.Repeat("ü", 1000)); len(long) > 303 || !utf8.ValidString(long) || !strings.HasSuffix(long, "...") {
		t.Errorf("a long text is %q", long)
	}
}

func TestTheNearestWordIsSuggested(t *testing.T) {
	t.Parallel()
	candidates := []string{"token", "tokens", "kubeconfig"}
	for word, want := range map[string]string{
		"tokn": `; did you mean "token"?`, "kubeconifg": `; did you mean "kubeconfig"?`, "zzzzzz": "", "token": `; did you mean "token"?`,
	} {
		if got := wording.DidYouMean(word, candidates); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}

func TestALineIsVisibleAndOne(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"": true, "a b": true, "\u00fc": true, "a\nb": false, "a\tb": false, "a\rb": false, "\x1b[2J": false, "\u202ea": false, "\xff": false} {
		if got := wording.IsLine(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
