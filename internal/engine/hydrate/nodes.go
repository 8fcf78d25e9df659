package hydrate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// node is a key for which any container gives a value: a top-level key, or a key of an object at another node.
// Nodes are numbered in the order of canonical JSON, those of an object right behind it.
type node struct {
	name  string
	json  string // the name as JSON, and a colon
	top   int32  // the top-level node that it is or belongs to
	end   int32  // the first node that is not part of it
	key   int    // of a top-level node: its number in the order of all keys
	whole int32  // where values are merged as a whole, since lists combine there: a number of its own; else -1
}

// step is what a container gives for a node. The steps of what is part of an object follow it.
type step struct {
	node  int32
	end   int32  // the first step that is not part of this one
	value *value // nil for an object that is merged by its parts
}

// indexNodes numbers the nodes of all containers, and brings their data into that order.
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

// nodeTree is the nodes of all containers while they are collected.
type nodeTree struct {
	parts  map[string]*nodeTree
	number int32
	whole  bool
}

// add collects the nodes of an object.
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

// number numbers what is part of a node of the tree.
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

// appendSteps appends what a container gives for a node; texts says that strings could be nothing else
// where they were written.
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
		if steps[at].value, err = values.of(raw, texts && isString); err != nil {
			return nil, err
		}
	}
	steps[at].end = int32(len(steps))
	return steps, nil
}
