package kinds

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
)

// kind checks the objects of one kind in one version.
type kind struct {
	root       *node
	validator  validation.SchemaValidator
	structural *structuralschema.Structural // of a custom resource; nil for a kind of Kubernetes
	rules      func() *cel.Validator        // nil if there are none

	mutex sync.RWMutex
	known map[uint64]bool // verdicts by the hash of [walk]
}

// maxKnown bounds the cached verdicts of a kind.
const maxKnown = 10_000

func newKind(of *spec.Schema, structural *structuralschema.Structural) *kind {
	k := &kind{
		root: newNode(of), validator: validation.NewSchemaValidatorFromOpenAPI(of), structural: structural, known: map[uint64]bool{},
	}
	fields := map[string]*node{"status": {preserves: true}} // the API sets it
	if structural != nil {
		k.rules = sync.OnceValue(func() *cel.Validator { return cel.NewValidator(structural, true, celconfig.PerCallLimit) })
		// The schema of a custom resource does not have these.
		metadata := *publishedSchemas().objectMeta.root
		if own := k.root.properties["metadata"]; own != nil { // rules may read it, and properties may restrict the name
			metadata.exact = own.exact || len(own.properties) > 0
		}
		fields["apiVersion"], fields["kind"], fields["metadata"] = &node{}, &node{}, &metadata
	}
	if k.root.properties == nil {
		k.root.properties = map[string]*node{}
	}
	maps.Copy(k.root.properties, fields)
	return k
}

// accepts reports whether an object has no violation. The library checks neither objects with an unknown field, nor more than
// one of several with the same hash.
func (k *kind) accepts(object map[string]any) bool {
	walk := walk{}
	hash := walk.value(k.root, object, false)
	if walk.hasUnknown {
		return false
	}
	k.mutex.RLock()
	accepted, isKnown := k.known[hash]
	k.mutex.RUnlock()
	if isKnown {
		return accepted
	}
	accepted = len(k.check(object)) == 0
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if len(k.known) >= maxKnown {
		clear(k.known)
	}
	k.known[hash] = accepted
	return accepted
}

func (k *kind) check(object map[string]any) []Violation {
	violations := k.root.unknownFields(object, nil)
	read := plain(object).(map[string]any)
	delete(read, "status")
	var errs field.ErrorList
	if k.structural != nil {
		if below, isObject := read["metadata"].(map[string]any); isObject {
			metadata := publishedSchemas().objectMeta
			errs = validation.ValidateCustomResource(field.NewPath("metadata"), withoutNulls(metadata.root, below), metadata.validator)
		}
	}
	read, _ = withoutNulls(k.root, read).(map[string]any)
	if k.structural != nil {
		defaulting.Default(read, k.structural)
	}
	own := validation.ValidateCustomResource(nil, read, k.validator)
	if k.rules != nil && len(own) == 0 {
		if rules := k.rules(); rules != nil {
			own, _ = rules.Validate(context.Background(), nil, k.structural, read, nil, celconfig.RuntimeCELCostBudget)
		}
	}
	for _, err := range append(errs, own...) {
		violations = append(violations, violationOf(read, err))
	}
	return violations
}

// plain copies a value with the library's types of numbers.
func plain(value any) any { return deep.Mapped(value, plainNumber) }

func plainNumber(value any) any {
	switch value := value.(type) {
	case json.Number:
		if integer, err := value.Int64(); err == nil {
			return integer
		}
		number, _ := value.Float64()
		return plainNumber(number)
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
			return int64(value)
		}
	case int:
		return int64(value)
	}
	return value
}

// withoutNulls removes null fields that are not nullable, like the API.
func withoutNulls(n *node, value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, below := range value {
			child := n.child(name)
			if below == nil && (child == nil && !n.preserves || child != nil && !child.nullable) {
				delete(value, name)
			} else if child != nil {
				value[name] = withoutNulls(child, below)
			}
		}
	case []any:
		if n.items != nil {
			for i, below := range value {
				value[i] = withoutNulls(n.items, below)
			}
		}
	}
	return value
}

var (
	place     = regexp.MustCompile(`^\S* in body `)
	wrongType = regexp.MustCompile(`^must be of type ([\w,\-\[\] ]+): "(null|string|integer|number|boolean|array|object)"$`)
	anyValue  = regexp.MustCompile(`(must be of type [\w\-]+): .*`)
)

// patterns explains patterns of published schemas in words.
var patterns = map[string]string{
	`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`: `must be a duration such as "10m" or "1h30m"`,
	`^([0-9]+(\.[0-9]+)?(ms|s|m))+$`:   `must be a duration such as "90s" or "10m", without hours`,
	`^(http|https|ssh)://.*$`:          `must begin with "http://", "https://" or "ssh://"`,
	`^(http|https|oci)://.*$`:          `must begin with "http://", "https://" or "oci://"`,
	`^oci://.*$`:                       `must begin with "oci://"`,
	`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`: `must be a quantity such as "500m" or "2Gi"`,
	`^[A-Za-z0-9+/\r\n]*={0,2}[\r\n]*$`: "must be base64",
}

// violationOf omits the value.
func violationOf(object map[string]any, err *field.Error) Violation {
	message := strings.TrimSpace(place.ReplaceAllString(err.Detail, ""))
	switch err.Type {
	case field.ErrorTypeRequired:
		if message == "" {
			message = "is required"
		}
	case field.ErrorTypeNotSupported:
		message = "must be one of " + strings.TrimPrefix(message, "supported values: ")
	case field.ErrorTypeTooLong, field.ErrorTypeTooMany:
		message = "is too long: it " + message
	case field.ErrorTypeTypeInvalid:
		if types := wrongType.FindStringSubmatch(message); types != nil {
			message = fmt.Sprintf("must be of type %s, and is %s", types[1], withArticle(types[2]))
		} else {
			message = anyValue.ReplaceAllString(message, "$1")
		}
	}
	if pattern := strings.TrimSuffix(strings.TrimPrefix(message, "should match '"), "'"); patterns[pattern] != "" {
		message = patterns[pattern]
	}
	message = strings.Replace(message, "should match", "must match", 1)
	message = strings.Replace(message, "should be", "must be", 1)
	return Violation{Steps: stepsTo(object, err.Field), Message: message, IsMissing: err.Type == field.ErrorTypeRequired}
}

func withArticle(typeName string) string {
	switch typeName {
	case "null":
		return typeName
	case "integer", "array", "object":
		return "an " + typeName
	}
	return "a " + typeName
}

// stepsTo splits a path of the library. It needs the value, since the library does not escape dots in keys.
func stepsTo(value any, path string) []string {
	if path == "" || path == "<nil>" {
		return nil
	}
	if index, rest, isIndex := cutIndex(path); isIndex {
		var below any
		if list, isList := value.([]any); isList && index < len(list) {
			below = list[index]
		}
		return append([]string{fmt.Sprintf("[%d]", index)}, stepsTo(below, rest)...)
	}
	object, _ := value.(map[string]any)
	for _, key := range slices.SortedFunc(maps.Keys(object), func(a, b string) int { return len(b) - len(a) }) {
		rest, begins := strings.CutPrefix(path, key)
		if begins && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return append([]string{key}, stepsTo(object[key], strings.TrimPrefix(rest, "."))...)
		}
	}
	step := path
	if end := strings.IndexAny(path, ".["); end > 0 {
		step = path[:end]
	}
	return append([]string{step}, stepsTo(nil, strings.TrimPrefix(path[len(step):], "."))...)
}

// cutIndex cuts "[0]" off.
func cutIndex(path string) (index int, rest string, ok bool) {
	if !strings.HasPrefix(path, "[") {
		return 0, "", false
	}
	number, rest, ok := strings.Cut(path[1:], "]")
	if _, err := fmt.Sscanf(number, "%d", &index); err != nil || !ok {
		return 0, "", false
	}
	return index, strings.TrimPrefix(rest, "."), true
}
