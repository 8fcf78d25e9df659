package git_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

func TestCheckRefAcceptsNamesOfRefsAndCommits(t *testing.T) {
	t.Parallel()
	for _, ref := range []string{"", "main", "release/1.2", "v1.0.0", "refs/heads/main", "refs/tags/v1", strings.Repeat("a", 40), "renovate/@scope/x", "äöü", "HEAD"} {
		if err := git.CheckRef(ref); err != nil {
			t.Errorf("CheckRef(%q) = %v", ref, err)
		}
	}
	for _, ref := range []string{
		"refs/heads/", "refs/pull/1/head", "refs/heads/refs/heads/x", "-x", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[b", `a\b`, "a\x00b", "a\x7fb", "\xff", strings.Repeat("a", 1025),
	} {
		if err := git.CheckRef(ref); err == nil {
			t.Errorf("CheckRef(%q) = nil", ref)
		}
	}
}

func FuzzCheckRef(f *testing.F) {
	for _, seed := range []string{"main", "refs/heads/x", "-x", "a..b", "refs/x", strings.Repeat("a", 40), "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		if git.CheckRef(ref) == nil && (strings.HasPrefix(ref, "-") || strings.ContainsAny(ref, " \x00\n~^:") || len(ref) > 1024) {
			t.Errorf("CheckRef(%q) = nil", ref)
		}
	})
}
