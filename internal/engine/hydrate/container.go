package hydrate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/encrypted"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
)

type container struct {
	name    string
	labels  fleet.Labels   // relevant for matching and specificity
	known   bool           // completely known; otherwise the certain part counts
	data    map[string]any // as written, with nulls and references
	entries []keyedValue   // data by top-level key, in order
	texts   bool           // values are strings in their source

	references bool
	releases   []string         // keys whose value or reference it removes by providing the other form
	files      []encrypted.File // encrypted keys
}

type keyedValue struct {
	key   int // number among all keys
	value *value
}

// value is a container's value of a top-level key. Equal values share one pointer.
type value struct {
	raw     any    // as written, with nulls
	clean   any    // without nulls in objects
	json    string // canonical form of clean, or empty for null
	id      int    // equal for equal raw values; 0 for merged ones, too
	text    bool   // a string that had to be one in its source
	extreme bool   // contains a number beyond the checkable range
}

func matchedLabels(one *fleet.ConfigContainer) fleet.Labels {
	if !one.FromConfigMap {
		return one.Labels
	}
	return fleet.WithoutOwnerLabels(one.Labels)
}

// mergeIndex holds the containers of a fleet in merge order. It is immutable and shared by all snapshots.
type mergeIndex struct {
	merger
	environment string
	containers  []container    // in merge order
	ranks       []int          // by container: equal if only names decide; nil allows that
	keys        []string       // top-level keys, sorted
	keysJSON    []string       // JSON names with colons
	numbers     map[string]int // by key

	references bool
	files      bool
	mixed      []string // keys with values and references
}

func newMergeIndex(f *fleet.Fleet, config fleet.Config) (*mergeIndex, error) {
	options := f.HydrationOrDefault()
	merging, err := newMerger(options)
	if err != nil {
		return nil, err
	}
	made := &mergeIndex{merger: merging, environment: f.Environment}
	ordered, err := made.order(f.ConfigContainers, options)
	if err != nil {
		return nil, err
	}
	made.containers = make([]container, len(ordered))
	failures := make([]error, len(ordered))
	parallel.Each(len(ordered), func(i int) { made.containers[i], failures[i] = readContainer(ordered[i], config) })
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	for i := range made.containers {
		made.references = made.references || made.containers[i].references
		made.files = made.files || len(made.containers[i].files) > 0
	}
	made.mixed = made.findMixed()
	return made, made.indexKeys()
}

func (e *mergeIndex) indexKeys() error {
	e.numbers = map[string]int{}
	for i := range e.containers {
		for key := range e.containers[i].data {
			e.numbers[key] = 0
		}
	}
	e.keys = slices.Sorted(maps.Keys(e.numbers))
	for number, key := range e.keys {
		json, err := fleet.CanonicalJSON(key)
		if err != nil {
			return err
		}
		e.numbers[key], e.keysJSON = number, append(e.keysJSON, json+":")
	}
	values := &valueTable{ids: map[valueIdentity]int{}, made: map[valueIdentity]*value{}}
	for i := range e.containers {
		one := &e.containers[i]
		for _, key := range slices.Sorted(maps.Keys(one.data)) {
			_, isString := one.data[key].(string)
			value, err := values.share(one.data[key], one.texts && isString)
			if err != nil {
				return fmt.Errorf("config container %q: %w", one.name, err)
			}
			one.entries = append(one.entries, keyedValue{e.numbers[key], value})
		}
	}
	return nil
}

func (e *mergeIndex) order(containers []fleet.ConfigContainer, options fleet.Hydration) ([]*fleet.ConfigContainer, error) {
	byName := options.Precedence == "name"
	type ranked struct {
		*fleet.ConfigContainer
		priority    *big.Float
		specificity int
	}
	all := make([]ranked, len(containers))
	for i := range containers {
		one := &containers[i]
		priority, _, err := big.ParseFloat(cmp.Or(string(one.Priority), "0"), 10, 512, big.ToNearestEven)
		if err != nil {
			return nil, fmt.Errorf("config container %q: priority %q is not a number", one.Name, string(one.Priority))
		}
		all[i] = ranked{one, priority, len(matchedLabels(one))}
	}
	byRank := func(a, b ranked) int {
		return cmp.Or(a.priority.Cmp(b.priority), cmp.Compare(a.specificity, b.specificity))
	}
	slices.SortFunc(all, func(a, b ranked) int {
		if byName {
			return cmp.Or(a.priority.Cmp(b.priority), cmp.Compare(a.Name, b.Name))
		}
		return cmp.Or(byRank(a, b), cmp.Compare(a.Name, b.Name))
	})
	ordered := make([]*fleet.ConfigContainer, len(all))
	ranks := make([]int, len(all))
	for i := range all {
		ordered[i] = all[i].ConfigContainer
		if i > 0 {
			ranks[i] = ranks[i-1] + min(1, max(0, byRank(all[i], all[i-1])))
		}
	}
	if !byName && options.OnConflict != "override" {
		e.ranks = ranks
	}
	return ordered, nil
}

func readContainer(declared *fleet.ConfigContainer, config fleet.Config) (container, error) {
	one := container{name: declared.Name, labels: matchedLabels(declared), texts: declared.FromConfigMap}
	var err error
	if one.data, one.known, err = readData(&one, config); err != nil {
		return one, err
	}
	secrets, known, err := config.Secrets(declared)
	if err != nil {
		return one, err
	}
	one.known = one.known && known
	if one.data == nil && len(secrets.References) > 0 {
		one.data = make(map[string]any, len(secrets.References))
	}
	if err := one.addReferences(secrets.References); err != nil {
		return one, err
	}
	return one, one.readFiles(secrets.Encrypted)
}

func readData(one *container, config fleet.Config) (data map[string]any, known bool, err error) {
	text, known := config[one.name]
	if !known {
		return nil, false, nil
	}
	parsed, err := fleet.ParseJSON(text)
	if err != nil {
		return nil, false, fmt.Errorf("config container %q: %w", one.name, err)
	}
	if parsed, err = fleet.Canonical(parsed); err != nil {
		return nil, false, fmt.Errorf("config container %q: %w", one.name, err)
	}
	data, ok := parsed.(map[string]any)
	if !ok {
		return nil, false, fmt.Errorf("config container %q: its data is not an object", one.name)
	}
	if one.texts {
		for _, key := range slices.Sorted(maps.Keys(data)) { // the first error
			if text, ok := data[key].(string); ok {
				if data[key], err = fleet.ReadConfigMapValue(text); err != nil {
					return nil, false, fmt.Errorf("config container %q: the value of %q %w", one.name, key, err)
				}
			}
		}
	}
	return data, true, nil
}

type valueTable struct {
	ids  map[valueIdentity]int // ignores text
	made map[valueIdentity]*value
}

type valueIdentity struct {
	json            string
	text, reference bool
}

// share returns the shared value. text marks strings that had to be strings in their source.
func (v *valueTable) share(raw any, text bool) (*value, error) {
	of, isReference := raw.(secretReference)
	canonical := func() (string, error) { return fleet.CanonicalJSON(raw) }
	if isReference {
		canonical = of.canonical
	}
	json, err := canonical()
	if err != nil {
		return nil, err
	}
	same := valueIdentity{json, text, isReference}
	if known := v.made[same]; known != nil {
		return known, nil
	}
	made := &value{raw: raw}
	if raw != nil {
		made.clean, made.extreme, made.json = clean(raw), isExtreme(raw), json
		if deep.Holds(raw, hasNullMember) {
			if made.json, err = fleet.CanonicalJSON(made.clean); err != nil {
				return nil, err
			}
		}
	}
	identity := valueIdentity{json: json, reference: isReference}
	id, seen := v.ids[identity]
	if !seen {
		id = len(v.ids)
		v.ids[identity] = id
	}
	made.id, made.text = id, text
	v.made[same] = made
	return made, nil
}
