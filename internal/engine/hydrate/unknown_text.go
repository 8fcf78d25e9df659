package hydrate

import (
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// secretFormat is a format that only references to secrets satisfy.
const secretFormat = "secret"

func isSecret(value any) bool {
	_, is := value.(secretReference)
	return is
}

// unknownText adapts schemas to references to secrets. A value fits if some texts would fit, so keywords about an
// unknown text pass, but not within "not". Each schema therefore has two readings: possibly and certainly fitting.
// "not" swaps them. Of "oneOf", one alternative must fit possibly and no two certainly; "then" and "else" apply if
// "if" certainly fits, or certainly fails.
type unknownText struct {
	readings map[readingOf]*jsonschema.Schema
}

type readingOf struct {
	schema  *jsonschema.Schema
	certain bool
}

func readUnknownText(root *jsonschema.Schema) *unknownText {
	made := &unknownText{readings: map[readingOf]*jsonschema.Schema{}}
	made.reading(root, false)
	return made
}

// possibly returns the reading that refuses only impossible values.
func (u *unknownText) possibly(s *jsonschema.Schema) *jsonschema.Schema {
	if s.Always != nil {
		return s
	}
	return u.readings[readingOf{s, false}]
}

func (u *unknownText) reading(s *jsonschema.Schema, certain bool) *jsonschema.Schema {
	if s == nil || s.Always != nil {
		return s
	}
	of := readingOf{s, certain}
	if known := u.readings[of]; known != nil {
		return known
	}
	made := &jsonschema.Schema{ // without keywords
		Location: s.Location, Draft: s.Draft, MinProperties: -1, MaxProperties: -1, MinItems: -1, MaxItems: -1, MinContains: 1, MaxContains: -1,
		MinLength: -1, MaxLength: -1,
	}
	u.readings[of] = made // store first: schemas may be recursive
	made.Extensions = map[string]jsonschema.ExtSchema{"": u.keywords(s, certain)}
	made.UnevaluatedProperties = u.reading(s.UnevaluatedProperties, certain) // comes last
	return made
}

type keywords struct {
	schema    *jsonschema.Schema
	certain   bool
	others    *jsonschema.Schema // without the keywords checked here
	oneOf     [2][]*jsonschema.Schema
	condition [2]*jsonschema.Schema
	branches  [2]*jsonschema.Schema // "then" and "else"
}

const (
	possible = iota
	certainly
)

func (u *unknownText) keywords(s *jsonschema.Schema, certain bool) *keywords {
	all := func(schemas []*jsonschema.Schema, certain bool) []*jsonschema.Schema {
		read := make([]*jsonschema.Schema, len(schemas))
		for i, schema := range schemas {
			read[i] = u.reading(schema, certain)
		}
		return read
	}
	made := &keywords{schema: s, certain: certain}
	for reading := range made.oneOf {
		made.oneOf[reading] = all(s.OneOf, reading == certainly)
		made.condition[reading] = u.reading(s.If, reading == certainly)
	}
	made.branches = [2]*jsonschema.Schema{u.reading(s.Then, certain), u.reading(s.Else, certain)}

	others := *s
	others.Types, others.Constant, others.Enum, others.OneOf, others.If, others.Then, others.Else = nil, nil, nil, nil, nil, nil, nil
	others.RecursiveRef, others.DynamicRef, others.UnevaluatedProperties = nil, nil, nil
	others.Ref, others.Not = u.reading(s.Ref, certain), u.reading(s.Not, !certain)
	others.AllOf, others.AnyOf = all(s.AllOf, certain), all(s.AnyOf, certain)
	others.Properties, others.DependentSchemas = readings(s.Properties, u, certain), readings(s.DependentSchemas, u, certain)
	others.PatternProperties = readings(s.PatternProperties, u, certain)
	if additional, is := s.AdditionalProperties.(*jsonschema.Schema); is {
		others.AdditionalProperties = u.reading(additional, certain)
	}
	if len(s.Dependencies) > 0 {
		others.Dependencies = map[string]any{}
		for key, dependency := range s.Dependencies {
			if schema, is := dependency.(*jsonschema.Schema); is {
				dependency = u.reading(schema, certain)
			}
			others.Dependencies[key] = dependency
		}
	}
	made.others = &others
	return made
}

func readings[K comparable](schemas map[K]*jsonschema.Schema, u *unknownText, certain bool) map[K]*jsonschema.Schema {
	if schemas == nil {
		return nil
	}
	read := make(map[K]*jsonschema.Schema, len(schemas))
	for key, schema := range schemas {
		read[key] = u.reading(schema, certain)
	}
	return read
}

// Validate implements [jsonschema.ExtSchema].
func (k *keywords) Validate(ctx jsonschema.ValidationContext, value any) error {
	kind := kindWithText(value)
	if kind == "" {
		return ctx.Validate(k.schema, "", value, "")
	}
	if err := k.checkKind(ctx, kind); err != nil {
		return err
	}
	return group(ctx, ctx.Validate(k.others, "", value, ""), k.checkOneOf(ctx, value), k.checkCondition(ctx, value))
}

// group joins errors and skips nil.
func group(ctx jsonschema.ValidationContext, all ...error) error {
	all = slices.DeleteFunc(all, func(err error) bool { return err == nil })
	if len(all) == 0 {
		return nil
	}
	return jsonschema.ValidationError{}.Group(ctx.Error("", ""), all...)
}

func kindWithText(value any) string {
	switch value := value.(type) {
	case secretReference:
		return "string"
	case map[string]any:
		for _, member := range value {
			if isSecret(member) {
				return "object"
			}
		}
	}
	return ""
}

func (k *keywords) checkKind(ctx jsonschema.ValidationContext, kind string) error {
	s := k.schema
	if len(s.Types) > 0 && !slices.Contains(s.Types, kind) {
		return ctx.Error("type", "another type")
	}
	unknown := s.RecursiveRef != nil || s.DynamicRef != nil ||
		kind == "string" && (s.Pattern != nil || s.MinLength != -1 || s.MaxLength != -1 || s.Format != "" && s.Format != secretFormat ||
			s.ContentEncoding != "" || s.ContentMediaType != "")
	for keyword, options := range map[string][]any{"const": s.Constant, "enum": s.Enum} {
		if len(options) == 0 {
			continue
		}
		if !slices.ContainsFunc(options, func(option any) bool { return typeOf(option) == kind }) {
			return ctx.Error(keyword, "none of the values")
		}
		unknown = true
	}
	if unknown && k.certain {
		return ctx.Error("", "not known")
	}
	return nil
}

func (k *keywords) checkOneOf(ctx jsonschema.ValidationContext, value any) error {
	if len(k.oneOf[possible]) == 0 {
		return nil
	}
	var fits [2]int
	var reasons []error
	for i := range k.schema.OneOf {
		at := "oneOf/" + strconv.Itoa(i)
		if ctx.Validate(k.oneOf[certainly][i], at, value, "") == nil {
			fits[certainly]++
		}
		if err := ctx.Validate(k.oneOf[possible][i], at, value, ""); err != nil {
			reasons = append(reasons, err)
		} else {
			fits[possible]++
		}
	}
	switch {
	case fits[possible] == 0:
		return jsonschema.ValidationError{}.Group(ctx.Error("oneOf", "oneOf failed"), reasons...)
	case fits[certainly] > 1, k.certain && (fits[certainly] != 1 || fits[possible] != 1):
		return ctx.Error("oneOf", "more than one")
	}
	return nil
}

func (k *keywords) checkCondition(ctx jsonschema.ValidationContext, value any) error {
	if k.condition[possible] == nil {
		return nil
	}
	holds := [2]bool{}
	for reading, condition := range k.condition {
		holds[reading] = ctx.Validate(condition, "if", value, "") == nil
	}
	var wrong []error
	for i, branch := range []string{"then", "else"} {
		if k.branches[i] == nil {
			continue
		}
		// With an unknown condition, both branches evaluate properties.
		mayCount, counts := holds[possible], holds[certainly]
		if branch == "else" {
			mayCount, counts = !holds[certainly], !holds[possible]
		}
		if !mayCount {
			continue
		}
		if err := ctx.Validate(k.branches[i], branch, value, ""); err != nil && (counts || k.certain) {
			wrong = append(wrong, jsonschema.ValidationError{}.Group(ctx.Error(branch, "if failed"), err))
		}
	}
	return group(ctx, wrong...)
}
