// Package evidence reads and writes facts reported by clusters and measured figures, and merges them with the reports
// of agents. It is pure. Times are in whole seconds of UTC.
package evidence

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

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

// Ofs lists all subject kinds.
var Ofs = []SubjectKind{OfCluster, OfHost, OfAssignment, OfFleet}

// OfNames returns the names of all subject kinds.
func OfNames() []string {
	names := make([]string, len(Ofs))
	for i, of := range Ofs {
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
