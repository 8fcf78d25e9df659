package fleet

import (
	"fmt"
	"math"
	"time"
)

// ReadDuration reads a non-negative duration up to most; 0 if absent.
func ReadDuration(o *ObjectReader, name string, most time.Duration) time.Duration {
	text := o.Text(name)
	if text == "" {
		return 0
	}
	duration, problem := ParseDuration(text, most)
	if problem != "" {
		o.Report(name, "%s", problem)
	}
	return duration
}

// ParseDuration returns a duration, or a problem.
func ParseDuration(text string, most time.Duration) (duration time.Duration, problem string) {
	duration, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Sprintf("%q is not a duration such as \"90s\", \"30m\" or \"72h\"", text)
	case duration < 0:
		return 0, fmt.Sprintf("%q is negative", text)
	case duration > most:
		return 0, fmt.Sprintf("%q is longer than %d hours", text, int(most.Hours()))
	}
	return duration, ""
}

// ReadTimeout reads a positive duration, or else returns the table's default.
func ReadTimeout(o *ObjectReader, name string) time.Duration {
	byDefault := time.Duration(0)
	if text := o.table.defaultText(name); text != "" {
		byDefault, _ = ParseDuration(text, math.MaxInt64)
	}
	value := o.value(name, DurationType)
	if value == nil {
		return byDefault
	}
	text, _ := value.(string)
	duration, problem := ParseDuration(text, math.MaxInt64)
	if problem != "" || duration == 0 {
		o.Report(name, "must be a duration above zero, such as \"90s\", \"20m\" or \"1h30m\"")
		return byDefault
	}
	return duration
}

// ReadTime reads RFC 3339; zero if absent.
func ReadTime(o *ObjectReader, name string) time.Time {
	text := o.Text(name)
	if text == "" {
		return time.Time{}
	}
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		o.Report(name, "%q is not a time such as \"2026-01-31T18:00:00Z\"", text)
	}
	return moment
}
