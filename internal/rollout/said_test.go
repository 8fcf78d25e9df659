package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// checkSaid reads what is said of each deployment target, and expects what it was made of.
func checkSaid(t *testing.T, out *rollout.Outcome) {
	t.Helper()
	for _, want := range out.Progress {
		got, err := rollout.ParseProgress(want.DeploymentTarget, want.String())
		if err != nil {
			t.Fatal(err)
		}
		if got.Content != want.Content || got.Stage != want.Stage || got.Of != want.Of || got.Name != want.Name || got.Done != want.Done ||
			got.Hosts != want.Hosts || !got.Since.Equal(want.Since.Truncate(time.Second)) || got.WaitsFor != want.WaitsFor ||
			got.Failed != want.Failed || got.WentBack != want.WentBack {
			t.Fatalf("%q is read as %+v, and was %+v", want.String(), got, want)
		}
	}
	for target, text := range out.RollingOut() {
		if p, err := rollout.ParseProgress(target, text); err != nil || p.String() != text {
			t.Fatalf("%s: %q is read as %q, %v", target, text, p.String(), err)
		}
	}
}

func TestWhatIsSaidOfManyCanBeRead(t *testing.T) {
	t.Parallel()
	out := rollout.Advance(largeInput(t, 5_000))
	if said := out.RollingOut(); len(out.Progress) < 500 || len(said) != len(out.Progress) {
		t.Fatalf("%d are under way, and %d are listed", len(out.Progress), len(said))
	}
	checkSaid(t, out)
}

func TestAStageMayHaveAnyName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "canary", `a", 1 of 2 hosts (app@x)`, "waits for a hold\n", "größer\x00"} {
		p := rollout.Progress{
			DeploymentTarget: "app", Content: "0123abcd-2", Stage: 2, Of: 3, Name: name, Done: 1, Hosts: 7,
			Since: time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC), WaitsFor: "an approval",
		}
		if got, err := rollout.ParseProgress("app", p.String()); err != nil || got != p {
			t.Errorf("%q is read as %+v, %v", p.String(), got, err)
		}
	}
}

func TestWhatNobodySaidIsAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "ready", "stage 1 of 2", `stage 1 of 2 canary, 1 of 2 hosts, failed`, `stage 1 of 2 "canary, 1 of 2 hosts, failed`,
		"stage 3 of 2, 1 of 2 hosts, failed", "1 of 2 hosts", "1 of 2 hosts, waits for nothing", "1 of 2 hosts, failed (app@)",
		"1 of 2 hosts, since 2026-13-22T01:02:03Z, failed", "99999999999999999999 of 2 hosts, failed", "1 of 2 hosts, failed ",
	} {
		if p, err := rollout.ParseProgress("app", text); err == nil || !strings.Contains(err.Error(), "rolling_out") {
			t.Errorf("%q is read as %+v, %v", text, p, err)
		}
	}
}

// FuzzParseProgress looks for texts that are read as something that would be said otherwise.
func FuzzParseProgress(f *testing.F) {
	f.Add("app", `stage 1 of 3 "canary", 1 of 3 hosts, since 2026-01-01T13:00:00Z, waits for clusters to be ready (app@0123abcd)`)
	f.Add("app and 3 more", "2 of 3 hosts, failed and was rolled back")
	f.Fuzz(func(t *testing.T, target, text string) {
		p, err := rollout.ParseProgress(target, text)
		if err != nil {
			return
		}
		again, err := rollout.ParseProgress(target, p.String())
		if err != nil || again.String() != p.String() {
			t.Errorf("%q is read as %q, and that as %q, %v", text, p.String(), again.String(), err)
		}
	})
}
