package forge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// maxCell is how many bytes of a name are shown: a Kubernetes label has 63.
const maxCell = 200

// Body renders changes as Markdown: a sentence that counts them and a table,
// sorted by host and deployment target. What does not fit so many bytes, of which
// there are at least 1,000, is counted.
// Names are shown as code and cannot be read as anything else: no markup, no
// mention of a person, no reference to an issue, no command to the Git host.
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
		wording.Count(hosts(changes), "host", "hosts"),
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

// versions are those of the configuration before and after.
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

// tally says how many were added, changed, moved and removed.
func tally(changes []folder.Change) string {
	return strings.Join(folder.CountChanges(changes), ", ")
}

func hosts(changes []folder.Change) int {
	distinct := map[string]bool{}
	for _, change := range changes {
		distinct[change.Host] = true
	}
	return len(distinct)
}

// code shows a name as inline code in a cell of a table. In code no Git host looks
// for mentions, references, HTML or emphasis; what could end the code or the cell
// is written as an escape, which code shows as it is.
func code(name string) string {
	if name = wording.Cut(wording.Line(name), maxCell); name == "" {
		return ""
	}
	return "`" + codeEscapes.Replace(name) + "`"
}

var codeEscapes = strings.NewReplacer("`", `\x60`, "|", `\x7c`, `\`, `\x5c`)
