package provider_test

import (
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Tests describe lines of changes by values: only package changes has English.

func lineText(line changes.Line) string { return changes.English([]changes.Line{line})[0] }

func countLine(counts changes.Counts) string {
	return lineText(changes.Line{Kind: changes.CountLine, Counts: counts})
}

// fileLine takes lists such as "a.b, c:new" (keys) and "large/web, small/web" (assignments).
func fileLine(file, keys, assignments string, causes ...changes.Cause) string {
	return lineText(changedLine(changes.FileLine, file, keys, assignments, causes))
}

// objectLine is like [fileLine], for fields of a final object.
func objectLine(object, fields, assignments string, causes ...changes.Cause) string {
	return lineText(changedLine(changes.ObjectLine, object, fields, assignments, causes))
}

func noObjectLine(assignments string, causes ...changes.Cause) string {
	line := changedLine(changes.ObjectLine, "", "", assignments, causes)
	line.Keys[0].How = changes.NoChange
	return lineText(line)
}

func formerUnknownLine(reason, assignments string, causes ...changes.Cause) string {
	line := changedLine(changes.ObjectLine, "", "", assignments, causes)
	line.Keys[0] = changes.Key{Path: reason, How: changes.FormerUnknown}
	return lineText(line)
}

func wholeObjectLine(how changes.How, object, assignments string, causes ...changes.Cause) string {
	line := changedLine(changes.ObjectLine, object, "", assignments, causes)
	line.How = how
	return lineText(line)
}

func moveLine(kind changes.LineKind, assignments string, causes ...changes.Cause) string {
	return lineText(changes.Line{Kind: kind, Assignments: assignmentKeys(assignments), Causes: causes})
}

func changedLine(kind changes.LineKind, file, keys, assignments string, causes []changes.Cause) changes.Line {
	line := changes.Line{Kind: kind, Files: []string{file}, Assignments: assignmentKeys(assignments), Causes: causes}
	for key := range strings.SplitSeq(keys, ", ") {
		one := changes.Key{Path: key}
		for _, how := range []changes.How{changes.New, changes.Removed} {
			if path, ok := strings.CutSuffix(key, ":"+string(how)); ok {
				one = changes.Key{Path: path, How: how}
			}
		}
		line.Keys = append(line.Keys, one)
	}
	return line
}

func assignmentKeys(list string) (keys []folder.Key) {
	for one := range strings.SplitSeq(list, ", ") {
		slash := strings.LastIndex(one, "/")
		keys = append(keys, folder.Key{Host: one[:slash], DeploymentTarget: one[slash+1:]})
	}
	return keys
}

func causeBy(kind changes.CauseKind, name string) changes.Cause {
	return changes.Cause{Kind: kind, Name: name}
}

// causeText returns the causes at the end of a line.
func causeText(causes ...changes.Cause) string {
	return strings.TrimPrefix(fileLine("", "", "a/b", causes...), ", on a: b")
}

func causeByDrift(since string) changes.Cause {
	return causeBy(changes.ByDrift, "by hand, since commit "+since)
}

func causeByChart(workload, from, to string) changes.Cause {
	return changes.Cause{Kind: changes.ByWorkload, Name: workload, Moved: changes.Move{What: "chart", From: from, To: to}}
}
