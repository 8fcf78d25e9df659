package render

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

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
