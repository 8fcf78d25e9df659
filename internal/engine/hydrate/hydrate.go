// Package hydrate composes each assignment's configuration values from config containers, checks them against config
// schemas, and traces their origin. It is pure: output is identical byte for byte.
package hydrate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
)

// Snapshots is a hydrated fleet.
type Snapshots struct {
	All      []*Snapshot    // by assignment; equal containers share one
	Findings []ValueFinding // errors, sorted
	Warnings []ValueFinding // ineffective values and schemas, and ambiguities if hydration.on_conflict is "warn", sorted

	checks  *checks   // for [Advisor]
	schemas [][]int32 // config schemas by assignment
}

// Hydrate composes the snapshot of every assignment.
//
// A container reaches an assignment if the host or deployment target has all of its labels. Only the assignment's
// reserved labels decide reserved keys. Flux's owner labels and platform-config on ConfigMaps do not count. Containers
// merge by priority, number of labels (unless hydration.precedence is "name") and name; the later wins. See [Merge].
//
// Different values from containers of equal priority and specificity are an ambiguity, unless a higher container decides
// the node. Unknown values postpone checks, except for ambiguities that they cannot resolve. Each container alone is
// checked against the properties of all schemas that it may meet: a violation is an error even if unknown values prevent
// the whole check, and a warning if it is overridden everywhere.
//
// The error is for input that the fleet's validation refuses: invalid data or priority, unknown hydration options.
func Hydrate(f *fleet.Fleet, config fleet.Config, assignments []*schedule.Assignment) (*Snapshots, error) {
	mergeIndex, err := newMergeIndex(f, config)
	if err != nil {
		return nil, err
	}
	checks := newChecks(f, mergeIndex)
	reached := mergeIndex.reach(f, assignments)

	result := &Snapshots{All: make([]*Snapshot, len(assignments)), checks: checks, schemas: reached.schemas}
	snapshots := make([]*Snapshot, len(reached.sets))
	ambiguities, clashes := make([][]ambiguity, len(reached.sets)), make([][]clash, len(reached.sets))
	parallel.EachWith(len(reached.sets), func() func(int) {
		composer := newComposer(mergeIndex)
		return func(i int) {
			snapshots[i], ambiguities[i] = composer.snapshot(reached.sets[i])
			clashes[i] = mergeIndex.clashes(reached.sets[i])
			ambiguities[i] = withoutClashes(ambiguities[i], clashes[i])
		}
	})
	for i, set := range reached.set {
		result.All[i] = snapshots[set]
	}

	errors, warnings, conflicts := newCollector(), newCollector(), newCollector()
	for i, set := range reached.set {
		for _, ambiguity := range ambiguities[set] {
			conflicts.add(assignments[i].Key(), mergeIndex.ambiguityFinding(ambiguity))
		}
		for _, clash := range clashes[set] {
			errors.add(assignments[i].Key(), mergeIndex.clashFinding(clash))
		}
	}
	checks.run(assignments, reached, snapshots, errors, warnings)
	mergeIndex.checkConfigMapKeys(f, assignments, reached, errors)
	for _, idle := range reached.idle {
		warnings.add("", idle)
	}
	switch f.HydrationOrDefault().OnConflict {
	case "warn":
		warnings.join(conflicts)
	case "error":
		errors.join(conflicts)
	}
	result.Findings, result.Warnings = errors.sorted(), warnings.sorted()
	return result, nil
}

// ValueFinding is a problem with values or schemas. It never contains a value.
type ValueFinding struct {
	Assignment string // key of the first affected assignment, or ""
	More       int    // number of further assignments
	Container  string // source of the value, or ""
	Schema     string // `config schema "net"`, or ""
	Pointer    string // JSON pointer of the value (RFC 6901); "" is the root
	Message    string // predicate of the pointer, if there is one
	Missing    bool   // a required key is missing
}

// String returns the sentence.
func (f ValueFinding) String() string {
	var sentence strings.Builder
	switch {
	case f.Container != "":
		fmt.Fprintf(&sentence, "config container %q: ", f.Container)
	case f.Schema != "":
		sentence.WriteString(f.Schema + ": ")
	}
	if f.Pointer != "" {
		sentence.WriteString(f.Pointer + " ")
	}
	sentence.WriteString(f.Message)
	var where []string
	if f.Container != "" && f.Schema != "" {
		where = append(where, f.Schema)
	}
	switch {
	case f.Assignment == "":
	case f.More == 0:
		where = append(where, fmt.Sprintf("assignment %q", f.Assignment))
	default:
		where = append(where, fmt.Sprintf("assignment %q and %d more", f.Assignment, f.More))
	}
	if len(where) > 0 {
		sentence.WriteString(" (" + strings.Join(where, ", ") + ")")
	}
	return sentence.String()
}

type collector struct {
	byIdentity map[ValueFinding]int
	findings   []ValueFinding
}

func newCollector() *collector {
	return &collector{byIdentity: map[ValueFinding]int{}}
}

func (c *collector) add(assignment string, finding ValueFinding) {
	c.addAs(finding, assignment, func() ValueFinding { return finding })
}

func (c *collector) addAs(identity ValueFinding, assignment string, made func() ValueFinding) {
	if known, seen := c.byIdentity[identity]; seen {
		if c.findings[known].Assignment != "" {
			c.findings[known].More++
		}
		return
	}
	finding := made()
	finding.Assignment = assignment
	c.byIdentity[identity] = len(c.findings)
	c.findings = append(c.findings, finding)
}

func (c *collector) join(other *collector) {
	c.findings = append(c.findings, other.findings...)
}

func (c *collector) sorted() []ValueFinding {
	slices.SortFunc(c.findings, func(a, b ValueFinding) int {
		return cmp.Or(
			cmp.Compare(a.Container, b.Container),
			cmp.Compare(a.Schema, b.Schema),
			cmp.Compare(a.Pointer, b.Pointer),
			cmp.Compare(a.Message, b.Message),
			cmp.Compare(a.Assignment, b.Assignment),
		)
	})
	return c.findings
}

func (e *mergeIndex) ambiguityFinding(found ambiguity) ValueFinding {
	names := make([]string, len(found.containers))
	for i, container := range found.containers {
		names[i] = fmt.Sprintf("%q", e.containers[container].name)
	}
	last := &e.containers[found.containers[len(found.containers)-1]]
	subject, given := "", "values"
	if found.secret != "" {
		given = "encrypted files"
		subject = fmt.Sprintf("encrypted[%d], of Secret %q, ", last.files[last.fileOf(found.secret)].Index, found.secret)
	}
	return ValueFinding{
		Container: last.name,
		Pointer:   found.pointer,
		Message: fmt.Sprintf("%sis ambiguous: the containers %s have equal priority and equally many labels, and give different %s; "+
			"raise the priority of the one that should win", subject, enumerate(names, "and"), given),
	}
}

func enumerate(words []string, conjunction string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + conjunction + " " + words[len(words)-1]
}

type suppliers struct {
	mergeIndex *mergeIndex
	found      map[string][]int // by pointer
}

const mostSuppliers = 3

func (s *suppliers) explain(pointer string, snapshot *Snapshot, assignment *schedule.Assignment) string {
	for _, member := range slices.Backward(snapshot.members) {
		one := &s.mergeIndex.containers[member]
		if value, has := LookUp(one.data, pointer); has && value == nil {
			return fmt.Sprintf(", but config container %q removes it", one.name)
		}
	}
	type supplier struct {
		name  string
		lacks fleet.Labels
	}
	var all []supplier
	for _, holder := range s.holders(pointer) {
		one := &s.mergeIndex.containers[holder]
		if lacks := lacking(one.labels, assignment, s.mergeIndex.environment); len(lacks) > 0 {
			all = append(all, supplier{one.name, lacks})
		}
	}
	if len(all) == 0 {
		return ", and no config container has it"
	}
	slices.SortFunc(all, func(a, b supplier) int {
		return cmp.Or(cmp.Compare(len(a.lacks), len(b.lacks)), cmp.Compare(a.name, b.name))
	})
	var offers []string
	for i, one := range all {
		if i == mostSuppliers {
			offers = append(offers, fmt.Sprintf("%d more have it, too", len(all)-mostSuppliers))
			break
		}
		offers = append(offers, fmt.Sprintf("config container %q has it, but asks for %s",
			one.name, strings.Join(labelTexts(one.lacks), ", ")))
	}
	return ", and no container that matches has it; " + strings.Join(offers, "; ")
}

func (s *suppliers) holders(pointer string) []int {
	if holders, known := s.found[pointer]; known {
		return holders
	}
	var holders []int
	for i := range s.mergeIndex.containers {
		if value, has := LookUp(s.mergeIndex.containers[i].data, pointer); has && value != nil {
			holders = append(holders, i)
		}
	}
	s.found[pointer] = holders
	return holders
}

func (s *Snapshot) sourceOf(pointer string) string {
	if pointer == "" {
		return ""
	}
	from := -1
	for _, leaf := range s.leavesBelow(pointer) {
		from = max(from, leaf.from)
	}
	if from < 0 {
		return ""
	}
	return s.mergeIndex.containers[from].name
}

func (s *Snapshot) leavesBelow(pointer string) map[string]leaf {
	key, _, _ := strings.Cut(pointer[1:], "/")
	leaves := s.leaves(strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~"))
	maps.DeleteFunc(leaves, func(at string, _ leaf) bool { return at != pointer && !strings.HasPrefix(at, pointer+"/") })
	return leaves
}
