package fleet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Table lists the attributes of an object. Readers, documentation, JSON Schemas and resource schemas follow from it.
// Readers panic if they differ from it; attributes without a reader are refused.
type Table struct {
	Name       string // singular: "cluster type"
	Meaning    string // Markdown
	Attributes []Attribute
	// Some lists attributes. One must be set, or exactly one if One is true.
	Some []string
	One  bool
	// Apart lists pairs that exclude each other.
	Apart [][2]string
}

// Attribute is an attribute of an object.
type Attribute struct {
	Name     string
	Type     Type
	Required bool
	Default  any      // a string, int, bool or []string; nil: none
	Allowed  []string // nil: any
	Form     *Form    // of texts; nil: any
	Keys     *Form    // of map keys; nil: any
	// Least and Most bound whole numbers.
	Least, Most int
	Meaning     string // Markdown
	Of          *Table // of nested objects
	// NullElements are left out. Both are errors by default.
	NullElements, EmptyElements bool
	// Ordered makes a list of resources, not a set.
	Ordered bool
	// Computed attributes are skipped by readers.
	Computed bool
}

// Type is the type of an attribute.
type Type int

// [ObjectReader] has a reader for all but the last four.
const (
	TextType Type = iota
	BoolType
	WholeType
	NumberType
	TextsType
	TextMapType
	QuantitiesType // by resource, possibly numbers
	DurationType   // "90s"
	TimeType       // RFC 3339
	SchemaType     // JSON Schema, as text or object
	AnyObjectType
	ObjectType
	ObjectsType
	ObjectMapType
	TextOrObjectType
	BoolOrObjectType
	TextOrTextMapType
	CollectionType
	NamesOrObjectsType
	TextsInAnyFormType
	AnyType
)

// RootTable returns the table of provider::flotilla::fleet, which leads to all others.
func RootTable() *Table { return &fleetTable }

// CollectionTable returns the table of the objects in "workspaces", "clusters", ….
func CollectionTable(collection string) *Table { return fleetTable.find(collection).Of }

// SelectorTable is of label selectors.
func SelectorTable() *Table { return &selectorTable }

// LocationTable is of folders in a GitOps repository.
func LocationTable() *Table { return &locationKind.Table }

// DecryptionTable is of decryption by agents.
func DecryptionTable() *Table { return &decryptionKind.Table }

var fleetTable = Table{
	Name:    "fleet",
	Meaning: "Everything of one environment: the argument of `provider::flotilla::fleet`. Objects of other environments are left out.",
	Apart:   [][2]string{{"assignments", "target_policies"}},
	Attributes: []Attribute{
		{Name: "environment", Required: true, Form: labelForm, Meaning: "Name of the environment, a DNS label."},
		{
			Name: "environments", Type: NamesOrObjectsType, Of: &environmentKind.Table,
			Meaning: "Names of all environments, or environments. With it, a name that is not among them is an error.",
		},
		{Name: "workspaces", Type: CollectionType, Of: &workspaceKind.Table, Meaning: "The teams."},
		{Name: "cluster_types", Type: CollectionType, Of: &clusterTypeKind.Table, Meaning: "The sets of clusters that run the same."},
		{Name: "clusters", Type: CollectionType, Of: &clusterKind.Table, Meaning: "The physical clusters."},
		{
			Name: "workloads", Type: CollectionType, Of: &workloadKind.Table,
			Meaning: "Applications and platform services, with their deployment targets.",
		},
		{
			Name: "target_policies", Type: CollectionType, Of: &targetPolicyKind.Table,
			Meaning: "They decide which deployment target goes to which hosts.",
		},
		{
			Name: "assignments", Type: CollectionType, Of: &explicitKind.Table,
			Meaning: "Assignments in place of `target_policies`. Where it is set, even to an empty list, there is no scheduling.",
		},
		{Name: "config_containers", Type: CollectionType, Of: &containerKind.Table, Meaning: "Configuration values of the platform."},
		{Name: "config_schemas", Type: CollectionType, Of: &configSchemaKind.Table, Meaning: "JSON Schemas that values must satisfy."},
		{Name: "templates", Type: CollectionType, Of: &templateKind.Table, Meaning: "Templates beside those that are built in."},
		{Name: "constraints", Type: CollectionType, Of: &constraintKind.Table, Meaning: "Rules about assignments and what is rendered."},
		{
			Name: "hydration", Type: ObjectType, Of: &hydrationKind.Table,
			Meaning: "How config containers merge: see the guide \"How Flotilla works\".",
		},
		{
			Name: "artifacts",
			Meaning: "The text that `flotilla_artifacts` has as `artifacts`, for the same `workloads`: the manifests of the deployment " +
				"targets in it are pinned to a commit, or to a version and a digest. While it is unknown, all of `manifests` is pending.",
		},
		{Name: "base", Type: ObjectType, Of: &baseTable, Meaning: "A fleet to add to, such as one that `control_plane` returned."},
	},
}

// Find returns an attribute, or nil.
func (t *Table) Find(name string) *Attribute {
	for i := range t.Attributes {
		if t.Attributes[i].Name == name {
			return &t.Attributes[i]
		}
	}
	return nil
}

func (t *Table) find(name string) *Attribute {
	attribute := t.Find(name)
	if attribute == nil {
		panic(fmt.Sprintf("the table of a %s has no attribute %q", t.Name, name))
	}
	return attribute
}

// Keys returns the attributes that users write, in order.
func (t *Table) Keys() []string {
	var names []string
	for i := range t.Attributes {
		if !t.Attributes[i].Computed {
			names = append(names, t.Attributes[i].Name)
		}
	}
	return names
}

// Anchor links to the table in the reference.
func (t *Table) Anchor() string { return strings.ToLower(strings.ReplaceAll(t.Name, " ", "-")) }

func (t *Table) isComputed(name string) bool {
	if t == nil {
		return false
	}
	attribute := t.Find(name)
	return attribute != nil && attribute.Computed
}

// DefaultText returns the default in HCL, or "".
func (a *Attribute) DefaultText() string {
	switch value := a.Default.(type) {
	case string:
		return strconv.Quote(value)
	case nil:
		return ""
	}
	text, err := json.Marshal(a.Default)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (a *Attribute) text() string {
	text, _ := a.Default.(string)
	return text
}

func (t *Table) defaultText(name string) string { return t.find(name).text() }

func (a *Attribute) must(types []Type) {
	if len(types) > 0 && !slices.Contains(types, a.Type) {
		panic(fmt.Sprintf("attribute %q is read as another type than that of its table", a.Name))
	}
}

// TypeText describes the type without [Attribute.Of].
func (a *Attribute) TypeText() string {
	text := map[Type]string{
		TextType: "text", BoolType: "bool", WholeType: "whole number", NumberType: "number", TextsType: "list of texts",
		TextMapType:    "map of texts",
		QuantitiesType: "map of quantities", DurationType: "duration", TimeType: "time", SchemaType: "text or object",
		AnyObjectType: "object of any shape",
		ObjectType:    "object", ObjectsType: "list of objects", ObjectMapType: "map of objects", TextOrObjectType: "text or object",
		BoolOrObjectType: "bool or object", TextOrTextMapType: "text or map of texts", CollectionType: "list or map of objects",
		NamesOrObjectsType: "list or map of texts or objects",
		TextsInAnyFormType: "text, or list or map of texts", AnyType: "any value",
	}[a.Type]
	if a.Allowed != nil {
		return inMarkdown(a.Allowed)
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

const maxWhole = 1<<31 - 1
