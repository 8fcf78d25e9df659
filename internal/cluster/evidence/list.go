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
