// Package tfvalue converts Terraform values from and to plain ones, and findings to diagnostics.
package tfvalue

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Plain converts to a value of package fleet: nil, bool, string, json.Number, []any, map[string]any, or fleet.Unknown.
func Plain(value attr.Value) any {
	if value == nil || value.IsNull() {
		return nil
	}
	if value.IsUnknown() {
		return fleet.Unknown{}
	}
	switch value := value.(type) {
	case basetypes.DynamicValue:
		return Plain(value.UnderlyingValue())
	case basetypes.StringValue:
		return value.ValueString()
	case basetypes.BoolValue:
		return value.ValueBool()
	case basetypes.NumberValue:
		return fleet.FormatNumber(value.ValueBigFloat())
	case basetypes.ObjectValue:
		return PlainMap(value.Attributes())
	case basetypes.MapValue:
		return PlainMap(value.Elements())
	case basetypes.ListValue:
		return plainList(value.Elements())
	case basetypes.TupleValue:
		return plainList(value.Elements())
	case basetypes.SetValue:
		return plainList(value.Elements())
	}
	panic(fmt.Sprintf("no attribute of this provider has a value of type %T", value))
}

// PlainMap converts elements or attributes.
func PlainMap(elements map[string]attr.Value) map[string]any {
	object := make(map[string]any, len(elements))
	for key, element := range elements {
		object[key] = Plain(element)
	}
	return object
}

func plainList(elements []attr.Value) []any {
	list := make([]any, len(elements))
	for i, element := range elements {
		list[i] = Plain(element)
	}
	return list
}

// AddFindings adds findings as errors of attributes below root.
func AddFindings(diagnostics *diag.Diagnostics, root path.Path, summary string, findings fleet.Findings) {
	for _, finding := range findings {
		at, rest := attributePath(root, finding.Path)
		message := finding.Message
		if steps := root.Steps(); strings.HasPrefix(message, "[") && len(steps) > 0 { // an element of the attribute
			message = fmt.Sprint(root) + message
		}
		name, _, _ := cutName(finding.Path)
		switch word, _, _ := strings.Cut(message, " "); {
		case rest != "":
			message = rest + ": " + message
		case name != "" && slices.Contains([]string{"is", "must", "has", "holds", "does", "excludes", "wants"}, word):
			message = name + " " + message // a clause without its subject
		}
		diagnostics.AddAttributeError(at, summary, Sentence(message))
	}
}

// Sentence capitalizes a message, unless it starts with a path or name, and adds a full stop.
func Sentence(message string) string {
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

// AddErrorf adds an error about an attribute. It formats the detail as a sentence.
func AddErrorf(diagnostics *diag.Diagnostics, at path.Path, summary, format string, arguments ...any) {
	diagnostics.AddAttributeError(at, summary, Sentence(fmt.Sprintf(format, arguments...)))
}

// AddWarningf adds a warning like AddErrorf.
func AddWarningf(diagnostics *diag.Diagnostics, at path.Path, summary, format string, arguments ...any) {
	diagnostics.AddAttributeWarning(at, summary, Sentence(fmt.Sprintf(format, arguments...)))
}

// attributePath converts a path. rest is inside of a set or a dynamic value, where Terraform has no paths.
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

func cutName(text string) (name, rest string, inside bool) {
	if i := strings.IndexAny(text, ".["); i >= 0 {
		return text[:i], text[i:], true
	}
	return text, "", false
}

// Texts returns a list of texts.
func Texts(texts []string) basetypes.ListValue {
	values := make([]attr.Value, len(texts))
	for i, text := range texts {
		values[i] = basetypes.NewStringValue(text)
	}
	return basetypes.NewListValueMust(basetypes.StringType{}, values)
}

// TextMap returns a map of texts.
func TextMap(texts map[string]string) basetypes.MapValue {
	values := make(map[string]attr.Value, len(texts))
	for name, text := range texts {
		values[name] = basetypes.NewStringValue(text)
	}
	return basetypes.NewMapValueMust(basetypes.StringType{}, values)
}

// ReadStrictly reads an object by its table. It calls read unless the object is null or unknown.
func ReadStrictly(
	attribute string,
	table *fleet.Table,
	value types.Dynamic,
	diagnostics *diag.Diagnostics,
	read func(*fleet.ObjectReader),
) {
	given := Plain(value)
	if given == nil {
		return
	}
	reader := &fleet.Reader{}
	if object := reader.Object(table, nil, given); object != nil {
		read(object)
		object.Finish()
	}
	AddFindings(diagnostics, path.Root(attribute), "Invalid "+attribute, Inner(reader.Findings))
}

// Inner moves paths into messages: Terraform has none inside of dynamic values.
func Inner(findings fleet.Findings) fleet.Findings {
	inner := make(fleet.Findings, len(findings))
	for i, finding := range findings {
		inner[i] = fleet.Finding{Message: finding.String()}
	}
	return inner
}

// CheckOpenText reports a text that [fleet.CheckOpenText] refuses.
func CheckOpenText(attribute string, value types.String, diagnostics *diag.Diagnostics) {
	if problem := fleet.CheckOpenText(value.ValueString()); problem != "" {
		diagnostics.AddAttributeError(path.Root(attribute), "Invalid "+attribute, Sentence("the text "+problem))
	}
}

// CheckOneOf reports a text that is not allowed.
func CheckOneOf(attribute string, value types.String, diagnostics *diag.Diagnostics, allowed ...string) {
	if text := value.ValueString(); !value.IsNull() && !value.IsUnknown() && !slices.Contains(allowed, text) {
		AddErrorf(diagnostics, path.Root(attribute), "Invalid "+attribute,
			"%q is none of %s%s", text, strings.Join(allowed, ", "), fleet.DidYouMean(text, allowed))
	}
}

// IsItselfKnown disregards the parts of a value.
func IsItselfKnown(value any) bool {
	_, unknown := value.(fleet.Unknown)
	return !unknown
}

// Fraction returns the problem of a number with a fraction, or "": a version without quotes, such as 1.40, is 1.4.
func Fraction(plain any) string {
	number, ok := plain.(json.Number)
	if !ok || !strings.Contains(number.String(), ".") {
		return ""
	}
	return fmt.Sprintf("is the number %s: put it in quotes, since 1.40 would become 1.4; where it is a variable, write tostring(...)", number)
}

// CheckFraction reports a fraction in place of a text.
func CheckFraction(attribute string, value types.Dynamic, diagnostics *diag.Diagnostics) {
	if problem := Fraction(Plain(value)); problem != "" {
		diagnostics.AddAttributeError(path.Root(attribute), "Invalid "+attribute, Sentence(attribute+" "+problem))
	}
}

// IsGiven reports whether a value is set and known: an unknown one may turn out null.
func IsGiven(value attr.Value) bool {
	if dynamic, ok := value.(basetypes.DynamicValue); ok && (dynamic.IsUnderlyingValueNull() || dynamic.IsUnderlyingValueUnknown()) {
		return false
	}
	return !value.IsNull() && !value.IsUnknown()
}

// TimeText formats a time; "" for none.
func TimeText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// Time returns a time as a value; null for none.
func Time(at time.Time) types.String { return types.StringPointerValue(wording.OrNil(TimeText(at))) }

// Content returns a short hash, for approvals.
func Content(value any) string {
	text, err := fleet.CanonicalJSON(value)
	if err != nil {
		return ""
	}
	return gate.Content(text)
}

// Hash replaces a text in the state.
func Hash(text string) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text)))
}

// CheckLimit reports a limit below 1.
func CheckLimit(limit types.Int64, diagnostics *diag.Diagnostics) {
	if !limit.IsNull() && limit.ValueInt64() < 1 {
		diagnostics.AddAttributeError(path.Root("limit"), "Invalid limit", "The limit must be at least 1.")
	}
}

// WholeWithin returns the default if the number is null, unknown or out of bounds.
func WholeWithin(attribute string, value types.Int64, byDefault, least, most int, diagnostics *diag.Diagnostics) int {
	if value.IsNull() || value.IsUnknown() {
		return byDefault
	}
	if number := value.ValueInt64(); number < int64(least) || number > int64(most) {
		AddErrorf(diagnostics, path.Root(attribute), "Invalid "+attribute,
			"It must be a whole number from %d to %d, not %d.", least, most, number)
		return byDefault
	}
	return int(value.ValueInt64())
}

// Infer returns what jsondecode would.
func Infer(value any) (attr.Value, error) {
	switch value := value.(type) {
	case nil:
		return basetypes.NewDynamicNull(), nil
	case bool:
		return basetypes.NewBoolValue(value), nil
	case string:
		return basetypes.NewStringValue(value), nil
	case json.Number:
		number, _, err := big.ParseFloat(string(value), 10, 512, big.ToNearestEven)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", string(value))
		}
		return basetypes.NewNumberValue(number), nil
	case []any:
		types, values := make([]attr.Type, len(value)), make([]attr.Value, len(value))
		for i := range value {
			element, err := Infer(value[i])
			if err != nil {
				return nil, err
			}
			types[i], values[i] = element.Type(nil), element //nolint:staticcheck // types ignore the context
		}
		return basetypes.NewTupleValueMust(types, values), nil
	case map[string]any:
		types, values := make(map[string]attr.Type, len(value)), make(map[string]attr.Value, len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			element, err := Infer(value[key])
			if err != nil {
				return nil, err
			}
			types[key], values[key] = element.Type(nil), element //nolint:staticcheck // likewise
		}
		return basetypes.NewObjectValueMust(types, values), nil
	}
	return nil, fmt.Errorf("a value of type %T has no Terraform form", value)
}
