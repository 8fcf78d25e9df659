package render

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"text/template"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
)

// Limits of what one template may do for one file. A template that never ends, or needs more and more memory, is
// an error.
const (
	maxIterations = 100_000  // iterations of loops and calls of templates
	maxDepth      = 100      // templates that call templates, tpl included
	maxValue      = 1 << 20  // bytes and elements of one value that is printed or passed to a function
	maxWork       = 64 << 20 // the same, all values together
	maxNest       = 1000     // levels of one value
	maxKeptTexts  = 64       // parsed texts that a runner keeps for tpl
)

// runner runs templates, one at a time. Its functions count the work of the running template.
type runner struct {
	sets  map[*compiledTemplate][]*template.Template // with the functions of this runner
	texts map[string]*template.Template              // parsed for tpl
	yaml  yamlWriter
	data  templateData
	// isFilled says that data is that of the current assignment.
	isFilled   bool
	hasSecrets bool // the references of the current assignment are in it, too
	output     fileBuffer
	iterations int
	depth      int
	work       int
	more       template.FuncMap // of [Texts]
	isStrict   bool             // a missing key of a map is an error
}

func newRunner() *runner {
	return &runner{sets: map[*compiledTemplate][]*template.Template{}, texts: map[string]*template.Template{}}
}

// begin resets the counts for a new file.
func (e *runner) reset() {
	e.output.buffer = e.output.buffer[:0]
	e.iterations, e.depth, e.work = 0, 0, 0
}

// manifests returns the template's manifests with the functions of this runner.
func (e *runner) boundManifests(t *compiledTemplate) []*template.Template {
	if set, ok := e.sets[t]; ok {
		return set
	}
	set := make([]*template.Template, len(t.manifests))
	for i, manifest := range t.manifests {
		// Clone fails only where html/template has escaped.
		set[i] = template.Must(manifest.Clone()).Funcs(e.functionMap())
	}
	e.sets[t] = set
	return set
}

// functions are the functions that count the work of the running template, or keep results.
func (e *runner) functionMap() template.FuncMap {
	return e.withMore(template.FuncMap{
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
	})
}

// Guards panic with their errors, and text/template returns these. A second result would cost an allocation for
// every value.

func (e *runner) guardPrinted(source string, value any) any {
	if number, ok := value.(float64); ok {
		return numberText(number) // Go would write 1500000.5 as 1.5000005e+06
	}
	return e.guardFormatted(source, value)
}

func (e *runner) guardFormatted(source string, value any) any {
	e.guardRequired(false, source, value)
	if deep.Holds(value, func(part any) bool { return part == nil }) {
		panic(problemf("%s has a null, which only toYaml and toJson can write", source))
	}
	return value
}

func (e *runner) guardRequired(shallow bool, source string, value any) any {
	if value == nil {
		panic(problemf("%s has no value", source))
	}
	return e.guardOptional(shallow, value)
}

func (e *runner) guardOptional(shallow bool, value any) any {
	var err error
	if text, ok := value.(string); ok {
		err = e.addWork(len(text))
	} else {
		err = e.measure(value, shallow)
	}
	if err != nil {
		panic(err)
	}
	return value
}

func (e *runner) countIteration() string {
	e.iterations++
	if e.iterations > maxIterations {
		panic(problemf("loops and calls of templates take more than %d steps", maxIterations))
	}
	return ""
}

func (e *runner) enterTemplate() string {
	e.depth++
	if e.depth > maxDepth {
		panic(problemf("templates call each other more than %d levels deep", maxDepth))
	}
	return e.countIteration()
}

func (e *runner) leaveTemplate() string {
	e.depth--
	return ""
}

// tpl renders a text as a template.
func (e *runner) renderNested(text string, data any) (string, error) {
	made, err := e.executeText(text, data)
	if err != nil {
		return "", textProblem(text, err)
	}
	return made, nil
}

// runText runs a text as a template.
func (e *runner) executeText(text string, data any) (string, error) {
	e.enterTemplate()
	defer e.leaveTemplate()
	parsed, ok := e.texts[text]
	if !ok {
		e.work += 15 * len(text) // parsing is work
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

// textProblem is an error in a text that tpl renders.
func textProblem(text string, err error) error {
	if errors.Is(err, ErrUnknown) {
		return ErrUnknown
	}
	failure := &TemplateError{Message: err.Error()}
	explain(failure, text, err)
	return problemf("in the text given to tpl%s", failure.position())
}

// count adds to the work of the template.
func (e *runner) addWork(size int) error {
	if size > maxValue {
		return problemf("a value is larger than %d MiB", maxValue>>20)
	}
	e.work += size
	if e.work > maxWork {
		return problemf("functions work on more than %d MiB", maxWork>>20)
	}
	return nil
}

// weigh counts the size of a value. It refuses a value that is not known yet and, unless shallow, one that has such
// a value in it.
func (e *runner) measure(value any, shallow bool) error {
	scale := valueSize{shallow: shallow}
	if err := scale.add(value, 0); err != nil {
		return err
	}
	return e.addWork(scale.size)
}

// scale measures a value, and stops where it is too large: a list that has one list in it twice, for forty levels,
// is small in memory and endless when it is printed.
type valueSize struct {
	shallow bool
	size    int
}

func (s *valueSize) add(value any, depth int) error {
	if depth > maxNest {
		return problemf("a value is nested deeper than %d levels", maxNest)
	}
	s.size++
	if s.size > maxValue {
		return problemf("a value is larger than %d MiB", maxValue>>20)
	}
	switch value := value.(type) {
	case nil, bool, int, int64, float64:
	case string:
		s.size += len(value)
	case unknownRepo, unknownList:
		if !s.shallow || depth == 0 {
			return ErrUnknown
		}
	case map[string]any:
		for key, element := range value {
			s.size += len(key)
			if err := s.add(element, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range value {
			if err := s.add(element, depth+1); err != nil {
				return err
			}
		}
	case []string:
		for _, element := range value {
			s.size += len(element) + 1
		}
	default:
		return s.addReflected(reflect.ValueOf(value), depth)
	}
	return nil
}

// addReflected is for types that only functions return.
func (s *valueSize) addReflected(value reflect.Value, depth int) error {
	switch value.Kind() {
	case reflect.String:
		s.size += value.Len()
	case reflect.Map:
		for entries := value.MapRange(); entries.Next(); {
			if err := s.add(entries.Key().Interface(), depth+1); err != nil {
				return err
			}
			if err := s.add(entries.Value().Interface(), depth+1); err != nil {
				return err
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range value.Len() {
			if err := s.add(value.Index(i).Interface(), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// numberText writes a number without an exponent.
func numberText(number float64) string {
	return strconv.FormatFloat(number, 'f', -1, 64)
}

// textOf is how a scalar prints.
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

// unquote removes the quotes around a text, as Kalypso does.
func unquote(value any) string {
	text, _ := scalarText(value)
	return strings.Trim(strings.Trim(strings.TrimSpace(text), `"`), "'")
}
