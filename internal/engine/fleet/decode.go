package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Decoded is the result of reading the input of a fleet.
type Decoded struct {
	Fleet *Fleet
	// Known says that the fleet will not change when the rest of the input becomes known.
	Known bool
	// Environment is the fleet's environment, where EnvironmentKnown is true.
	Environment      string
	EnvironmentKnown bool
	// Config holds the data of the containers that are known, and what they have beside them. Pending are the names of the
	// entries that are not known. ContainersKnown says that there are no others.
	Config          Config
	Pending         []string
	ContainersKnown bool
	// PendingManifests are the full names of the deployment targets whose manifests are not known.
	// TargetsKnown says that there are no other deployment targets.
	PendingManifests []string
	TargetsKnown     bool
	// Constraints are the rules that are known, sorted by name, PendingConstraints the names of those that are not.
	// ConstraintsKnown says that there are no others. With findings, Constraints are those without a finding.
	Constraints        []Constraint
	PendingConstraints []string
	ConstraintsKnown   bool
}

// Decode reads the argument of provider::flotilla::fleet: an object that has everything of one environment. Objects of
// other environments are left out. It returns all findings at once, sorted by path; with any, Decoded must not be
// used. An unknown value is never a finding, and neither is a problem that may go away once a value is known.
func Decode(input any) (*Decoded, Findings) {
	d := newDecoder()
	root, isUnknown := d.object(&fleetTable, nil, input)
	if root == nil {
		d.Known, d.EnvironmentKnown, d.ContainersKnown, d.ConstraintsKnown = !isUnknown, !isUnknown, !isUnknown, !isUnknown
		return d.result()
	}
	readEnvironment(d, root)
	readEnvironments(d, root)
	readBase(d, root)
	for _, c := range collections {
		d.decodeCollection(root, c.name, c.decode)
	}
	pinManifests(d, root)
	readConstraints(d, root)
	readExplicit(d, root)
	readHydration(d, root)
	root.Finish()
	d.Known = d.Known && !root.unknown
	return d.result()
}

// explicit reads the attribute "assignments". Where it is set, even to an empty list, there is no scheduling.
func readExplicit(d *decoder, root *ObjectReader) {
	policies, assignments := root.fields["target_policies"], root.fields["assignments"]
	isSet := func(value any) bool { return value != nil && value != Unknown{} }
	switch {
	case isSet(policies) && isSet(assignments):
		root.Report("assignments", "replaces target_policies: give one of the two")
	case isSet(policies) && d.Fleet.Explicit:
		root.Report("target_policies", "the base fleet has assignments of its own, which replace target policies: give more assignments instead")
	}
	d.Fleet.Explicit = d.Fleet.Explicit || assignments != nil
}

// collection is a list of objects in the input, and the decoder of each object.
type collection struct {
	name   string
	decode func(*decoder, *ObjectReader) belonging
}

// collections are the collections of the model, in the order of decoding.
var collections = []collection{
	{"workspaces", decodeWorkspace},
	{"cluster_types", decodeClusterType},
	{"clusters", decodeCluster},
	{"workloads", decodeWorkload},
	{"target_policies", decodeTargetPolicy},
	{"assignments", decodeExplicitAssignment},
	{"config_containers", decodeConfigContainer},
	{"config_schemas", decodeConfigSchema},
	{"templates", decodeTemplate},
}

// decoder builds a fleet, and collects all findings about it.
type decoder struct {
	Reader
	Decoded
	crossReferences
	// targetEnvironments are the environments that deployment targets name.
	targetEnvironments map[string]bool
}

// crossReferences registers the names of objects, and checks the names by which objects refer to each other.
type crossReferences struct {
	reader  *Reader
	decoded *Decoded
	// paths says where an object of the fleet was read; nil is the base fleet.
	paths map[objectKey]*Path
	// incomplete has the collections of which not every object is known: an object that seems to be missing
	// may be there later.
	incomplete map[string]bool
	// references are names that must be those of other objects.
	references []reference
	// formerNames are those of cluster types that certainly belong to this environment, in the order in which they were read.
	formerNames []formerName
	// workloads are those that certainly belong to this environment, for checks across objects, and
	// workloadNames those of all, with targets in this environment or not.
	workloads     []localWorkload
	workloadNames []string
}

type objectKey struct{ collection, name string }

func newDecoder() *decoder {
	d := &decoder{
		Decoded: Decoded{
			Fleet:            &Fleet{},
			Known:            true,
			EnvironmentKnown: true,
			Config:           Config{},
			ContainersKnown:  true,
			ConstraintsKnown: true,
		},
		targetEnvironments: map[string]bool{},
	}
	d.crossReferences = crossReferences{
		reader: &d.Reader, decoded: &d.Decoded, incomplete: map[string]bool{}, paths: map[objectKey]*Path{},
	}
	return d
}

// belonging says whether an object belongs to the fleet's environment.
type belonging int

const (
	notInEnvironment   belonging = iota
	maybeInEnvironment           // it is in the fleet for now, but its environment is not known yet
	inEnvironment
)

// collection decodes a list, tuple, set or map of objects. Unknown parts of objects of other environments are
// ignored.
func (d *decoder) decodeCollection(root *ObjectReader, name string, decode func(*decoder, *ObjectReader) belonging) {
	elements, isUnknown := d.elements(root, name)
	if isUnknown {
		d.noteUnknownObject(name)
	}
	for _, element := range elements {
		o, isUnknown := d.object(tableIn(root, name), element.Path, element.Value)
		if isUnknown {
			d.noteUnknownObject(name)
		}
		if o == nil {
			continue
		}
		belongs := decode(d, o)
		if belongs == notInEnvironment {
			continue
		}
		if o.unknown {
			d.Known = false
		}
		if belongs == maybeInEnvironment || o.fields["name"] == (Unknown{}) {
			d.noteUnknownObject(name)
		}
	}
}

// elements are those of a list, tuple, set or map of objects.
func (d *decoder) elements(root *ObjectReader, name string) (elements []Element, isUnknown bool) {
	value, path := root.Value(name)
	if object, isMap := value.(map[string]any); isMap {
		if _, single := object["name"].(string); single {
			root.Report(name, "must be a list or map of objects: this is one object, write [...] around it")
			return nil, false
		}
	}
	elements, are := Elements(path, value)
	if isUnknown = value == (Unknown{}); !are && !isUnknown && value != nil {
		root.Report(name, "must be a list, tuple, set or map of objects, not %s", kindOf(value))
	}
	return elements, isUnknown
}

// Element is one of a list or map. Its name is its key, or its number.
type Element struct {
	Path  *Path
	Name  string
	Value any
}

// Elements returns those of a list, or of a map in the order of its keys. are is false for anything else.
func Elements(path *Path, value any) (elements []Element, are bool) {
	switch value := value.(type) {
	case []any:
		elements = make([]Element, 0, len(value))
		for i, at := range elementPaths(path, value) {
			elements = append(elements, Element{at, strconv.Itoa(i), value[i]})
		}
	case map[string]any:
		elements = make([]Element, 0, len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			elements = append(elements, Element{path.Key(key), key, value[key]})
		}
	default:
		return nil, false
	}
	return elements, true
}

// keep adds an object to a list of the fleet, unless it is of another environment. isCertain says that it is of this one:
// only then it is registered, and may be checked against others.
func keep[T any](d *decoder, o *ObjectReader, collection string, list *[]T, object T, name string) (belongs belonging, isCertain bool) {
	belongs = d.belongs(o)
	o.Finish()
	if belongs != notInEnvironment {
		*list = append(*list, object)
	}
	if isCertain = belongs == inEnvironment; isCertain {
		d.register(collection, name, o.path)
	}
	return belongs, isCertain
}

// unknownObject notes that the objects of a collection are not all known, or may not all be in this environment.
func (d *decoder) noteUnknownObject(collection string) {
	d.Known = false
	d.incomplete[collection] = true
	if collection == "config_containers" {
		d.ContainersKnown = false
	}
}

// unknownObjects notes that of every collection, constraints included.
func (d *decoder) noteUnknownObjects() {
	d.ConstraintsKnown = false
	for _, c := range collections {
		d.noteUnknownObject(c.name)
	}
}

// register notes where an object was read, and reports at its name a second one of the same name.
func (c *crossReferences) register(collection, name string, path *Path) {
	c.registerAt(objectKey{collection, name}, path, path.Attribute("name"))
}

// registerAt is register for an object whose name has another path.
func (c *crossReferences) registerAt(key objectKey, path, name *Path) {
	if !isSet(key.name) {
		return
	}
	if first, twice := c.paths[key]; twice {
		where := "the base fleet"
		if first != nil {
			where = first.String()
		}
		c.reader.Report(name, "%q is also the name of %s", key.name, where)
		return
	}
	c.paths[key] = path
}

// allFindings returns the findings sorted by path, each once.
func (d *decoder) allFindings() Findings {
	slices.SortStableFunc(d.Findings, func(a, b Finding) int { return strings.Compare(a.Path, b.Path) })
	seen := make(map[Finding]bool, len(d.Findings))
	all := slices.DeleteFunc(d.Findings, func(f Finding) bool {
		twice := seen[f]
		seen[f] = true
		return twice
	})
	if d.more > 0 {
		all = append(all, Finding{Message: fmt.Sprintf("%d further findings are not shown", d.more)})
	}
	return all
}

// result checks what involves several objects, and returns everything.
func (d *decoder) result() (*Decoded, Findings) {
	d.Fleet.sortLists()
	d.checkReferences()
	d.checkFormerNames()
	d.checkWorkloads()
	slices.Sort(d.Pending)
	slices.Sort(d.PendingConstraints)
	sortConstraints(d.Constraints)
	d.Environment = d.Fleet.Environment
	d.PendingManifests = fullNames(d.Fleet, func(target *DeploymentTarget) bool { return target.ManifestsPending })
	d.TargetsKnown, d.ConstraintsKnown = d.EnvironmentKnown && !d.incomplete["workloads"], d.EnvironmentKnown && d.ConstraintsKnown
	decoded := d.Decoded // a copy, which does not keep what was read
	return &decoded, d.allFindings()
}
