package objects

import (
	"bytes"
	"cmp"
	"strings"
)

// Identity identifies an object in all its API versions.
type Identity struct{ Group, Kind, Namespace, Name string }

// Identity returns the identity on a cluster.
func (o *FinalObject) Identity() Identity { return Identity{o.Group, o.Kind, o.Namespace, o.Name} }

// IdentityOf keeps no other part of the object in memory.
func IdentityOf(object map[string]any) Identity {
	metadata, _ := object["metadata"].(map[string]any)
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	return Identity{strings.Clone(GroupOf(apiVersion)), strings.Clone(kind), strings.Clone(namespace), strings.Clone(name)}
}

// GroupOf returns the group of an apiVersion, "" for "v1".
func GroupOf(apiVersion string) string {
	group, _, hasGroup := strings.Cut(apiVersion, "/")
	if !hasGroup {
		return ""
	}
	return group
}

// Compare orders by group, kind, namespace and name.
func (i Identity) Compare(other Identity) int {
	return cmp.Or(cmp.Compare(i.Group, other.Group), cmp.Compare(i.Kind, other.Kind),
		cmp.Compare(i.Namespace, other.Namespace), cmp.Compare(i.Name, other.Name))
}

// IsGenerated reports whether Name is only the prefix of a generated name.
func (o *FinalObject) IsGenerated() bool {
	_, metadata, _ := bytes.Cut(o.YAML, []byte("\nmetadata:\n"))
	generated := false
	for line := range bytes.Lines(metadata) {
		switch {
		case !bytes.HasPrefix(line, []byte("  ")), bytes.HasPrefix(line, []byte("  name: ")): // fields are sorted
			return generated && !bytes.HasPrefix(line, []byte("  name: "))
		case bytes.HasPrefix(line, []byte("  generateName: ")):
			generated = true
		}
	}
	return generated
}
