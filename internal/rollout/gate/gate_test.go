package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
)

// windowConfig returns a window as in a configuration.
func windowConfig(kind, schedule, duration, zone string) map[string]any {
	return map[string]any{"kind": kind, "schedule": schedule, "duration": duration, "time_zone": zone}
}

func decodeWindows(t *testing.T, list ...any) gate.Windows {
	t.Helper()
	reader := &fleet.Reader{}
	decoded := gate.DecodeWindows(reader, nil, list)
	if len(reader.Findings) > 0 {
		t.Fatal(reader.Findings)
	}
	return decoded
}

func parseTime(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func TestWindowsOpenAndClose(t *testing.T) {
	t.Parallel()
	nights := windowConfig("allow", "0 22 * * 1-5", "8h", "Europe/Berlin")
	christmas := windowConfig("deny", "0 0 24 12 *", "72h", "")
	for name, test := range map[string]struct {
		windows      gate.Windows
		closed       []string
		open         []string
		now, opensAt string
	}{
		"none":  {open: []string{"2026-01-01T00:00:00Z"}},
		"allow": {windows: decodeWindows(t, nights), closed: []string{"2026-01-05T20:59:59Z", "2026-01-06T05:00:00Z", "2026-01-04T22:00:00Z"}, open: []string{"2026-01-05T21:00:00Z", "2026-01-06T04:59:59Z"}, now: "2026-01-04T12:00:00Z", opensAt: "2026-01-05T21:00:00Z"},
		"deny":  {windows: decodeWindows(t, christmas), closed: []string{"2026-12-24T00:00:00Z", "2026-12-26T23:59:59Z"}, open: []string{"2026-12-27T00:00:00Z"}, now: "2026-12-25T00:00:00Z", opensAt: "2026-12-27T00:00:00Z"},
		"deny wins": {
			windows: decodeWindows(t, windowConfig("allow", "0 0 * * *", "24h", ""), christmas), closed: []string{"2026-12-25T10:00:00Z"}, open: []string{"2026-12-23T10:00:00Z"},
			now: "2026-12-25T10:00:00Z", opensAt: "2026-12-27T00:00:00Z",
		},
		"summer time skips the start": {windows: decodeWindows(t, windowConfig("allow", "30 2 * * *", "1h", "Europe/Berlin")), open: []string{"2026-03-29T01:15:00Z"}, closed: []string{"2026-03-29T01:30:00Z", "2026-03-29T00:59:00Z"}},
		"an hour comes twice":         {windows: decodeWindows(t, windowConfig("allow", "0 22 * * *", "8h", "Europe/Berlin")), open: []string{"2026-10-25T04:59:00Z"}, closed: []string{"2026-10-25T05:00:00Z"}},
		"summer time begins during a denial": {
			windows: decodeWindows(t, windowConfig("deny", "30 2 * * *", "1h", "Europe/Berlin")), closed: []string{"2026-03-29T01:15:00Z"}, open: []string{"2026-03-29T01:30:00Z"},
		},
		"never":                 {windows: decodeWindows(t, windowConfig("allow", "0 0 * * *", "1h", ""), windowConfig("deny", "0 0 * * *", "24h", "")), closed: []string{"2026-01-01T00:30:00Z"}, now: "2026-01-01T00:00:00Z"},
		"the 29th of February":  {windows: decodeWindows(t, windowConfig("allow", "0 0 29 2 *", "24h", "")), closed: []string{"2026-02-28T12:00:00Z"}, open: []string{"2028-02-29T12:00:00Z"}, now: "2026-01-01T00:00:00Z", opensAt: "2028-02-29T00:00:00Z"},
		"longer than its pause": {windows: decodeWindows(t, windowConfig("allow", "0 * * * *", "3h", "")), open: []string{"2026-01-01T00:59:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, now := range test.open {
				if !test.windows.Open(parseTime(t, now)) || gate.WaitText(parseTime(t, now), test.windows) != "" {
					t.Errorf("closed at %s", now)
				}
			}
			for _, now := range test.closed {
				if test.windows.Open(parseTime(t, now)) || gate.WaitText(parseTime(t, now), test.windows) == "" {
					t.Errorf("open at %s", now)
				}
			}
			if test.now != "" {
				opens := gate.Opens(parseTime(t, test.now), test.windows)
				if test.opensAt == "" && !opens.IsZero() || test.opensAt != "" && !opens.Equal(parseTime(t, test.opensAt)) {
					t.Errorf("opens at %s", opens)
				}
			}
		})
	}
}

// Two lists of windows of kind allow combine, such as the nights of a cluster and the days of a rollout.
func TestSeveralWindowsAreOpenAtOnce(t *testing.T) {
	t.Parallel()
	nights := decodeWindows(t, windowConfig("allow", "0 22 * * *", "8h", "Europe/Berlin"), windowConfig("deny", "0 0 * * 2", "24h", ""))
	mondays := decodeWindows(t, windowConfig("allow", "0 12 * * 1", "24h", ""))
	never := decodeWindows(t, windowConfig("allow", "0 12 * * *", "1h", ""))
	for _, test := range []struct {
		all        []gate.Windows
		now, opens string
		waits      string
	}{
		{nil, "2026-11-23T12:00:00Z", "2026-11-23T12:00:00Z", ""},
		{[]gate.Windows{nil, mondays}, "2026-11-23T12:00:00Z", "2026-11-23T12:00:00Z", ""},
		{[]gate.Windows{mondays, nights}, "2026-11-23T12:00:00Z", "2026-11-23T21:00:00Z", "a window, not before 2026-11-23 21:00 UTC"},
		{[]gate.Windows{nights, mondays}, "2026-11-24T01:00:00Z", "2026-11-30T21:00:00Z", "a window, not before 2026-11-30 21:00 UTC"}, // denied on Tuesdays
		{[]gate.Windows{nights, never}, "2026-11-23T12:00:00Z", "", "a window, but none opens"},
	} {
		now := parseTime(t, test.now)
		opens := gate.Opens(now, test.all...)
		if got := gate.WaitText(now, test.all...); got != test.waits || gate.Open(now, test.all...) != (test.waits == "") ||
			test.opens != "" && !opens.Equal(parseTime(t, test.opens)) ||
			test.opens == "" != opens.IsZero() {
			t.Errorf("%s: got %s, %q, want %s, %q", test.now, opens, got, test.opens, test.waits)
		}
	}
}

func TestTheEarliestTimeIsRoundedUp(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2026-11-24T03:00:00+01:00": "not before 2026-11-24 02:00 UTC", "2026-11-24T02:00:20Z": "not before 2026-11-24 02:00:20 UTC",
		"2026-11-24T02:00:59.5Z": "not before 2026-11-24 02:01 UTC",
	} {
		if got := gate.NotBefore(parseTime(t, text)); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestAllMistakesInWindowsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		value any
		want  []string
	}{
		"no list":       {"night", []string{"must be a list of objects, not a string"}},
		"no object":     {[]any{"night"}, []string{"[0]: must be an object, not a string"}},
		"nothing":       {[]any{map[string]any{}}, []string{"[0].kind: is required", "[0].schedule: is required", "[0].duration: is required"}},
		"misspelt":      {[]any{map[string]any{"kind": "allow", "shedule": "0 0 * * *", "duration": "1h"}}, []string{`[0].shedule: unknown attribute; did you mean "schedule"?`, "[0].schedule: is required"}},
		"kind":          {[]any{windowConfig("alow", "0 0 * * *", "1h", "")}, []string{`did you mean "allow"?`}},
		"schedule":      {[]any{windowConfig("allow", "0 0 * *", "1h", "")}, []string{"is not a cron schedule of five fields"}},
		"seconds":       {[]any{windowConfig("allow", "0 0 0 * * *", "1h", "")}, []string{"is not a cron schedule of five fields"}},
		"every":         {[]any{windowConfig("allow", "@every 1h", "1h", "")}, []string{"is not a cron schedule of five fields"}},
		"zone inside":   {[]any{windowConfig("allow", "TZ=0", "1h", "")}, []string{"is not a cron schedule of five fields"}},
		"no such date":  {[]any{windowConfig("deny", "0 0 30 2 *", "1h", "")}, []string{`"0 0 30 2 *" names a date that does not exist`}},
		"zone":          {[]any{windowConfig("allow", "0 0 * * *", "1h", "Europe/Berln")}, []string{`"Europe/Berln" is not a time zone`}},
		"local":         {[]any{windowConfig("allow", "0 0 * * *", "1h", "Local")}, []string{`"Local" is not a time zone`}},
		"zero":          {[]any{windowConfig("allow", "0 0 * * *", "0s", "")}, []string{"must be longer than 0"}},
		"negative":      {[]any{windowConfig("allow", "0 0 * * *", "-1h", "")}, []string{`"-1h" is negative`}},
		"long":          {[]any{windowConfig("allow", "0 0 * * *", "9000h", "")}, []string{"is longer than 8784 hours"}},
		"no duration":   {[]any{windowConfig("allow", "0 0 * * *", "an hour", "")}, []string{"is not a duration such as"}},
		"several wrong": {[]any{windowConfig("allow", "x", "y", "z")}, []string{"[0].schedule", "[0].duration", "[0].time_zone"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := &fleet.Reader{}
			gate.DecodeWindows(reader, nil, test.value)
			if len(reader.Findings) != len(test.want) {
				t.Fatalf("got %q, want %q", reader.Findings, test.want)
			}
			for i, want := range test.want {
				if !strings.Contains(reader.Findings.Error(), want) {
					t.Errorf("%d: %q does not contain %q", i, reader.Findings, want)
				}
			}
		})
	}
}

func TestUnknownWindowsAreNoError(t *testing.T) {
	t.Parallel()
	for _, value := range []any{fleet.Unknown{}, []any{fleet.Unknown{}}, []any{map[string]any{"kind": "allow", "schedule": fleet.Unknown{}, "duration": fleet.Unknown{}, "time_zone": fleet.Unknown{}}}} {
		reader := &fleet.Reader{}
		decoded := gate.DecodeWindows(reader, nil, value)
		if !reader.Unknown || len(reader.Findings) > 0 {
			t.Errorf("%v: %v, %v", value, reader.Unknown, reader.Findings)
		}
		gate.Opens(time.Unix(0, 0), decoded) // does not panic
	}
}

// FuzzWindow expects each accepted window to be open at the time that Opens returns, and Opens to return quickly.
func FuzzWindow(f *testing.F) {
	f.Add("0 22 * * 1-5", "8h", "Europe/Berlin", int64(1790000000))
	f.Add("*/7 1-3 29 2 0", "90m", "America/St_Johns", int64(1711846800))
	f.Add("TZ=0", "1h", "", int64(0))
	f.Fuzz(func(t *testing.T, schedule, duration, zone string, unix int64) {
		reader := &fleet.Reader{}
		decoded := gate.DecodeWindows(reader, nil, []any{windowConfig("allow", schedule, duration, zone)})
		if len(reader.Findings) > 0 {
			return
		}
		now := time.Unix(unix%(1<<33), 0)
		opens := gate.Opens(now, decoded)
		if opens.IsZero() {
			return
		}
		if opens.Before(now) || !decoded.Open(opens) {
			t.Errorf("%q for %s in %q opens at %s after %s; open then: %v", schedule, duration, zone, opens, now, decoded.Open(opens))
		}
	})
}

func TestSoakTimeCountsFromTheGivenTime(t *testing.T) {
	t.Parallel()
	now := parseTime(t, "2026-01-01T12:00:00Z")
	for _, test := range []struct {
		since string
		soak  time.Duration
		want  bool
	}{
		{"2026-01-01T11:00:00Z", time.Hour, true},
		{"2026-01-01T11:00:01Z", time.Hour, false},
		{"2026-01-01T12:00:00Z", 0, true},
		{"2026-01-01T12:00:01Z", 0, false}, // a clock that goes backwards
	} {
		if done, _ := gate.Soaked(parseTime(t, test.since), now, test.soak); done != test.want {
			t.Errorf("since %s with %s: got %v, want %v", test.since, test.soak, done, test.want)
		}
	}
	if done, _ := gate.Soaked(time.Time{}, now, time.Hour); done {
		t.Error("an unknown time counts as soaked")
	}
}

func TestApprovalsAreBoundToContent(t *testing.T) {
	t.Parallel()
	approvals := gate.Approvals{"app-edge@1", "app-core@2"}
	if !approvals.For("app-edge", "1") || approvals.For("app-edge", "2") || approvals.For("app", "1") {
		t.Error(approvals)
	}
	for approval, ok := range map[string]bool{"a@b": true, "a": false, "@b": false, "a@": false} {
		if (gate.Problem(approval) == "") != ok {
			t.Errorf("%q: got problem %q", approval, gate.Problem(approval))
		}
	}
}

func TestPromotion(t *testing.T) {
	t.Parallel()
	now, earlier := parseTime(t, "2026-01-05T12:00:00Z"), parseTime(t, "2026-01-05T11:00:00Z")
	nights := decodeWindows(t, windowConfig("allow", "0 22 * * *", "8h", ""))
	for name, test := range map[string]struct {
		promotion gate.Promotion
		promote   bool
		waits     string
		opened    time.Time
	}{
		"open":                   {gate.Promotion{Same: true, Now: now, Open: true}, true, "", now},
		"without a time":         {gate.Promotion{Same: true, Open: true}, true, "", time.Time{}},
		"new candidate":          {gate.Promotion{Now: now, Open: true}, false, "the next plan, since the candidate is new", now},
		"no candidate":           {gate.Promotion{Now: now, Open: true, Same: true, Missing: true}, false, "a candidate", time.Time{}},
		"closed":                 {gate.Promotion{Now: now, Same: true, OpenedAt: earlier}, false, "the gate to open", time.Time{}},
		"soaking":                {gate.Promotion{Now: now, Open: true, Soak: time.Hour}, false, "the soak time, not before 2026-01-05 13:00 UTC", now},
		"soaked":                 {gate.Promotion{Now: now, Open: true, Same: true, OpenedAt: earlier, Soak: time.Hour}, true, "", earlier},
		"newer candidate":        {gate.Promotion{Now: now, Open: true, OpenedAt: earlier, Soak: time.Hour}, false, "the soak time, not before 2026-01-05 13:00 UTC", now},
		"a clock that goes back": {gate.Promotion{Now: earlier, Open: true, Same: true, OpenedAt: now, Soak: time.Minute}, false, "the soak time, not before 2026-01-05 12:01 UTC", now},
		"promoted already":       {gate.Promotion{Now: now, Promoted: true}, false, "", time.Time{}},
		"pinned":                 {gate.Promotion{Now: now, Open: true, Pinned: true}, false, "the end of pin", time.Time{}},
		"held":                   {gate.Promotion{Now: now, Open: true, Held: true}, false, "the end of hold", now},
		"held before it opens":   {gate.Promotion{Now: now, Held: true}, false, "the end of hold", time.Time{}},
		"not approved":           {gate.Promotion{Now: now, Open: true, NeedsApproval: true, Content: "1", Approvals: []string{"2"}}, false, `an approval: "1"`, now},
		"approved":               {gate.Promotion{Same: true, Now: now, Open: true, NeedsApproval: true, Content: "1", Approvals: []string{"1"}}, true, "", now},
		"a closed window":        {gate.Promotion{Now: now, Open: true, Windows: nights}, false, "a window, not before 2026-01-05 22:00 UTC", now},
		"soaking until a window": {gate.Promotion{Now: now, Open: true, Soak: time.Hour, Windows: nights}, false, "the soak time, not before 2026-01-05 22:00 UTC", now},
		"an open window":         {gate.Promotion{Same: true, Now: now.Add(11 * time.Hour), Open: true, Windows: nights}, true, "", now.Add(11 * time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := test.promotion.Decide()
			if got.Promote != test.promote || got.WaitsFor != test.waits || !got.OpenedAt.Equal(test.opened) {
				t.Errorf("%+v", got)
			}
		})
	}
}
