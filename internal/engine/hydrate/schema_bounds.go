package hydrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Limits of a JSON Schema, which a repository of a tenant may provide.
const (
	// maxSchemaParts bounds objects and booleans: the compiler compares each with all others.
	maxSchemaParts  = 4_000
	maxSchemaMemory = 60 << 20
	// maxSchemaPaths bounds schemas for one value: thirty that each refer twice to the next make a billion.
	maxSchemaPaths = 100_000
)

// Measured memory of compilation, garbage included.
const (
	partMemory    = 9_500  // object or boolean, a possible schema
	valueMemory   = 3_000  // other value, with an error message
	pointerMemory = 16     // character of the path to a part
	digitMemory   = 24     // digit of a number without exponent
	patternMemory = 600    // character of a pattern
	repeatMemory  = 500    // character of an expanded repetition
	classMemory   = 40_000 // named Unicode class
)

type schemaSize struct{ parts, memory int }

func checkSchemaSize(document any) error {
	size := &schemaSize{}
	size.add(document, 0)
	switch {
	case size.parts > maxSchemaParts:
		return fmt.Errorf("has more than %d objects and booleans, the limit of a schema", maxSchemaParts)
	case size.memory > maxSchemaMemory:
		return fmt.Errorf("is too large: it would take more than %d MiB of memory to compile", maxSchemaMemory>>20)
	}
	return nil
}

func (s *schemaSize) isTooLarge() bool { return s.parts > maxSchemaParts || s.memory > maxSchemaMemory }

// add adds a value. pointer is the length of its JSON pointer.
func (s *schemaSize) add(value any, pointer int) {
	if s.isTooLarge() {
		return
	}
	switch value := value.(type) {
	case bool:
		s.addPart(pointer)
	case map[string]any:
		s.addPart(pointer)
		if text, ok := value["pattern"].(string); ok {
			s.addPattern(text)
		}
		if patterns, ok := value["patternProperties"].(map[string]any); ok {
			for text := range patterns {
				s.addPattern(text)
			}
		}
		for key, member := range value {
			s.add(member, pointer+1+len(url.PathEscape(key)))
		}
	case []any:
		s.memory += valueMemory
		for i, element := range value {
			s.add(element, pointer+1+len(strconv.Itoa(i)))
		}
	case json.Number:
		s.memory += valueMemory + digitMemory*digitsOf(value)
	default:
		s.memory += valueMemory
	}
}

func (s *schemaSize) addPart(pointer int) {
	s.parts++
	s.memory += partMemory + pointerMemory*pointer
}

func digitsOf(number json.Number) int {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(string(number)), "e")
	shift, err := strconv.Atoi(exponent)
	if err != nil {
		return len(mantissa)
	}
	return len(mantissa) + max(shift, -shift)
}

func (s *schemaSize) addPattern(text string) {
	s.memory += patternMemory * len(text)
	s.memory += classMemory * (strings.Count(text, `\p`) + strings.Count(text, `\P`))
	if s.isTooLarge() {
		return
	}
	if parsed, err := syntax.Parse(text, syntax.Perl); err == nil {
		s.memory += repeatMemory * min(lengthOf(parsed), maxSchemaMemory)
	}
}

func lengthOf(pattern *syntax.Regexp) int {
	length := 1
	if pattern.Op == syntax.OpLiteral {
		length = len(pattern.Rune)
	}
	for _, sub := range pattern.Sub {
		length += lengthOf(sub)
	}
	if pattern.Op == syntax.OpRepeat {
		length *= max(pattern.Min, pattern.Max, 1)
	}
	return length
}

func checkSchemaPaths(root *jsonschema.Schema) error {
	paths := &schemaPaths{known: map[*jsonschema.Schema]int{}}
	if paths.visit(root); paths.tooMany {
		return fmt.Errorf("refers to itself in more than %d ways for one value", maxSchemaPaths)
	}
	return nil
}

type schemaPaths struct {
	known   map[*jsonschema.Schema]int // 0 while counting
	tooMany bool
}

func (p *schemaPaths) visit(s *jsonschema.Schema) int {
	if s == nil || p.tooMany {
		return 0
	}
	if count, seen := p.known[s]; seen {
		return count // the compiler refuses loops
	}
	p.known[s] = 0
	count := 1
	for _, same := range sameValue(s) {
		ways := p.visit(same)
		if same == s.If || slices.Contains(s.OneOf, same) {
			ways *= 2 // read twice with references: see unknownText
		}
		count = min(count+ways, maxSchemaPaths+1)
	}
	p.known[s] = count
	p.tooMany = p.tooMany || count > maxSchemaPaths
	for _, below := range membersOf(s) {
		p.visit(below)
	}
	return count
}

func sameValue(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.DynamicRef, s.Not, s.If, s.Then, s.Else}
	all = append(append(append(all, s.AllOf...), s.AnyOf...), s.OneOf...)
	for _, key := range slices.Sorted(maps.Keys(s.DependentSchemas)) {
		all = append(all, s.DependentSchemas[key])
	}
	for _, key := range slices.Sorted(maps.Keys(s.Dependencies)) {
		if schema, ok := s.Dependencies[key].(*jsonschema.Schema); ok {
			all = append(all, schema)
		}
	}
	return all
}

func membersOf(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Items2020, s.Contains, s.UnevaluatedItems, s.ContentSchema}
	all = append(all, s.PrefixItems...)
	all = slices.AppendSeq(all, maps.Values(s.Properties))
	all = slices.AppendSeq(all, maps.Values(s.PatternProperties))
	for _, one := range []any{s.AdditionalProperties, s.AdditionalItems, s.Items} {
		switch one := one.(type) {
		case *jsonschema.Schema:
			all = append(all, one)
		case []*jsonschema.Schema:
			all = append(all, one...)
		}
	}
	return all
}

func isPattern(value any) bool {
	text, isText := value.(string)
	if !isText {
		return true
	}
	size := &schemaSize{}
	if size.addPattern(text); size.isTooLarge() {
		return false
	}
	_, err := syntax.Parse(text, syntax.Perl)
	return err == nil
}
