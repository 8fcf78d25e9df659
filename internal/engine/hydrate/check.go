package hydrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
)

type checks struct {
	fleet      *fleet.Fleet
	mergeIndex *mergeIndex
	schemas    []*schema        // nil for invalid schemas
	named      []int            // schema by config schema
	own        map[string][]int // by full name of deployment target
	invalid    []ValueFinding
}

func newChecks(f *fleet.Fleet, e *mergeIndex) *checks {
	made := &checks{fleet: f, mergeIndex: e, own: map[string][]int{}}
	var texts []string
	numbers := map[string]int{}
	number := func(text string) int {
		if _, seen := numbers[text]; !seen {
			numbers[text] = len(texts)
			texts = append(texts, text)
		}
		return numbers[text]
	}
	for i := range f.ConfigSchemas {
		made.named = append(made.named, number(f.ConfigSchemas[i].Schema))
	}
	for workload, target := range f.Targets() {
		name := fleet.FullName(workload.Name, target.Name)
		for _, text := range target.ConfigSchemas {
			made.own[name] = append(made.own[name], number(text))
		}
	}

	made.schemas = make([]*schema, len(texts))
	failures := make([]error, len(texts))
	parallel.Each(len(texts), func(i int) {
		if made.schemas[i], failures[i] = readSchema(texts[i]); failures[i] == nil {
			made.schemas[i].separate(e.numbers)
			if e.references {
				made.schemas[i].unknown = readUnknownText(made.schemas[i].root)
			}
		}
	})
	refuse := func(schema int, name string) {
		if failures[schema] != nil {
			made.invalid = append(made.invalid, ValueFinding{Schema: name, Message: failures[schema].Error()})
		}
	}
	for i, schema := range made.named {
		refuse(schema, schemaName(&f.ConfigSchemas[i]))
	}
	for workload, target := range f.Targets() {
		name := fleet.FullName(workload.Name, target.Name)
		for i, schema := range made.own[name] {
			refuse(schema, ownSchemaName(name, i, len(made.own[name])))
		}
	}
	return made
}

func schemaName(declared *fleet.ConfigSchema) string {
	return fmt.Sprintf("config schema %q", declared.Name)
}

func ownSchemaName(target string, index, count int) string {
	if count == 1 {
		return fmt.Sprintf("deployment target %q's own schema", target)
	}
	return fmt.Sprintf("deployment target %q's own schema %d", target, index+1)
}

func (c *checks) run(assignments []*schedule.Assignment, reached *reach, snapshots []*Snapshot, found, warnings *collector) {
	for _, invalid := range c.invalid {
		found.add("", invalid)
	}
	meets := c.meetings(assignments, reached)
	broken := make([]map[int][]violation, len(snapshots))
	var checkers []*checker
	var started sync.Mutex
	parallel.EachWith(len(snapshots), func() func(int) {
		checker := newChecker(c)
		started.Lock()
		defer started.Unlock()
		checkers = append(checkers, checker)
		return func(i int) {
			checker.checkContainers(snapshots[i].members, meets[i])
			broken[i] = checker.check(snapshots[i], meets[i])
		}
	})

	suppliers := &suppliers{mergeIndex: c.mergeIndex, found: map[string][]int{}}
	for i, assignment := range assignments {
		set := reached.set[i]
		if len(broken[set]) == 0 {
			continue
		}
		c.eachSchema(assignment, reached.schemas[i], func(schema int, name string) {
			for _, one := range broken[set][schema] {
				finding := ValueFinding{Schema: name, Pointer: one.pointer, Message: one.message, Missing: one.missing}
				if one.missing {
					found.addAs(finding, assignment.Key(), func() ValueFinding {
						finding.Message += suppliers.explain(one.pointer, snapshots[set], assignment)
						return finding
					})
					continue
				}
				finding.Container = snapshots[set].sourceOf(one.pointer)
				found.add(assignment.Key(), finding)
			}
		})
	}
	c.reportContainers(assignments, reached, snapshots, checkers, found, warnings)
}

func (c *checks) eachSchema(assignment *schedule.Assignment, declared []int32, yield func(schema int, name string)) {
	for _, one := range declared {
		yield(c.named[one], schemaName(&c.fleet.ConfigSchemas[one]))
	}
	own := c.own[assignment.Target.Name]
	for i, schema := range own {
		yield(schema, ownSchemaName(assignment.Target.Name, i, len(own)))
	}
}

func (c *checks) meetings(assignments []*schedule.Assignment, reached *reach) [][]int {
	meets := make([][]int, len(reached.sets))
	type meeting struct{ set, schema int }
	seen := map[meeting]bool{}
	meet := func(set, schema int) {
		if one := (meeting{set, schema}); c.schemas[schema] != nil && !seen[one] {
			seen[one] = true
			meets[set] = append(meets[set], schema)
		}
	}
	for i, assignment := range assignments {
		for _, declared := range reached.schemas[i] {
			meet(reached.set[i], c.named[declared])
		}
		for _, schema := range c.own[assignment.Target.Name] {
			meet(reached.set[i], schema)
		}
	}
	return meets
}

type checker struct {
	*checks
	present  []*value // by key; nil between snapshots
	verdicts map[verdict][]violation
	met      map[int][]bool         // by schema: containers checked alone
	alone    map[[2]int][]violation // by container and schema
}

type verdict struct {
	schema *jsonschema.Schema
	key    int
	value  *value
}

func newChecker(c *checks) *checker {
	return &checker{
		checks: c, present: make([]*value, len(c.mergeIndex.keys)), verdicts: map[verdict][]violation{}, met: map[int][]bool{},
		alone: map[[2]int][]violation{},
	}
}

func (c *checker) check(snapshot *Snapshot, schemas []int) map[int][]violation {
	if !snapshot.Known || len(schemas) == 0 {
		return nil
	}
	for _, field := range snapshot.fields {
		c.present[field.key] = field.value
	}
	broken := map[int][]violation{}
	for _, number := range schemas {
		schema := c.schemas[number]
		check := c.checkWhole
		if schema.separable {
			check = c.checkSeparately
		}
		if found := check(schema, snapshot); len(found) > 0 {
			broken[number] = found
		}
	}
	for _, field := range snapshot.fields {
		c.present[field.key] = nil
	}
	return broken
}

func (c *checker) checkSeparately(s *schema, snapshot *Snapshot) []violation {
	var found []violation
	for i, key := range s.required {
		if key < 0 || c.present[key] == nil {
			found = append(found, violation{"/" + escapePointer(s.root.Required[i]), "is required", true})
		}
	}
	for _, property := range s.properties {
		if value := c.present[property.key]; value != nil {
			found = append(found, c.checkValue(s, property.schema, property.key, value)...)
		}
	}
	if s.closed || s.others != nil {
		for _, field := range snapshot.fields {
			name := c.mergeIndex.keys[field.key]
			if s.root.Properties[name] != nil {
				continue
			}
			if s.closed {
				found = append(found, violation{pointer: "/" + escapePointer(name), message: "is not an allowed key"})
				continue
			}
			found = append(found, c.checkValue(s, s.others, field.key, field.value)...)
		}
	}
	return found
}

func (c *checker) checkValue(s *schema, sub *jsonschema.Schema, key int, one *value) []violation {
	about := verdict{sub, key, one}
	if found, known := c.verdicts[about]; known {
		return found
	}
	pointer := "/" + escapePointer(c.mergeIndex.keys[key])
	c.verdicts[about] = s.checkOne(sub, pointer, one)
	return c.verdicts[about]
}

func (s *schema) checkOne(sub *jsonschema.Schema, pointer string, one *value) []violation {
	if one.extreme {
		return []violation{{pointer: pointer, message: tooExtreme}}
	}
	if one.isReference() {
		found, _ := s.validate(s.unknown.possibly(sub), one.clean, pointer)
		return found
	}
	texts := map[string]string{}
	if text, ok := one.clean.(string); ok && one.text {
		texts[pointer] = text
	}
	return s.checkLeniently(texts, func(readings map[string]any) ([]violation, []leafError) {
		if reading, ok := readings[pointer]; ok {
			return s.validate(sub, reading, pointer)
		}
		return s.validate(sub, one.clean, pointer)
	})
}

const tooExtreme = "holds a number that is too large or too small to be checked"

func (c *checker) checkWhole(s *schema, snapshot *Snapshot) []violation {
	texts := map[string]string{}
	values := make(map[string]any, len(snapshot.fields))
	var found []violation
	for _, field := range snapshot.fields {
		name := c.mergeIndex.keys[field.key]
		pointer := "/" + escapePointer(name)
		values[name] = field.value.clean
		if text, ok := field.value.clean.(string); ok && field.value.text {
			texts[pointer] = text
		}
		if field.value.extreme {
			found = append(found, violation{pointer: pointer, message: tooExtreme})
		}
	}
	if len(found) > 0 {
		return found
	}
	root := s.root
	if snapshot.references > 0 {
		root = s.unknown.possibly(root)
	}
	return s.checkLeniently(texts, func(readings map[string]any) ([]violation, []leafError) {
		if len(readings) == 0 {
			return s.validate(root, values, "")
		}
		read := maps.Clone(values)
		for _, field := range snapshot.fields {
			name := c.mergeIndex.keys[field.key]
			if reading, ok := readings["/"+escapePointer(name)]; ok {
				read[name] = reading
			}
		}
		return s.validate(root, read, "")
	})
}

// checkLeniently checks values that include strings from text-only sources, by pointer. A string that violates the schema
// but reads as a number or boolean is checked as one.
func (s *schema) checkLeniently(texts map[string]string, check func(readings map[string]any) ([]violation, []leafError)) []violation {
	found, leaves := check(nil)
	readings := map[string]any{}
	for _, leaf := range leaves {
		if text, isText := texts[leaf.pointer]; isText {
			if reading, ok := readText(text); ok {
				readings[leaf.pointer] = reading
			}
		}
	}
	for len(readings) > 0 {
		foundInReadings, leaves := check(readings)
		before := len(readings)
		for _, leaf := range leaves {
			if leaf.keyword == "type" {
				delete(readings, leaf.pointer)
			}
		}
		if len(readings) == before {
			return foundInReadings
		}
	}
	return found
}

const maxNumber = 1000

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// readText parses a JSON number or boolean: "0123", "+1" and "1_000" are neither.
func readText(text string) (any, bool) {
	switch text {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	if len(text) > maxNumber || !jsonNumber.MatchString(text) || isExtreme(json.Number(text)) {
		return nil, false
	}
	return json.Number(text), true
}

const configMapType = "configmap"

// checkConfigMapKeys finds keys that Kubernetes refuses, even before values are known.
func (e *mergeIndex) checkConfigMapKeys(f *fleet.Fleet, assignments []*schedule.Assignment, reached *reach, found *collector) {
	refused := make([]bool, len(e.keys))
	for number, key := range e.keys {
		refused[number] = len(validation.IsConfigMapKey(key)) > 0
	}
	if !slices.Contains(refused, true) ||
		slices.ContainsFunc(f.Templates, func(t fleet.Template) bool { return t.Type == "config" && t.Name == configMapType }) {
		return
	}
	checked := map[int][]ValueFinding{} // by set
	for i, assignment := range assignments {
		if assignment.Target.Target.ManifestsPending {
			continue // and so are its forms of configuration
		}
		_, written := assignment.Target.Target.Manifests.ConfigAs.ConfigMap()
		if assignment.Host.ClusterType.ConfigType != configMapType || !written {
			continue
		}
		findings, known := checked[reached.set[i]]
		if !known {
			findings = e.refusedKeys(reached.sets[reached.set[i]], refused)
			checked[reached.set[i]] = findings
		}
		for _, finding := range findings {
			found.add(assignment.Key(), finding)
		}
	}
}

func (e *mergeIndex) refusedKeys(members []int32, refused []bool) []ValueFinding {
	var findings []ValueFinding
	decided := map[int]bool{}
	for _, member := range slices.Backward(members) {
		one := &e.containers[member]
		for _, entry := range one.entries {
			if !refused[entry.key] || decided[entry.key] {
				continue
			}
			decided[entry.key] = true
			if entry.value.raw != nil {
				findings = append(findings, ValueFinding{
					Container: one.name, Pointer: "/" + escapePointer(e.keys[entry.key]),
					Message: `is not a key that a ConfigMap can have: letters, digits, "-", "_" and ".", ` +
						`at most 253 characters, not "." nor starting with ".."`,
				})
			}
		}
	}
	return findings
}
