package secret

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
)

// IsSecret reports whether an object is a Kubernetes Secret, or one of another group with data. It ignores case: an API server
// refuses "kind: secret", but the data is in the file.
func IsSecret(object map[string]any) bool {
	kind, apiVersion := text(object, "kind"), text(object, "apiVersion")
	if folded(kind) != "secret" {
		return false
	}
	group, _, hasGroup := strings.Cut(folded(apiVersion), "/")
	return !hasGroup || group == "" || group == "core" || slices.ContainsFunc(slices.Collect(maps.Keys(object)), isData)
}

// IsEmbedded reports whether a part of an object is a Secret, not a reference to one.
func IsEmbedded(part map[string]any) bool {
	if !IsSecret(part) {
		return false
	}
	_, hasMetadata := part["metadata"].(map[string]any)
	return hasMetadata || slices.ContainsFunc(slices.Collect(maps.Keys(part)), isData)
}

// HasPlain reports whether a Secret has an unencrypted value: in data, in an unknown field, or in an annotation that repeats the
// object.
func HasPlain(object map[string]any) bool {
	found := false
	Masked(object, func(value any, path ...string) any {
		isAnnotation := len(path) == 3 && path[1] == "annotations"
		found = found || isAnnotation && isCopy(path[2], value) || !isAnnotation && !isEmpty(value)
		return value
	})
	return found
}

// EmbedsPlain reports whether a part of a value is a Secret with unencrypted data.
func EmbedsPlain(value any) bool {
	return deep.Holds(value, func(part any) bool {
		object, isObject := part.(map[string]any)
		if !isObject || object["sops"] != nil || !IsEmbedded(object) {
			return false
		}
		for name, member := range object {
			if isData(name) && !isEmpty(member) {
				return true
			}
		}
		return false
	})
}

var (
	kindLine = regexp.MustCompile(`(?im)(?:^|[{,\s-])["']?kind["']?\s*:\s*["']?secret["']?\s*(?:[,}#]|$)`)
	dataLine = regexp.MustCompile(
		`(?im)(?:^|[{,\s])["']?(?:string|binary)?data["']?\s*:\s*[^\s#]|(?:^|[{,\s])["']?(?:string|binary)?data["']?\s*:\s*\n\s+\S`,
	)
)

// IsManifest reports whether text, which may be a template, contains the manifest of a Secret with data.
func IsManifest(text string) bool {
	const shortest = len("kind: Secret\ndata: x")
	return len(text) >= shortest && kindLine.MatchString(text) && dataLine.MatchString(text)
}

// Masked returns a copy of a Secret. mask replaces every value except its type and identity, and names of unknown fields are hidden.
func Masked(object map[string]any, mask func(value any, path ...string) any) map[string]any {
	masked := map[string]any{}
	for name, value := range object {
		_, isText := value.(string)
		_, isFlag := value.(bool)
		members, isMap := value.(map[string]any)
		switch {
		case isText && (strings.EqualFold(name, "apiVersion") || strings.EqualFold(name, "kind") || name == "type"):
			masked[name] = value
		case isFlag && name == "immutable":
			masked[name] = value
		case isMap && name == "metadata":
			masked[name] = maskedMetadata(members, mask)
		case isMap && isData(name):
			masked[name] = maskedEntries(members, mask, name)
		default:
			masked[nameOr("unknown field", name, fieldName)] = mask(value, name)
		}
	}
	return masked
}

func maskedMetadata(metadata map[string]any, mask func(value any, path ...string) any) map[string]any {
	masked := map[string]any{}
	for name, value := range metadata {
		members, isMap := value.(map[string]any)
		_, isText := value.(string)
		switch {
		case isMap && name == "annotations":
			masked[name] = maskedEntries(members, mask, "metadata", name)
		case isMap && name == "labels" && areTexts(members), isText && slices.Contains(identifying, name):
			masked[name] = value
		case slices.Contains(bookkeeping, name): // written by the API server, without values of the Secret
		default:
			masked[nameOr("unknown field", name, fieldName)] = mask(value, "metadata", name)
		}
	}
	return masked
}

// Fields of metadata. https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
var (
	identifying = []string{"name", "generateName", "namespace"}
	bookkeeping = []string{
		"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generation", "managedFields",
		"ownerReferences", "resourceVersion", "selfLink", "uid",
	}
)

func maskedEntries(entries map[string]any, mask func(value any, path ...string) any, path ...string) map[string]any {
	masked := make(map[string]any, len(entries))
	for key, value := range entries {
		masked[nameOr("unknown key", key, entryName)] = mask(value, append(slices.Clone(path), key)...)
	}
	return masked
}

var (
	entryName = regexp.MustCompile(`^[-._/a-zA-Z0-9]{1,253}$`)
	fieldName = regexp.MustCompile(`^[a-zA-Z]{1,40}$`)
)

// nameOr returns other for a name that may be a value.
func nameOr(other, name string, pattern *regexp.Regexp) string {
	if pattern.MatchString(name) {
		return name
	}
	return other
}

// copyName matches annotations where tools such as kubectl apply keep a whole object.
var copyName = regexp.MustCompile(`(?i)(?:^|[/.])(?:last-(?:applied|handled|known)[a-z-]*|applied)$`)

// isCopy reports whether an annotation repeats an object. It also recognizes JSON objects, plain or compressed.
func isCopy(name string, value any) bool {
	content, isText := value.(string)
	content = strings.TrimSpace(content)
	return !isText && value != nil || copyName.MatchString(name) && content != "" || strings.HasPrefix(content, "H4sI") ||
		IsManifest(content) || strings.HasPrefix(content, "{") && dataLine.MatchString(content)
}

func isData(name string) bool {
	return slices.Contains([]string{"data", "stringdata", "binarydata"}, folded(name))
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return false
}

func areTexts(members map[string]any) bool {
	for _, value := range members {
		if _, isText := value.(string); !isText {
			return false
		}
	}
	return true
}

func text(object map[string]any, name string) string {
	if exact, isText := object[name].(string); isText {
		return exact
	}
	for other, value := range object {
		if found, isText := value.(string); isText && folded(other) == strings.ToLower(name) {
			return found
		}
	}
	return ""
}

func folded(text string) string { return strings.ToLower(strings.TrimSpace(text)) }
