package observe

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sigs.k8s.io/json"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/numbering"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Evidence is the state of a fleet's clusters at one moment, in whole seconds of UTC. It is a rollout's only input
// about time and clusters, so the same evidence always leads to the same decisions.
type Evidence struct {
	About    About
	Time     time.Time                  // of the query
	Tip      string                     // commit of the branch at that time
	Clusters map[string]ClusterEvidence // by name
	// Trees maps each reported commit on the branch to its folders that differ from Tip, by key of the assignment; ""
	// if the commit lacks the folder. Tip itself is optional.
	Trees map[string]map[string]string
	// Running is the content that most clusters run, by key of an assignment, or by the name of a deployment target for
	// all its assignments without an entry.
	Running map[string]reconciler.Running
}

// About identifies the assignment that evidence is about. Commits identify its repository: a repository can have
// several URLs, and a URL may contain credentials.
type About struct {
	Owner, Environment string // names of the flotilla_assignment and of its fleet's environment
	Branch, Path       string // its location
}

func (a About) String() string {
	return fmt.Sprintf("the assignment %q of environment %q, on branch %q at path %q", a.Owner, a.Environment, a.Branch, a.Path)
}

// ClusterEvidence is the state of one cluster.
type ClusterEvidence struct {
	Type   string
	Commit string // applied commit of the GitOps repository
	verdict.Status
	// Assignments have a status or commit that differs from the cluster's, by key.
	Assignments map[string]AssignmentStatus
	// Running differs from the content that most clusters run, by key; nil if unknown for all assignments.
	Running map[string]reconciler.Running
}

// AssignmentStatus is the status of one assignment on one cluster.
type AssignmentStatus struct {
	Commit string // applied for the folder
	verdict.Status
}

// Evidence converts the observation for rollouts.
func (r *Observation) Evidence() *Evidence {
	e := &Evidence{
		About:    r.About,
		Time:     r.Time.UTC().Truncate(time.Second),
		Tip:      r.Tip,
		Clusters: make(map[string]ClusterEvidence, len(r.Clusters)),
		Trees:    r.trees,
	}
	for i := range r.Clusters {
		from := &r.Clusters[i]
		c := ClusterEvidence{Type: from.Type, Commit: from.Commit, Status: from.Status}
		if !folder.IsCommit(c.Commit) {
			c.Commit = ""
		}
		for k := range from.Assignments {
			a := &from.Assignments[k]
			same := a.Commit == c.Commit || a.Commit == "" && r.trees[c.Commit] == nil && c.Commit != r.Tip
			if !same || a.Status != c.Status {
				if c.Assignments == nil {
					c.Assignments = map[string]AssignmentStatus{}
				}
				c.Assignments[a.Key] = AssignmentStatus{Commit: a.Commit, Status: a.Status}
			}
		}
		e.Clusters[from.Name] = c
	}
	r.addRunning(e)
	return e
}

// Content is the content of one assignment on one cluster.
type Content struct {
	Known bool
	// AtTip marks the content of the tip, even without a folder. Tree is unset then.
	AtTip  bool
	Tree   string
	Commit string
	verdict.Status
}

// Has reports whether the cluster has a tree. atTip is the folder's tree at the tip.
func (c Content) Has(tree, atTip string) bool {
	return c.Known && (c.AtTip && tree == atTip || !c.AtTip && tree == c.Tree)
}

// Assignment returns the content of an assignment on a cluster.
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

const evidenceFormat = "3"

// The bounds of evidence.
const (
	MaxEvidence = 64 << 20 // bytes of a document: 100,000 assignments on 10,000 clusters are a quarter of that
	MaxText     = 4096     // bytes of one string of a document
)

type evidenceDocument struct {
	Format      *string                      `json:"format"`
	Owner       *string                      `json:"owner"`
	Environment *string                      `json:"environment"`
	Branch      *string                      `json:"branch"`
	Path        *string                      `json:"path"`
	Time        *string                      `json:"time"`
	Tip         *string                      `json:"tip"`
	Clusters    map[string]clusterDocument   `json:"clusters"`
	Trees       map[string]map[string]string `json:"trees"`
	columnsDocument
	runningDocument
}

type clusterDocument struct {
	Type *string `json:"type"`
	statusDocument
	Assignments statusNumbers  `json:"assignments,omitempty"`
	Running     map[string]int `json:"running,omitzero"`
}

// statusDocument omits "".
type statusDocument struct {
	Commit  *string          `json:"commit,omitempty"`
	Verdict *verdict.Verdict `json:"verdict,omitempty"`
	Since   *string          `json:"since,omitempty"`
	Message string           `json:"message,omitempty"`
	Of      string           `json:"of,omitempty"`
}

// ofTheRoot marks a verdict about the root of the host's folder and everything in it.
const ofTheRoot = "root"

// Marshal encodes the evidence deterministically.
func (e *Evidence) Marshal() []byte {
	d := evidenceDocument{
		Format: new(evidenceFormat), Owner: &e.About.Owner, Environment: &e.About.Environment, Branch: &e.About.Branch, Path: &e.About.Path,
		Time: new(FormatTime(e.Time)), Tip: &e.Tip, Clusters: make(map[string]clusterDocument, len(e.Clusters)), Trees: e.Trees,
	}
	if d.Trees == nil {
		d.Trees = map[string]map[string]string{}
	}
	columns, runs := columnsOf(e), &numbering.Numbers[reconciler.Running]{}
	runs.Number(reconciler.Running{}) // 0 means unknown
	d.Running = numbersOf(runs, e.Running)
	for _, name := range slices.Sorted(maps.Keys(e.Clusters)) {
		of := e.Clusters[name]
		c := clusterDocument{Type: &of.Type, statusDocument: documentOf(of.defaultStatus()), Assignments: columns.numbers(&of)}
		c.Commit, c.Verdict, c.Running = &of.Commit, &of.Verdict, numbersOf(runs, of.Running)
		d.Clusters[name] = c
	}
	d.columnsDocument, d.Runs = columns.document(), runs.All()[1:]
	return EncodeDocument(d)
}

func documentOf(is AssignmentStatus) statusDocument {
	d := statusDocument{Message: is.Message}
	if is.Commit != "" {
		d.Commit = &is.Commit
	}
	if is.Verdict != "" {
		d.Verdict = &is.Verdict
	}
	if !is.Since.IsZero() {
		d.Since = new(FormatTime(is.Since))
	}
	if is.OfRoot {
		d.Of = ofTheRoot
	}
	return d
}

// FormatTime formats a time of a document.
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Parse parses the output of [Evidence.Marshal] in any order and indentation.
func Parse(text []byte) (*Evidence, error) {
	e, err := parseEvidence(text)
	if err != nil {
		return nil, fmt.Errorf("the evidence is not what flotilla_compliance gives: %w", err)
	}
	return e, nil
}

func parseEvidence(text []byte) (*Evidence, error) {
	var d evidenceDocument
	if err := DecodeDocument(text, &d, &d.Format, evidenceFormat); err != nil {
		return nil, err
	}
	r := evidenceReader{}
	e := &Evidence{Clusters: make(map[string]ClusterEvidence, len(d.Clusters)), Trees: d.Trees}
	e.About.Owner = r.required("owner", d.Owner)
	e.About.Environment = r.required("environment", d.Environment)
	e.About.Branch = r.required("branch", d.Branch)
	e.About.Path = r.required("path", d.Path)
	e.Time = r.readTime(r.required("time", d.Time))
	e.Tip = r.checkID("a commit", r.required("tip", d.Tip))
	if d.Clusters == nil || d.Trees == nil {
		r.fail(`it has no "clusters", or no "trees"`)
	}
	r.when = e.Time
	r.readColumns(&d.columnsDocument)
	r.runs = r.checkRuns(d.Runs)
	e.Running = r.readRunning(d.Running)
	for name, one := range d.Clusters {
		e.Clusters[name] = r.readCluster(name, one)
	}
	for commit, trees := range d.Trees {
		if r.at = [2]string{commit}; !folder.IsCommit(commit) {
			r.fail("it is not the id of a commit")
		}
		for key, tree := range trees {
			r.at[1] = key
			r.checkKey(key)
			r.checkID("a tree", tree)
		}
	}
	return e, r.err
}

// DecodeDocument decodes a JSON document into a struct. It refuses unknown or duplicate attributes, and text that is
// not UTF-8. given is the struct's field for the document's format, which must be reads.
func DecodeDocument(text []byte, into any, given **string, reads string) error {
	switch {
	case len(text) > MaxEvidence:
		return fmt.Errorf("it is longer than %d MiB", MaxEvidence>>20)
	case !utf8.Valid(text):
		return errors.New("it is not UTF-8")
	}
	// encoding/json accepts duplicate attributes.
	strict, err := json.UnmarshalStrict(text, into, json.DisallowDuplicateFields, json.DisallowUnknownFields)
	// Errors of another format would mislead, so only the format is reported.
	if format := *given; format != nil && *format != "" && *format != reads {
		return fmt.Errorf("it has the format %q, and this version of the provider reads %q; use one version everywhere", *format, reads)
	}
	if len(strict) > 0 {
		err = strict[0]
	}
	if typed, ok := errors.AsType[*stdjson.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("%s is not what belongs there at byte %d", typed.Value, typed.Offset)
	}
	if format := *given; err == nil && (format == nil || *format == "") {
		err = errors.New(`it has no "format"`)
	}
	return err
}

// CheckText returns an error for a string longer than MaxText.
func CheckText(texts ...string) error {
	for _, text := range texts {
		if len(text) > MaxText {
			return fmt.Errorf("a text is longer than %d bytes", MaxText)
		}
	}
	return nil
}

// EncodeDocument encodes a document for DecodeDocument deterministically, in one line.
func EncodeDocument(document any) []byte {
	var text bytes.Buffer
	encoder := stdjson.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		panic(err) // it has only strings and finite numbers
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

// evidenceReader checks evidence and keeps the first error in the order of names.
type evidenceReader struct {
	at, wrong [2]string // a cluster or a commit, and a key
	err       error
	runs      []reconciler.Running
	when      time.Time
	keys      map[string][]string
	statuses  []AssignmentStatus // zero times if they have none
}

func (r *evidenceReader) fail(format string, arguments ...any) {
	if r.err != nil && slices.Compare(r.at[:], r.wrong[:]) >= 0 {
		return
	}
	r.err, r.wrong = fmt.Errorf(format, arguments...), r.at
	for _, name := range []string{r.at[1], r.at[0]} {
		if name != "" {
			r.err = fmt.Errorf("%q: %w", name, r.err)
		}
	}
}

func (r *evidenceReader) required(name string, value *string) string {
	if value == nil {
		r.fail("it has no %q", name)
		return ""
	}
	return r.checkText(*value)
}

func (r *evidenceReader) checkText(text string) string {
	if err := CheckText(text); err != nil {
		r.fail("%w", err)
	}
	return text
}

func (r *evidenceReader) checkID(of, text string) string {
	if text != "" && !folder.IsCommit(text) {
		r.fail("%q is not the id of %s", text, of)
	}
	return text
}

func (r *evidenceReader) readTime(text string) time.Time {
	at, err := ParseTime(text)
	if err != nil {
		r.fail("%s", err)
	}
	return at
}

// ParseTime parses a time in RFC 3339 and truncates it to seconds.
func ParseTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.IsZero() {
		return time.Time{}, fmt.Errorf("%q is not a time as in 2026-01-31T00:00:00Z (RFC 3339)", text)
	}
	return at.UTC().Truncate(time.Second), nil
}

func (r *evidenceReader) checkKey(key string) {
	if at := strings.LastIndexByte(r.checkText(key), '/'); at < 1 || at == len(key)-1 {
		r.fail("it is not the key of an assignment, as in <host>/<deployment target>")
	}
}

func (r *evidenceReader) readCluster(name string, d clusterDocument) ClusterEvidence {
	if r.at = [2]string{name}; name == "" {
		r.fail("a cluster needs a name")
	}
	for _, missing := range []struct {
		name string
		is   bool
	}{{"type", d.Type == nil}, {"commit", d.Commit == nil}, {"verdict", d.Verdict == nil}} {
		if missing.is {
			r.fail("it has no %q", missing.name)
			return ClusterEvidence{}
		}
	}
	r.checkText(name)
	own := r.readStatus(d.statusDocument)
	c := ClusterEvidence{Type: r.checkText(*d.Type), Commit: own.Commit, Status: own.Status}
	c.Assignments = r.readAssignments(d.Assignments)
	r.at[1] = ""
	c.Running = r.readRunning(d.Running)
	return c
}

func (r *evidenceReader) readStatus(d statusDocument) (is AssignmentStatus) {
	if d.Commit != nil {
		is.Commit = r.checkID("a commit", *d.Commit)
	}
	if d.Verdict != nil {
		is.Verdict = *d.Verdict
		if err := verdict.Check(is.Verdict); err != nil {
			r.fail("%w", err)
		}
	}
	if d.Since != nil && *d.Since != "" {
		is.Since = r.readTime(*d.Since)
	}
	is.Message, is.OfRoot = r.checkText(d.Message), d.Of == ofTheRoot
	if !is.OfRoot && d.Of != "" {
		r.fail("%q is not root", d.Of)
	}
	return is
}
