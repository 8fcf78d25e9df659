package hydrate

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// checkPart checks the containers of an unknown snapshot, each alone, and returns the violations that remain.
func (c *checker) checkPart(snapshot *Snapshot, schemas []int) map[int][]violation {
	broken := map[int][]violation{}
	for _, number := range schemas {
		schema := c.schemas[number]
		if !schema.early {
			continue
		}
		var found []violation
		for _, member := range snapshot.members {
			for _, entry := range c.mergeIndex.containers[member].entries {
				for _, one := range c.checkEntry(schema, entry) {
					if slices.Contains(snapshot.sourcesOf(one.pointer), int(member)) {
						found = append(found, one)
					}
				}
			}
		}
		if len(found) > 0 {
			broken[number] = sortedViolations(found)
		}
	}
	return broken
}

func (c *checker) checkEntry(s *schema, entry keyedValue) []violation {
	about := verdict{s.root, entry.key, entry.value}
	found, known := c.alone[about]
	if !known {
		for _, sub := range propertySchemas(s.root, c.mergeIndex.keys[entry.key], 0) {
			found = append(found, c.checkAlone(s, sub, entry)...)
		}
		c.alone[about] = found
	}
	return found
}

// checkAlone finds violations that other containers cannot repair.
func (c *checker) checkAlone(s *schema, sub *jsonschema.Schema, entry keyedValue) []violation {
	switch raw := entry.value.raw.(type) {
	case nil:
		return nil
	case map[string]any:
		if entry.value.extreme {
			return nil
		}
		return c.checkMembers(s, sub, "/"+escapePointer(c.mergeIndex.keys[entry.key]), raw)
	case []any:
		if c.mergeIndex.lists != "replace" {
			return nil
		}
	}
	return c.checkValue(s, sub, entry.key, entry.value)
}

func (c *checker) checkMembers(s *schema, sub *jsonschema.Schema, pointer string, object map[string]any) []violation {
	if !allowsObjects(sub) {
		found, _ := s.validate(sub, object, pointer)
		return found
	}
	var found []violation
	for key, member := range object {
		for _, below := range propertySchemas(sub, key, 0) {
			at := pointer + "/" + escapePointer(key)
			switch member := member.(type) {
			case nil:
			case map[string]any:
				found = append(found, c.checkMembers(s, below, at, member)...)
			case []any:
				if c.mergeIndex.lists == "replace" {
					wrong, _ := s.validate(below, clean(member), at)
					found = append(found, wrong...)
				}
			default:
				wrong, _ := s.validate(below, member, at)
				found = append(found, wrong...)
			}
		}
	}
	return found
}

// propertySchemas returns the unconditional schemas of a member, through $ref and allOf.
func propertySchemas(sub *jsonschema.Schema, key string, depth int) []*jsonschema.Schema {
	const deepest = 8 // schemas may be recursive
	var all []*jsonschema.Schema
	if property := sub.Properties[key]; property != nil {
		all = append(all, property)
	}
	if depth == deepest {
		return all
	}
	if sub.Ref != nil {
		all = append(all, propertySchemas(sub.Ref, key, depth+1)...)
	}
	for _, one := range sub.AllOf {
		all = append(all, propertySchemas(one, key, depth+1)...)
	}
	return all
}
