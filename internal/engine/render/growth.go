package render

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// boundedFunctions replaces functions whose result may be much larger than their arguments. They protect against repositories
// (ApplicationSets of a [TextRenderer]) and against tenants, whose parameters templates may give to tpl.
func boundedFunctions(functions map[string]any) map[string]any {
	var (
		wrapWith  = functions["wrapWith"].(func(int, string, string) string)
		toStrings = functions["toStrings"].(func(any) []string)
	)
	return map[string]any{
		"repeat": func(count int, of string) (string, error) {
			if count < 0 {
				return "", problemf("repeat: %d times", count)
			}
			return boundedText(float64(count)*float64(len(of)), func() string { return strings.Repeat(of, count) })
		},
		"indent": indent,
		"nindent": func(spaces int, text string) (string, error) {
			indented, err := indent(spaces, text)
			return "\n" + indented, err
		},
		"replace": func(from, to, in string) (string, error) {
			return boundedText(float64(len(in))+float64(strings.Count(in, from))*float64(len(to)),
				func() string { return strings.ReplaceAll(in, from, to) })
		},
		"join": func(separator string, list any) (string, error) {
			parts := toStrings(list)
			return boundedText(float64(len(parts))*float64(len(separator)), func() string { return strings.Join(parts, separator) })
		},
		"wrapWith": func(length int, separator, of string) (string, error) {
			return boundedText(float64(len(of))*float64(len(separator)+1)/float64(max(length, 1)),
				func() string { return wrapWith(length, separator, of) })
		},
		"until": func(count int) ([]int, error) {
			if count < 0 {
				return untilStep(0, count, -1)
			}
			return untilStep(0, count, 1)
		},
		"untilStep":                  untilStep,
		"seq":                        seq,
		"printf":                     boundedPrintf,
		"regexReplaceAll":            regexReplaceAll,
		"mustRegexReplaceAll":        regexReplaceAll,
		"regexReplaceAllLiteral":     regexReplaceAllLiteral,
		"mustRegexReplaceAllLiteral": regexReplaceAllLiteral,
	}
}

func boundedText(size float64, made func() string) (string, error) {
	if err := checkSize("a text", size); err != nil {
		return "", err
	}
	return made(), nil
}

func indent(spaces int, text string) (string, error) {
	if spaces < 0 {
		return "", problemf("indent: %d spaces", spaces)
	}
	size := float64(len(text)) + float64(strings.Count(text, "\n")+1)*float64(spaces)
	return boundedText(size, func() string {
		pad := strings.Repeat(" ", spaces)
		var indented strings.Builder
		indented.Grow(int(size))
		for line := range strings.SplitAfterSeq(text, "\n") {
			indented.WriteString(pad)
			indented.WriteString(line)
		}
		return indented.String()
	})
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

func regexReplaceAll(regex, text, replacement string) (string, error) {
	pattern, size, err := sizeOfReplacing(regex, text, replacement)
	if err != nil {
		return "", err
	}
	size += float64(strings.Count(replacement, "$")) * float64(len(text)) // each may insert a group
	return boundedText(size, func() string { return pattern.ReplaceAllString(text, replacement) })
}

func regexReplaceAllLiteral(regex, text, replacement string) (string, error) {
	pattern, size, err := sizeOfReplacing(regex, text, replacement)
	if err != nil {
		return "", err
	}
	return boundedText(size, func() string { return pattern.ReplaceAllLiteralString(text, replacement) })
}

func sizeOfReplacing(regex, text, replacement string) (pattern *regexp.Regexp, size float64, err error) {
	pattern, err = regexp.Compile(regex)
	if err != nil {
		return nil, 0, problemf("%s", err)
	}
	matches := float64(len(pattern.FindAllStringIndex(text, -1)))
	return pattern, float64(len(text)) + matches*float64(len(replacement)), nil
}

// maxPattern bounds a pattern, in bytes: matching costs its length times that of the text.
const maxPattern = 1000

func withPatternLimit(functions map[string]any) map[string]any {
	checked := map[string]any{}
	for name, function := range functions {
		if !strings.HasPrefix(strings.ToLower(strings.TrimPrefix(name, "must")), "regex") && name != "semverCompare" || name == "regexQuoteMeta" {
			continue
		}
		call := reflect.ValueOf(function)
		in, out := make([]reflect.Type, call.Type().NumIn()), []reflect.Type{call.Type().Out(0), reflect.TypeFor[error]()}
		for i := range in {
			in[i] = call.Type().In(i)
		}
		checked[name] = reflect.MakeFunc(reflect.FuncOf(in, out, false), func(arguments []reflect.Value) []reflect.Value {
			if length := arguments[0].Len(); length > maxPattern {
				err := problemf("%s: a pattern of %d bytes is longer than %d", name, length, maxPattern)
				return []reflect.Value{reflect.Zero(out[0]), reflect.ValueOf(&err).Elem()}
			}
			results := call.Call(arguments)
			if len(results) == 1 {
				results = append(results, reflect.Zero(out[1]))
			}
			return results
		}).Interface()
	}
	return checked
}

// checkSize takes a float64 because products of sizes may overflow.
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
