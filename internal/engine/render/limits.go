package render

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
)

// Limits of one file. They stop templates that never end or need ever more memory.
const (
	maxIterations = 100_000  // of loops and of calls of templates
	maxDepth      = 100      // of calls, tpl included
	maxValue      = 1 << 20  // bytes and elements of a value
	maxWork       = 64 << 20 // of all values
	maxNest       = 1000     // levels of one value
)

type meter struct {
	iterations int
	depth      int // of templates that call templates
	work       int
}

// Guards panic with their errors, since an error result would allocate for every value.

func (m *meter) guardPrinted(source string, value any) any {
	if number, ok := value.(float64); ok {
		return numberText(number) // Go prints 1500000.5 as 1.5000005e+06
	}
	return m.guardFormatted(source, value)
}

func (m *meter) guardFormatted(source string, value any) any {
	m.guardRequired(false, source, value)
	if deep.Holds(value, func(part any) bool { return part == nil }) {
		panic(problemf("%s has a null, which only toYaml and toJson can write", source))
	}
	return value
}

func (m *meter) guardRequired(shallow bool, source string, value any) any {
	if value == nil {
		panic(problemf("%s has no value", source))
	}
	return m.guardOptional(shallow, value)
}

// guardOptional refuses unknown values. With shallow, only the value itself must be known.
func (m *meter) guardOptional(shallow bool, value any) any {
	scale := valueSize{shallow: shallow}
	if text, isText := value.(string); isText {
		scale.size = len(text)
	} else if err := scale.add(value, 0); err != nil {
		panic(err)
	}
	if err := m.addWork(scale.size); err != nil {
		panic(err)
	}
	return value
}

func (m *meter) countIteration() string {
	m.iterations++
	if m.iterations > maxIterations {
		panic(problemf("loops and calls of templates take more than %d steps", maxIterations))
	}
	return ""
}

func (m *meter) enterTemplate() string {
	m.depth++
	if m.depth > maxDepth {
		panic(problemf("templates call each other more than %d levels deep", maxDepth))
	}
	return m.countIteration()
}

func (m *meter) leaveTemplate() string {
	m.depth--
	return ""
}

func (m *meter) addWork(size int) error {
	if size > maxValue {
		return problemf("a value is larger than %d MiB", maxValue>>20)
	}
	m.work += size
	if m.work > maxWork {
		return problemf("functions work on more than %d MiB", maxWork>>20)
	}
	return nil
}

// valueSize stops at the limit: a list that has one list twice, over forty levels, is endless.
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

// limitedFunctions returns the functions whose result may be much larger than their arguments, or whose work is, with limits.
// They protect against repositories (ApplicationSets of a [TextRenderer]) and against tenants, whose parameters templates may
// give to tpl.
func limitedFunctions(functions map[string]any) map[string]any {
	all := map[string]any{
		"until": until, "untilStep": untilStep, "seq": seq, "printf": boundedPrintf, "indent": indent,
		"nindent": func(spaces int, text string) (string, error) {
			indented, err := indent(spaces, text)
			return "\n" + indented, err
		},
	}
	for name, size := range textSizes(functions["toStrings"].(func(any) []string)) {
		all[name] = limited(functions[name], func(a arguments) error { return checkSize("a text", size(a)) })
	}
	for name, function := range functions {
		takesPattern := strings.HasPrefix(strings.ToLower(strings.TrimPrefix(name, "must")), "regex") && name != "regexQuoteMeta"
		if !takesPattern && name != "semverCompare" {
			continue
		}
		if all[name] != nil {
			function = all[name]
		}
		all[name] = limited(function, func(a arguments) error {
			if length := a.length(0); length > maxPattern {
				return problemf("%s: a pattern of %.0f bytes is longer than %d", name, length, maxPattern)
			}
			return nil
		})
	}
	return all
}

// maxPattern limits a pattern in bytes. Matching costs the product of both lengths.
const maxPattern = 1000

// textSizes returns the size of results, or more, from the arguments.
func textSizes(toStrings func(any) []string) map[string]func(a arguments) float64 {
	replaced := func(a arguments) float64 {
		pattern, err := regexp.Compile(a.text(0))
		if err != nil {
			return 0 // the function reports it
		}
		return a.length(1) + float64(len(pattern.FindAllStringIndex(a.text(1), -1)))*a.length(2)
	}
	withGroups := func(a arguments) float64 { // each "$" may insert one
		return replaced(a) + float64(strings.Count(a.text(2), "$"))*a.length(1)
	}
	return map[string]func(a arguments) float64{
		"repeat": func(a arguments) float64 { return a.number(0) * a.length(1) },
		"replace": func(a arguments) float64 {
			return a.length(2) + float64(strings.Count(a.text(2), a.text(0)))*a.length(1)
		},
		"join":                       func(a arguments) float64 { return float64(len(toStrings(a[1].Interface()))) * a.length(0) },
		"wrapWith":                   func(a arguments) float64 { return a.length(2) * (a.length(1) + 1) / max(a.number(0), 1) },
		"regexReplaceAll":            withGroups,
		"mustRegexReplaceAll":        withGroups,
		"regexReplaceAllLiteral":     replaced,
		"mustRegexReplaceAllLiteral": replaced,
	}
}

// arguments holds the arguments of one call. Sizes are float64 because their products may overflow.
type arguments []reflect.Value

func (a arguments) number(i int) float64 { return float64(a[i].Int()) }

func (a arguments) text(i int) string { return a[i].String() }

func (a arguments) length(i int) float64 { return float64(a[i].Len()) }

// limited returns a function that checks its arguments first.
func limited(function any, check func(a arguments) error) any {
	call := reflect.ValueOf(function)
	in, out := make([]reflect.Type, call.Type().NumIn()), []reflect.Type{call.Type().Out(0), reflect.TypeFor[error]()}
	for i := range in {
		in[i] = call.Type().In(i)
	}
	return reflect.MakeFunc(reflect.FuncOf(in, out, false), func(given []reflect.Value) []reflect.Value {
		if err := check(given); err != nil {
			return []reflect.Value{reflect.Zero(out[0]), reflect.ValueOf(&err).Elem()}
		}
		results := call.Call(given)
		if len(results) == 1 {
			results = append(results, reflect.Zero(out[1]))
		}
		return results
	}).Interface()
}

// indent returns the text with spaces before each line. Templates call it most, and [limited] would double its memory.
func indent(spaces int, text string) (string, error) {
	size := float64(len(text)) + float64(strings.Count(text, "\n")+1)*float64(spaces)
	if err := checkSize("a text", size); err != nil {
		return "", err
	}
	if spaces < 0 {
		return "", problemf("indent: %d spaces", spaces)
	}
	pad := strings.Repeat(" ", spaces)
	var indented strings.Builder
	indented.Grow(int(size))
	for line := range strings.SplitAfterSeq(text, "\n") {
		indented.WriteString(pad)
		indented.WriteString(line)
	}
	return indented.String(), nil
}

func until(count int) ([]int, error) {
	if count < 0 {
		return untilStep(0, count, -1)
	}
	return untilStep(0, count, 1)
}

// untilStep adds no steps to a number, which could overflow and never end.
func untilStep(start, stop, step int) ([]int, error) {
	if step == 0 || (stop < start) != (step < 0) {
		return []int{}, nil
	}
	distance, size := uint64(stop)-uint64(start), uint64(step)
	if step < 0 {
		distance, size = -distance, -size
	}
	count := distance / size
	if distance%size > 0 {
		count++
	}
	if err := checkSize("a list of numbers", float64(count)); err != nil {
		return nil, err
	}
	numbers := make([]int, count)
	for i := range numbers {
		numbers[i] = start + i*step
	}
	return numbers, nil
}

func seq(parameters ...int) (string, error) {
	var last int
	first, step, toward := 1, 1, 1
	switch len(parameters) {
	case 1:
		last = parameters[0]
	case 2:
		first, last = parameters[0], parameters[1]
	case 3:
		first, step, last = parameters[0], parameters[1], parameters[2]
	default:
		return "", nil
	}
	if last < first {
		toward = -1
	}
	if len(parameters) < 3 {
		step = toward
	}
	numbers, err := untilStep(first, last+toward, step)
	return strings.Trim(fmt.Sprint(numbers), "[]"), err
}

func checkSize(what string, size float64) error {
	if size > maxValue {
		return problemf("%s is larger than %d MiB", what, maxValue>>20)
	}
	return nil
}

var (
	formatWidths = regexp.MustCompile(`%[-+# 0]*(?:\[\d+\])?(\d*)(?:\.(?:\[\d+\])?(\d*))?`)
	formatStar   = regexp.MustCompile(`%[-+# 0\[\]\d.]*\*`)
)

// boundedPrintf bounds widths, and arguments that the format repeats.
func boundedPrintf(format string, arguments ...any) (string, error) {
	if formatStar.MatchString(format) {
		return "", problemf("printf: a width that is an argument, *, is not for templates")
	}
	size := float64(len(format))
	for _, widths := range formatWidths.FindAllStringSubmatch(format, -1) {
		for _, width := range widths[1:] {
			number, _ := strconv.ParseFloat("0"+width, 64)
			size += number
		}
	}
	if repeats := strings.Count(format, "%["); repeats > 0 {
		largest := 0
		for _, argument := range arguments {
			scale := valueSize{}
			if err := scale.add(argument, 0); err != nil {
				return "", err
			}
			largest = max(largest, scale.size)
		}
		size += float64(repeats) * float64(largest)
	}
	if err := checkSize("a text", size); err != nil {
		return "", err
	}
	return fmt.Sprintf(format, arguments...), nil
}
