package forge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// maxCell is in bytes; a Kubernetes label has at most 63.
const maxCell = 200

// Body renders changes as Markdown: their number, and a sorted table, of at most limit bytes, at least 1,000, with the number
// of omitted changes. Names are inline code, and so no markup, mention, reference or command.
func Body(changes []folder.Change, limit int) string {
	if len(changes) == 0 {
		return "No changes.\n"
	}
	changes = slices.Clone(changes)
	slices.SortFunc(changes, func(a, b folder.Change) int { return a.Compare(b.Key) })
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"%s on %s: %s.\n",
		wording.Count(len(changes), "deployment target", "deployment targets"),
		wording.Count(countHosts(changes), "host", "hosts"),
		tally(changes),
	)
	b.WriteString("\n| host | deployment target | what | configuration |\n|---|---|---|---|\n")
	for i, change := range changes {
		what := string(change.Action)
		if change.From != "" {
			what += ", from " + code(change.From)
		}
		row := fmt.Sprintf("| %s | %s | %s | %s |\n", code(change.Host), code(change.DeploymentTarget), what, versions(change))
		rest := fmt.Sprintf("\nAnd %d more: %s.\n", len(changes)-i, tally(changes[i:]))
		if b.Len()+len(row)+len(rest)+64 > limit { // 64: the next rest may be longer
			b.WriteString(rest)
			break
		}
		b.WriteString(row)
	}
	return b.String()
}

func versions(c folder.Change) string {
	switch {
	case c.Before == "" && c.After == "":
		return ""
	case c.Before == c.After:
		return code(c.After)
	case c.Before == "":
		return "→ " + code(c.After)
	case c.After == "":
		return code(c.Before) + " →"
	}
	return code(c.Before) + " → " + code(c.After)
}

func tally(changes []folder.Change) string {
	return strings.Join(folder.CountChanges(changes), ", ")
}

func countHosts(changes []folder.Change) int {
	distinct := map[string]bool{}
	for _, change := range changes {
		distinct[change.Host] = true
	}
	return len(distinct)
}

// code returns inline code for a cell of a table. Characters that would end the code or the cell become visible escapes.
func code(name string) string {
	if name = wording.Cut(wording.Line(name), maxCell); name == "" {
		return ""
	}
	return "`" + cellEscapes.Replace(name) + "`"
}

var cellEscapes = strings.NewReplacer("`", `\x60`, "|", `\x7c`, `\`, `\x5c`)
