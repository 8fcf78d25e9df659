package render

import (
	"reflect"

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

func (m *meter) guardOptional(shallow bool, value any) any {
	var err error
	if text, ok := value.(string); ok {
		err = m.addWork(len(text))
	} else {
		err = m.measure(value, shallow)
	}
	if err != nil {
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

// measure refuses unknown values. With shallow, only the value itself must be known.
func (m *meter) measure(value any, shallow bool) error {
	scale := valueSize{shallow: shallow}
	if err := scale.add(value, 0); err != nil {
		return err
	}
	return m.addWork(scale.size)
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
