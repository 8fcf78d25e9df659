package fleet

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// unknownText stands for a string that is not known yet while a fleet is being decoded. It is never returned, and no
// input can have it: [object.scalar] refuses texts with its first character.
const unknownText = "\x00unknown"

// object reads the attributes of one object of the input. It adds findings to its decoder, and notes whether any
// attribute that was read is unknown.
type object struct {
	decoder *decoder
	path    *Path
	fields  map[string]any
	unknown bool
	read    []string // the attributes that were read: all that the object may have
	// written are the names of attributes in the input, where they differ.
	written map[string]string
}

// usualAttributes is about how many attributes an object may have.
const usualAttributes = 12

// object returns nil where value is not an object; an unknown one is noted in isUnknown.
func (d *decoder) object(path *Path, value any) (o *object, isUnknown bool) {
	switch value := value.(type) {
	case Unknown:
		return nil, true
	case map[string]any:
		return &object{decoder: d, path: path, fields: value, read: make([]string, 0, usualAttributes)}, false
	case nil:
		d.report(path, "must be an object, not null")
	default:
		d.report(path, "must be an object, not %s", kindOf(value))
	}
	return nil, false
}

func kindOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case bool:
		return "a bool"
	case string:
		if strings.Contains(value, "\x00") {
			return "a string that holds a NUL character"
		}
		return "a string"
	case json.Number:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "an unknown value"
}

func (o *object) report(attribute, format string, arguments ...any) {
	if written, ok := o.written[attribute]; ok {
		attribute = written
	}
	o.decoder.report(o.path.Attribute(attribute), format, arguments...)
}

// value returns an attribute; null is the same as absent.
func (o *object) value(attribute string) any {
	o.read = append(o.read, attribute)
	value := o.fields[attribute]
	if _, ok := value.(Unknown); ok {
		o.unknown = true
	}
	return value
}

// finish reports attributes that were not read, except those that Flotilla's own resources compute.
func (o *object) finish(computed ...string) {
	var unknown []string
	for attribute := range o.fields {
		if !slices.Contains(o.read, attribute) && !slices.Contains(computed, attribute) {
			unknown = append(unknown, attribute)
		}
	}
	slices.Sort(unknown)
	for _, attribute := range unknown {
		o.report(attribute, "unknown attribute%s", DidYouMean(attribute, o.read))
	}
}

// text returns "" for an absent attribute and [unknownText] for an unknown one.
func (o *object) text(attribute string) string {
	text, problem := o.scalar(o.value(attribute))
	if problem != "" {
		o.report(attribute, "%s", problem)
	}
	return text
}

// scalar returns the text of a value, and what is wrong with it, or "". The value must be a text: HCL and YAML would
// make 1.1 of a version 1.10.
func (o *object) scalar(value any) (text, problem string) {
	switch value := value.(type) {
	case nil:
		return "", ""
	case Unknown:
		o.unknown = true
		return unknownText, ""
	case string:
		if !strings.Contains(value, "\x00") {
			return value, ""
		}
	}
	return "", "must be a string, not " + kindAndHint(value)
}

// kindAndHint is the kind of a value that should be a string, and how to write it as one.
func kindAndHint(value any) string {
	switch value.(type) {
	case json.Number:
		return kindOf(value) + `: put it in quotes, since 1.10 would become 1.1; where it is a variable, write tostring(...), since "${...}" of a number is a number`
	case bool:
		return kindOf(value) + `: put it in quotes; where it is a variable, write tostring(...)`
	}
	return kindOf(value)
}

// isSet says whether a text is not empty and known.
func isSet(text string) bool {
	return text != "" && text != unknownText
}

// required is text for an attribute that must be set.
func (o *object) required(attribute string) string {
	text := o.text(attribute)
	if given := o.fields[attribute]; given == nil || given == "" {
		o.report(attribute, "is required")
	}
	return text
}

// name reads the attribute "name" and checks it.
func (o *object) name(check func(string) string) string {
	name := o.required("name")
	if isSet(name) {
		if problem := check(name); problem != "" {
			o.report("name", "%q %s", name, problem)
		}
	}
	return name
}

// maxLabelName is the longest DNS label, and the longest value of a Kubernetes label.
const maxLabelName = 63

// CheckLabelName says what is wrong with a name that must be a DNS label, or "".
func CheckLabelName(name string) string {
	if isPlain(name) && isLower(name) && !strings.Contains(name, ".") {
		return ""
	}
	if len(validation.IsDNS1123Label(name)) == 0 {
		return ""
	}
	return `is not a DNS label: lower case letters, digits and "-", starting and ending with a letter or digit, at most 63 characters`
}

// CheckSubdomainName says what is wrong with a name that must be a DNS subdomain, or "".
func CheckSubdomainName(name string) string {
	if isPlain(name) && isLower(name) && !strings.Contains(name, ".") {
		return ""
	}
	if len(validation.IsDNS1123Subdomain(name)) == 0 {
		return ""
	}
	return `is not a DNS subdomain: lower case letters, digits, "-" and ".", starting and ending with a letter or digit, at most 253 characters`
}

// oneOf returns the default for an absent attribute.
func (o *object) oneOf(attribute, byDefault string, allowed ...string) string {
	text := o.text(attribute)
	switch {
	case text == "":
		return byDefault
	case text != unknownText && !slices.Contains(allowed, text):
		o.report(attribute, "%q is not one of %s%s", text, strings.Join(allowed, ", "), DidYouMean(text, allowed))
	}
	return text
}

// list returns the elements of a list, nil for an absent or unknown one.
func (o *object) list(attribute string) []any {
	switch value := o.value(attribute).(type) {
	case nil, Unknown:
		return nil
	case []any:
		return value
	default:
		o.report(attribute, "must be a list, not %s", kindOf(value))
		return nil
	}
}

// texts reads a list of strings that are not empty.
func (o *object) texts(attribute string) []string {
	return o.textList(attribute, false)
}

func (o *object) textList(attribute string, mayBeEmpty bool) []string {
	var texts []string
	for i, element := range o.list(attribute) {
		text, problem := o.scalar(element)
		if problem == "" && (element == nil || element == "" && !mayBeEmpty) {
			problem = "must be a string, neither null nor empty"
		}
		if problem != "" {
			o.decoder.report(o.path.Attribute(attribute).Index(i), "%s", problem)
			continue
		}
		texts = append(texts, text)
	}
	return texts
}

// sortedTexts reads a list of strings whose order has no meaning.
func (o *object) sortedTexts(attribute string) []string {
	texts := o.texts(attribute)
	slices.Sort(texts)
	return slices.Compact(texts)
}

// objects calls decode with each object of a list.
func (o *object) objects(attribute string, decode func(*object)) {
	list := o.list(attribute)
	elements := elementPaths(o.path.Attribute(attribute), list)
	for i, element := range list {
		o.child(elements[i], element, decode)
	}
}

// child calls decode with an object inside of this one. Where that is unknown in part, this one is, too.
func (o *object) child(path *Path, value any, decode func(*object)) {
	inner, isUnknown := o.decoder.object(path, value)
	if isUnknown {
		o.unknown = true
	}
	if inner == nil {
		return
	}
	decode(inner)
	o.unknown = o.unknown || inner.unknown
}

// attribute is child for one attribute; an absent one is not decoded.
func (o *object) attribute(attribute string, decode func(*object)) {
	if value := o.value(attribute); value != nil {
		o.child(o.path.Attribute(attribute), value, decode)
	}
}

// textMap reads a map of strings; null elements are left out.
func (o *object) textMap(attribute string) map[string]string {
	value := o.value(attribute)
	switch value := value.(type) {
	case nil, Unknown:
		return nil
	case map[string]any:
		texts := make(map[string]string, len(value))
		var wrong []string
		for key, element := range value {
			text, problem := o.scalar(element)
			if problem != "" {
				wrong = append(wrong, key)
			} else if element != nil {
				texts[key] = text
			}
		}
		slices.Sort(wrong)
		for _, key := range wrong {
			_, problem := o.scalar(value[key])
			o.decoder.report(o.path.Attribute(attribute).Key(key), "%s", problem)
		}
		if len(texts) == 0 {
			return nil
		}
		return texts
	default:
		o.report(attribute, "must be a map of strings, not %s", kindOf(value))
		return nil
	}
}

// labels reads and checks Kubernetes labels.
func (o *object) labels(attribute string) Labels {
	labels := Labels(o.textMap(attribute))
	if arePlain(labels) {
		return labels
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if o.decoder.full() {
			break // the message about one label may take kilobytes
		}
		path := o.path.Attribute(attribute).Key(key)
		if problem := CheckLabelKey(key); problem != "" {
			o.decoder.report(path, "%s", problem)
		}
		if labels[key] != unknownText {
			if problem := CheckLabelValue(labels[key]); problem != "" {
				o.decoder.report(path, "%s", problem)
			}
		}
	}
	return labels
}

// isLower says whether a text has neither upper case letters nor "_".
func isLower(text string) bool {
	for i := 0; i < len(text); i++ {
		if c := text[i]; 'A' <= c && c <= 'Z' || c == '_' {
			return false
		}
	}
	return true
}

// arePlain says whether labels are certainly valid, without the regular expressions of Kubernetes. Most are.
func arePlain(labels map[string]string) bool {
	for key, value := range labels {
		if !isPlain(key) || value != "" && !isPlain(value) {
			return false
		}
	}
	return true
}

// isPlain says whether a text is valid as the value of a label, and as a key without a prefix.
func isPlain(text string) bool {
	if text == "" || len(text) > maxLabelName {
		return false
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9':
		case c == '-' || c == '_' || c == '.':
			if i == 0 || i == len(text)-1 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// CheckLabelKey says what is wrong with the key of a label, or "".
func CheckLabelKey(key string) string {
	if isPlain(key) {
		return ""
	}
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return fmt.Sprintf("%q is not the key of a label: %s", key, problems[0])
	}
	return ""
}

// CheckLabelValue says what is wrong with the value of a label, or "".
func CheckLabelValue(value string) string {
	if value == "" || isPlain(value) {
		return ""
	}
	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		return fmt.Sprintf("%q is not the value of a label: %s", value, problems[0])
	}
	return ""
}
