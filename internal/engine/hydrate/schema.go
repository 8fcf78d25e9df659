package hydrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
)

// schema is a JSON Schema of the draft in $schema (4, 6, 7, 2019-09, 2020-12), by default 2020-12. Nothing is fetched.
type schema struct {
	root     *jsonschema.Schema
	document any  // for keyword lookups
	early    bool // parts are independent of their parents

	unknown *unknownText // for secret references; nil if no container has any

	// The remaining fields are set if the schema constrains only keys of the root object. Values are then checked
	// once: otherwise the reference fleet takes 2.5 times as long (BenchmarkHydrate).
	separable  bool
	properties []property // keys of containers, in order
	others     *jsonschema.Schema
	closed     bool  // no additional properties
	required   []int // numbers of keys, or -1 if no container has one
}

type property struct {
	key    int
	schema *jsonschema.Schema
}

var schemaDrafts = []string{
	"json-schema.org/draft-04/schema",
	"json-schema.org/draft-06/schema",
	"json-schema.org/draft-07/schema",
	"json-schema.org/draft/2019-09/schema",
	"json-schema.org/draft/2020-12/schema",
	"json-schema.org/schema",
}

const schemaURL = "schema:///schema.json"

type remoteError struct{ url string }

func (e *remoteError) Error() string {
	return fmt.Sprintf("refers to %q, which is outside of it and is not fetched: put that schema under $defs",
		strings.TrimPrefix(e.url, "schema:///"))
}

// readSchema compiles a JSON Schema. The error is a clause.
func readSchema(text string) (made *schema, err error) {
	document, err := fleet.ParseJSON(text)
	if err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	if isExtreme(document) {
		return nil, errors.New(tooExtreme)
	}
	if err := checkSchemaSize(document); err != nil {
		return nil, err
	}
	if object, ok := document.(map[string]any); ok {
		if err := checkDraft(object); err != nil {
			return nil, err
		}
		id := "$id"
		if declared, _ := object["$schema"].(string); strings.Contains(declared, "draft-04") {
			id = "id"
		}
		if err := checkIDs(document, id); err != nil {
			return nil, err
		}
	}
	defer func() {
		if reason := recover(); reason != nil {
			made, err = nil, fmt.Errorf("is not a JSON Schema: %v", reason)
		}
	}()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat = true
	compiler.Formats = map[string]func(any) bool{"regex": isPattern, secretFormat: isSecret}
	compiler.LoadURL = func(url string) (io.ReadCloser, error) { return nil, &remoteError{url} }
	if err := compiler.AddResource(schemaURL, strings.NewReader(text)); err != nil {
		return nil, fmt.Errorf("is not a JSON Schema: %w", err)
	}
	root, err := compiler.Compile(schemaURL)
	if err != nil {
		return nil, compileError(err)
	}
	if err := checkSchemaPaths(root); err != nil {
		return nil, err
	}
	// These depend on the enclosing schema, which is absent when values are checked separately.
	early := !mentions(document, "$dynamicRef") && !mentions(document, "$recursiveRef")
	return &schema{root: root, document: document, early: early}, nil
}

func checkDraft(document map[string]any) error {
	declared, ok := document["$schema"]
	if !ok {
		return nil
	}
	url, _ := declared.(string)
	_, bare, _ := strings.Cut(strings.TrimRight(url, "#/"), "://")
	if !slices.Contains(schemaDrafts, bare) {
		return fmt.Errorf("its $schema %q is none of the drafts 4, 6, 7, 2019-09 and 2020-12", url)
	}
	return nil
}

// checkIDs refuses URLs that change when resolved: the compiler would search for them endlessly.
func checkIDs(value any, id string) error {
	switch value := value.(type) {
	case map[string]any:
		if text, ok := value[id].(string); ok && !isNormal(text) {
			return fmt.Errorf("its %s %q is not a URL in its normal form", id, text)
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if err := checkIDs(value[name], id); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range value {
			if err := checkIDs(element, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func isNormal(text string) bool {
	text, _, _ = strings.Cut(text, "#")
	parsed, err := url.Parse(text)
	if err != nil || strings.HasPrefix(text, "urn:") {
		return true
	}
	return !parsed.ForceQuery && (!parsed.IsAbs() || parsed.ResolveReference(&url.URL{}).String() == text)
}

func compileError(err error) error {
	if remote, is := errors.AsType[*remoteError](err); is {
		return remote
	}
	if invalid, is := errors.AsType[*jsonschema.ValidationError](err); is {
		return fmt.Errorf("is not a JSON Schema: %s", firstReason(invalid))
	}
	if _, is := errors.AsType[jsonschema.InfiniteLoopError](err); is {
		return errors.New("is not a JSON Schema: a $ref leads back to itself")
	}
	if failed, is := errors.AsType[*jsonschema.SchemaError](err); is && failed.Err != nil {
		err = failed.Err
	}
	return fmt.Errorf("is not a JSON Schema: %s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "jsonschema: "), schemaURL, ""))
}

// firstReason returns the first of the most detailed causes in sort order, because the validator's order is random.
func firstReason(invalid *jsonschema.ValidationError) string {
	if len(invalid.Causes) == 0 {
		if place := plainPointer(invalid.InstanceLocation); place != "" {
			return "at " + place + ": " + invalid.Message + unsupported(invalid.Message)
		}
		return invalid.Message
	}
	if invalid.Message == "anyOf failed" || invalid.Message == "oneOf failed" {
		return firstReason(invalid.Causes[0])
	}
	reasons := make([]string, len(invalid.Causes))
	for i, cause := range invalid.Causes {
		reasons[i] = firstReason(cause)
	}
	return slices.Min(reasons)
}

func (s *schema) separate(keys map[string]int) {
	root := s.root
	types := len(root.Types) == 0 || slices.Contains(root.Types, "object")
	objects := root.MinProperties == -1 && root.MaxProperties == -1 && root.PropertyNames == nil &&
		len(root.PatternProperties) == 0 && len(root.Dependencies) == 0 && len(root.DependentRequired) == 0 &&
		len(root.DependentSchemas) == 0 && root.UnevaluatedProperties == nil && !root.RegexProperties
	anything := root.Always == nil && root.Ref == nil && root.RecursiveRef == nil && root.DynamicRef == nil &&
		root.Constant == nil && root.Enum == nil && root.Not == nil && root.AllOf == nil && root.AnyOf == nil &&
		root.OneOf == nil && root.If == nil && root.Format == "" && len(root.Extensions) == 0
	if !s.early || !types || !objects || !anything {
		return
	}
	s.separable = true
	for name, sub := range root.Properties {
		if key, has := keys[name]; has {
			s.properties = append(s.properties, property{key, sub})
		}
	}
	slices.SortFunc(s.properties, func(a, b property) int { return a.key - b.key })
	switch others := root.AdditionalProperties.(type) {
	case bool:
		s.closed = !others
	case *jsonschema.Schema:
		s.others = others
	}
	for _, name := range root.Required {
		key, has := keys[name]
		if !has {
			key = -1
		}
		s.required = append(s.required, key)
	}
}

func mentions(value any, key string) bool {
	return deep.Holds(value, func(part any) bool {
		object, _ := part.(map[string]any)
		_, has := object[key]
		return has
	})
}

// isExtreme reports whether a value contains a number with a large exponent: checking 1e999999 takes megabytes and
// seconds.
func isExtreme(value any) bool {
	return deep.Holds(value, func(part any) bool {
		number, isNumber := part.(json.Number)
		if !isNumber {
			return false
		}
		_, exponent, has := strings.Cut(strings.ToLower(string(number)), "e")
		return has && len(strings.TrimLeft(exponent, "+-0")) > 3
	})
}

func unsupported(message string) string {
	for _, group := range []string{"(?!", "(?=", "(?<!", "(?<="} {
		if strings.Contains(message, group) {
			return "; patterns are checked by RE2, which has no lookahead and no lookbehind: write the pattern without \"" + group + "\", or use not"
		}
	}
	return ""
}

// CheckSchema returns a clause about an unusable JSON Schema, or nil.
func CheckSchema(text string) error {
	_, err := readSchema(text)
	return err
}
