package fleet

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
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

// Form is the syntax of a text, for readers and JSON Schemas.
type Form struct {
	Pattern string
	Longest int // in bytes; 0: bounded by Pattern

	compiled *regexp.Regexp
	wrong    string
	// isPlain accepts most valid texts much faster than the expression. It may be nil.
	isPlain func(text string) bool
}

func newForm(pattern string, longest int, isPlain func(string) bool, wrong string) *Form {
	return &Form{Pattern: pattern, Longest: longest, compiled: regexp.MustCompile(pattern), wrong: wrong, isPlain: isPlain}
}

const (
	dnsLabel  = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
	labelName = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
	ofALabel  = `letters, digits, "-", "_" and ".", starting and ending with a letter or digit, at most 63 characters`
)

const maxLabelName = 63

var (
	labelForm = newForm("^"+dnsLabel+"$", validation.DNS1123LabelMaxLength, isPlainName,
		`is not a DNS label: lower case letters, digits and "-", starting and ending with a letter or digit, at most 63 characters`)
	subdomainForm = newForm("^"+dnsLabel+`(\.`+dnsLabel+")*$", validation.DNS1123SubdomainMaxLength, isPlainName,
		`is not a DNS subdomain: lower case letters, digits, "-" and ".", starting and ending with a letter or digit, at most 253 characters`)
	labelKeyForm = newForm("^("+dnsLabel+`(\.`+dnsLabel+")*/)?"+labelName+"$", validation.DNS1123SubdomainMaxLength+len("/")+maxLabelName,
		IsPlainLabel, "is not the key of a label: "+ofALabel+`, after a DNS subdomain and "/" or without one`)
	labelValueForm        = newForm("^("+labelName+")?$", 0, IsPlainLabel, "is not the value of a label: "+ofALabel)
	kubernetesVersionForm = newForm(`^v?[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3}([+-][0-9A-Za-z][0-9A-Za-z.+-]{0,62})?)?$`, 0, nil,
		`is not a version of Kubernetes: write "1.34" or "v1.34.2"`)
	// https://kubernetes.io/docs/reference/using-api/api-concepts
	kubernetesKindForm = newForm(`^(?:[a-z0-9][a-z0-9.-]*/){0,2}[A-Z][A-Za-z0-9]{0,62}$`, 0, nil,
		`is not the kind of a Kubernetes object, such as "Deployment" or "apps/Deployment"`)
	apiVersionForm = newForm(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?v[0-9]+((alpha|beta)[0-9]+)?(/[A-Z][A-Za-z0-9]*)?$`, 0, nil,
		`is not an API version: write "<group>/<version>" or "<group>/<version>/<kind>", as in "monitoring.coreos.com/v1/ServiceMonitor"`)
)

// check returns the problem of a text without the text, or "".
func (f *Form) check(text string) string {
	if f.isPlain != nil && f.isPlain(text) {
		return ""
	}
	prefix, _, _ := strings.Cut(text, "/")
	isTooLong := f.Longest > 0 && len(text) > f.Longest || f == labelKeyForm && len(prefix) > validation.DNS1123SubdomainMaxLength
	if isTooLong || !f.compiled.MatchString(text) {
		return f.wrong
	}
	return ""
}

// IsAPIVersion reports whether api_versions of a cluster type may have a text.
func IsAPIVersion(text string) bool { return apiVersionForm.check(text) == "" }

// CheckLabelName returns the problem of a DNS label, or "".
func CheckLabelName(name string) string { return labelForm.check(name) }

// CheckSubdomainName returns the problem of a DNS subdomain, or "".
func CheckSubdomainName(name string) string { return subdomainForm.check(name) }

// CheckLabelKey returns the problem of a label's key, which it quotes, or "".
func CheckLabelKey(key string) string { return quoted(key, labelKeyForm.check(key)) }

// CheckLabelValue returns the problem of a label's value, which it quotes, or "".
func CheckLabelValue(value string) string { return quoted(value, labelValueForm.check(value)) }

func quoted(text, problem string) string {
	if problem == "" {
		return ""
	}
	return fmt.Sprintf("%q %s", text, problem)
}

// IsPlainLabel reports a certainly valid value, which is also a valid key.
func IsPlainLabel(text string) bool {
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

// isPlainName reports a certainly valid DNS label.
func isPlainName(text string) bool {
	return IsPlainLabel(text) && !strings.ContainsAny(text, "._ABCDEFGHIJKLMNOPQRSTUVWXYZ")
}
