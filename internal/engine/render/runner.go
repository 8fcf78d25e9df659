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

// Limits for the rendering of one file. They stop templates that never end or that need ever more memory.
const (
	maxIterations = 100_000  // of loops and of calls of templates
	maxDepth      = 100      // of templates that call templates, tpl included
	maxValue      = 1 << 20  // bytes and elements of one value that is printed or passed to a function
	maxWork       = 64 << 20 // bytes and elements of all these values
	maxNest       = 1000     // levels of one value
	maxKeptTexts  = 64       // parsed texts of tpl in memory
)

// runner runs templates, one at a time, and limits the work of each.
type runner struct {
	sets  map[*compiledTemplate][]*template.Template
	texts map[string]*template.Template
	yaml  yamlWriter
	data  templateData
	// isFilled reports that data belongs to the current assignment.
	isFilled   bool
	hasSecrets bool // data has the secret references of the assignment
	output     fileBuffer
	iterations int
	depth      int
	work       int
	more       template.FuncMap // of [TextRenderer]
	isStrict   bool             // a missing key of a map is an error
}

func newRunner() *runner {
	return &runner{sets: map[*compiledTemplate][]*template.Template{}, texts: map[string]*template.Template{}}
}

func (e *runner) reset() {
	e.output.buffer = e.output.buffer[:0]
	e.iterations, e.depth, e.work = 0, 0, 0
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

// functionMap returns the functions that depend on the runner: guards, caches and tpl.
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

// Guards panic with their errors; text/template returns them. An error result would allocate for every value.

func (e *runner) guardPrinted(source string, value any) any {
	if number, ok := value.(float64); ok {
		return numberText(number) // Go prints 1500000.5 as 1.5000005e+06
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

func (e *runner) renderNested(text string, data any) (string, error) {
	made, err := e.executeText(text, data)
	if err != nil {
		return "", textProblem(text, err)
	}
	return made, nil
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

func textProblem(text string, err error) error {
	if errors.Is(err, ErrUnknown) {
		return ErrUnknown
	}
	failure := &TemplateError{Message: err.Error()}
	explain(failure, text, err)
	return problemf("in the text given to tpl%s", failure.position())
}

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

// measure adds the size of a value to the work. An unknown value is an error. With shallow, only the value itself must
// be known.
func (e *runner) measure(value any, shallow bool) error {
	scale := valueSize{shallow: shallow}
	if err := scale.add(value, 0); err != nil {
		return err
	}
	return e.addWork(scale.size)
}

// valueSize measures a value up to the limit. A list that contains one list twice, over forty levels, is small in
// memory and endless in print.
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

// addReflected measures types that only functions return.
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

// numberText formats a number without an exponent.
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

// unquote removes the quotes around a text, as Kalypso does.
func unquote(value any) string {
	text, _ := scalarText(value)
	return strings.Trim(strings.Trim(strings.TrimSpace(text), `"`), "'")
}
