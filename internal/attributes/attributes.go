// Package attributes reads objects of a configuration strictly: what is unknown, misspelt or of another
// kind is a finding at its path, all at once. Values that Terraform does not know yet are passed over, and
// noted.
package attributes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// Reader collects what is found. The zero value is ready.
type Reader struct {
	Findings fleet.Findings
	// Unknown says that something that was asked for is not known yet.
	Unknown bool
}

// Report notes a finding.
func (r *Reader) Report(path *fleet.Path, format string, arguments ...any) {
	r.Findings = append(r.Findings, fleet.Finding{Path: path.String(), Message: fmt.Sprintf(format, arguments...)})
}

// Object begins to read an object; nil where the value is none, which is a finding, or not known.
func (r *Reader) Object(path *fleet.Path, value any) *Object {
	switch value := value.(type) {
	case fleet.Unknown:
		r.Unknown = true
	case map[string]any:
		return &Object{reader: r, path: path, fields: value}
	default:
		r.Report(path, "must be an object, not %s", kind(value))
	}
	return nil
}

// List reads a list of objects. They are named in findings, not numbered, where each has a name.
func (r *Reader) List(path *fleet.Path, value any) []*Object {
	list, ok := r.list(path, value, "a list of objects")
	if !ok {
		return nil
	}
	count := map[string]int{}
	for _, element := range list {
		count[nameOf(element)]++
	}
	var objects []*Object
	for i, element := range list {
		at := path.Index(i)
		if name := nameOf(element); name != "" && count[name] == 1 {
			at = path.Key(name)
		}
		if object := r.Object(at, element); object != nil {
			objects = append(objects, object)
		}
	}
	return objects
}

// Texts reads a list of texts.
func (r *Reader) Texts(path *fleet.Path, value any) []string {
	list, ok := r.list(path, value, "a list of strings")
	if !ok {
		return nil
	}
	texts := make([]string, 0, len(list))
	for i, element := range list {
		switch element := element.(type) {
		case fleet.Unknown:
			r.Unknown = true
		case string:
			texts = append(texts, element)
		default:
			r.Report(path.Index(i), "must be a string, not %s", kind(element))
		}
	}
	return texts
}

func (r *Reader) list(path *fleet.Path, value any, what string) ([]any, bool) {
	switch value := value.(type) {
	case nil:
	case fleet.Unknown:
		r.Unknown = true
	case []any:
		return value, true
	default:
		r.Report(path, "must be %s, not %s", what, kind(value))
	}
	return nil, false
}

func nameOf(element any) string {
	object, _ := element.(map[string]any)
	name, _ := object["name"].(string)
	return name
}

func kind(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a bool"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case []any:
		return "a list"
	}
	return "an object"
}

// Object is one object. Each of its methods reads an attribute; null is the same as absent.
type Object struct {
	reader *Reader
	path   *fleet.Path
	fields map[string]any
	read   []string
}

// Path is where the object stands.
func (o *Object) Path() *fleet.Path { return o.path }

// At is where an attribute stands.
func (o *Object) At(name string) *fleet.Path { return o.path.Attribute(name) }

// Has says whether an attribute is there.
func (o *Object) Has(name string) bool { return o.value(name) != nil }

// Known says whether an attribute is there, and known.
func (o *Object) Known(name string) bool {
	_, known := o.known(name)
	return known
}

// Report notes a finding at an attribute.
func (o *Object) Report(name, format string, arguments ...any) {
	o.reader.Report(o.At(name), format, arguments...)
}

func (o *Object) value(name string) any {
	if !slices.Contains(o.read, name) {
		o.read = append(o.read, name)
	}
	return o.fields[name]
}

// known returns a value that is there and known.
func (o *Object) known(name string) (any, bool) {
	value := o.value(name)
	if _, unknown := value.(fleet.Unknown); unknown {
		o.reader.Unknown = true
		return nil, false
	}
	return value, value != nil
}

// Text reads a text.
func (o *Object) Text(name string) string {
	value, ok := o.known(name)
	text, isText := value.(string)
	if ok && !isText {
		o.Report(name, "must be a string, not %s", kind(value))
	}
	return text
}

// Required reads a text that must be there.
func (o *Object) Required(name string) string {
	if o.value(name) == nil || o.value(name) == "" {
		o.Report(name, "is required")
	}
	return o.Text(name)
}

// OneOf reads a text that must be one of some.
func (o *Object) OneOf(name, instead string, allowed ...string) string {
	text := o.Text(name)
	if text == "" {
		return instead
	}
	if !slices.Contains(allowed, text) {
		o.Report(name, "must be one of %s, not %q%s", strings.Join(allowed, ", "), text, fleet.DidYouMean(text, allowed))
		return instead
	}
	return text
}

// Bool reads true or false.
func (o *Object) Bool(name string) bool {
	value, ok := o.known(name)
	is, isBool := value.(bool)
	if ok && !isBool {
		o.Report(name, "must be true or false, not %s", kind(value))
	}
	return is
}

// BoolOrObject reads true or false, or an object, which is returned.
func (o *Object) BoolOrObject(name string, is *bool) *Object {
	switch value, _ := o.known(name); value := value.(type) {
	case nil:
	case bool:
		*is = value
	case map[string]any:
		return &Object{reader: o.reader, path: o.At(name), fields: value}
	default:
		o.Report(name, "must be true, false or an object, not %s", kind(value))
	}
	return nil
}

// Int reads a whole number within bounds.
func (o *Object) Int(name string, instead, least, most int) int {
	value, ok := o.known(name)
	if !ok {
		return instead
	}
	number, isNumber := value.(json.Number)
	if !isNumber {
		o.Report(name, "must be a whole number, not %s", kind(value))
		return instead
	}
	whole, err := number.Int64()
	if err != nil || whole < int64(least) || whole > int64(most) {
		o.Report(name, "must be a whole number from %d to %d, not %s", least, most, number)
		return instead
	}
	return int(whole)
}

// Duration reads a duration as Go writes it, which is not negative and at most that long.
func (o *Object) Duration(name string, most time.Duration) time.Duration {
	text := o.Text(name)
	if text == "" {
		return 0
	}
	duration, problem := Duration(text, most)
	if problem != "" {
		o.Report(name, "%s", problem)
	}
	return duration
}

// Duration reads a duration, and says what is wrong with it.
func Duration(text string, most time.Duration) (duration time.Duration, problem string) {
	duration, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Sprintf("%q is not a duration such as \"90s\", \"30m\" or \"72h\"", text)
	case duration < 0:
		return 0, fmt.Sprintf("%q is negative", text)
	case duration > most:
		return 0, fmt.Sprintf("%q is longer than %d hours", text, int(most.Hours()))
	}
	return duration, ""
}

// Timeout reads a duration above zero; instead is for one that is not given.
func (o *Object) Timeout(name string, instead time.Duration) time.Duration {
	value, ok := o.known(name)
	if !ok {
		return instead
	}
	text, _ := value.(string)
	duration, err := time.ParseDuration(text)
	if err != nil || duration <= 0 {
		o.Report(name, "must be a duration above zero, such as \"90s\", \"20m\" or \"1h30m\"")
		return instead
	}
	return duration
}

// Time reads a moment in RFC 3339; zero where there is none.
func (o *Object) Time(name string) time.Time {
	text := o.Text(name)
	if text == "" {
		return time.Time{}
	}
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		o.Report(name, "%q is not a time such as \"2026-01-31T18:00:00Z\"", text)
	}
	return moment
}

// Texts reads a list of texts.
func (o *Object) Texts(name string) []string { return o.reader.Texts(o.At(name), o.value(name)) }

// List reads a list of objects.
func (o *Object) List(name string) []*Object { return o.reader.List(o.At(name), o.value(name)) }

// Value returns an attribute as it is, for readers of its own, and where it stands.
func (o *Object) Value(name string) (any, *fleet.Path) { return o.value(name), o.At(name) }

// Selector reads a selector; nil where there is none.
func (o *Object) Selector(name string) *fleet.Selector {
	value, ok := o.known(name)
	if !ok {
		return nil
	}
	selector, known, findings := fleet.DecodeSelector(value)
	for _, finding := range findings {
		rest := strings.TrimPrefix(finding.Path, "selector")
		o.reader.Findings = append(o.reader.Findings, fleet.Finding{Path: o.At(name).String() + rest, Message: finding.Message})
	}
	if !known {
		o.reader.Unknown = true
	}
	if len(findings) > 0 {
		return nil
	}
	return selector
}

// Finish reports attributes that nobody asked for.
func (o *Object) Finish() {
	for _, name := range slices.Sorted(maps.Keys(o.fields)) {
		if !slices.Contains(o.read, name) {
			o.Report(name, "unknown attribute%s", fleet.DidYouMean(name, o.read))
		}
	}
}
