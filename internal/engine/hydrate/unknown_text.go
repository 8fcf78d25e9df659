package hydrate

import (
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
)

// A reference to a secret is checked as a text that nobody knows. The values fit a schema if they fit with some text:
// violations that follow from the text itself do not count.

// secretFormat is a format that only references to secrets satisfy.
const secretFormat = "secret"

// someText stands for the unknown text of a reference.
const someText = "\x00secret"

func isSecret(value any) bool { return value == someText }

// withTexts replaces references to secrets, which are values or members of the whole.
func withTexts(value any) any {
	switch value := value.(type) {
	case secretReference:
		return someText
	case map[string]any:
		keys := keysOfReferences(value)
		if len(keys) == 0 {
			return value
		}
		with := maps.Clone(value)
		for _, key := range keys {
			with[key] = someText
		}
		return with
	}
	return value
}

func keysOfReferences(value any) []string {
	var keys []string
	object, _ := value.(map[string]any)
	for key, member := range object {
		if _, is := member.(secretReference); is {
			keys = append(keys, key)
		}
	}
	return keys
}

// withoutTexts returns an error without the parts that another text in place of a reference may prevent, or nil.
func (s *schema) withoutTexts(invalid *jsonschema.ValidationError, value any) *jsonschema.ValidationError {
	if invalid == nil {
		return nil
	}
	pointer := plainPointer(invalid.InstanceLocation)
	at, _ := LookUp(value, pointer)
	keys := keysOfReferences(value)
	_, isReference := at.(secretReference)
	mayDepend := func(pointer string) bool {
		part, known := LookUp(s.document, pointer)
		part = deep.Without(part, func(keyword string, member any) bool {
			return member == true || member == false || keyword == "format" && member == secretFormat
		})
		return !known || mentions(part, ofTexts...) && (isReference || mentions(part, slices.Concat(keys, ofAnyKey)...))
	}
	keyword, path := keywordOf(invalid)
	if isConditional(path, mayDepend) {
		return nil
	}
	if !isReference && (pointer != "" || len(keys) == 0) {
		return invalid
	}
	if len(invalid.Causes) == 0 {
		parameter, _ := LookUp(s.document, path)
		mayFit := false
		switch keyword {
		case "pattern", "minLength", "maxLength", "contentEncoding", "contentMediaType":
			mayFit = isReference
		case "format":
			mayFit = isReference && parameter != secretFormat
		case "const":
			mayFit = typeOf(parameter) == typeOf(withTexts(at))
		case "enum":
			options, _ := parameter.([]any)
			mayFit = slices.ContainsFunc(options, func(option any) bool { return typeOf(option) == typeOf(withTexts(at)) })
		case "not", "oneOf": // oneOf without causes: several fit
			mayFit = mayDepend(path)
		}
		if mayFit {
			return nil
		}
		return invalid
	}
	rest := *invalid
	rest.Causes = nil
	for _, cause := range invalid.Causes {
		if left := s.withoutTexts(cause, value); left != nil {
			rest.Causes = append(rest.Causes, left)
		}
	}
	isChoice := invalid.Message == "anyOf failed" || invalid.Message == "oneOf failed"
	if len(rest.Causes) == 0 || isChoice && len(rest.Causes) < len(invalid.Causes) {
		return nil
	}
	return &rest
}

// isConditional reports whether a text may decide if a schema applies: in "if", or by leaving values unevaluated.
func isConditional(path string, mayDepend func(pointer string) bool) bool {
	tokens := strings.Split(path, "/")
	for i, token := range tokens {
		enclosing := strings.Join(tokens[:i], "/")
		if (token == "then" || token == "else") && mayDepend(enclosing+"/if") ||
			token == "unevaluatedProperties" && mayDepend(enclosing) {
			return true
		}
	}
	return false
}

var (
	// ofTexts lists the keywords that may be about the content of a text.
	ofTexts = []string{
		"pattern", "minLength", "maxLength", "format", "contentEncoding", "contentMediaType", "const", "enum",
		"$ref", "$dynamicRef", "$recursiveRef",
	}
	// ofAnyKey lists the keywords that may be about a key without naming it.
	ofAnyKey = []string{"patternProperties", "additionalProperties", "unevaluatedProperties", "$ref", "$dynamicRef", "$recursiveRef"}
)
