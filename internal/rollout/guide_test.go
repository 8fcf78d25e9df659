package rollout_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

var update = flag.Bool("update", false, "write the timeline into the guide")

// TestTheGuideShowsTheTimeline plays the guide's rollout and compares its table with the guide.
func TestTheGuideShowsTheTimeline(t *testing.T) {
	s := newSite(t, nil)
	var table strings.Builder
	table.WriteString("| run | before it | version on canary, region, last | what waits, and why |\n|---|---|---|---|\n")
	before := ""
	for i, run := range []struct {
		before string
		happen func()
	}{
		{"version 2 is wanted", func() {}},
		{"there is no report yet", func() {}},
		{"canary is ready", func() { s.setReport("canary", verdict.Ready) }},
		{"region has failed", func() { s.setReport("region", verdict.Failed) }},
		{"version 3 is wanted", func() { s.wantVersion("3") }},
		{"canary is ready", func() { s.setReport("canary", verdict.Ready) }},
		{"canary restarts, region is ready", func() { s.setReport("canary", verdict.Progressing); s.setReport("region", verdict.Ready) }},
		{"the last one is ready", func() { s.setReport("rest", verdict.Ready) }},
	} {
		run.happen()
		out, versions := s.run(t)
		waits := "nothing: it is rolled out"
		if lines := out.Lines(); len(lines) > 0 {
			_, waits, _ = strings.Cut(lines[0], " at ")
		}
		if now := rollout.MarshalProgress(out.Progress); now != before {
			before = now
		} else { // Terraform shows no change
			waits = "the plan is empty: it waits as before"
		}
		fmt.Fprintf(&table, "| %d | %s | %s | %s |\n", i+1, run.before, strings.ReplaceAll(versions, " ", ", "), waits)
	}
	guide := filepath.Join("..", "..", "templates", "guides", "rollouts.md.tmpl")
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- timeline -->\n", "<!-- end of timeline -->"
	head, rest, ok := strings.Cut(string(text), begin)
	shown, tail, alsoOk := strings.Cut(rest, end)
	if !ok || !alsoOk {
		t.Fatal("the guide has no place for the timeline")
	}
	if *update {
		if err := os.WriteFile(guide, []byte(head+begin+table.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if shown != table.String() {
		t.Errorf("the guide shows\n%s\nwant\n%s\n-update writes it", shown, table.String())
	}
}
