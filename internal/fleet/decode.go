package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Decoded is what the input of a fleet amounts to.
type Decoded struct {
	Fleet *Fleet
	// Known says that the fleet would be the same once everything in the input is known.
	Known bool
	// Environment is the fleet's environment; unknown as long as EnvironmentKnown is false.
	Environment      string
	EnvironmentKnown bool
	// Config holds the data of the containers that are known, Pending the names of those whose data
	// is not. ContainersKnown says that there are no others.
	Config          Config
	Pending         []string
	ContainersKnown bool
}

// Decode reads the argument of provider::flotilla::fleet: an object that holds everything of one
// environment. Objects of other environments are left out. Findings come all at once, sorted by
// where they are; with any, Decoded is not to be used.
func Decode(input any) (*Decoded, Findings) {
	d := newDecoder()
	root, isUnknown := d.object(nil, input)
	if root == nil {
		d.known, d.containersKnown = !isUnknown, !isUnknown
		return d.result()
	}
	d.readEnvironment(root)
	d.base(root)
	d.environments(root)
	for _, collection := range []struct {
		name   string
		decode func(*object) bool
	}{
		{"workspaces", d.workspace},
		{"cluster_types", d.clusterType},
		{"clusters", d.cluster},
		{"workloads", d.workload},
		{"target_policies", d.targetPolicy},
		{"assignments", d.placement},
		{"config_containers", d.configContainer},
		{"config_schemas", d.configSchema},
		{"templates", d.template},
	} {
		d.collection(root, collection.name, collection.decode)
	}
	d.fleet.Explicit = d.fleet.Explicit || root.fields["assignments"] != nil
	if root.fields["assignments"] != nil && root.fields["target_policies"] != nil {
		root.report("assignments", "replaces target_policies: give one of the two")
	}
	d.hydration(root)
	root.finish()
	d.known = d.known && !root.unknown
	return d.result()
}

func (d *decoder) readEnvironment(root *object) {
	name := root.required("environment")
	d.fleet.Environment = name
	if name == unknownText {
		d.environmentKnown, d.known, d.containersKnown = false, false, false
	} else if problem := CheckLabelName(name); problem != "" && name != "" {
		root.report("environment", "%q %s", name, problem)
	}
}

// decoder collects a fleet, and all that is wrong with it.
type decoder struct {
	fleet            *Fleet
	findings         Findings
	known            bool
	environmentKnown bool
	config           Config
	pending          []string
	containersKnown  bool

	// incomplete names the collections of which not every name is known: a reference into one of
	// them may resolve later.
	incomplete map[string]bool
	// allEnvironments are the names that an environment may have; nil where the input does not say.
	allEnvironments []string
	// workloadNames are those of every workload, with targets in this environment or not.
	workloadNames []string
	// paths says where an object of the fleet was read, for findings of the checks across objects.
	paths map[objectKey]*Path
}

type objectKey struct{ collection, name string }

func newDecoder() *decoder {
	return &decoder{
		fleet: &Fleet{}, known: true, environmentKnown: true, containersKnown: true,
		config: Config{}, incomplete: map[string]bool{}, paths: map[objectKey]*Path{},
	}
}

func (d *decoder) report(path *Path, format string, arguments ...any) {
	d.findings = append(d.findings, Finding{Path: path.String(), Message: fmt.Sprintf(format, arguments...)})
}

// result checks what can only be seen across objects, and hands everything out.
func (d *decoder) result() (*Decoded, Findings) {
	d.fleet.sortLists()
	d.checkReferences()
	slices.SortStableFunc(d.findings, func(a, b Finding) int {
		return strings.Compare(a.Path, b.Path)
	})
	slices.Sort(d.pending)
	return &Decoded{
		Fleet: d.fleet, Known: d.known,
		Environment: d.fleet.Environment, EnvironmentKnown: d.environmentKnown,
		Config: d.config, Pending: d.pending, ContainersKnown: d.containersKnown,
	}, slices.Compact(d.findings)
}

// collection decodes a list, tuple, set or map of objects. decode says whether the object belongs
// to the fleet; what is unknown in one that does not is of no consequence.
func (d *decoder) collection(root *object, name string, decode func(*object) bool) {
	each := func(path *Path, value any) {
		o, isUnknown := d.object(path, value)
		if isUnknown {
			d.unknownObject(name)
		}
		if o == nil {
			return
		}
		keep := decode(o)
		if keep && o.unknown {
			d.known = false
		}
		if keep && (o.fields["name"] == Unknown{} || o.fields["environment"] == Unknown{}) {
			d.unknownObject(name)
		}
	}
	path := root.path.Attribute(name)
	switch value := root.value(name).(type) {
	case nil:
	case Unknown:
		d.unknownObject(name)
	case []any:
		for i, element := range value {
			each(path.Index(i), element)
		}
	case map[string]any:
		if _, single := value["name"].(string); single {
			root.report(name, "must be a list or map of objects: this is one object, write [...] around it")
			return
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			each(path.Key(key), value[key])
		}
	default:
		root.report(name, "must be a list, tuple, set or map of objects, not %s", kindOf(value))
	}
}

func (d *decoder) unknownObject(collection string) {
	d.known = false
	d.incomplete[collection] = true
	if collection == "config_containers" {
		d.containersKnown = false
	}
}

// register notes where an object was read, and reports a second one of the same name.
func (d *decoder) register(collection, name string, o *object) {
	if name == "" || name == unknownText {
		return
	}
	key := objectKey{collection, name}
	if first, twice := d.paths[key]; twice {
		where := "the base fleet"
		if first != nil {
			where = first.String()
		}
		o.report("name", "%q is also the name of %s", name, where)
		return
	}
	d.paths[key] = o.path
}

// here says whether an object with an attribute "environment" belongs to this environment. Absent
// means yes.
func (d *decoder) here(o *object) bool {
	environment := o.text("environment")
	d.checkEnvironment(o.path.Attribute("environment"), environment)
	return environment == "" || environment == unknownText || environment == d.fleet.Environment || !d.environmentKnown
}

// checkEnvironment reports a name that is not among those of the attribute "environments".
func (d *decoder) checkEnvironment(path *Path, name string) {
	if d.allEnvironments == nil || name == "" || name == unknownText || slices.Contains(d.allEnvironments, name) {
		return
	}
	d.report(path, "no environment is called %q%s", name, didYouMean(name, d.allEnvironments))
}

// environments reads the optional list of all environments: names, or objects with a name.
func (d *decoder) environments(root *object) {
	names := []string{}
	complete := true
	add := func(path *Path, value any) {
		if object, ok := value.(map[string]any); ok {
			value = object["name"]
		}
		name, ok := value.(string)
		if !ok {
			if _, isUnknown := value.(Unknown); isUnknown {
				complete = false
				return
			}
			d.report(path, "must be the name of an environment, or an object with a name")
			return
		}
		names = append(names, name)
	}
	root.read = append(root.read, "environments")
	path := root.path.Attribute("environments")
	switch value := root.fields["environments"].(type) {
	case nil, Unknown:
		return
	case []any:
		for i, element := range value {
			add(path.Index(i), element)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			add(path.Key(key), value[key])
		}
	default:
		root.report("environments", "must be a list or map of environments, not %s", kindOf(value))
		return
	}
	if complete {
		d.allEnvironments = names
		d.checkEnvironment(root.path.Attribute("environment"), d.fleet.Environment)
	}
}
