package hydrate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// secretReference is the raw value of a key that is a secret: a scalar, which merges and is overridden as a whole. It is a type of
// its own, so that no plain value is one, whatever it says. It is only ever at a top-level key.
type secretReference fleet.SecretReference

// canonical is the canonical JSON of a reference.
func (r secretReference) canonical() (string, error) {
	object := map[string]any{"store": r.Store, "key": r.Key}
	for name, text := range map[string]string{"property": r.Property, "version": r.Version} {
		if text != "" {
			object[name] = text
		}
	}
	return fleet.CanonicalJSON(object)
}

// isReference says whether the value is a reference to a secret.
func (v *value) isReference() bool {
	_, is := v.raw.(secretReference)
	return is
}

// addReferences adds the references of a container to its data. A null in one of them makes room for what the other gives.
func (c *container) addReferences(references map[string]*fleet.SecretReference) error {
	for key, given := range references {
		value, has := c.data[key]
		switch {
		case given == nil && !has:
			c.data[key] = nil
		case given == nil:
			c.releases = append(c.releases, key)
		case has && value != nil:
			return fmt.Errorf("config container %q: %q is a key of its data and of its secrets", c.name, key)
		default:
			if has {
				c.releases = append(c.releases, key)
			}
			c.data[key], c.references = secretReference(*given), true
		}
	}
	return nil
}

// clash is a key that remains both as a value and as a reference.
type clash struct {
	key                string
	value, isReference int32 // the last containers that give it as one and as the other
}

// findMixed returns the keys that are a value in one container and a reference in one, in order: only these can clash.
func (e *mergeIndex) findMixed() []string {
	found := map[string]bool{} // the keys of references, and whether they are values, too
	for i := range e.containers {
		if !e.containers[i].references {
			continue
		}
		for key, value := range e.containers[i].data {
			if _, is := value.(secretReference); is {
				found[key] = false
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	for i := range e.containers {
		for key, value := range e.containers[i].data {
			if _, given := found[key]; given && value != nil {
				_, is := value.(secretReference)
				found[key] = found[key] || !is
			}
		}
	}
	maps.DeleteFunc(found, func(_ string, isValue bool) bool { return !isValue })
	return slices.Sorted(maps.Keys(found))
}

// clashes finds the keys that remain both as a value and as a reference, as far as no value that is not known yet can
// take one of them away.
func (e *mergeIndex) clashes(members []int32) []clash {
	var found []clash
	for _, key := range e.mixed {
		one := clash{key, -1, -1}
	down:
		for _, member := range slices.Backward(members) {
			container := &e.containers[member]
			switch value, has := container.data[key]; value.(type) {
			case nil:
				if has {
					break down
				}
			case secretReference:
				one.isReference = max(one.isReference, member)
			default:
				one.value = max(one.value, member)
			}
			if one.value >= 0 && one.isReference >= 0 {
				found = append(found, one)
				break
			}
			if !container.known || slices.Contains(container.releases, key) {
				break
			}
		}
	}
	return found
}

// clashFinding says that a key is both a value and a reference.
func (e *mergeIndex) clashFinding(found clash) ValueFinding {
	with, of := e.containers[found.isReference].name, e.containers[found.value].name
	place := fleet.PathOf("config_containers", with).Attribute("secrets").Key(found.key)
	return ValueFinding{Container: with, Pointer: "/" + escapePointer(found.key), Message: fmt.Sprintf(
		"is a reference to a secret (%s), and config container %q gives a value in its data: a key is either a value or a secret; "+
			"remove one of the two, or set it to null where the other is given", place, of)}
}

// withoutClashes leaves out the ambiguities at keys that clash: no priority would mend these.
func withoutClashes(all []ambiguity, clashes []clash) []ambiguity {
	return slices.DeleteFunc(all, func(one ambiguity) bool {
		return slices.ContainsFunc(clashes, func(c clash) bool { return one.pointer == "/"+escapePointer(c.key) })
	})
}
