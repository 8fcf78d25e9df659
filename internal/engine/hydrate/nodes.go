package hydrate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// node is a key with values in some container: top-level, or in an object at another node. Numbers follow canonical
// JSON, parents before members.
type node struct {
	name  string
	json  string // JSON name and colon
	top   int32  // its top-level node
	end   int32  // the next node outside of it
	key   int    // for top-level nodes: number of the key
	whole int32  // number, if merged as a whole because of lists; else -1
}

// step is a container's value of a node. Steps of members follow.
type step struct {
	node  int32
	end   int32  // the next step outside of it
	value *value // nil for objects merged by member
}

// indexNodes numbers all nodes and orders the containers' data accordingly.
func (e *mergeIndex) indexNodes() error {
	root := &nodeTree{}
	for i := range e.containers {
		root.add(e.containers[i].data, e.lists)
	}
	if err := e.number(root, 0, true); err != nil {
		return err
	}
	values := &valueTable{ids: map[valueIdentity]int{}, made: map[valueIdentity]*value{}}
	for i := range e.containers {
		one := &e.containers[i]
		if err := e.read(one, root, values); err != nil {
			return fmt.Errorf("config container %q: %w", one.name, err)
		}
	}
	return nil
}

// nodeTree collects the nodes of all containers.
type nodeTree struct {
	parts  map[string]*nodeTree
	number int32
	whole  bool
}

// add adds the nodes of an object.
func (t *nodeTree) add(object map[string]any, lists string) {
	for name, value := range object {
		part := t.parts[name]
		if part == nil {
			if t.parts == nil {
				t.parts = map[string]*nodeTree{}
			}
			part = &nodeTree{}
			t.parts[name] = part
		}
		switch value := value.(type) {
		case map[string]any:
			part.add(value, lists)
		case []any:
			part.whole = part.whole || lists != "replace"
		}
	}
}

// number numbers the members of a node.
func (e *mergeIndex) number(tree *nodeTree, top int32, atTop bool) error {
	for _, name := range slices.Sorted(maps.Keys(tree.parts)) {
		json, err := fleet.CanonicalJSON(name)
		if err != nil {
			return err
		}
		part := tree.parts[name]
		part.number = int32(len(e.nodes))
		made := node{name: name, json: json + ":", top: top, whole: -1}
		if atTop {
			made.top, made.key = part.number, len(e.keys)
			e.keys = append(e.keys, name)
		}
		if part.whole {
			made.whole = int32(e.wholes)
			e.wholes++
			part.parts = nil
		}
		e.nodes = append(e.nodes, made)
		if err := e.number(part, made.top, false); err != nil {
			return err
		}
		e.nodes[part.number].end = int32(len(e.nodes))
	}
	return nil
}

// read fills in a container's entries and steps.
func (e *mergeIndex) read(one *container, root *nodeTree, values *valueTable) error {
	one.entries = make([]keyedValue, 0, len(one.data))
	for _, name := range slices.Sorted(maps.Keys(one.data)) {
		raw, part, at := one.data[name], root.parts[name], len(one.steps)
		var err error
		if one.steps, err = appendSteps(one.steps, part, raw, one.texts, values); err != nil {
			return err
		}
		given := one.steps[at].value
		if given == nil {
			given = &value{raw: raw, extreme: isExtreme(raw)}
		}
		one.entries = append(one.entries, keyedValue{e.nodes[part.number].key, given})
	}
	one.steps = slices.Clip(one.steps)
	return nil
}

// appendSteps appends the steps of a node. texts marks strings that had to be strings in their source.
func appendSteps(steps []step, node *nodeTree, raw any, texts bool, values *valueTable) ([]step, error) {
	at := len(steps)
	steps = append(steps, step{node: node.number})
	var err error
	if object, isObject := raw.(map[string]any); isObject && !node.whole {
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if steps, err = appendSteps(steps, node.parts[name], object[name], false, values); err != nil {
				return nil, err
			}
		}
	} else {
		_, isString := raw.(string)
		if steps[at].value, err = values.share(raw, texts && isString); err != nil {
			return nil, err
		}
	}
	steps[at].end = int32(len(steps))
	return steps, nil
}
