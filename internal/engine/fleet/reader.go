package fleet

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Reader reads objects of a configuration strictly: what is misspelt, or of another type, is a finding at its path, and
// all findings come at once. Values that Terraform does not know yet are passed over, and noted. The zero value is ready.
type Reader struct {
	Findings Findings
	// Unknown says that something that was asked for is not known yet.
	Unknown bool

	more int // findings beyond those
	// allEnvironments are the names of all environments; nil where the input does not have them.
	allEnvironments []string
}

// maxFindings bounds the findings about one input.
const maxFindings = 1000

func (r *Reader) full() bool { return len(r.Findings) >= maxFindings }

// Report adds a finding.
func (r *Reader) Report(path *Path, format string, arguments ...any) {
	if r.full() {
		r.more++
		return
	}
	r.Findings.Report(path, format, arguments...)
}

// Object begins to read an object by its table. It returns nil for a value that is not known, or no object, which is a finding.
func (r *Reader) Object(table *Table, path *Path, value any) *ObjectReader {
	o, isUnknown := r.object(table, path, value)
	r.Unknown = r.Unknown || isUnknown
	return o
}

// object is Object for readers to which an unknown object makes only some of their input unknown. The table is nil for kinds that
// others define.
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

// List reads a list of objects by their table. An object is named in findings, not numbered, where its name is unique.
func (r *Reader) List(table *Table, path *Path, value any) []*ObjectReader {
	root := &ObjectReader{reader: r}
	return readChildren(root, table, path, readElements(root, path, value, "a list of objects"))
}

// ObjectReader reads the attributes of one object. In all its methods null is the same as an absent attribute. An unknown
// attribute makes the object unknown, and all that it is part of.
type ObjectReader struct {
	reader  *Reader
	table   *Table        // that it is read by; nil for kinds that others define
	parent  *ObjectReader // that it is part of; nil where only this object becomes unknown
	path    *Path
	fields  map[string]any
	unknown bool
	read    []string // the attributes that were read: all that the object may have
	// written are the names of attributes in the input, where they differ.
	written map[string]string
}

// usualAttributes is about how many attributes an object may have.
const usualAttributes = 12

// unknownText stands for a string that is not known yet while a fleet is being decoded. It is never returned, and no
// input can have it: [ObjectReader.scalar] refuses texts with its first character.
const unknownText = "\x00unknown"

// isSet says whether a text is not empty and known.
func isSet(text string) bool {
	return text != "" && text != unknownText
}

func (o *ObjectReader) noteUnknown() {
	o.reader.Unknown = true
	for ; o != nil; o = o.parent {
		o.unknown = true
	}
}

// Path is the path of the object.
func (o *ObjectReader) Path() *Path { return o.path }

// At is the path of an attribute.
func (o *ObjectReader) At(name string) *Path {
	if written, ok := o.written[name]; ok {
		name = written
	}
	return o.path.Attribute(name)
}

// Report adds a finding at an attribute.
func (o *ObjectReader) Report(name, format string, arguments ...any) {
	o.reader.Report(o.At(name), format, arguments...)
}

// Value returns an attribute as it is, for readers of its own, and its path.
func (o *ObjectReader) Value(name string) (any, *Path) { return o.get(name), o.At(name) }

// get returns an attribute, which the table has, as one of these types; of any type where none is given.
func (o *ObjectReader) get(name string, types ...Type) any {
	if o.table != nil {
		o.table.find(name).must(types)
	}
	o.read = append(o.read, name)
	return o.fields[name]
}

// Has says whether an attribute is set.
func (o *ObjectReader) Has(name string) bool { return o.get(name) != nil }

// Known says whether an attribute is set, and known.
func (o *ObjectReader) Known(name string) bool { return o.value(name) != nil }

// value returns an attribute that is known, else nil.
func (o *ObjectReader) value(name string, types ...Type) any {
	value := o.get(name, types...)
	if _, isUnknown := value.(Unknown); isUnknown {
		o.noteUnknown()
		return nil
	}
	return value
}

// Finish reports attributes that were not read, except those that Flotilla's own resources, or other systems, compute.
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

// Require reports an attribute that is not set.
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

// readScalar returns the text of a value, and what is wrong with it, or "". The value must be a text: HCL and YAML would
// make 1.1 of a version 1.10.
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

// Text returns "" for an absent or unknown attribute.
func (o *ObjectReader) Text(name string) string { return knownText(readText(o, name)) }

func knownText(text string) string {
	if text == unknownText {
		return ""
	}
	return text
}

// readText is Text with [unknownText] for an unknown attribute.
func readText(o *ObjectReader, name string) string {
	text, problem := readScalar(o, o.get(name, TextType, DurationType, TimeType, TextOrObjectType))
	if problem != "" {
		o.Report(name, "%s", problem)
	}
	return text
}

// readTextOrDefault is text with the table's default for an attribute that is absent.
func readTextOrDefault(o *ObjectReader, name string) string {
	return cmp.Or(readText(o, name), o.table.defaultText(name))
}

// ReadTextOrDefault is Text with the default of the table for an attribute that is absent or unknown.
func ReadTextOrDefault(o *ObjectReader, name string) string {
	return cmp.Or(o.Text(name), o.table.defaultText(name))
}

// Required is Text for an attribute that must be set.
func (o *ObjectReader) Required(name string) string { return knownText(readRequired(o, name)) }

func readRequired(o *ObjectReader, name string) string {
	text := readText(o, name)
	if given := o.fields[name]; given == nil || given == "" {
		o.Report(name, "is required")
	}
	return text
}

// readChecked is Text, with [unknownText] for an unknown attribute, for one of which check says what is wrong with it, or "".
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

// OneOf reads a text that must be one of those of the table. It returns the table's default for one that is absent, unknown or wrong.
func (o *ObjectReader) OneOf(name string) string {
	attribute := o.table.find(name)
	if text := readOneOf(o, name); slices.Contains(attribute.Allowed, text) {
		return text
	}
	return attribute.text()
}

// readOneOf is OneOf with [unknownText] for an unknown attribute.
func readOneOf(o *ObjectReader, name string) string {
	attribute := o.table.find(name)
	return readOneOfThese(o, name, attribute.text(), attribute.Allowed...)
}

// readOneOfOrNone is oneOf with "" for an attribute that is absent.
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

// Bool returns the default of the table for an absent attribute, and false for one that is unknown or wrong, or has no default.
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

// ReadBoolOrObject reads true or false into is, or returns an object.
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

// Int reads a whole number within the bounds of the table. It returns the table's default, else 0, for one that is absent, unknown
// or wrong.
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

// readNumber returns "" for 0, and for an absent, unknown or wrong number.
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
