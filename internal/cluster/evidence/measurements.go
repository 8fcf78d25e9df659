package evidence

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
)

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
