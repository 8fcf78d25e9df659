package changes_test

import (
	"fmt"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
)

// formatLines returns each line as text, without empty fields.
func formatLines(lines []changes.Line) []string {
	var all []string
	for i := range lines {
		all = append(all, formatLine(&lines[i]))
	}
	return all
}

func formatLine(l *changes.Line) string {
	text := string(l.Kind)
	add := func(name string, values ...string) {
		if joined := strings.Join(values, ","); joined != "" {
			text += " " + name + "=" + joined
		}
	}
	number := func(name string, n int) {
		if n > 0 {
			add(name, fmt.Sprint(n))
		}
	}
	number("hosts", l.Counts.Hosts)
	number("changed", l.Counts.Changed)
	number("added", l.Counts.Added)
	number("removed", l.Counts.Removed)
	number("unknown", l.Counts.Unknown)
	number("total", l.Counts.Total)
	add("how", string(l.How))
	add("files", l.Files...)
	var keys, at, by []string
	for _, key := range l.Keys {
		keys = append(keys, joinNonEmpty(key.Path, string(key.How)))
	}
	add("keys", keys...)
	number("more", l.MoreKeys)
	number("lines", l.TextLines)
	for _, key := range l.Assignments {
		at = append(at, key.Host+"/"+key.DeploymentTarget)
	}
	if len(at) > 6 {
		at = append(at[:2], fmt.Sprint(len(at)-2))
	}
	add("at", at...)
	add("location", l.Location)
	for _, cause := range l.Causes {
		by = append(by, joinNonEmpty(string(cause.Kind), cause.Name, string(cause.How), cause.Moved.What, cause.Moved.From, cause.Moved.To))
	}
	add("by", by...)
	add("names", l.Names...)
	add("text", l.Text)
	return text
}

// joinNonEmpty joins the non-empty texts with colons.
func joinNonEmpty(texts ...string) string {
	var present []string
	for _, text := range texts {
		if text != "" {
			present = append(present, text)
		}
	}
	return strings.Join(present, ":")
}
