package provider

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// plain turns a Terraform value into what internal/fleet reads: nil, bool, string, json.Number, []any,
// map[string]any, and fleet.Unknown wherever something is not known yet.
func plain(value attr.Value) any {
	if value == nil || value.IsNull() {
		return nil
	}
	if value.IsUnknown() {
		return fleet.Unknown{}
	}
	switch value := value.(type) {
	case basetypes.DynamicValue:
		return plain(value.UnderlyingValue())
	case basetypes.StringValue:
		return value.ValueString()
	case basetypes.BoolValue:
		return value.ValueBool()
	case basetypes.NumberValue:
		return fleet.NumberOf(value.ValueBigFloat())
	case basetypes.ObjectValue:
		return plainMap(value.Attributes())
	case basetypes.MapValue:
		return plainMap(value.Elements())
	case basetypes.ListValue:
		return plainList(value.Elements())
	case basetypes.TupleValue:
		return plainList(value.Elements())
	case basetypes.SetValue:
		return plainList(value.Elements())
	}
	panic(fmt.Sprintf("no attribute of this provider has a value of type %T", value))
}

func plainMap(elements map[string]attr.Value) map[string]any {
	object := make(map[string]any, len(elements))
	for key, element := range elements {
		object[key] = plain(element)
	}
	return object
}

func plainList(elements []attr.Value) []any {
	list := make([]any, len(elements))
	for i, element := range elements {
		list[i] = plain(element)
	}
	return list
}

// addFindings turns findings into errors at the attributes that they are about, below root.
func addFindings(diagnostics *diag.Diagnostics, root path.Path, summary string, findings fleet.Findings) {
	for _, finding := range findings {
		at, rest := attributePath(root, finding.Path)
		message := finding.Message
		name, _, _ := cutName(finding.Path)
		switch word, _, _ := strings.Cut(message, " "); {
		case rest != "":
			message = rest + ": " + message
		case name != "" && slices.Contains([]string{"is", "must", "has", "holds", "does", "excludes", "wants"}, word):
			message = name + " " + message // the message is a clause without its subject, the attribute
		}
		diagnostics.AddAttributeError(at, summary, sentence(message))
	}
}

// sentence gives a message the form of one, unless it starts with a path or a name.
func sentence(message string) string {
	if message == "" {
		return message
	}
	if word, _, _ := strings.Cut(message, " "); !strings.ContainsAny(word, "._[\"/:") {
		first, size := utf8.DecodeRuneInString(message)
		message = string(unicode.ToUpper(first)) + message[size:]
	}
	if !strings.ContainsRune(".?!", rune(message[len(message)-1])) {
		message += "."
	}
	return message
}

// attributePath reads a path as fleet.Path writes it. Terraform has no path for an element of a set or for a value
// inside of a dynamic value: then the result is the path of the attribute, and rest is the path inside of it.
func attributePath(root path.Path, text string) (at path.Path, rest string) {
	at = root
	name, rest, inside := cutName(text)
	if name == "" {
		return at, text
	}
	if len(root.Steps()) == 0 {
		at = path.Root(name)
	} else {
		at = at.AtName(name)
	}
	if !inside {
		return at, ""
	}
	if name == "labels" || name == "resource_quota" {
		if quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(rest, "[")); err == nil {
			if key, err := strconv.Unquote(quoted); err == nil {
				return at.AtMapKey(key), ""
			}
		}
	}
	return at, text
}

// cutName cuts the first attribute's name from a path.
func cutName(text string) (name, rest string, inside bool) {
	if i := strings.IndexAny(text, ".["); i >= 0 {
		return text[:i], text[i:], true
	}
	return text, "", false
}

// textsValue is a list of texts.
func textsValue(texts []string) basetypes.ListValue {
	values := make([]attr.Value, len(texts))
	for i, text := range texts {
		values[i] = basetypes.NewStringValue(text)
	}
	return basetypes.NewListValueMust(basetypes.StringType{}, values)
}
