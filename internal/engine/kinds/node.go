package kinds

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Schema extensions of Kubernetes.
const (
	preserveUnknown  = "x-kubernetes-preserve-unknown-fields"
	embeddedResource = "x-kubernetes-embedded-resource"
	rules            = "x-kubernetes-validations"
)

// node is what walk needs of a schema.
type node struct {
	properties map[string]*node
	additional *node // of other fields; may be nil
	items      *node // of a list
	preserves  bool  // keeps unknown fields
	isResource bool  // has apiVersion, kind and metadata, too
	nullable   bool
	// exact: the verdict depends on values, not only on types. For texts, allows decides unless it is nil.
	exact  bool
	allows func(text string) bool
	// counts: the verdict depends on the number of items or fields.
	counts bool
}

func newNode(of *spec.Schema) *node {
	n := &node{nullable: of.Nullable}
	n.preserves, _ = of.Extensions.GetBool(preserveUnknown)
	n.isResource, _ = of.Extensions.GetBool(embeddedResource)
	hasLogic := len(of.OneOf) > 0 || len(of.AllOf) > 0 || of.Not != nil || len(of.AnyOf) > 0
	hasBounds := of.Maximum != nil || of.Minimum != nil || of.MultipleOf != nil
	hasFormat := of.Format != "" && of.Format != "int32" && of.Format != "int64"
	n.exact = hasLogic || hasBounds || hasFormat || len(of.Enum) > 0
	if !n.exact {
		n.allows, n.exact = textsOf(of)
	}
	n.counts = of.MaxItems != nil || of.MinItems != nil || of.UniqueItems || of.MaxProperties != nil || of.MinProperties != nil
	if len(of.Properties) > 0 {
		n.properties = make(map[string]*node, len(of.Properties))
		for name, below := range of.Properties {
			n.properties[name] = newNode(&below)
		}
	}
	if all, hasRules := of.Extensions[rules]; hasRules {
		n.addRules(all)
	}
	if more := of.AdditionalProperties; more != nil {
		switch {
		case more.Schema != nil:
			n.additional = newNode(more.Schema)
		case more.Allows:
			n.preserves = true
		}
	}
	if of.Items != nil && of.Items.Schema != nil {
		n.items = newNode(of.Items.Schema)
	}
	return n
}

// textsOf returns a check of length and pattern, or nil. isUnknown: Go cannot compile the pattern.
func textsOf(of *spec.Schema) (allows func(text string) bool, isUnknown bool) {
	if of.Pattern == "" && of.MinLength == nil && of.MaxLength == nil {
		return nil, false
	}
	pattern, err := regexp.Compile(of.Pattern)
	if err != nil {
		return nil, true
	}
	least, most := int64(0), int64(math.MaxInt64)
	if of.MinLength != nil {
		least = *of.MinLength
	}
	if of.MaxLength != nil {
		most = *of.MaxLength
	}
	return func(text string) bool {
		length := int64(utf8.RuneCountInString(text))
		return least <= length && length <= most && pattern.MatchString(text)
	}, false
}

var (
	presence  = regexp.MustCompile(`\bhas\(self\.\w+\)`)
	selection = regexp.MustCompile(`\bself\b(?:\.(\w+))?`)
)

// addRules marks fields whose values rules read. The hash always includes their presence.
func (n *node) addRules(all any) {
	list, isList := all.(apiextensionsv1.ValidationRules)
	n.exact = n.exact || !isList
	for i := range list {
		for _, read := range selection.FindAllStringSubmatch(presence.ReplaceAllString(list[i].Rule, ""), -1) {
			if below := n.properties[read[1]]; below != nil {
				below.exact = true
			} else {
				n.exact = true
			}
		}
	}
}

func (n *node) child(name string) *node {
	if below := n.properties[name]; below != nil {
		return below
	}
	return n.additional
}

// walk finds unknown fields, and hashes an object by its schema. The library returns the same verdict for equal hashes.
type walk struct {
	reports    bool // collects unknown
	hasUnknown bool
	unknown    []Violation
	steps      []string
}

var seed = maphash.MakeSeed()

// Hashes of types.
const (
	hashOfNull uint64 = iota + 0x9e3779b97f4a7c15
	hashOfText
	hashOfTrue
	hashOfFalse
	hashOfInteger
	hashOfNumber
	hashOfList
	hashOfObject
)

func mixed(a, b uint64) uint64 {
	a ^= b + 0x9e3779b97f4a7c15 + a<<6 + a>>2
	a *= 0xff51afd7ed558ccd
	return a ^ a>>33
}

// object hashes an object. metadata is nil for a kind of Kubernetes.
func (w *walk) object(root *node, object map[string]any, metadata *kind) uint64 {
	sum := hashOfObject
	for name, value := range object {
		switch {
		case name == "status": // the API sets it
			continue
		case value == nil && !root.preserves:
			continue
		case metadata != nil && (name == "apiVersion" || name == "kind"):
			continue
		case metadata != nil && name == "metadata":
			sum += w.below(name, metadata.root, value, root.exact)
		default:
			sum += w.field(root, name, value, root.exact)
		}
	}
	return sum
}

func (w *walk) field(n *node, name string, value any, exact bool) uint64 {
	below := n.child(name)
	if below != nil && value == nil && !below.nullable {
		return 0
	}
	switch {
	case below != nil:
		return w.below(name, below, value, exact)
	case n.preserves || n.isResource && (name == "apiVersion" || name == "kind" || name == "metadata"):
		if exact {
			return mixed(maphash.String(seed, name), hashOf(value))
		}
		return 0
	}
	w.addUnknown(n, name)
	return 0
}

func (w *walk) below(name string, n *node, value any, exact bool) uint64 {
	if w.reports {
		w.steps = append(w.steps, name)
		defer func() { w.steps = w.steps[:len(w.steps)-1] }()
	}
	return mixed(maphash.String(seed, name), w.value(n, value, exact))
}

func (w *walk) addUnknown(n *node, name string) {
	w.hasUnknown = true
	if w.reports && len(n.properties) > 0 {
		w.unknown = append(w.unknown, Violation{
			Steps: append(slices.Clone(w.steps), name), Message: "is no field of this kind", IsUnknown: true,
			Known: slices.Sorted(maps.Keys(n.properties)),
		})
	}
}

func (w *walk) value(n *node, value any, exact bool) uint64 {
	exact = exact || n.exact
	switch value := value.(type) {
	case map[string]any:
		return w.fields(n, value, exact)
	case []any:
		if n.items == nil {
			return hashOf(value)
		}
		alike := alike{counts: exact || n.counts}
		for i, item := range value {
			if w.reports {
				w.steps = append(w.steps, "["+strconv.Itoa(i)+"]")
			}
			hash := w.value(n.items, item, exact)
			if w.reports {
				w.steps = w.steps[:len(w.steps)-1]
			}
			if alike.counts {
				hash = mixed(hash, uint64(i)) //nolint:gosec // any number is fine
			}
			alike.add(hash)
		}
		return mixed(hashOfList, alike.hash())
	}
	if exact {
		return hashOf(value)
	}
	if text, isText := value.(string); isText && n.allows != nil && !n.allows(text) {
		return mixed(hashOfText, hashOfFalse)
	}
	return typeOf(value)
}

func (w *walk) fields(n *node, object map[string]any, exact bool) uint64 {
	if len(n.properties) == 0 && n.additional == nil && !n.preserves && !n.isResource { // the library decides
		return hashOf(object)
	}
	sum, others := hashOfObject, alike{counts: exact || n.counts}
	for name, value := range object {
		if n.additional == nil || exact || n.counts || n.properties[name] != nil {
			sum += w.field(n, name, value, exact)
			continue
		}
		if w.reports {
			w.steps = append(w.steps, name)
		}
		others.add(w.value(n.additional, value, exact))
		if w.reports {
			w.steps = w.steps[:len(w.steps)-1]
		}
	}
	return mixed(sum, others.hash())
}

// alike hashes several values, equal ones once unless counts is set.
type alike struct {
	counts     bool
	sum, first uint64
	differ     bool
}

func (a *alike) add(hash uint64) {
	if a.first == 0 {
		a.first = hash
	}
	a.differ = a.differ || hash != a.first
	a.sum += mixed(hash, hash)
}

func (a *alike) hash() uint64 {
	if a.differ || a.counts {
		return a.sum
	}
	return a.first
}

func typeOf(value any) uint64 {
	switch value := value.(type) {
	case nil:
		return hashOfNull
	case string:
		return hashOfText
	case bool:
		return hashOfTrue
	case json.Number:
		if _, err := value.Int64(); err == nil {
			return hashOfInteger
		}
	case int, int64:
		return hashOfInteger
	case float64:
		if _, isInteger := plain(value).(int64); isInteger {
			return hashOfInteger
		}
	}
	return hashOfNumber
}

func hashOf(value any) uint64 {
	switch value := value.(type) {
	case map[string]any:
		sum := hashOfObject
		for name, below := range value {
			sum += mixed(maphash.String(seed, name), hashOf(below))
		}
		return sum
	case []any:
		hash := hashOfList
		for _, item := range value {
			hash = mixed(hash, hashOf(item))
		}
		return hash
	case string:
		return mixed(hashOfText, maphash.String(seed, value))
	case bool:
		if value {
			return hashOfTrue
		}
		return hashOfFalse
	case nil:
		return hashOfNull
	}
	return mixed(typeOf(value), maphash.String(seed, fmt.Sprint(value)))
}
