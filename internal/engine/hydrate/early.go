package hydrate

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

func (c *checker) checkContainers(containers []int32, schemas []int) {
	for _, number := range schemas {
		schema := c.schemas[number]
		if !schema.early {
			continue
		}
		if c.met[number] == nil {
			c.met[number] = make([]bool, len(c.mergeIndex.containers))
		}
		for _, container := range containers {
			if c.met[number][container] {
				continue
			}
			c.met[number][container] = true
			for _, entry := range c.mergeIndex.containers[container].entries {
				for _, sub := range propertySchemas(schema.root, c.mergeIndex.keys[entry.key], 0) {
					if found := c.checkAlone(schema, sub, entry); len(found) > 0 {
						meeting := [2]int{int(container), number}
						c.alone[meeting] = append(c.alone[meeting], found...)
					}
				}
			}
		}
	}
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
	if len(sub.Types) > 0 && !slices.Contains(sub.Types, "object") {
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

// reportContainers reports violations of containers alone, except values in known snapshots, which are checked as a
// whole.
func (c *checks) reportContainers(
	assignments []*schedule.Assignment, reached *reach, snapshots []*Snapshot,
	checkers []*checker, found, warnings *collector,
) {
	broken := map[[2]int][]violation{} // by container and schema
	for _, checker := range checkers {
		for meeting, violations := range checker.alone {
			broken[meeting] = append(broken[meeting], violations...)
		}
	}
	if len(broken) == 0 {
		return
	}
	for meeting, violations := range broken {
		broken[meeting] = sortedViolations(violations)
	}

	type fate struct{ checked, pending bool }
	fates := map[ValueFinding]*fate{}
	each := func(yield func(assignment string, finding ValueFinding, remains bool, known bool)) {
		for i, assignment := range assignments {
			snapshot := snapshots[reached.set[i]]
			c.eachSchema(assignment, reached.schemas[i], func(schema int, name string) {
				for _, container := range snapshot.members {
					for _, one := range broken[[2]int{int(container), schema}] {
						finding := ValueFinding{Container: c.mergeIndex.containers[container].name, Schema: name, Pointer: one.pointer, Message: one.message}
						yield(assignment.Key(), finding, snapshot.remains(one.pointer, int(container)), snapshot.Known)
					}
				}
			})
		}
	}
	each(func(_ string, finding ValueFinding, remains, known bool) {
		if fates[finding] == nil {
			fates[finding] = &fate{}
		}
		fates[finding].checked = fates[finding].checked || remains && known
		fates[finding].pending = fates[finding].pending || remains && !known
	})
	each(func(assignment string, finding ValueFinding, remains, _ bool) {
		switch fate := fates[finding]; {
		case fate.checked:
		case !fate.pending:
			finding.Message += ", although other containers override it everywhere"
			warnings.add(assignment, finding)
		case remains:
			found.add(assignment, finding)
		}
	})
}

// remains reports whether the container provides the value at the pointer or below.
func (s *Snapshot) remains(pointer string, container int) bool {
	for _, leaf := range s.leavesBelow(pointer) {
		if leaf.from == container {
			return true
		}
	}
	return false
}
