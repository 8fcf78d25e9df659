package evidence

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
)

// Document is one document of evidence, of one kind: the others are nil.
type Document struct {
	Compliance   *observe.Evidence
	Facts        *Facts
	Measurements *Measurements
}

// ParseDocument reads a document of any kind. That of flotilla_compliance is the one without a kind.
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

// ParseCompliance reads a document of flotilla_compliance, where no other belongs.
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

// kindOf is the kind that a document says it has; nil where it says none.
func kindOf(text []byte) (*string, error) {
	if !bytes.Contains(text, []byte(`"kind"`)) { // as most that is large
		return nil, nil
	}
	var d struct {
		Kind *string `json:"kind"`
	}
	if err := stdjson.Unmarshal(text, &d); err != nil {
		return nil, errors.New(
			"the evidence is not a document of flotilla_compliance, flotilla_cluster_facts or flotilla_measurements: its kind is not a text, or it is not JSON",
		)
	}
	return d.Kind, nil
}

// List is all evidence that a decision has.
type List []Document

// Time is the time of the oldest document: nothing is known of what came later. It is zero where there is no document.
func (l List) Time() (oldest time.Time) {
	for _, d := range l {
		if at := d.Time(); oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// Time is when the document was gathered.
func (d Document) Time() time.Time {
	switch {
	case d.Facts != nil:
		return d.Facts.Time
	case d.Measurements != nil:
		return d.Measurements.Time
	}
	return d.Compliance.Time
}

// Speaks says whether any document has something to say of clusters, besides its time.
func (l List) Speaks() bool {
	return slices.ContainsFunc(l, func(d Document) bool {
		return d.Compliance != nil && len(d.Compliance.Clusters) > 0 || d.Facts != nil && len(d.Facts.Clusters) > 0 ||
			d.Measurements != nil && len(d.Measurements.Checks) > 0
	})
}
