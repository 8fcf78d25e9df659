package changes

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// English returns the texts of lines. No other code of this package has words.
func English(lines []Line) []string {
	texts := make([]string, len(lines))
	for i := range lines {
		texts[i] = lines[i].english()
	}
	return texts
}

func (l *Line) english() string {
	switch l.Kind {
	case CountLine:
		return l.Counts.english()
	case RemovalLine:
		return "- " + l.move()
	case AdditionLine:
		return "+ " + l.move()
	case HandoverLine:
		return "owner " + quoted(l.Names[0]) + " hands over its folders unchanged: nothing is removed"
	case ObjectLine:
		return objectSigns[l.How] + l.difference("object", objectWords, "field")
	case FileLine:
		return l.difference("file", nil, "key")
	case WaitLine:
		verb := wording.OneOrMany(len(l.Assignments), " waits for ", " wait for ")
		return "not known yet, on " + which(l.Assignments) + verb + names(l.Names, "thing")
	case RepairLine:
		return "marker or record repaired, on " + names(l.Names, "host")
	case MoreLine:
		return "and " + counted(l.Counts.Total, "more line")
	}
	return oneLine(l.Text)
}

var (
	objectSigns = map[How]string{New: "+ ", Removed: "- "}
	objectWords = map[string]string{allObjects: "final objects", otherObjects: "other objects"}
	wholeWords  = map[How]string{
		New: "all of it (new)", Removed: "all of it (removed)", NewFile: "new file", RemovedFile: "file removed",
		Attributes: "file modes or links", Whole: "all of it", Further: "further fields", NoChange: "no change",
	}
	causeWords = map[CauseKind]string{
		ByRollback: "rollback to commit", ByEnvironment: "environment", ByContainer: "config container", ByWorkload: "workload",
		ByPolicy: "target policy", ByPlacement: "placement of target policy", ByAssignments: "the explicit assignments",
		ByClusterType: "cluster type", ByCluster: "cluster", ByWorkspace: "workspace", ByTemplate: "template",
		ByHydration: "the hydration settings", ByRepo: "gitops_repo", ByName: "the new name of the owner", ByProvider: "provider",
	}
)

func (c Counts) english() string {
	hosts := ""
	if c.Hosts > 0 {
		hosts = counted(c.Hosts, "host") + "; "
	}
	text := hosts + "assignments: " + wording.AllCounts([]int{c.Changed, c.Added, c.Removed}, "changed", "added", "removed")
	for _, count := range wording.Counts([]int{c.Unknown, c.Total}, "not known yet", "in all") {
		text += ", " + count
	}
	return text
}

func (l *Line) move() string {
	text := named(l.Assignments)
	if len(l.Assignments) > maxAssignments {
		text = targetNames(l.Assignments, "deployment target") + " on " + hostNames(l.Assignments) + ": " +
			counted(len(l.Assignments), "assignment")
	}
	switch l.Location {
	case "":
	case severalLocations:
		text += ", at several locations"
	default:
		text += ", at " + word(l.Location)
	}
	return text + by(l.Causes)
}

func (l *Line) difference(noun string, called map[string]string, part string) string {
	var files, keys []string
	for _, file := range l.Files {
		if text, ok := called[file]; ok {
			files = append(files, text)
		} else if file != "" {
			files = append(files, word(file))
		}
	}
	for _, key := range l.Keys {
		if key != (Key{}) {
			keys = append(keys, key.english())
		}
	}
	switch {
	case l.TextLines > 1 && len(l.Assignments) > 1:
		keys = append(keys, fmt.Sprintf("up to %d lines", l.TextLines))
	case l.TextLines > 0:
		keys = append(keys, counted(l.TextLines, "line"))
	}
	var parts []string
	if len(files) > 0 {
		parts = append(parts, listWords(files, 0, noun))
	}
	if len(keys) > 0 || l.MoreKeys > 0 {
		parts = append(parts, listWords(keys, l.MoreKeys, part))
	}
	return strings.Join(parts, ": ") + ", on " + which(l.Assignments) + by(l.Causes)
}

func (k Key) english() string {
	switch {
	case k.How == FormerUnknown:
		return "the former ones are not known: " + oneLine(k.Path)
	case k.Path == "":
		return wholeWords[k.How]
	case k.How != Changed:
		return k.Path + " (" + string(k.How) + ")"
	}
	return k.Path
}

const maxCauses = 3

// by returns the end of a line: `, by config containers "east", "west"`, or "".
func by(causes []Cause) string {
	if areAlike(causes) {
		return fmt.Sprintf(", by %d %s %s", len(causes), causes[0].How, plural(causes[0].Kind))
	}
	var b strings.Builder
	for i, one := range causes {
		if i == maxCauses {
			b.WriteString(" and " + strconv.Itoa(len(causes)-i) + " more")
			break
		}
		b.WriteString(", ")
		if i == 0 && one.Kind != ByDrift {
			b.WriteString("by ")
		}
		kind := causeWords[one.Kind] + " "
		switch {
		case i > 0 && causes[i-1].Kind == one.Kind:
			kind = ""
		case i+1 < len(causes) && causes[i+1].Kind == one.Kind:
			kind = plural(one.Kind) + " "
		}
		switch one.Kind {
		case ByRollback:
			b.WriteString(kind + word(one.Name))
		case ByProvider:
			b.WriteString(kind + one.Moved.english())
		case ByDrift:
			b.WriteString(word(one.Name))
		case ByAssignments, ByHydration, ByRepo, ByName:
			b.WriteString(causeWords[one.Kind])
		default:
			b.WriteString(kind + quoted(one.Name))
			switch {
			case one.How != Changed:
				b.WriteString(" (" + string(one.How) + ")")
			case one.Moved != Move{}:
				b.WriteString(" (" + one.Moved.english() + ")")
			}
		}
	}
	return b.String()
}

func areAlike(causes []Cause) bool {
	return len(causes) > maxCauses && causes[0].How != Changed && !slices.ContainsFunc(causes, func(other Cause) bool {
		return other.Kind != causes[0].Kind || other.How != causes[0].How
	})
}

func plural(kind CauseKind) string {
	return strings.Replace(causeWords[kind]+"s", "policys", "policies", 1)
}

func (m Move) english() string {
	return strings.TrimLeft(m.What+" "+word(m.From)+" -> "+word(m.To), " ")
}

const maxAssignments = 3

// which returns "large, small: 14 assignments", or names a few: "large: payments-live", "large/a-live, small/b-live".
func which(assignments []folder.Key) string {
	if len(assignments) > maxAssignments {
		return hostNames(assignments) + ": " + counted(len(assignments), "assignment")
	}
	first := assignments[0]
	if !slices.ContainsFunc(assignments, func(key folder.Key) bool { return key.Host != first.Host }) ||
		!slices.ContainsFunc(assignments, func(key folder.Key) bool { return key.DeploymentTarget != first.DeploymentTarget }) {
		return hostNames(assignments) + ": " + targetNames(assignments, "assignment")
	}
	return named(assignments)
}

func named(assignments []folder.Key) string {
	keys := make([]string, len(assignments))
	for i, key := range assignments {
		keys[i] = word(key.Host) + "/" + word(key.DeploymentTarget)
	}
	return listWords(keys, 0, "assignment")
}

func hostNames(assignments []folder.Key) string {
	hosts := make([]string, len(assignments))
	for i, key := range assignments {
		hosts[i] = key.Host
	}
	return names(slices.Compact(hosts), "host")
}

func targetNames(assignments []folder.Key, noun string) string {
	targets := make([]string, len(assignments))
	for i, key := range assignments {
		targets[i] = key.DeploymentTarget
	}
	slices.Sort(targets)
	return names(slices.Compact(targets), noun)
}

// LimitLines returns at most 12 lines of at most 500 characters. The last one counts the rest.
func LimitLines(lines []string) []string { return English(noteLines(lines)) }

const maxWord = 120

const maxLine = 500

// word returns a user's text on one line, with escapes for unprintable characters, and shortened.
func word(text string) string { return shown(text, maxWord) }

func oneLine(text string) string { return shown(text, maxLine) }

func shown(text string, most int) string {
	var b strings.Builder
	count := 0
	for _, r := range text {
		if count++; count > most {
			b.WriteString("…")
			break
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) || unicode.In(r, unicode.Mn, unicode.Me) {
			escaped := strconv.QuoteRuneToASCII(r)
			b.WriteString(escaped[1 : len(escaped)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func quoted(name string) string {
	return `"` + strings.ReplaceAll(word(name), `"`, `\"`) + `"`
}

// listWords lists up to three words, or two and the number of others.
func listWords(words []string, more int, what string) string {
	if len(words) > 3 || more > 0 {
		shown := min(2, len(words))
		more += len(words) - shown
		words = words[:shown]
	}
	text := strings.Join(words, ", ")
	if more > 0 {
		text += " and " + counted(more, "more "+what)
	}
	return text
}

func names(all []string, what string) string {
	shown := make([]string, len(all))
	for i, name := range all {
		shown[i] = word(name)
	}
	return listWords(shown, 0, what)
}

// counted returns "1 assignment", "2 assignments".
func counted(n int, what string) string { return wording.Count(n, what, what+"s") }

// Path segments are keys or list indexes. An index begins with NUL, which YAML keys cannot contain.
const indexMark = "\x00"

func index(i int) string { return indexMark + strconv.Itoa(i) }

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

const maxPath = 12

// pathText formats "spec.rules[0].host", and quotes other keys: `metadata.labels["example.com/tier"]`.
func pathText(segments []string) string {
	var b strings.Builder
	for i, segment := range segments {
		if i == maxPath {
			b.WriteString("…")
			break
		}
		switch number, isIndex := strings.CutPrefix(segment, indexMark); {
		case isIndex:
			b.WriteString("[" + word(number) + "]")
		case !plainKey.MatchString(segment):
			b.WriteString("[" + quoted(segment) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(word(segment))
		}
	}
	return b.String()
}
