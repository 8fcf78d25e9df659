package hydrate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

type violation struct {
	pointer string // JSON pointer of the wrong value or missing key
	message string // a clause without values
	missing bool   // a required key is missing
}

type leafError struct{ pointer, keyword string }

// validate returns the sorted violations of a value, and all participating nodes and keywords. Pointers begin with
// prefix.
func (s *schema) validate(sub *jsonschema.Schema, value any, prefix string) (found []violation, leaves []leafError) {
	defer func() {
		if reason := recover(); reason != nil {
			found, leaves = []violation{{pointer: prefix, message: fmt.Sprintf("cannot be checked: %v", reason)}}, nil
		}
	}()
	err := sub.Validate(value)
	var invalid *jsonschema.ValidationError
	switch {
	case err == nil:
		return nil, nil
	case !errors.As(err, &invalid):
		return []violation{{pointer: prefix, message: "cannot be checked: a $ref leads back to itself"}}, nil
	}
	s.collect(invalid, value, prefix, &found)
	return sortedViolations(found), leafErrors(invalid, prefix, nil)
}

func sortedViolations(found []violation) []violation {
	slices.SortFunc(found, func(a, b violation) int {
		return cmp.Or(cmp.Compare(a.pointer, b.pointer), cmp.Compare(a.message, b.message))
	})
	return slices.Compact(found)
}

func leafErrors(invalid *jsonschema.ValidationError, prefix string, leaves []leafError) []leafError {
	if len(invalid.Causes) == 0 {
		keyword, _ := keywordOf(invalid)
		return append(leaves, leafError{prefix + plainPointer(invalid.InstanceLocation), keyword})
	}
	for _, cause := range invalid.Causes {
		leaves = leafErrors(cause, prefix, leaves)
	}
	return leaves
}

// collect descends to errors that users can fix. If no alternative fits, the choice itself is the error.
func (s *schema) collect(invalid *jsonschema.ValidationError, value any, prefix string, found *[]violation) {
	keyword, path := keywordOf(invalid)
	pointer := plainPointer(invalid.InstanceLocation)
	add := func(pointer, message string, missing bool) {
		*found = append(*found, violation{prefix + pointer, message, missing})
	}
	parameter, known := LookUp(s.document, path)
	at, _ := LookUp(value, pointer)
	switch {
	case invalid.Message == "anyOf failed" || invalid.Message == "oneOf failed":
		add(pointer, "fits none of the alternatives: "+s.alternatives(invalid, value), false)
	case len(invalid.Causes) > 0 && keyword != "minContains":
		for _, cause := range invalid.Causes {
			s.collect(cause, value, prefix, found)
		}
	case invalid.Message == "not allowed": // by the schema false, which has no keyword
		add(pointer, "is not allowed", false)
	case keyword == "required" && known:
		object, _ := at.(map[string]any)
		for _, name := range names(parameter) {
			if _, has := object[name]; !has {
				add(pointer+"/"+escapePointer(name), "is required", true)
			}
		}
	case keyword == "additionalProperties" && known:
		for _, name := range s.additional(at, strings.TrimSuffix(path, "/additionalProperties")) {
			add(pointer+"/"+escapePointer(name), "is not an allowed key", false)
		}
	case (keyword == "dependentRequired" || keyword == "dependencies") && known:
		tokens := strings.Split(path, "/")
		for _, name := range names(parameter) {
			add(pointer+"/"+escapePointer(name), fmt.Sprintf("is required where %s is", tokens[len(tokens)-2]), true)
		}
	case strings.Contains(path, "/propertyNames/"):
		add(pointer, "is a key that "+clause(keyword, parameter, ""), false)
	default:
		if exclusive, isFlag := parameter.(bool); isFlag && exclusive { // draft 4: a flag beside the bound
			bound := strings.NewReplacer("exclusiveM", "m").Replace(keyword)
			parameter, _ = LookUp(s.document, strings.TrimSuffix(path, keyword)+bound)
		}
		add(pointer, clause(keyword, parameter, at), false)
	}
}

func (s *schema) alternatives(invalid *jsonschema.ValidationError, value any) string {
	var reasons []string
	base := plainPointer(invalid.InstanceLocation)
	for _, cause := range invalid.Causes {
		var found []violation
		s.collect(cause, value, "", &found)
		for _, one := range sortedViolations(found) {
			reasons = append(reasons, strings.TrimPrefix(strings.TrimPrefix(one.pointer, base)+" "+one.message, " "))
		}
	}
	const most = 6
	if len(reasons) > most {
		reasons = append(reasons[:most], "and more")
	}
	return strings.Join(reasons, "; ")
}

func (s *schema) additional(object any, path string) []string {
	members, _ := object.(map[string]any)
	enclosing, _ := LookUp(s.document, path)
	declared, _ := enclosing.(map[string]any)
	properties, _ := declared["properties"].(map[string]any)
	patterns, _ := declared["patternProperties"].(map[string]any)
	var unknown []string
	for name := range members {
		_, known := properties[name]
		for pattern := range patterns {
			compiled, err := regexp.Compile(pattern)
			known = known || (err == nil && compiled.MatchString(name))
		}
		if !known {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// clause describes a keyword's requirement without the value, which may be secret.
func clause(keyword string, parameter, value any) string {
	if keyword == "minContains" { // usually the default: nothing to look up
		return `has too few elements that fit "contains"`
	}
	text, err := fleet.CanonicalJSON(parameter)
	if err != nil || parameter == nil && keyword != "const" {
		return fmt.Sprintf("does not satisfy %q", keyword)
	}
	said, known := clauses[keyword]
	switch {
	case keyword == "type":
		wanted := names(parameter)
		for i := range wanted {
			wanted[i] = withArticle(wanted[i])
		}
		return fmt.Sprintf("must be %s, not %s", enumerate(wanted, "or"), withArticle(typeOf(value)))
	case keyword == "enum":
		return "must be one of " + strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	case keyword == "format" && parameter == secretFormat:
		return "must be a reference to a secret: give it in secrets of a config container, not in data"
	case !known:
		return fmt.Sprintf("does not satisfy %q", keyword)
	}
	return strings.Replace(said, "%s", text, 1)
}

var clauses = map[string]string{
	"const": "must be %s", "format": "must be of the format %s", "pattern": "must match the pattern %s",
	"minimum": "must be at least %s", "exclusiveMinimum": "must be more than %s",
	"maximum": "must be at most %s", "exclusiveMaximum": "must be less than %s", "multipleOf": "must be a multiple of %s",
	"minLength": "must have at least %s characters", "maxLength": "must have at most %s characters",
	"minItems": "must have at least %s elements", "maxItems": "must have at most %s elements",
	"maxContains":   `must have at most %s elements that fit "contains"`,
	"minProperties": "must have at least %s keys", "maxProperties": "must have at most %s keys",
	"uniqueItems": "must not have equal elements", "additionalItems": "has too many elements",
	"not":   "is of a kind that the schema rules out",
	"oneOf": "fits more than one of the alternatives, and must fit exactly one",
}

func keywordOf(invalid *jsonschema.ValidationError) (keyword, path string) {
	_, path, _ = strings.Cut(invalid.AbsoluteKeywordLocation, "#")
	path = plainPointer(path)
	tokens := strings.Split(path, "/")
	keyword = tokens[len(tokens)-1]
	// dependentRequired/<key>/<index>, allOf/<index>
	if _, err := strconv.Atoi(keyword); err == nil && len(tokens) > 2 {
		keyword = tokens[len(tokens)-2]
		if above := tokens[len(tokens)-3]; above == "dependentRequired" || above == "dependencies" {
			keyword = above
		}
	}
	return keyword, path
}

func plainPointer(pointer string) string {
	plain, err := url.PathUnescape(pointer)
	if err != nil {
		return pointer
	}
	return plain
}

// LookUp returns the value at a JSON pointer.
func LookUp(value any, pointer string) (any, bool) {
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch within := value.(type) {
		case map[string]any:
			member, has := within[token]
			if !has {
				return nil, false
			}
			value = member
		case []any:
			index, err := strconv.Atoi(token)
			if err != nil || index < 0 || index >= len(within) || strconv.Itoa(index) != token {
				return nil, false
			}
			value = within[index]
		default:
			return nil, false
		}
	}
	return value, true
}

func names(parameter any) []string {
	var all []string
	switch parameter := parameter.(type) {
	case string:
		all = append(all, parameter)
	case []any:
		for _, element := range parameter {
			if name, ok := element.(string); ok {
				all = append(all, name)
			}
		}
	}
	return all
}

func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		return "number"
	case []any:
		return "array"
	case secretReference:
		return "reference to a secret"
	}
	return "object"
}

func withArticle(name string) string {
	switch name {
	case "null":
		return name
	case "array":
		return "a list"
	case "integer", "object":
		return "an " + name
	}
	return "a " + name
}
