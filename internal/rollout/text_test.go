package rollout_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// TestTextsOfRollouts renders a value of each kind. No other test of this package repeats the texts.
func TestTextsOfRollouts(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	render := func(set func(p *rollout.Progress)) {
		p := rollout.Progress{
			DeploymentTarget: "app-live", Content: "0123abcd", Stage: 1, Stages: 3, StageName: "canary", HostsDone: 1, Hosts: 7, Waiting: 6,
			Since: noon, WaitsFor: rollout.WaitsForClusters, Condition: rollout.Waiting,
		}
		set(&p)
		out := rollout.Outcome{Progress: []rollout.Progress{p}}
		fmt.Fprintf(&b, "%s\n    %s\n", p.Text(), out.Lines()[0])
	}
	figure := rollout.Reason{Message: "errors: 0.9 %\nagainst 0.2 %\x1b[31m", Others: 2}
	most := figure
	most.IsMost = true
	failed := rollout.ClusterCounts{Total: 9, Ready: 3, Failed: 2, Stuck: 1}
	for _, wait := range []rollout.Wait{
		rollout.WaitsForApproval, rollout.WaitsForRequirements, rollout.WaitsForRequest, rollout.WaitsForSoak, rollout.WaitsForStages,
	} {
		render(func(p *rollout.Progress) { p.WaitsFor = wait })
	}
	render(func(p *rollout.Progress) { p.WaitsFor, p.NotBefore = rollout.WaitsForWindow, noon.Add(time.Hour) })
	render(func(p *rollout.Progress) {
		p.Removes, p.StageName = true, ""
		p.Detail.Clusters = rollout.ClusterCounts{Total: 9, Ready: 3, Soaking: 1, NotReady: 2, Failed: 1, Stuck: 1, Unknown: 1}
	})
	render(func(p *rollout.Progress) {
		p.Detail = rollout.Detail{Clusters: rollout.ClusterCounts{Total: 1, NotReady: 1}, Reason: figure}
	})
	render(func(p *rollout.Progress) {
		p.Detail = rollout.Detail{Clusters: rollout.ClusterCounts{Total: 1, NotReady: 1}, Reason: most}
	})
	render(func(p *rollout.Progress) {
		p.Detail = rollout.Detail{
			Clusters: rollout.ClusterCounts{Total: 1, NotReady: 1}, Reason: rollout.Reason{Message: strings.Repeat("long ", 1000), IsMost: true},
		}
	})
	render(func(p *rollout.Progress) {
		p.Stage, p.Stages, p.StageName, p.Content, p.Since = 0, 0, "", "", time.Time{}
		p.WaitsFor, p.Detail.Holds = rollout.WaitsForHold, []rollout.HoldDetail{{}, {Reason: "it moves", Until: noon.Add(time.Hour)}}
	})
	render(func(p *rollout.Progress) {
		p.WaitsFor, p.Condition, p.Detail = rollout.WaitsForContent, rollout.Failed, rollout.Detail{Clusters: failed, Reason: most, RollsBackAt: noon}
	})
	render(func(p *rollout.Progress) {
		p.WaitsFor, p.Condition, p.Stuck = rollout.WaitsForContent, rollout.Stuck, true
		p.Detail.Clusters = rollout.ClusterCounts{Stuck: 1}
		p.Detail.NotRolledBack, p.Detail.FailedAt = true, rollout.StagePlace{Stage: 2, Stages: 3, Name: "region"}
	})
	for _, stuck := range []bool{false, true} {
		render(func(p *rollout.Progress) {
			p.WaitsFor, p.Condition, p.Stuck, p.Retry = rollout.WaitsForContent, rollout.RolledBack, stuck, "app-live@0123abcd-2"
			p.Detail.Reason = figure
		})
	}
	out := rollout.Outcome{}
	for i := range 6 {
		out.PassedOver = append(out.PassedOver, rollout.PassedStage{
			Approval: "app-live@0123abcd", Stage: rollout.StagePlace{Stage: 1, Stages: 3, Name: "canary"}, Failed: i % 2, Stuck: 1, NotReady: i, Unknown: 1,
		})
	}
	fmt.Fprintln(&b, strings.Join(out.Lines(), "\n"))
	for _, kind := range []rollout.NoteKind{
		rollout.NoWayBack, rollout.ApprovesNothing, rollout.ApprovesOld, rollout.ExpeditesOld, rollout.ExpeditesLater, rollout.ExpeditesNext,
		rollout.TimeProves, rollout.StageIsEmpty,
	} {
		note := rollout.Note{Kind: kind, Subject: "app-live@0123abcd", Other: "Set rollback_to", Hosts: []string{"large", "small"}}
		fmt.Fprintln(&b, note)
	}
	const golden = "testdata/words.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || string(want) != b.String() {
		t.Errorf("%v: -update writes\n%s", err, b.String())
	}
}

func TestTheTutorialOfRingsShowsTextsOfRollouts(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../templates/guides/rings.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	words, err := os.ReadFile("testdata/words.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+?)(?: \\.\\.\\.)?` \\| ").FindAllSubmatch(guide, -1)
	for _, row := range rows {
		if !bytes.Contains(words, row[1]) {
			t.Errorf("no rollout has the text %q", row[1])
		}
	}
	if len(rows) != 5 {
		t.Errorf("the table has %d texts, want 5", len(rows))
	}
}
