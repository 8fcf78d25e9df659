package naming_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/naming"
)

func TestShortenKeepsNamesThatFit(t *testing.T) {
	for _, name := range []string{"", "till", strings.Repeat("a", 53)} {
		if got := naming.Shorten(name, 53); got != name {
			t.Errorf("%q became %q", name, got)
		}
	}
}

func TestShortenKeepsLongNamesDifferent(t *testing.T) {
	seen := map[string]string{}
	for _, end := range []string{"one", "two", "-", "", "one-", "one.two"} {
		name := strings.Repeat("partition-", 6) + end
		got := naming.Shorten(name, 53)
		if len(got) > 53 || strings.Trim(got, "-._") != got {
			t.Errorf("%q became %q", name, got)
		}
		if other, isTaken := seen[got]; isTaken {
			t.Errorf("%q and %q both became %q", name, other, got)
		}
		seen[got] = name
	}
}

func TestShortenTrimsSeparatorsBeforeTheHash(t *testing.T) {
	name := strings.Repeat("a", 10) + "---" + strings.Repeat("b", 10)
	got := naming.Shorten(name, 21)
	if want := "aaaaaaaaaa-"; !strings.HasPrefix(got, want) || strings.Contains(got, "--") || len(got) != 19 {
		t.Errorf("got %q", got)
	}
}

func TestAddHashDependsOnTheIdentity(t *testing.T) {
	if naming.AddHash("till", "a/till", 63) == naming.AddHash("till", "b/till", 63) {
		t.Error("two identities have one name")
	}
}
