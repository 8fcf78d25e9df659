// Package evidence reads and writes facts reported by clusters and measured figures, and merges them with the reports
// of agents. It is pure. Times are in whole seconds of UTC.
package evidence

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Facts holds the facts of clusters at one time.
type Facts struct {
	Time     time.Time
	Clusters map[string]ClusterFacts
}

// ClusterFacts holds the facts of one cluster.
type ClusterFacts struct {
	// Status is ready if the cluster answered and its nodes are ready, since the moment when a majority was. It is
	// unknown if the cluster did not answer or denied listing its nodes.
	verdict.Status
	// Facts are texts, numbers, lists and maps as in JSON; nil if the cluster did not answer.
	Facts map[string]any
}

// Measurements holds figures measured at one time.
type Measurements struct {
	Environment string
	Time        time.Time
	Checks      []Check // as configured
}

// SubjectKind is the kind of subject of a check's figures.
type SubjectKind string

// The kinds of subjects.
const (
	OfCluster    SubjectKind = "cluster"    // by name
	OfHost       SubjectKind = "host"       // by name
	OfAssignment SubjectKind = "assignment" // by key
	OfFleet      SubjectKind = "fleet"      // one figure, under ""
)

var subjectKinds = []SubjectKind{OfCluster, OfHost, OfAssignment, OfFleet}

// SubjectKindNames returns the names of all subject kinds.
func SubjectKindNames() []string {
	names := make([]string, len(subjectKinds))
	for i, of := range subjectKinds {
		names[i] = string(of)
	}
	return names
}

// MaxChecks limits the checks of measurements.
const MaxChecks = 50

// Check is one measurement with the expressions that judge it.
type Check struct {
	Name string      `json:"name"`
	Of   SubjectKind `json:"of"`
	Unit string      `json:"unit,omitempty"` // such as "%"
	// Pass and Fail are CEL over value, samples and rest; Fail may be "".
	Pass    string            `json:"pass"`
	Fail    string            `json:"fail,omitempty"`
	Message string            `json:"message,omitempty"` // why there are no figures
	Figures map[string]Figure `json:"-"`

	judgement *judgement
}

// Figure is a measured value, or the reason why there is none.
type Figure struct {
	Value   float64
	Samples *float64 // number of events; nil unless asked for
	Message string   // why there is no value
}

// Document is one document of evidence, with exactly one field set.
type Document struct {
	Compliance   *observe.Evidence
	Facts        *Facts
	Measurements *Measurements
}

// ParseDocument parses a document of any kind; flotilla_compliance writes none.
func ParseDocument(text []byte) (d Document, err error) {
	kind, err := kindOf(text)
	switch {
	case err != nil:
	case kind == nil:
		d.Compliance, err = observe.Parse(text)
	case *kind == kindFacts:
		d.Facts, err = ParseFacts(text)
	case *kind == kindMeasurements:
		d.Measurements, err = ParseMeasurements(text)
	default:
		err = fmt.Errorf("the evidence has the kind %q, which this version of the provider does not know: use one version everywhere", *kind)
	}
	return d, err
}

// ParseCompliance parses a document of flotilla_compliance alone.
func ParseCompliance(text []byte) (*observe.Evidence, error) {
	kind, err := kindOf(text)
	if err != nil {
		return nil, err
	}
	if kind != nil {
		return nil, fmt.Errorf("the evidence has the kind %q: only evidence of flotilla_compliance belongs here", *kind)
	}
	return observe.Parse(text)
}

func kindOf(text []byte) (*string, error) {
	if !bytes.Contains(text, []byte(`"kind"`)) { // most large documents
		return nil, nil
	}
	var d struct {
		Kind *string `json:"kind"`
	}
	if err := stdjson.Unmarshal(text, &d); err != nil {
		return nil, errors.New(
			"the evidence is not a document of flotilla_compliance, flotilla_cluster_facts or flotilla_measurements: its kind is not a text, or " +
				"it is not JSON",
		)
	}
	return d.Kind, nil
}

// List holds all evidence for a decision.
type List []Document

// Time returns the time of the oldest document, because later events are unknown.
func (l List) Time() (oldest time.Time) {
	for _, d := range l {
		if at := d.Time(); oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// Time returns the time of collection.
func (d Document) Time() time.Time {
	switch {
	case d.Facts != nil:
		return d.Facts.Time
	case d.Measurements != nil:
		return d.Measurements.Time
	}
	return d.Compliance.Time
}

// Speaks reports whether any document describes clusters, and not only the time.
func (l List) Speaks() bool {
	return slices.ContainsFunc(l, func(d Document) bool {
		return d.Compliance != nil && len(d.Compliance.Clusters) > 0 || d.Facts != nil && len(d.Facts.Clusters) > 0 ||
			d.Measurements != nil && len(d.Measurements.Checks) > 0
	})
}

const (
	format    = "1"
	kindFacts = "facts"
	maxDepth  = 16
)

type factsDocument struct {
	Format   *string                         `json:"format"`
	Kind     *string                         `json:"kind"`
	Time     *string                         `json:"time"`
	Clusters map[string]clusterFactsDocument `json:"clusters"`
}

type clusterFactsDocument struct {
	Verdict verdict.Verdict `json:"verdict"`
	Since   string          `json:"since,omitempty"`
	Message string          `json:"message,omitempty"`
	Facts   map[string]any  `json:"facts,omitempty"`
}

// Marshal encodes facts deterministically. Values must be types of ParseFacts, whole numbers, or lists and maps of
// texts.
func (f *Facts) Marshal() []byte {
	d := factsDocument{
		Format: new(format), Kind: new(kindFacts), Time: new(observe.FormatTime(f.Time)),
		Clusters: make(map[string]clusterFactsDocument, len(f.Clusters)),
	}
	for name, of := range f.Clusters {
		d.Clusters[name] = clusterFactsDocument{Verdict: of.Verdict, Since: observe.FormatTime(of.Since), Message: of.Message, Facts: of.Facts}
	}
	return observe.EncodeDocument(d)
}

// ParseFacts parses the output of [Facts.Marshal] in any order and indentation, with numbers as float64.
func ParseFacts(text []byte) (*Facts, error) {
	f, err := parseFacts(text)
	if err != nil {
		return nil, fmt.Errorf("the evidence is not what flotilla_cluster_facts gives: %w", err)
	}
	return f, nil
}

func parseFacts(text []byte) (*Facts, error) {
	var d factsDocument
	if err := observe.DecodeDocument(text, &d, &d.Format, format); err != nil {
		return nil, err
	}
	switch {
	case d.Kind == nil || *d.Kind != kindFacts:
		return nil, fmt.Errorf("its kind is not %q", kindFacts)
	case d.Time == nil || d.Clusters == nil:
		return nil, errors.New(`it has no "time", or no "clusters"`)
	}
	f := &Facts{Clusters: make(map[string]ClusterFacts, len(d.Clusters))}
	var err error
	if f.Time, err = observe.ParseTime(*d.Time); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(d.Clusters)) {
		if f.Clusters[name], err = d.Clusters[name].parse(name); err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
	}
	return f, nil
}

func (d clusterFactsDocument) parse(name string) (of ClusterFacts, err error) {
	if name == "" {
		return of, errors.New("a cluster needs a name")
	}
	if err := verdict.Check(d.Verdict); err != nil {
		return of, err
	}
	of.Verdict, of.Message = d.Verdict, d.Message
	if d.Since != "" {
		if of.Since, err = observe.ParseTime(d.Since); err != nil {
			return of, err
		}
	}
	if err := observe.CheckText(name, d.Message); err != nil {
		return of, err
	}
	if d.Facts == nil {
		return of, nil
	}
	found, err := parseFact(d.Facts, 0)
	of.Facts, _ = found.(map[string]any)
	return of, err
}

func parseFact(value any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("a fact is deeper than %d lists and maps", maxDepth)
	}
	var err error
	switch value := value.(type) {
	case bool:
		return value, nil
	case int64:
		return float64(value), nil
	case float64:
		if math.IsInf(value, 0) || math.IsNaN(value) {
			return nil, errors.New("a number is not finite")
		}
		return value, nil
	case string:
		return value, observe.CheckText(value)
	case []any:
		for i := range value {
			if value[i], err = parseFact(value[i], depth+1); err != nil {
				return nil, err
			}
		}
		return value, nil
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if _, err = parseFact(key, depth+1); err == nil {
				value[key], err = parseFact(value[key], depth+1)
			}
			if err != nil {
				return nil, err
			}
		}
		return value, nil
	}
	return nil, errors.New("a fact is null")
}

const kindMeasurements = "measurements"

type measurementsDocument struct {
	Format      *string         `json:"format"`
	Kind        *string         `json:"kind"`
	Environment *string         `json:"environment"`
	Time        *string         `json:"time"`
	Checks      []checkDocument `json:"checks"`
}

type checkDocument struct {
	Check
	Figures map[string]figureDocument `json:"figures,omitempty"`
}

type figureDocument struct {
	Value   *float64 `json:"value,omitempty"`
	Samples *float64 `json:"samples,omitempty"`
	Message string   `json:"message,omitempty"`
}

// Marshal encodes measurements deterministically. Numbers must be finite.
func (m *Measurements) Marshal() []byte {
	d := measurementsDocument{
		Format: new(format), Kind: new(kindMeasurements), Environment: &m.Environment, Time: new(observe.FormatTime(m.Time)),
		Checks: make([]checkDocument, len(m.Checks)),
	}
	for i := range m.Checks {
		check := &m.Checks[i]
		of := checkDocument{*check, make(map[string]figureDocument, len(check.Figures))}
		for subject, figure := range check.Figures {
			if figure.Message != "" {
				of.Figures[subject] = figureDocument{Message: figure.Message}
				continue
			}
			of.Figures[subject] = figureDocument{Value: &figure.Value, Samples: figure.Samples}
		}
		d.Checks[i] = of
	}
	return observe.EncodeDocument(d)
}

// ParseMeasurements parses the output of [Measurements.Marshal] in any order and indentation and compiles its
// expressions.
func ParseMeasurements(text []byte) (*Measurements, error) {
	m, err := parseMeasurements(text)
	if err != nil {
		return nil, fmt.Errorf("the evidence is not what flotilla_measurements gives: %w", err)
	}
	return m, nil
}

func parseMeasurements(text []byte) (*Measurements, error) {
	var d measurementsDocument
	if err := observe.DecodeDocument(text, &d, &d.Format, format); err != nil {
		return nil, err
	}
	switch {
	case d.Kind == nil || *d.Kind != kindMeasurements:
		return nil, fmt.Errorf("its kind is not %q", kindMeasurements)
	case d.Environment == nil || d.Time == nil || d.Checks == nil:
		return nil, errors.New(`it has no "environment", no "time", or no "checks"`)
	case len(d.Checks) > MaxChecks:
		return nil, fmt.Errorf("it has %d checks, and %d are the most", len(d.Checks), MaxChecks)
	}
	m := &Measurements{Environment: *d.Environment, Checks: make([]Check, len(d.Checks))}
	err := observe.CheckText(m.Environment)
	if err != nil {
		return nil, err
	}
	if m.Time, err = observe.ParseTime(*d.Time); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for i := range d.Checks {
		name := d.Checks[i].Name
		if names[name] {
			return nil, fmt.Errorf("two checks have the name %q", name)
		}
		names[name] = true
		if m.Checks[i], err = d.Checks[i].parse(); err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
	}
	return m, nil
}

func (d *checkDocument) parse() (Check, error) {
	check := d.Check
	check.Figures = make(map[string]Figure, len(d.Figures))
	switch {
	case d.Name == "":
		return check, errors.New("a check needs a name")
	case !slices.Contains(subjectKinds, d.Of):
		return check, fmt.Errorf("%q is none of %s", d.Of, strings.Join(SubjectKindNames(), ", "))
	}
	if err := observe.CheckText(d.Name, d.Unit, d.Message); err != nil {
		return check, err
	}
	for _, subject := range slices.Sorted(maps.Keys(d.Figures)) {
		figure, err := d.Figures[subject].parse()
		if err == nil && (d.Of == OfFleet) != (subject == "") {
			err = fmt.Errorf("it is not the name of what figures of %q are of", d.Of)
		} else if err == nil {
			err = observe.CheckText(subject)
		}
		if err != nil {
			return check, fmt.Errorf("%q: %w", subject, err)
		}
		check.Figures[subject] = figure
	}
	return check, check.compile()
}

func (d figureDocument) parse() (Figure, error) {
	switch {
	case (d.Value == nil) == (d.Message == ""):
		return Figure{}, errors.New("it has neither a value nor a message, or both")
	case d.Value == nil && d.Samples != nil:
		return Figure{}, errors.New("it has samples, and no value")
	case d.Value == nil:
		return Figure{Message: d.Message}, observe.CheckText(d.Message)
	case !isFinite(*d.Value) || d.Samples != nil && (!isFinite(*d.Samples) || *d.Samples < 0):
		return Figure{}, errors.New("a number is not finite, or the samples are less than 0")
	}
	return Figure{Value: *d.Value, Samples: d.Samples}, nil
}

func isFinite(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }
