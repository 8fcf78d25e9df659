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

// keeps reports whether a field without a schema is allowed.
func (n *node) keeps(name string) bool {
	return n.preserves || n.isResource && (name == "apiVersion" || name == "kind" || name == "metadata")
}

// isOpaque reports whether the library decides about fields.
func (n *node) isOpaque() bool {
	return len(n.properties) == 0 && n.additional == nil && !n.preserves && !n.isResource
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

// walk hashes objects by their schema. The library returns the same verdict for equal hashes.
type walk struct{ hasUnknown bool }

func (w *walk) value(n *node, value any, exact bool) uint64 {
	exact = exact || n.exact
	switch value := value.(type) {
	case map[string]any:
		if n.isOpaque() {
			return hashOf(value)
		}
		sum := hashOfObject
		for name, below := range value {
			sum += w.field(n, name, below, exact)
		}
		return mixed(hashOfObject, sum)
	case []any:
		if n.items == nil {
			return hashOf(value)
		}
		hash := hashOfList
		for _, item := range value {
			hash = mixed(hash, w.value(n.items, item, exact))
		}
		return hash
	}
	if exact {
		return hashOf(value)
	}
	if text, isText := value.(string); isText && n.allows != nil && !n.allows(text) {
		return mixed(hashOfText, hashOfFalse)
	}
	return typeOf(value)
}

func (w *walk) field(n *node, name string, value any, exact bool) uint64 {
	below := n.child(name)
	switch {
	case below == nil && !n.keeps(name):
		w.hasUnknown = true
		return 0
	case below == nil && !exact, below != nil && value == nil && !below.nullable:
		return 0
	case below == nil:
		return mixed(maphash.String(seed, name), hashOf(value))
	case n.properties[name] == nil && !exact: // one of the user's own names
		return mixed(hashOfText, w.value(below, value, exact))
	}
	return mixed(maphash.String(seed, name), w.value(below, value, exact))
}

// unknownFields returns the fields below steps that the schema lacks.
func (n *node) unknownFields(value any, steps []string) (unknown []Violation) {
	at := func(step string) []string { return append(slices.Clone(steps), step) }
	switch value := value.(type) {
	case map[string]any:
		for name, below := range value {
			if child := n.child(name); child != nil {
				unknown = append(unknown, child.unknownFields(below, at(name))...)
			} else if !n.keeps(name) && len(n.properties) > 0 {
				unknown = append(unknown, Violation{
					Steps: at(name), Message: "is no field of this kind", IsUnknown: true, Known: slices.Sorted(maps.Keys(n.properties)),
				})
			}
		}
	case []any:
		if n.items == nil {
			break
		}
		for i, item := range value {
			unknown = append(unknown, n.items.unknownFields(item, at("["+strconv.Itoa(i)+"]"))...)
		}
	}
	return unknown
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
		if _, isInteger := plainNumber(value).(int64); isInteger {
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
