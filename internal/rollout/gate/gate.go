// Package gate has the conditions of rollouts and promotions: time windows, soak times and approvals. It is pure: the time is an
// input.
package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // machines without time zones, such as Windows and containers from scratch

	"github.com/robfig/cron/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// MaxDuration limits every duration to a year.
const MaxDuration = 366 * 24 * time.Hour

// Window is a recurring time that allows or denies changes.
type Window struct {
	Deny     bool
	Schedule string        // cron, five fields: the beginning
	Duration time.Duration // in local time, also in a night with an additional hour
	TimeZone string        // IANA name; "" means UTC

	starts cron.Schedule
	zone   *time.Location
}

// Windows allow changes if one of kind allow is open, or there is none, and no window of kind deny is open.
type Windows []Window

// fields excludes seconds and "@every", which has no fixed times.
var fields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// The kinds of windows.
const (
	allow = "allow"
	deny  = "deny"
)

// WindowTable describes a window.
var WindowTable = &fleet.Table{
	Name: "window",
	Meaning: "A recurring time in which changes may be written, or may not. With windows of the kind `allow`, one of them has to be open; " +
		"an open one of the kind `deny` wins. `windows` of `flotilla_rollout` and `flotilla_promotion` have them, too.",
	Attributes: []fleet.Attribute{
		{Name: "kind", Required: true, Allowed: []string{allow, deny}, Meaning: "Whether changes may be written in the window, or may not."},
		{
			Name: "schedule", Required: true,
			Meaning: "A cron schedule of five fields that says when the window begins, such as `\"0 22 * * 1-5\"`.",
		},
		{
			Name: "duration", Type: fleet.DurationType, Required: true,
			Meaning: "How long it is open, above zero and at most 366 days, by the local time.",
		},
		{Name: "time_zone", Default: "UTC", Meaning: "The time zone of the schedule, such as `\"Europe/Berlin\"`."},
	},
}

// DecodeWindows reads a list of windows by [WindowTable].
func DecodeWindows(r *fleet.Reader, path *fleet.Path, value any) Windows {
	var windows Windows
	for _, object := range r.List(WindowTable, path, value) {
		windows = append(windows, DecodeWindow(object))
		object.Finish()
	}
	return windows
}

// DecodeWindow reads a window by [WindowTable].
func DecodeWindow(o *fleet.ObjectReader) Window {
	w := Window{zone: time.UTC}
	o.Require("kind", "is required: allow or deny")
	w.Deny = o.OneOf("kind") == deny
	w.Schedule, w.TimeZone = o.Required("schedule"), o.Text("time_zone")
	if text := o.Required("duration"); text != "" {
		var problem string
		w.Duration, problem = fleet.ParseDuration(text, MaxDuration)
		if problem == "" && w.Duration == 0 {
			problem = "must be longer than 0"
		}
		if problem != "" {
			o.Report("duration", "%s", problem)
		}
	}
	if w.Schedule != "" {
		var problem string
		if w.starts, problem = parseSchedule(w.Schedule); problem != "" {
			o.Report("schedule", "%s", problem)
		}
	}
	if w.TimeZone != "" {
		var problem string
		if w.zone, problem = parseZone(w.TimeZone); problem != "" {
			o.Report("time_zone", "%s", problem)
		}
	}
	return w
}

// reference is any time, to check that a schedule ever begins.
var reference = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func parseSchedule(text string) (starts cron.Schedule, problem string) {
	hint := "five fields, such as \"0 22 * * 1-5\": minute, hour, day of the month, month, day of the week"
	if strings.ContainsAny(text, "=@") || len(text) > 200 {
		return nil, fmt.Sprintf("%q is not a cron schedule of %s", text, hint)
	}
	starts, err := fields.Parse(text)
	if err != nil {
		return nil, fmt.Sprintf("%q is not a cron schedule of %s: %s", text, hint, err)
	}
	if starts.Next(reference).IsZero() {
		return nil, fmt.Sprintf("%q names a date that does not exist", text)
	}
	return starts, ""
}

func parseZone(name string) (zone *time.Location, problem string) {
	zone, err := time.LoadLocation(name)
	if err != nil || strings.EqualFold(name, "local") {
		return time.UTC, fmt.Sprintf("%q is not a time zone such as \"Europe/Berlin\" or \"UTC\"", name)
	}
	return zone, ""
}

// toWallTime returns the local time as if it were UTC, for schedules: a start in the hour that summer time skips still happens, and
// one in the repeated hour happens once.
func toWallTime(t time.Time, zone *time.Location) time.Time {
	t = t.In(zone)
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

func fromWallTime(t time.Time, zone *time.Location) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone)
}

func (w Window) covers(now time.Time) bool {
	if w.starts == nil { // unknown, or already reported
		return false
	}
	wall := toWallTime(now, w.zone)
	start := w.starts.Next(wall.Add(-w.Duration)) // the first that has not ended
	return !start.IsZero() && !start.After(wall)
}

// next returns the next begin or end; zero for never.
func (w Window) next(now time.Time) time.Time {
	if w.starts == nil {
		return time.Time{}
	}
	wall := toWallTime(now, w.zone)
	next := w.starts.Next(wall)
	if first := w.starts.Next(wall.Add(-w.Duration)); !first.IsZero() {
		if end := first.Add(w.Duration); end.After(wall) && (next.IsZero() || end.Before(next)) {
			next = end
		}
	}
	if next.IsZero() {
		return next
	}
	at := fromWallTime(next, w.zone)
	if !at.After(now) { // in the repeated local hour
		at = now.Add(next.Sub(wall))
	}
	return at
}

// Open reports whether changes may be written.
func (w Windows) Open(now time.Time) bool {
	open := !slices.ContainsFunc(w, func(window Window) bool { return !window.Deny })
	for _, window := range w {
		if !window.covers(now) {
			continue
		}
		if window.Deny {
			return false
		}
		open = true
	}
	return open
}

// Open reports whether all windows allow changes.
func Open(now time.Time, all ...Windows) bool {
	return !slices.ContainsFunc(all, func(w Windows) bool { return !w.Open(now) })
}

// maxSteps limits the search for an open time.
const maxSteps = 2000

// Opens returns the first time when all windows allow changes; zero if none was found.
func Opens(now time.Time, all ...Windows) time.Time {
	for range maxSteps {
		if Open(now, all...) {
			return now
		}
		var next time.Time
		for _, windows := range all {
			for _, window := range windows {
				if at := window.next(now); !at.IsZero() && (next.IsZero() || at.Before(next)) {
					next = at
				}
			}
		}
		if next.IsZero() {
			return next
		}
		now = next
	}
	return time.Time{}
}

// NotBefore returns text such as "not before 2026-11-24 02:00 UTC".
func NotBefore(at time.Time) string {
	at = at.UTC()
	if up := at.Truncate(time.Second); up.Before(at) {
		at = up.Add(time.Second)
	}
	if at.Second() == 0 {
		return at.Format("not before 2006-01-02 15:04 UTC")
	}
	return at.Format("not before 2006-01-02 15:04:05 UTC")
}

// WaitText describes the wait for windows; "" if they are open.
func WaitText(now time.Time, all ...Windows) string {
	if Open(now, all...) {
		return ""
	}
	opens := Opens(now, all...)
	if opens.IsZero() {
		return "a window, but none opens"
	}
	return "a window, " + NotBefore(opens)
}

// Soaked reports whether a condition has held for the soak time, and when that ends. One that begins in the future, after a clock
// was set back, has not.
func Soaked(since, now time.Time, soak time.Duration) (done bool, at time.Time) {
	at = since.Add(soak)
	return !since.IsZero() && !at.After(now), at
}

// Approvals lists approvals: `<name>@<content>`.
type Approvals []string

// For reports whether the content of a name is approved.
func (a Approvals) For(name, content string) bool { return slices.Contains(a, Mark(name, content)) }

// Problem returns the error in an approval; "" if there is none.
func Problem(approval string) string {
	if name, content, ok := strings.Cut(approval, "@"); !ok || name == "" || content == "" {
		return "must be <name>@<content>, as the plan prints it"
	}
	return ""
}

// Mark returns the approval of the content of a name.
func Mark(name, content string) string { return name + "@" + content }

// Content returns a short hash of texts.
func Content(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		h.Write([]byte(text))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))[:10]
}

// Promotion is the input of a decision. The caller compares the values.
type Promotion struct {
	Now     time.Time
	Missing bool
	Open    bool
	// Soak is the time that the gate must stay open.
	Soak          time.Duration
	Windows       Windows
	NeedsApproval bool
	Approvals     []string
	Content       string
	// Pinned: the value is set by hand. Held: it must not change.
	Pinned, Held bool

	// Promoted: the candidate was promoted last. Same: it was the candidate of the step before. A new candidate is never promoted
	// at once.
	Promoted, Same bool
	OpenedAt       time.Time
}

// Decision is the decision about the candidate.
type Decision struct {
	Promote bool
	// WaitsFor describes the missing condition, or is "".
	WaitsFor string
	// OpenedAt is when the gate opened for the candidate; zero if it is closed or not needed.
	OpenedAt time.Time
}

// Decide decides about the candidate. A gate that closes later reverts nothing.
func (p Promotion) Decide() Decision {
	switch {
	case p.Pinned:
		return Decision{WaitsFor: "the end of pin"}
	case p.Promoted:
		return Decision{}
	}
	opened := time.Time{}
	if p.Open {
		opened = p.Now
		if p.Same && !p.OpenedAt.IsZero() {
			opened = p.OpenedAt
		}
	}
	waits := Decision{OpenedAt: opened}
	done, at := Soaked(opened, p.Now, p.Soak)
	switch {
	case p.Held:
		waits.WaitsFor = "the end of hold"
	case p.Missing:
		return Decision{WaitsFor: "a candidate"}
	case !p.Open:
		waits.WaitsFor = "the gate to open"
	case p.Soak > 0 && !done:
		if opens := Opens(at, p.Windows); !opens.IsZero() {
			at = opens
		}
		waits.WaitsFor = "the soak time, " + NotBefore(at)
	case p.NeedsApproval && !slices.Contains(p.Approvals, p.Content):
		waits.WaitsFor = "an approval: " + strconv.Quote(p.Content)
	case len(p.Windows) > 0 && !p.Windows.Open(p.Now):
		waits.WaitsFor = WaitText(p.Now, p.Windows)
	case !p.Same:
		waits.WaitsFor = "the next plan, since the candidate is new"
	default:
		return Decision{Promote: true, OpenedAt: opened}
	}
	return waits
}
