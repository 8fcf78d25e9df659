package hydrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/encrypted"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// secretReference is the raw value of a secret. It merges as a scalar and differs from all plain values.
type secretReference fleet.SecretReference

func (r secretReference) canonical() (string, error) {
	object := map[string]any{"store": r.Store, "key": r.Key}
	for name, text := range map[string]string{"property": r.Property, "version": r.Version} {
		if text != "" {
			object[name] = text
		}
	}
	return fleet.CanonicalJSON(object)
}

func (v *value) isReference() bool { return isSecret(v.raw) }

// addReferences adds references to the data. A null in either gives way to the other.
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

type clash struct {
	key              string
	value, reference int32 // last containers with each form
}

// findMixed returns the keys with values and references: only these can clash.
func (e *mergeIndex) findMixed() []string {
	found := map[string]bool{} // keys of references; true if also values
	for i := range e.containers {
		if !e.containers[i].references {
			continue
		}
		for key, value := range e.containers[i].data {
			if isSecret(value) {
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
				found[key] = found[key] || !isSecret(value)
			}
		}
	}
	maps.DeleteFunc(found, func(_ string, isValue bool) bool { return !isValue })
	return slices.Sorted(maps.Keys(found))
}

// clashes finds keys in both forms that no unknown value can resolve.
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
				one.reference = max(one.reference, member)
			default:
				one.value = max(one.value, member)
			}
			if one.value >= 0 && one.reference >= 0 {
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

func (e *mergeIndex) clashFinding(found clash) ValueFinding {
	with, of := e.containers[found.reference].name, e.containers[found.value].name
	place := fleet.PathOf("config_containers", with).Attribute("secrets").Key(found.key)
	return ValueFinding{Container: with, Pointer: "/" + escapePointer(found.key), Message: fmt.Sprintf(
		"is a reference to a secret (%s), and config container %q gives a value in its data: a key is either a value or a secret; "+
			"remove one of the two, or set it to null where the other is given", place, of)}
}

// withoutClashes removes ambiguities at clashing keys, which priorities cannot resolve.
func withoutClashes(all []ambiguity, clashes []clash) []ambiguity {
	return slices.DeleteFunc(all, func(one ambiguity) bool {
		return slices.ContainsFunc(clashes, func(c clash) bool { return one.pointer == "/"+escapePointer(c.key) })
	})
}

func (c *container) readFiles(texts []string) error {
	for i, text := range texts {
		file, err := fleet.ParseEncrypted(text)
		if err != nil {
			return fmt.Errorf("config container %q: encrypted[%d] %w", c.name, i, err)
		}
		if c.fileOf(file.Name) >= 0 {
			return fmt.Errorf("config container %q: encrypted[%d] is of a Secret of which there is another file", c.name, i)
		}
		file.Container, file.Index = c.name, i
		c.files = append(c.files, file)
	}
	return nil
}

func (c *container) fileOf(secret string) int {
	return slices.IndexFunc(c.files, func(file encrypted.File) bool { return file.Name == secret })
}

// filesOf returns the encrypted files by Secret, of which the last wins, and ambiguities.
func (e *mergeIndex) filesOf(members []int32) ([]encrypted.File, []ambiguity) {
	given := map[string][]int{}
	for _, member := range members {
		for i := range e.containers[member].files {
			name := e.containers[member].files[i].Name
			given[name] = append(given[name], int(member))
		}
	}
	var files []encrypted.File
	var found []ambiguity
	for name, containers := range given {
		fileOf := func(container int) encrypted.File {
			one := &e.containers[container]
			return one.files[one.fileOf(name)]
		}
		last := fileOf(containers[len(containers)-1])
		files = append(files, last)
		if e.ranks == nil {
			continue
		}
		rank := e.ranks[containers[len(containers)-1]]
		equal := slices.DeleteFunc(containers, func(container int) bool { return e.ranks[container] != rank })
		if slices.ContainsFunc(equal, func(container int) bool { return fileOf(container).Text != last.Text }) {
			found = append(found, ambiguity{secret: name, containers: equal})
		}
	}
	slices.SortFunc(files, func(a, b encrypted.File) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(found, func(a, b ambiguity) int { return strings.Compare(a.secret, b.secret) })
	return files, found
}
