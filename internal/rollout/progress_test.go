package rollout_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// checkRoundTrip writes progress and expects to read the same progress.
func checkRoundTrip(t *testing.T, all []rollout.Progress) {
	t.Helper()
	text := rollout.MarshalProgress(all)
	got, err := rollout.ParseProgress(text)
	if err != nil || len(got) != len(all) {
		t.Fatalf("%v, %d of %d: %s", err, len(got), len(all), text)
	}
	for i, want := range all {
		if got[i].Text() != want.Text() || got[i].Approval() != want.Approval() || got[i].WaitText() != want.WaitText() {
			t.Fatalf("%q is read as %q", want.Text(), got[i].Text())
		}
	}
	if again := rollout.MarshalProgress(got); again != text {
		t.Fatalf("%s is written again as %s", text, again)
	}
}

func TestProgressOfManyTargetsRoundTrips(t *testing.T) {
	t.Parallel()
	out := rollout.Advance(largeInput(t, 5_000))
	if len(out.Progress) < 500 {
		t.Fatalf("only %d deployment targets are under way", len(out.Progress))
	}
	checkRoundTrip(t, out.Progress)
	checkRoundTrip(t, nil)
}

func TestAStageMayHaveAnyName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "canary", `a", 1 of 2 hosts (app@x)`, "waits for a hold\n", "größer\x00"} {
		checkRoundTrip(t, []rollout.Progress{{
			DeploymentTarget: "app", Content: "0123abcd-2", Stage: 2, Stages: 3, StageName: name, HostsDone: 1, Hosts: 7,
			Since: time.Date(2026, 11, 22, 1, 2, 3, 456, time.UTC), WaitsFor: rollout.WaitsForApproval, Condition: rollout.Waiting,
		}})
	}
}

func TestMalformedProgressIsAnError(t *testing.T) {
	t.Parallel()
	const good = `"hosts_done":1,"hosts":2,"waits_for":"hold","state":"waiting"`
	if _, err := rollout.ParseProgress(`{"app":{` + good + `}}`); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"", "soon", "null", "[]", `{"app":null}`, `{"app":{}}`, `{"app":{` + good + `}} {}`, `{"app":{` + good + `,"of":3}}`,
		`{"app":{` + strings.Replace(good, "hold", "luck", 1) + `}}`, `{"app":{` + strings.Replace(good, "waiting", "fine", 1) + `}}`,
		`{"app":{` + strings.Replace(good, `"hosts":2`, `"hosts":0`, 1) + `}}`, `{"app":{` + good + `,"stage":3,"stages":2,"content":"x"}}`,
		`{"app":{` + good + `,"stage":1,"stages":2}}`, `{"app":{` + good + `,"since":"yesterday"}}`,
	} {
		if all, err := rollout.ParseProgress(text); err == nil {
			t.Errorf("%q is read as %+v", text, all)
		}
	}
}

// Stages without hosts of the change are skipped, and do not count in the texts.
func TestOnlyStagesWithHostsAreCounted(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"stages": []any{ringStage("nowhere"), ringStage("canary"), ringStage("region")}})
	s.Wanted["region"] = s.Deployed["region"]
	out, _ := s.run(t)
	if p := out.Progress[0]; p.Stage != 1 || p.Stages != 2 || p.StageName != "canary" {
		t.Errorf("got progress %s", p.Text())
	}
}

// Failed deployment targets have a summary of their own.
func TestDeploymentTargetsAtTheSamePlaceShareASummary(t *testing.T) {
	t.Parallel()
	var out rollout.Outcome
	add := func(name string, condition rollout.Condition, wait rollout.Wait) {
		out.Progress = append(out.Progress, rollout.Progress{
			DeploymentTarget: name, Content: "0123", Stage: 1, Stages: 2, StageName: "canary", HostsDone: 1, Hosts: 3, Waiting: 2, Condition: condition,
			WaitsFor: wait,
		})
	}
	for _, letter := range "abcdefghij" {
		add(string(letter), rollout.Waiting, rollout.WaitsForClusters)
	}
	if got := out.RollingOut(); len(got) != 10 || got["c"].Approval != "c@0123" || got["c"].Others != 0 {
		t.Errorf("with ten deployment targets: got %+v", got)
	}
	add("k", rollout.Failed, rollout.WaitsForContent)
	want := map[string]rollout.Summary{
		"a": {
			Text:      `10 deployment targets: stage 1 of 2 "canary", 10 of 30 hosts, wait for clusters to be ready`,
			Condition: rollout.Waiting, WaitsFor: rollout.WaitsForClusters, Others: 9,
		},
		"k": {
			Text: `stage 1 of 2 "canary", 1 of 3 hosts, failed`, Condition: rollout.Failed, WaitsFor: rollout.WaitsForContent, Approval: "k@0123",
		},
	}
	if got := out.RollingOut(); !reflect.DeepEqual(got, want) {
		t.Errorf("with eleven deployment targets: got %+v, want %+v", got, want)
	}
}

// FuzzParseProgress searches for progress that changes in a round trip.
func FuzzParseProgress(f *testing.F) {
	f.Add(`{"app":{"content":"0123abcd","stage":1,"stages":3,"stage_name":"canary","hosts_done":1,"hosts":3,"since":"2026-01-01T13:00:00Z","waits_for":"clusters","state":"waiting"}}`)
	f.Add(`{"app":{"hosts_done":2,"hosts":3,"waits_for":"newer_content","state":"rolled_back","stuck":true}}`)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := rollout.ParseProgress(text)
		if err != nil {
			return
		}
		written := rollout.MarshalProgress(all)
		again, err := rollout.ParseProgress(written)
		if err != nil || rollout.MarshalProgress(again) != written {
			t.Errorf("%q is read as %q, and that as %q, %v", text, written, rollout.MarshalProgress(again), err)
		}
	})
}
