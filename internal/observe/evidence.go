package observe

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/verdict"
)

// evidenceFormat is the format of evidence that is written and read.
const evidenceFormat = "2"

// Evidence is what was known of the clusters of a fleet at one moment. A rollout has no other input about time
// and clusters, so the same evidence always leads to the same decisions.
type Evidence struct {
	// About says what was looked at.
	About About
	// Time is the moment at which the clusters were asked, in whole seconds of UTC, as all times are here.
	Time time.Time
	// Tip is the commit that the branch had then; "" when there was none.
	Tip string
	// Clusters are those of the fleet, by name.
	Clusters map[string]Cluster
	// Trees has an entry for each commit that clusters report and the branch has. It holds the folders,
	// by the key of their assignment, whose tree is not the one that they have at Tip; "" where the commit
	// does not have the folder. The tip's own entry may be left out.
	Trees map[string]map[string]string
}

// About identifies the assignment that evidence is about. The repository is identified by commits and not by a
// URL: one repository can have several, and a URL may hold credentials.
type About struct {
	// Owner is the name of the flotilla_assignment, and Environment that of its fleet.
	Owner, Environment string
	// Branch and Path are where it writes.
	Branch, Path string
}

func (a About) String() string {
	return fmt.Sprintf("the assignment %q of environment %q, on branch %q at path %q", a.Owner, a.Environment, a.Branch, a.Path)
}

// Cluster is what is known of one cluster.
type Cluster struct {
	// Type is the name of the cluster's type.
	Type string
	// Commit is the commit of the GitOps repository that the cluster has applied; "" when that is not known.
	Commit string
	verdict.Status
	// Assignments are those whose status or commit differs from the cluster's, by key.
	Assignments map[string]AssignmentStatus
}

// AssignmentStatus is what is known of one assignment on one cluster.
type AssignmentStatus struct {
	// Commit is the one that the cluster has applied where it applies the folder.
	Commit string
	verdict.Status
}

// Content is what is known of one assignment on one cluster.
type Content struct {
	// Known says that it is known what content the cluster has.
	Known bool
	// AtTip says that the content is that of the evidence's tip, whether or not there is a folder.
	AtTip bool
	// Tree is the tree of the folder that the cluster has, unless AtTip says so; "" is none.
	Tree string
	// Commit is the one that has the content; "" where that is not known.
	Commit string
	verdict.Status
}

// Has reports whether the cluster has a tree; atTip is the one that the folder has at the evidence's tip.
func (c Content) Has(tree, atTip string) bool {
	return c.Known && (c.AtTip && tree == atTip || !c.AtTip && tree == c.Tree)
}

// Assignment looks up what is known of an assignment on a cluster. Of a cluster that the evidence does
// not have, nothing is.
func (e *Evidence) Assignment(cluster, key string) Content {
	of, ok := e.Clusters[cluster]
	if !ok {
		return Content{Status: verdict.Status{Verdict: verdict.Unknown, Since: e.Time, Message: "the evidence does not have this cluster"}}
	}
	commit, status := of.Commit, of.Status
	if own, ok := of.Assignments[key]; ok {
		commit, status = own.Commit, own.Status
	}
	content := Content{Commit: commit, Status: status}
	trees, known := e.Trees[commit]
	content.Known = commit != "" && (known || commit == e.Tip)
	if tree, other := trees[key]; other {
		content.Tree = tree
	} else {
		content.AtTip = content.Known
	}
	return content
}

// ClustersByType lists the names of the clusters of each cluster type, in order.
func (e *Evidence) ClustersByType() map[string][]string {
	byType := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(e.Clusters)) {
		of := e.Clusters[name].Type
		byType[of] = append(byType[of], name)
	}
	return byType
}

// Marshal returns the evidence as text: the same evidence gives the same bytes. What an assignment has in common
// with its cluster is left out.
func (e *Evidence) Marshal() []byte {
	w := evidenceWriter{text: make([]byte, 0, 1024+256*len(e.Clusters)+128*len(e.Trees))}
	w.open()
	w.member("format", evidenceFormat)
	w.member("owner", e.About.Owner)
	w.member("environment", e.About.Environment)
	w.member("branch", e.About.Branch)
	w.member("path", e.About.Path)
	w.member("time", formatTime(e.Time))
	w.member("tip", e.Tip)
	w.object("clusters", slices.Sorted(maps.Keys(e.Clusters)), func(name string) {
		of := e.Clusters[name]
		w.member("type", of.Type)
		w.member("commit", of.Commit)
		w.member("verdict", string(of.Verdict))
		w.other("since", formatTime(of.Since), "")
		w.other("message", of.Message, "")
		w.other("of", subject(of.OfRoot), ofAssignment)
		keys := make([]string, 0, len(of.Assignments))
		for key, own := range of.Assignments {
			if own.Commit != of.Commit || own.Status != of.Status {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		if len(keys) == 0 {
			return
		}
		w.object("assignments", keys, func(key string) {
			own := of.Assignments[key]
			w.other("commit", own.Commit, of.Commit)
			w.other("verdict", string(own.Verdict), string(of.Verdict))
			w.other("since", formatTime(own.Since), formatTime(of.Since))
			w.other("message", own.Message, of.Message)
			w.other("of", subject(own.OfRoot), subject(of.OfRoot))
		})
	})
	w.object("trees", slices.Sorted(maps.Keys(e.Trees)), func(commit string) {
		for _, key := range slices.Sorted(maps.Keys(e.Trees[commit])) {
			w.member(key, e.Trees[commit][key])
		}
	})
	w.close()
	return w.text
}

// What a verdict was said of: one assignment, or what follows the folder of its host, with all that is in there.
const (
	ofAssignment = "assignment"
	ofTheRoot    = "root"
)

func subject(isRoot bool) string {
	if isRoot {
		return ofTheRoot
	}
	return ofAssignment
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// evidenceWriter writes objects whose values are text or such objects.
type evidenceWriter struct{ text []byte }

func (w *evidenceWriter) open() { w.text = append(w.text, '{') }

func (w *evidenceWriter) close() {
	if last := len(w.text) - 1; w.text[last] == ',' {
		w.text = w.text[:last]
	}
	w.text = append(w.text, '}')
}

func (w *evidenceWriter) member(name, value string) {
	w.text = append(appendQuoted(w.text, name), ':')
	w.text = append(appendQuoted(w.text, value), ',')
}

// other writes a value that differs from the one that is read without it.
func (w *evidenceWriter) other(name, value, instead string) {
	if value != instead {
		w.member(name, value)
	}
}

func (w *evidenceWriter) object(name string, names []string, members func(name string)) {
	w.text = append(appendQuoted(w.text, name), ':')
	w.open()
	for _, name := range names {
		w.text = append(appendQuoted(w.text, name), ':')
		w.open()
		members(name)
		w.close()
		w.text = append(w.text, ',')
	}
	w.close()
	w.text = append(w.text, ',')
}

// appendQuoted appends text as JSON. What is not UTF-8 becomes the sign for that.
func appendQuoted(b []byte, text string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	if isPlain(text) {
		return append(append(b, text...), '"')
	}
	for _, r := range strings.ToValidUTF8(text, "\ufffd") {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', digits[r>>4], digits[r&0xf])
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}

func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
