package render

import (
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"strings"
	"text/template"
)

// maxKeptTexts bounds the parsed texts of tpl in memory.
const maxKeptTexts = 64

// runner runs templates, one at a time.
type runner struct {
	sets  map[*compiledTemplate][]*template.Template
	texts map[string]*template.Template
	yaml  yamlWriter
	data  templateData
	// isFilled reports that data belongs to the current assignment.
	isFilled   bool
	hasSecrets bool // data has the references
	output     fileBuffer
	meter
	more     template.FuncMap // of [TextRenderer]
	isStrict bool             // a missing key of a map is an error
}

func newRunner() *runner {
	return &runner{sets: map[*compiledTemplate][]*template.Template{}, texts: map[string]*template.Template{}}
}

func (e *runner) reset() {
	e.output.buffer = e.output.buffer[:0]
	e.meter = meter{}
}

func (e *runner) boundManifests(t *compiledTemplate) []*template.Template {
	if set, ok := e.sets[t]; ok {
		return set
	}
	set := make([]*template.Template, len(t.manifests))
	for i, manifest := range t.manifests {
		// Clone fails only after html/template has escaped the template.
		set[i] = template.Must(manifest.Clone()).Funcs(e.functionMap())
	}
	e.sets[t] = set
	return set
}

// functionMap returns the functions that depend on the runner.
func (e *runner) functionMap() template.FuncMap {
	functions := template.FuncMap{
		printFunction: e.guardPrinted,
		textFunction:  e.guardFormatted,
		needFunction:  e.guardRequired,
		takeFunction:  e.guardOptional,
		stepFunction:  e.countIteration,
		enterFunction: e.enterTemplate,
		leaveFunction: e.leaveTemplate,
		"tpl":         e.renderNested,
		"toYaml":      e.yaml.toYAML,
		"stringify":   e.yaml.stringify,
	}
	maps.Copy(functions, e.more)
	return functions
}

func (e *runner) renderNested(text string, data any) (string, error) {
	made, err := e.executeText(text, data)
	switch {
	case err == nil:
		return made, nil
	case errors.Is(err, ErrUnknown):
		return "", ErrUnknown
	}
	return "", problemf("in the text given to tpl%s", explain(text, err).position())
}

func (e *runner) executeText(text string, data any) (string, error) {
	e.enterTemplate()
	defer e.leaveTemplate()
	parsed, ok := e.texts[text]
	if !ok {
		e.work += 15 * len(text)
		if err := e.addWork(len(text)); err != nil {
			return "", err
		}
		manifest, _, err := parseManifest(text, false, map[string]bool{}, e.more)
		if err != nil {
			return "", err
		}
		if len(e.texts) >= maxKeptTexts {
			clear(e.texts)
		}
		parsed = manifest.Funcs(e.functionMap())
		if e.isStrict {
			parsed = parsed.Option("missingkey=error")
		}
		e.texts[text] = parsed
	}
	inner := fileBuffer{}
	if err := parsed.Execute(&inner, data); err != nil {
		return "", err
	}
	return string(inner.buffer), nil
}

// numberText avoids exponents.
func numberText(number float64) string {
	return strconv.FormatFloat(number, 'f', -1, 64)
}

func scalarText(value any) (string, bool) {
	switch value := value.(type) {
	case string:
		return value, true
	case bool:
		return strconv.FormatBool(value), true
	case int:
		return strconv.Itoa(value), true
	case int64:
		return strconv.FormatInt(value, 10), true
	case float64:
		return numberText(value), true
	case json.Number:
		return value.String(), true
	case nil:
		return "", true
	}
	return "", false
}

// unquote removes quotes as Kalypso does.
func unquote(value any) string {
	text, _ := scalarText(value)
	return strings.Trim(strings.Trim(strings.TrimSpace(text), `"`), "'")
}

// TextRenderer renders texts of an ApplicationSet with the functions and limits of templates. Printing a missing value is an
// error.
type TextRenderer struct {
	runner *runner
	spent  int
}

// maxTexts bounds the work for all objects, in bytes.
const (
	maxTexts     = 16 * maxWork
	perIteration = 100
)

// NewTextRenderer adds functions to the templates' functions, or replaces them.
func NewTextRenderer(functions template.FuncMap) *TextRenderer {
	runner := newRunner()
	runner.more = functions
	return &TextRenderer{runner: runner}
}

// BeginObject starts an object, with the limits of one file. With isStrict, reading a missing key is an error.
func (t *TextRenderer) BeginObject(isStrict bool) error {
	e := t.runner
	t.spent += e.work + perIteration*e.iterations
	e.reset()
	if e.isStrict != isStrict {
		clear(e.texts)
		e.isStrict = isStrict
	}
	if t.spent > maxTexts {
		return problemf("all templates together take too much work")
	}
	return nil
}

// Render renders a text. Its error has no value of the data.
func (t *TextRenderer) Render(text string, data map[string]any) (string, error) {
	made, err := t.runner.executeText(text, data)
	if err != nil {
		return "", problemf("%s", strings.TrimLeft(explain(text, err).position(), ",: "))
	}
	return made, nil
}
