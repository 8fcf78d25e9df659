package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Decoded is a fleet with parts that may be unknown.
type Decoded struct {
	Fleet *Fleet
	// Known: the fleet is final even if other parts of the input are unknown.
	Known            bool
	Environment      string
	EnvironmentKnown bool
	// Config holds the known values, Pending the names of unknown entries. ContainersKnown: there are no others.
	Config          Config
	Pending         []string
	ContainersKnown bool
	// PendingManifests lists full names. TargetsKnown: there are no other deployment targets.
	PendingManifests []string
	TargetsKnown     bool
	// Constraints are sorted by name. ConstraintsKnown: there are no others but PendingConstraints.
	Constraints        []Constraint
	PendingConstraints []string
	ConstraintsKnown   bool
}

// Decode decodes the argument of provider::flotilla::fleet, without objects of other environments. It returns all
// findings, sorted by path; Decoded is invalid if there are any. Neither an unknown value is a finding, nor a problem
// that may vanish once it is known.
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
	readExplicit(d, root)
	d.Fleet.Hydration = cmp.Or(ReadObject(root, "hydration", hydrationKind.decodeNew), d.Fleet.Hydration)
	root.Finish()
	d.Known = d.Known && !root.unknown
	return d.result()
}

// readExplicit reads assignments. Even an empty list turns scheduling off.
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

type collection struct {
	name   string
	decode func(*decoder, *ObjectReader) belonging
}

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
	{"constraints", decodeConstraint},
}

type decoder struct {
	Reader
	Decoded
	crossReferences
	targetEnvironments map[string]bool
}

type crossReferences struct {
	reader  *Reader
	decoded *Decoded
	// paths has nil for objects of the base fleet.
	paths map[objectKey]*Path
	// incomplete holds collections with unknown objects.
	incomplete  map[string]bool
	references  []reference
	formerNames []formerName
	// workloads are of this environment, workloadNames of all.
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

type belonging int

const (
	notInEnvironment belonging = iota
	maybeInEnvironment
	inEnvironment
)

// decodeCollection ignores unknown parts of other environments' objects.
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

// Element is an element of a list or map, named by its index or key.
type Element struct {
	Path  *Path
	Name  string
	Value any
}

// Elements returns the elements in order.
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

// keep adds an object that may be of this environment to a list, and registers one that is.
func keep[T any](d *decoder, o *ObjectReader, collection string, list *[]T, object T, name string) belonging {
	belongs := d.belongs(o)
	o.Finish()
	if belongs != notInEnvironment {
		*list = append(*list, object)
	}
	if belongs == inEnvironment {
		d.register(collection, name, o.path)
	}
	return belongs
}

func (d *decoder) noteUnknownObject(collection string) {
	switch collection {
	case "constraints":
		d.ConstraintsKnown = false
		return // the model has none
	case "config_containers":
		d.ContainersKnown = false
	}
	d.Known = false
	d.incomplete[collection] = true
}

func (d *decoder) noteUnknownObjects() {
	for _, c := range collections {
		d.noteUnknownObject(c.name)
	}
}

func (c *crossReferences) register(collection, name string, path *Path) {
	c.registerAt(objectKey{collection, name}, path, path.Attribute("name"))
}

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

func (d *decoder) allFindings() Findings {
	slices.SortFunc(d.Findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	all := slices.Compact(d.Findings)
	if d.more > 0 {
		all = append(all, Finding{Message: fmt.Sprintf("%d further findings are not shown", d.more)})
	}
	return all
}

func (d *decoder) result() (*Decoded, Findings) {
	d.Fleet.sortLists()
	d.checkReferences()
	d.checkFormerNames()
	d.checkWorkloads()
	slices.Sort(d.Pending)
	slices.Sort(d.PendingConstraints)
	slices.SortStableFunc(d.Constraints, func(a, b Constraint) int { return cmp.Compare(a.Name, b.Name) })
	d.Environment = d.Fleet.Environment
	d.PendingManifests = fullNames(d.Fleet, func(target *DeploymentTarget) bool { return target.ManifestsPending })
	d.TargetsKnown, d.ConstraintsKnown = d.EnvironmentKnown && !d.incomplete["workloads"], d.EnvironmentKnown && d.ConstraintsKnown
	decoded := d.Decoded // the copy does not keep the input alive
	return &decoded, d.allFindings()
}

// CheckObject checks one object of a collection without its references. Paths are relative to it.
func CheckObject(name string, value any) Findings {
	d := newDecoder()
	d.EnvironmentKnown = false // any will do
	for _, of := range append(slices.Clone(collections), collection{"environments", decodeEnvironmentWithRepo}) {
		if of.name != name {
			continue
		}
		if o, _ := d.object(CollectionTable(name), nil, value); o != nil {
			of.decode(d, o)
		}
		return d.Findings
	}
	return Findings{{Message: "no collection of a fleet is called " + name}}
}

func decodeEnvironmentWithRepo(_ *decoder, o *ObjectReader) belonging {
	o.Require("gitops_repo", "is required")
	decodeEnvironment(o)
	return inEnvironment
}

// DecodeGitopsRepo decodes {url, branch, path}. known is false if any part is unknown.
func DecodeGitopsRepo(value any) (repo folder.Location, known bool, findings Findings) {
	r := &Reader{}
	if o, _ := r.object(&locationKind.Table, nil, value); o != nil {
		repo = locationKind.decode(o)
		o.Finish()
	} else {
		r.Unknown = true
	}
	return repo, !r.Unknown, r.Findings
}

// DecodeSelector is [DecodeGitopsRepo] for a selector.
func DecodeSelector(value any) (selector *Selector, known bool, findings Findings) {
	o := newAttributeReader(&preferenceKind.Table, "selector", value)
	selector = ReadSelector(o, "selector")
	return selector, !o.unknown, o.reader.Findings
}

// DecodeLabels is [DecodeGitopsRepo] for a map of labels.
func DecodeLabels(value any) (labels Labels, known bool, findings Findings) {
	o := newAttributeReader(&clusterKind.Table, "labels", value)
	labels = readLabels(o, "labels")
	return labels, !o.unknown, o.reader.Findings
}

// DecodeMerge decodes {lists, list_key}; null means the defaults.
func DecodeMerge(value any) (options Hydration, known bool, findings Findings) {
	o := newAttributeReader(&fleetTable, "hydration", value)
	o.written = map[string]string{"hydration": "options"}
	given := ReadObject(o, "hydration", func(h *ObjectReader) Hydration {
		return Hydration{Lists: readOneOfOrNone(h, "lists"), ListKey: readText(h, "list_key")}
	})
	return (&Fleet{Hydration: &given}).HydrationOrDefault(), !o.unknown, o.reader.Findings
}

func newAttributeReader(table *Table, attribute string, value any) *ObjectReader {
	return &ObjectReader{reader: &Reader{}, table: table, fields: map[string]any{attribute: value}}
}
