package hydrate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// place is somewhere in the values for which any container gives something: a key, or a key of an object
// at another place. Places are numbered in the order in which they stand in canonical JSON, those of an
// object right behind it.
type place struct {
	name  string
	json  string // the name as JSON, and a colon
	top   int32  // the top-level place that it is, or that it is part of
	end   int32  // the first place that is not part of it
	key   int    // of a top-level place: its number in the order of all keys
	whole int32  // where values are merged as a whole, since lists combine there: a number of its own; else -1
}

// step is what a container gives for a place. The steps of what is part of an object follow it.
type step struct {
	place int32
	end   int32  // the first step that is not part of this one
	value *value // nil for an object that is merged by its parts
}

// indexPlaces numbers the places of all containers, and brings their data into that order.
func (e *engine) indexPlaces() error {
	root := &placeTree{}
	for i := range e.containers {
		root.add(e.containers[i].data, e.lists)
	}
	if err := e.number(root, 0, true); err != nil {
		return err
	}
	values := &values{ids: map[string]int{}, made: map[valueIdentity]*value{}}
	for i := range e.containers {
		one := &e.containers[i]
		if err := e.read(one, root, values); err != nil {
			return fmt.Errorf("config container %q: %w", one.name, err)
		}
	}
	return nil
}

// placeTree is the places of all containers while they are collected.
type placeTree struct {
	parts  map[string]*placeTree
	number int32
	whole  bool
}

// add collects the places of an object.
func (t *placeTree) add(object map[string]any, lists string) {
	for name, value := range object {
		part := t.parts[name]
		if part == nil {
			if t.parts == nil {
				t.parts = map[string]*placeTree{}
			}
			part = &placeTree{}
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

// number numbers what is part of a place of the tree.
func (e *engine) number(tree *placeTree, top int32, atTop bool) error {
	for _, name := range slices.Sorted(maps.Keys(tree.parts)) {
		json, err := fleet.CanonicalJSON(name)
		if err != nil {
			return err
		}
		part := tree.parts[name]
		part.number = int32(len(e.places))
		made := place{name: name, json: json + ":", top: top, whole: -1}
		if atTop {
			made.top, made.key = part.number, len(e.keys)
			e.keys = append(e.keys, name)
		}
		if part.whole {
			made.whole = int32(e.wholes)
			e.wholes++
			part.parts = nil
		}
		e.places = append(e.places, made)
		if err := e.number(part, made.top, false); err != nil {
			return err
		}
		e.places[part.number].end = int32(len(e.places))
	}
	return nil
}

// read fills in a container's entries and steps.
func (e *engine) read(one *container, root *placeTree, values *values) error {
	one.entries = make([]entry, 0, len(one.data))
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
		one.entries = append(one.entries, entry{e.places[part.number].key, given})
	}
	one.steps = slices.Clip(one.steps)
	return nil
}

// appendSteps appends what a container gives for a place; texts says that strings could be nothing else
// where they were written.
func appendSteps(steps []step, place *placeTree, raw any, texts bool, values *values) ([]step, error) {
	at := len(steps)
	steps = append(steps, step{place: place.number})
	var err error
	if object, isObject := raw.(map[string]any); isObject && !place.whole {
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if steps, err = appendSteps(steps, place.parts[name], object[name], false, values); err != nil {
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
