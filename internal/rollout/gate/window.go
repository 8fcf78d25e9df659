// Package gate has the conditions for a change to go on: time windows, soak times, approvals. It also decides
// when a promotion lets a value through. Rollouts and promotions share it. It is pure: the time is an input.
package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // machines without time zones, such as Windows and containers from scratch

	"github.com/robfig/cron/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// MaxDuration bounds every duration: a year.
const MaxDuration = 366 * 24 * time.Hour

// Window is a recurring time in which changes may be written, or may not.
type Window struct {
	Deny     bool
	Schedule string        // cron, five fields: when it begins
	Duration time.Duration // in local time: a night that is an hour longer is still one window
	TimeZone string        // IANA name; "" is UTC

	starts cron.Schedule
	zone   *time.Location
}

// Windows are all that are configured. Without any, changes are always allowed. With any of kind allow, one of
// those must be open. An open one of kind deny always wins.
type Windows []Window

// fields is what cron's five fields may be, and no more: no seconds, no "@every", which has no fixed times.
var fields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// The kinds of windows.
const (
	allow = "allow"
	deny  = "deny"
)

// WindowTable is that of a window.
var WindowTable = &fleet.Table{
	Name: "window",
	Meaning: "A recurring time in which changes may be written, or may not. With windows of the kind `allow`, one of them has to be open; " +
		"an open one of the kind `deny` wins. `windows` of `flotilla_rollout` and `flotilla_promotion` have them, too.",
	Attributes: []fleet.Attribute{
		{Name: "kind", Required: true, Allowed: []string{allow, deny}, Meaning: "Whether changes may be written in the window, or may not."},
		{
			Name:     "schedule",
			Required: true,
			Meaning:  "A cron schedule of five fields that says when the window begins, such as `\"0 22 * * 1-5\"`.",
		},
		{
			Name:     "duration",
			Type:     fleet.DurationType,
			Required: true,
			Meaning:  "How long it is open, above zero and at most 366 days, by the local time.",
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

// reference is a time for checking that a schedule ever begins; which one hardly matters.
var reference = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// parseSchedule reads a schedule, and says what is wrong with it.
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

// parseZone reads a time zone, and says what is wrong with it.
func parseZone(name string) (zone *time.Location, problem string) {
	zone, err := time.LoadLocation(name)
	if err != nil || strings.EqualFold(name, "local") {
		return time.UTC, fmt.Sprintf("%q is not a time zone such as \"Europe/Berlin\" or \"UTC\"", name)
	}
	return zone, ""
}

// Schedules are computed in UTC with the local time of their zone in its fields. So a start within the hour that
// summer time skips still happens, one in the hour that happens twice happens once, and a window ends at its
// local time.

func onWall(t time.Time, zone *time.Location) time.Time {
	t = t.In(zone)
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

func offWall(t time.Time, zone *time.Location) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone)
}

// covers says whether the window has begun and not ended.
func (w Window) covers(now time.Time) bool {
	if w.starts == nil { // not known yet, or reported
		return false
	}
	wall := onWall(now, w.zone)
	start := w.starts.Next(wall.Add(-w.Duration)) // the first that has not ended
	return !start.IsZero() && !start.After(wall)
}

// next is when the window begins or ends next; zero for never.
func (w Window) next(now time.Time) time.Time {
	if w.starts == nil {
		return time.Time{}
	}
	wall := onWall(now, w.zone)
	next := w.starts.Next(wall)
	if first := w.starts.Next(wall.Add(-w.Duration)); !first.IsZero() {
		if end := first.Add(w.Duration); end.After(wall) && (next.IsZero() || end.Before(next)) {
			next = end
		}
	}
	if next.IsZero() {
		return next
	}
	at := offWall(next, w.zone)
	if !at.After(now) { // the local hour that happens twice
		at = now.Add(next.Sub(wall))
	}
	return at
}

// Open says whether changes may be written.
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

// Open says whether changes may be written by all of several windows at once.
func Open(now time.Time, all ...Windows) bool {
	return !slices.ContainsFunc(all, func(w Windows) bool { return !w.Open(now) })
}

// maxSteps bounds the search for a time at which windows open: they may deny for ever.
const maxSteps = 2000

// Opens returns when changes may be written next by all of several windows at once: now, or later; zero where no such time
// was found.
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

// NotBefore says of something that waits at which time it may go on at the earliest, such as "not before 2026-11-24 02:00 UTC".
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

// Waits is a text that says until when changes wait for windows to be open at once; "" where they are open.
func Waits(now time.Time, all ...Windows) string {
	if Open(now, all...) {
		return ""
	}
	opens := Opens(now, all...)
	if opens.IsZero() {
		return "a window, but none opens"
	}
	return "a window, " + NotBefore(opens)
}
