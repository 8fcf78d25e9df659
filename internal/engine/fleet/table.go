package fleet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Table says which attributes an object may have, and what each of them is. Objects are read by their tables, and the
// reference in the documentation, JSON Schemas and the schemas of resources are made of the same, so that none of them
// can differ. A reader that asks for an attribute that the table does not have, or for one of another type, panics; one
// that no reader asks for is unknown to users.
type Table struct {
	Name       string // of one such object: "cluster type"
	Meaning    string // Markdown
	Attributes []Attribute
	// Some are attributes of which at least one must be set, with One exactly one.
	Some []string
	One  bool
	// Apart are pairs of attributes of which only one may be set.
	Apart [][2]string
}

// Attribute is a row of a [Table].
type Attribute struct {
	Name     string
	Type     Type
	Required bool
	Default  any      // of one that is not set: a string, an int, a bool or a []string; nil where there is none
	Allowed  []string // texts; nil for any
	Form     *Form    // of the text, or of the texts in the list; nil for any
	Keys     *Form    // of the keys of a map; nil for any
	// Least and Most bound a whole number.
	Least, Most int
	Meaning     string // Markdown
	Of          *Table // of the objects in it
	// NullElements says that elements may be null, which is to leave them out, and EmptyElements that texts may be empty.
	NullElements, EmptyElements bool
	// Ordered reports that the order of the texts in a list has a meaning. The attribute of a resource is then a list, not a set.
	Ordered bool
	// Computed says that resources compute it. It is passed over.
	Computed bool
}

// Type is what an attribute is.
type Type int

// The types of attributes. All but the last four are what a method of [ObjectReader] reads.
const (
	TextType       Type = iota
	BoolType            // true or false
	WholeType           // a whole number
	NumberType          //
	TextsType           // a list of texts
	TextMapType         // a map of texts
	QuantitiesType      // a map of Kubernetes quantities, which may be numbers
	DurationType        // a text: "90s"
	TimeType            // a text in RFC 3339
	SchemaType          // a JSON Schema: its text, or an object
	AnyObjectType       // an object of any shape
	ObjectType          // an object
	ObjectsType         // a list of objects
	ObjectMapType       // a map of objects
	TextOrObjectType
	BoolOrObjectType
	TextOrTextMapType  // a text, or a map of texts
	CollectionType     // a list or map of objects
	NamesOrObjectsType // a list or map of texts, or of objects
	TextsInAnyFormType // a text, or a list or map of texts
	AnyType            // a value of any type
)

// RootTable returns the table of the argument of provider::flotilla::fleet. All others of the fleet are in it.
func RootTable() *Table { return &fleetTable }

// CollectionTable returns the table of the objects of a collection: "workspaces" and so on.
func CollectionTable(collection string) *Table { return fleetTable.find(collection).Of }

// SelectorTable returns the table of a selector.
func SelectorTable() *Table { return &selectorTable }

// LocationTable returns the table of a location.
func LocationTable() *Table { return &locationTable }

// DecryptionTable returns the table of how an agent decrypts files.
func DecryptionTable() *Table { return &decryptionTable }

// Find returns an attribute; nil for one that the table does not have.
func (t *Table) Find(name string) *Attribute {
	for i := range t.Attributes {
		if t.Attributes[i].Name == name {
			return &t.Attributes[i]
		}
	}
	return nil
}

// find is Find for an attribute that code asks for.
func (t *Table) find(name string) *Attribute {
	attribute := t.Find(name)
	if attribute == nil {
		panic(fmt.Sprintf("the table of a %s has no attribute %q", t.Name, name))
	}
	return attribute
}

// Keys are the names of the attributes that users write, in the order of the table.
func (t *Table) Keys() []string {
	var names []string
	for i := range t.Attributes {
		if !t.Attributes[i].Computed {
			names = append(names, t.Attributes[i].Name)
		}
	}
	return names
}

// Anchor is the name of the table's section in the reference.
func (t *Table) Anchor() string { return strings.ToLower(strings.ReplaceAll(t.Name, " ", "-")) }

// isComputed says whether the table, which may be nil, has the attribute as one that resources compute.
func (t *Table) isComputed(name string) bool {
	if t == nil {
		return false
	}
	attribute := t.Find(name)
	return attribute != nil && attribute.Computed
}

// DefaultText is the default as users write it in HCL; empty where there is none.
func (a *Attribute) DefaultText() string {
	switch value := a.Default.(type) {
	case string:
		return strconv.Quote(value)
	case nil:
		return ""
	}
	text, err := json.Marshal(a.Default)
	if err != nil {
		panic(err) // a default is one of four types
	}
	return string(text)
}

// text is the default of a text.
func (a *Attribute) text() string {
	text, _ := a.Default.(string)
	return text
}

// defaultText is the default of a text that users may leave out.
func (t *Table) defaultText(name string) string { return t.find(name).text() }

// must panics unless the attribute has one of these types.
func (a *Attribute) must(types []Type) {
	if len(types) > 0 && !slices.Contains(types, a.Type) {
		panic(fmt.Sprintf("attribute %q is read as another type than that of its table", a.Name))
	}
}

// TypeText says of which type an attribute is, in words. [Attribute.Of] is not said.
func (a *Attribute) TypeText() string {
	text := map[Type]string{
		TextType: "text", BoolType: "bool", WholeType: "whole number", NumberType: "number", TextsType: "list of texts", TextMapType: "map of texts",
		QuantitiesType: "map of quantities", DurationType: "duration", TimeType: "time", SchemaType: "text or object", AnyObjectType: "object of any shape",
		ObjectType: "object", ObjectsType: "list of objects", ObjectMapType: "map of objects", TextOrObjectType: "text or object",
		BoolOrObjectType: "bool or object", TextOrTextMapType: "text or map of texts", CollectionType: "list or map of objects", NamesOrObjectsType: "list or map of texts or objects",
		TextsInAnyFormType: "text, or list or map of texts", AnyType: "any value",
	}[a.Type]
	if a.Allowed != nil {
		return "`" + strings.Join(a.Allowed, "`, `") + "`"
	}
	if a.Type == WholeType {
		switch {
		case a.Most == 0:
		case a.Most >= maxWhole:
			text += fmt.Sprintf(" from %d", a.Least)
		default:
			text += fmt.Sprintf(" from %d to %d", a.Least, a.Most)
		}
	}
	return text
}

// maxWhole is the most that a whole number can be which has no bound of its own.
const maxWhole = 1<<31 - 1
