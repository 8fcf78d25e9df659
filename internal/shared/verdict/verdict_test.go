package verdict_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

func TestOnlyVerdictsAreVerdicts(t *testing.T) {
	t.Parallel()
	for _, is := range verdict.All {
		if err := verdict.Check(is); err != nil {
			t.Errorf("%s: %v", is, err)
		}
	}
	for is, want := range map[verdict.Verdict]string{
		"redy": `the verdict "redy" is none of failed, behind, progressing, unknown, ready`,
		"":     `the verdict "" is none of failed, behind, progressing, unknown, ready`,
	} {
		if err := verdict.Check(is); err == nil || err.Error() != want {
			t.Errorf("%q: %v", is, err)
		}
	}
}
