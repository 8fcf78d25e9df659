package rollout

import (
	"os"
	"strings"
	"testing"
)

// The guide "Questions at night" explains each condition that a rollout can wait for.
func TestTheNightGuideExplainsEveryWait(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../templates/guides/night.md")
	if err != nil {
		t.Fatal(err)
	}
	answer, _, _ := strings.Cut(string(page), "\n## Who removed this folder?\n")
	texts := []string{Progress{WaitsFor: WaitsForContent, Stuck: true}.WaitText()}
	for _, wait := range waitOrder {
		texts = append(texts, Progress{WaitsFor: wait}.WaitText())
	}
	for _, why := range texts {
		if !strings.Contains(answer, "\n| `"+why+"` | ") {
			t.Errorf("the table has no row for %q", why)
		}
	}
	if rows := strings.Count(answer, "\n| `"); rows != len(texts) {
		t.Errorf("the table has %d rows, want %d", rows, len(texts))
	}
}
