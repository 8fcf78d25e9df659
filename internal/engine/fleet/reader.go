package fleet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Reader decodes objects strictly: a misspelt attribute or a wrong type is a finding. Unknown values are skipped and
// noted. The zero value is ready.
type Reader struct {
	Findings Findings
	// Unknown: a requested value is.
	Unknown bool

	more            int // beyond the limit
	allEnvironments []string
}

const maxFindings = 1000

func (r *Reader) isFull() bool { return len(r.Findings) >= maxFindings }

// Report adds a finding. Beyond a limit, it only counts.
func (r *Reader) Report(path *Path, format string, arguments ...any) {
	if r.isFull() {
		r.more++
		return
	}
	r.Findings.Report(path, format, arguments...)
}

// Object starts to read an object. It returns nil if the value is unknown, or no object (a finding).
func (r *Reader) Object(table *Table, path *Path, value any) *ObjectReader {
	o, isUnknown := r.object(table, path, value)
	r.Unknown = r.Unknown || isUnknown
	return o
}

// object does not set Unknown. table is nil for foreign kinds.
func (r *Reader) object(table *Table, path *Path, value any) (o *ObjectReader, isUnknown bool) {
	switch value := value.(type) {
	case Unknown:
		return nil, true
	case map[string]any:
		return &ObjectReader{reader: r, table: table, path: path, fields: value, read: make([]string, 0, usualAttributes)}, false
	}
	r.Report(path, "must be an object, not %s", kindOf(value))
	return nil, false
}

// List reads objects. Findings identify them by unique names, else by index.
func (r *Reader) List(table *Table, path *Path, value any) []*ObjectReader {
	root := &ObjectReader{reader: r}
	return readChildren(root, table, path, readElements(root, path, value, "a list of objects"))
}

// ObjectReader reads one object. null means absent. An unknown attribute makes the object and its parents unknown.
type ObjectReader struct {
	reader  *Reader
	table   *Table        // nil for foreign kinds
	parent  *ObjectReader // becomes unknown, too; may be nil
	path    *Path
	fields  map[string]any
	unknown bool
	read    []string // known attributes
	// written maps attributes to other names in the input.
	written map[string]string
}

const usualAttributes = 12

// unknownText stands for an unknown string. [readScalar] refuses NUL in input.
const unknownText = "\x00unknown"

func isSet(text string) bool {
	return text != "" && text != unknownText
}

func (o *ObjectReader) noteUnknown() {
	o.reader.Unknown = true
	for ; o != nil; o = o.parent {
		o.unknown = true
	}
}

// readAside reports whether all values were known, without marking the object.
func readAside(o *ObjectReader, read func()) (known bool) {
	unknown := o.unknown
	o.unknown = false
	read()
	known = !o.unknown
	o.unknown = unknown
	return known
}

// Path locates the object.
func (o *ObjectReader) Path() *Path { return o.path }

// At locates an attribute.
func (o *ObjectReader) At(name string) *Path { return o.path.Attribute(cmp.Or(o.written[name], name)) }

// Report adds a finding at an attribute.
func (o *ObjectReader) Report(name, format string, arguments ...any) {
	o.reader.Report(o.At(name), format, arguments...)
}

// Value returns an attribute without checks, and its path.
func (o *ObjectReader) Value(name string) (any, *Path) { return o.get(name), o.At(name) }

// get panics if the table has another type.
func (o *ObjectReader) get(name string, types ...Type) any {
	if o.table != nil {
		if a := o.table.find(name); len(types) > 0 && !slices.Contains(types, a.Type) {
			panic(fmt.Sprintf("attribute %q is read as another type than that of its table", a.Name))
		}
	}
	o.read = append(o.read, name)
	return o.fields[name]
}

// Has reports whether an attribute is set, even to an unknown value.
func (o *ObjectReader) Has(name string) bool { return o.get(name) != nil }

// Known reports whether an attribute is set and known.
func (o *ObjectReader) Known(name string) bool { return o.value(name) != nil }

func (o *ObjectReader) value(name string, types ...Type) any {
	value := o.get(name, types...)
	if _, isUnknown := value.(Unknown); isUnknown {
		o.noteUnknown()
		return nil
	}
	return value
}

// Finish reports attributes that were not read, except computed ones.
func (o *ObjectReader) Finish(computed ...string) {
	var unread []string
	for name := range o.fields {
		if !slices.Contains(o.read, name) && !slices.Contains(computed, name) && !o.table.isComputed(name) {
			unread = append(unread, name)
		}
	}
	slices.Sort(unread)
	for _, name := range unread {
		o.Report(name, "unknown attribute%s", DidYouMean(name, o.read))
	}
}

// Require reports a missing attribute.
func (o *ObjectReader) Require(name, message string) {
	if !o.Has(name) {
		o.Report(name, "%s", message)
	}
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

// readScalar returns a text or a problem. HCL and YAML would turn the number 1.10 into 1.1.
func readScalar(o *ObjectReader, value any) (text, problem string) {
	switch value := value.(type) {
	case nil:
		return "", ""
	case Unknown:
		o.noteUnknown()
		return unknownText, ""
	case string:
		if !strings.Contains(value, "\x00") {
			return value, ""
		}
	}
	return "", "must be a string, not " + kindAndHint(value)
}

func kindAndHint(value any) string {
	switch value.(type) {
	case json.Number:
		return kindOf(value) + `: put it in quotes, since 1.10 would become 1.1; ` +
			`where it is a variable, write tostring(...), since "${...}" of a number is a number`
	case bool:
		return kindOf(value) + `: put it in quotes; where it is a variable, write tostring(...)`
	}
	return kindOf(value)
}

// Text returns "" for an absent or unknown attribute.
func (o *ObjectReader) Text(name string) string { return knownText(readText(o, name)) }

func knownText(text string) string {
	if text == unknownText {
		return ""
	}
	return text
}

func readText(o *ObjectReader, name string) string {
	text, problem := readScalar(o, o.get(name, TextType, DurationType, TimeType, TextOrObjectType))
	if problem != "" {
		o.Report(name, "%s", problem)
	}
	return text
}

// ReadTextOrDefault is [ObjectReader.Text] with the table's default.
func ReadTextOrDefault(o *ObjectReader, name string) string {
	return cmp.Or(o.Text(name), o.table.defaultText(name))
}

// Required reads a text that must be set.
func (o *ObjectReader) Required(name string) string { return knownText(readRequired(o, name)) }

func readRequired(o *ObjectReader, name string) string {
	text := readText(o, name)
	if given := o.fields[name]; given == nil || given == "" {
		o.Report(name, "is required")
	}
	return text
}

func readName(o *ObjectReader, check func(string) string) string {
	return checkText(o, "name", readRequired(o, "name"), check)
}

func readChecked(o *ObjectReader, name string, check func(string) string) string {
	return checkText(o, name, readText(o, name), check)
}

func checkText(o *ObjectReader, name, text string, check func(string) string) string {
	if isSet(text) {
		if problem := check(text); problem != "" {
			o.Report(name, "%q %s", text, problem)
		}
	}
	return text
}

// OneOf reads one of the allowed texts, or else returns the default.
func (o *ObjectReader) OneOf(name string) string {
	attribute := o.table.find(name)
	if text := readOneOf(o, name); slices.Contains(attribute.Allowed, text) {
		return text
	}
	return attribute.text()
}

func readOneOf(o *ObjectReader, name string) string {
	attribute := o.table.find(name)
	return readOneOfThese(o, name, attribute.text(), attribute.Allowed...)
}

func readOneOfOrNone(o *ObjectReader, name string) string {
	return readOneOfThese(o, name, "", o.table.find(name).Allowed...)
}

func readOneOfThese(o *ObjectReader, name, byDefault string, allowed ...string) string {
	text := readText(o, name)
	switch {
	case text == "":
		return byDefault
	case text != unknownText && !slices.Contains(allowed, text):
		o.Report(name, "must be one of %s, not %q%s", strings.Join(allowed, ", "), text, DidYouMean(text, allowed))
	}
	return text
}

// Bool returns the default if the attribute is absent, and false if it is unknown or wrong.
func (o *ObjectReader) Bool(name string) bool {
	switch value := o.value(name, BoolType).(type) {
	case nil:
		if o.table != nil && o.fields[name] == nil {
			byDefault, _ := o.table.find(name).Default.(bool)
			return byDefault
		}
	case bool:
		return value
	default:
		o.Report(name, "must be true or false, not %s", kindOf(value))
	}
	return false
}

// ReadBoolOrObject stores true or false in is, or returns an object.
func ReadBoolOrObject(o *ObjectReader, name string, is *bool) *ObjectReader {
	switch value := o.value(name, BoolOrObjectType).(type) {
	case nil:
	case bool:
		*is = value
	case map[string]any:
		return readChild(o, name, o.At(name), value)
	default:
		o.Report(name, "must be true, false or an object, not %s", kindOf(value))
	}
	return nil
}

// Int reads a number within the table's bounds, or else returns the default or 0.
func (o *ObjectReader) Int(name string) int {
	attribute := o.table.find(name)
	switch value := o.value(name, WholeType).(type) {
	case nil:
	case json.Number:
		canonical, err := CanonicalNumber(value)
		whole, notWhole := strconv.Atoi(string(canonical))
		if err == nil && notWhole == nil && whole >= attribute.Least && whole <= attribute.Most {
			return whole
		}
		o.Report(name, "must be a whole number from %d to %d, not %s", attribute.Least, attribute.Most, value)
	default:
		o.Report(name, "must be a whole number, not %s", kindOf(value))
	}
	byDefault, _ := attribute.Default.(int)
	return byDefault
}

func readNumber(o *ObjectReader, name string) json.Number {
	switch value := o.value(name, NumberType).(type) {
	case nil:
	case json.Number:
		number, err := CanonicalNumber(value)
		if err != nil {
			o.Report(name, "%s", err)
		} else if number != "0" {
			return number
		}
	default:
		o.Report(name, "must be a number, not %s", kindOf(value))
	}
	return ""
}

// ReadDuration reads a non-negative duration up to most; 0 if absent.
func ReadDuration(o *ObjectReader, name string, most time.Duration) time.Duration {
	text := o.Text(name)
	if text == "" {
		return 0
	}
	duration, problem := ParseDuration(text, most)
	if problem != "" {
		o.Report(name, "%s", problem)
	}
	return duration
}

// ParseDuration returns a duration, or a problem.
func ParseDuration(text string, most time.Duration) (duration time.Duration, problem string) {
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

// ReadTimeout reads a positive duration, or else returns the table's default.
func ReadTimeout(o *ObjectReader, name string) time.Duration {
	byDefault, _ := ParseDuration(o.table.defaultText(name), math.MaxInt64) // 0 without a default
	value := o.value(name, DurationType)
	if value == nil {
		return byDefault
	}
	text, _ := value.(string)
	duration, problem := ParseDuration(text, math.MaxInt64)
	if problem != "" || duration == 0 {
		o.Report(name, "must be a duration above zero, such as \"90s\", \"20m\" or \"1h30m\"")
		return byDefault
	}
	return duration
}

// ReadTime reads RFC 3339; zero if absent.
func ReadTime(o *ObjectReader, name string) time.Time {
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
