package hydrate

import (
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// Advice describes the keys that an assignment's schemas name, and their values.
type Advice struct {
	Checked bool              // a schema applies
	Asked   map[string]Asked  // named keys, by JSON pointer
	Missing map[string]string // reasons for missing required keys, by JSON pointer; empty for unknown values
	Unasked []string          // JSON pointers of values outside the schemas, sorted; empty without a schema

	snapshot *Snapshot
	leaves   map[string]leaf
	schemas  map[string][]string // schemas by JSON pointer of a value
}

// Schemas returns the schemas that cover a leaf of [Snapshot.Provenance], by name or through a parent.
func (a *Advice) Schemas(pointer string) []string { return a.schemas[pointer] }

// Provenance returns the snapshot's provenance.
func (a *Advice) Provenance() map[string]Origin { return a.snapshot.provenance(a.leaves) }

// Asked is a key that a schema names.
type Asked struct {
	Schemas    []string // `config schema "net"`
	Containers []string // containers that provide the value, in merge order
}

// Advisor computes advice. It is not safe for concurrent use.
type Advisor struct {
	result    *Snapshots
	lacks     bool // an assignment lacks a required key
	checker   *checker
	suppliers *suppliers
	trees     map[int]*askedKey // by schema
	made      map[advised]*Advice
}

type advised struct {
	snapshot *Snapshot
	schemas  *int32 // first of the shared list of config schemas
	own      string // deployment target with its own schemas, or ""
}

// Advisor returns an advisor about the assignments.
func (r *Snapshots) Advisor() *Advisor {
	return &Advisor{
		result: r, lacks: slices.ContainsFunc(r.Findings, func(f ValueFinding) bool { return f.Missing }), checker: newChecker(r.checks),
		suppliers: &suppliers{mergeIndex: r.checks.mergeIndex, found: map[string][]int{}},
		trees:     map[int]*askedKey{}, made: map[advised]*Advice{},
	}
}

// ForAssignment returns the advice for an assignment by index. Assignments with equal containers and schemas share it
// unless something is missing: the reason depends on labels.
func (a *Advisor) ForAssignment(number int, assignment *schedule.Assignment) *Advice {
	snapshot, checks := a.result.All[number], a.result.checks
	same := advised{snapshot: snapshot}
	if declared := a.result.schemas[number]; len(declared) > 0 {
		same.schemas = &declared[0]
	}
	if len(checks.own[assignment.Target.Name]) > 0 {
		same.own = assignment.Target.Name
	}
	if known := a.made[same]; known != nil {
		return known
	}
	var schemas []int
	var names []string
	checks.eachSchema(assignment, a.result.schemas[number], func(schema int, name string) {
		if checks.schemas[schema] != nil {
			schemas, names = append(schemas, schema), append(names, name)
		}
	})
	advice := &Advice{
		Checked:  len(schemas) > 0,
		Asked:    map[string]Asked{},
		Missing:  map[string]string{},
		snapshot: snapshot,
		leaves:   snapshot.leaves(),
	}
	for i, schema := range schemas {
		a.tree(schema).each("", func(pointer string) {
			asked := advice.Asked[pointer]
			asked.Schemas = append(asked.Schemas, names[i])
			advice.Asked[pointer] = asked
		})
	}
	a.addMissing(advice, snapshot, assignment, schemas, names)
	a.addGiven(advice, snapshot, schemas, names)
	if len(advice.Missing) == 0 {
		a.made[same] = advice
	}
	return advice
}

func (a *Advisor) addMissing(advice *Advice, snapshot *Snapshot, assignment *schedule.Assignment, schemas []int, names []string) {
	if !a.lacks {
		return
	}
	broken := a.checker.check(snapshot, schemas)
	for i, schema := range schemas {
		for _, one := range broken[schema] {
			if _, said := advice.Missing[one.pointer]; one.missing && !said {
				advice.Missing[one.pointer] = names[i] + ": it " + one.message + a.suppliers.explain(one.pointer, snapshot, assignment)
			}
		}
	}
}

func (a *Advisor) addGiven(advice *Advice, snapshot *Snapshot, schemas []int, names []string) {
	if len(schemas) == 0 {
		return
	}
	from := make(map[string][]int, len(advice.Asked))
	advice.schemas = make(map[string][]string, len(advice.leaves))
	asking := make([]string, 0, len(names))
	for pointer, leaf := range advice.leaves {
		for at := pointer; at != ""; at = at[:strings.LastIndexByte(at, '/')] {
			if _, asked := advice.Asked[at]; asked {
				from[at] = append(from[at], leaf.from)
			}
		}
		asking = asking[:0]
		for i, schema := range schemas {
			if a.tree(schema).asksFor(pointer) {
				asking = append(asking, names[i])
			}
		}
		switch len(asking) {
		case 0:
			if snapshot.Known {
				advice.Unasked = append(advice.Unasked, pointer)
			}
		case len(names):
			advice.schemas[pointer] = names
		default:
			advice.schemas[pointer] = slices.Clone(asking)
		}
	}
	slices.Sort(advice.Unasked)
	for pointer, asked := range advice.Asked {
		for _, container := range distinct(from[pointer]) {
			asked.Containers = append(asked.Containers, snapshot.mergeIndex.containers[container].name)
		}
		advice.Asked[pointer] = asked
	}
}

func (a *Advisor) tree(schema int) *askedKey {
	if a.trees[schema] == nil {
		asked, room := &askedKey{}, maxAsked
		asked.read(a.result.checks.schemas[schema].root, map[*jsonschema.Schema]bool{}, &room)
		a.trees[schema] = asked
	}
	return a.trees[schema]
}

type askedKey struct {
	members map[string]*askedKey // by escaped name
	others  bool                 // a schema for other members exists
}

// maxAsked bounds the visited keys and parts of a schema, which recursion multiplies. Unvisited keys count as named.
const maxAsked = 5 * maxSchemaParts

// read adds the keys of a schema, alternatives included, but skips schemas that enclose themselves.
func (k *askedKey) read(s *jsonschema.Schema, within map[*jsonschema.Schema]bool, room *int) {
	if s == nil || within[s] {
		return
	}
	if *room == 0 {
		k.others = true
		return
	}
	*room--
	within[s] = true
	defer delete(within, s)
	for _, same := range sameValue(s) {
		if same != s.Not {
			k.read(same, within, room)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if member := k.member(name, room); member != nil {
			member.read(s.Properties[name], within, room)
		}
	}
	named := slices.Clone(s.Required)
	for _, names := range s.DependentRequired {
		named = append(named, names...)
	}
	for _, dependency := range s.Dependencies {
		if names, ok := dependency.([]string); ok {
			named = append(named, names...)
		}
	}
	slices.Sort(named)
	for _, name := range named {
		k.member(name, room)
	}
	_, others := s.AdditionalProperties.(*jsonschema.Schema)
	k.others = k.others || others || len(s.PatternProperties) > 0
}

func (k *askedKey) member(name string, room *int) *askedKey {
	escaped := escapePointer(name)
	if known := k.members[escaped]; known != nil {
		return known
	}
	if *room == 0 {
		k.others = true
		return nil
	}
	*room--
	if k.members == nil {
		k.members = map[string]*askedKey{}
	}
	k.members[escaped] = &askedKey{}
	return k.members[escaped]
}

func (k *askedKey) each(pointer string, yield func(pointer string)) {
	for name, member := range k.members {
		yield(pointer + "/" + name)
		member.each(pointer+"/"+name, yield)
	}
}

func (k *askedKey) asksFor(pointer string) bool {
	for i, name := range strings.Split(pointer, "/")[1:] {
		member := k.members[name]
		if member == nil {
			return k.others || i > 0 && len(k.members) == 0
		}
		k = member
	}
	return true
}
