package fleet

import "fmt"

var baseTable = Table{
	Name:    "base fleet",
	Meaning: "A fleet that `provider::flotilla::fleet` or `control_plane` returned.",
	Attributes: []Attribute{
		{Name: "format", Meaning: "The version of this format."},
		{Name: "environment", Required: true, Meaning: "Name of the environment."},
		{Name: "model", Required: true, Meaning: "All that decides who goes where, as JSON."},
		{Name: "config", Type: ObjectType, Required: true, Of: &entriesTable, Meaning: "Configuration values."},
		{Name: "manifests", Type: ObjectType, Required: true, Of: &entriesTable, Meaning: "Manifests of deployment targets."},
		{Name: "constraints", Type: ObjectType, Of: &entriesTable, Meaning: "Rules."},
	},
}

var entriesTable = Table{
	Name:    "entries of a base fleet",
	Meaning: "Entries of a base fleet by name.",
	Attributes: []Attribute{
		{Name: "known", Required: true, Meaning: "Those that are known, as JSON."},
		{Name: "pending", Type: AnyObjectType, Meaning: "Those that are not known yet."},
	},
}

func readBase(d *decoder, root *ObjectReader) {
	if root.fields["base"] == (Unknown{}) {
		d.noteUnknownObjects()
	}
	if o := root.Object("base"); o != nil {
		format := readText(o, "format")
		if err := CheckFormat(format); err != nil && format != unknownText {
			o.Report("format", "%s", err)
			d.noteUnknownObjects()
			return
		}
		environment, model := readRequired(o, "environment"), readRequired(o, "model")
		config, configIsUnknown := readEntries(o, "config")
		manifests, manifestsAreUnknown := readEntries(o, "manifests")
		adoptConstraints(d, o)
		o.Finish()
		d.checkEnvironment(o.path.Attribute("environment"), environment)
		if d.isOtherEnvironment(environment) {
			o.Report("environment", "the base fleet is of environment %q, this one of %q", environment, d.Fleet.Environment)
			return
		}
		if !isSet(model) {
			d.noteUnknownObjects()
			return
		}
		base, err := ParseModel(model)
		if err != nil {
			o.Report("model", "%s", err)
			return
		}
		if d.isOtherEnvironment(base.Environment) {
			o.Report("model", "is of environment %q, this fleet of %q", base.Environment, d.Fleet.Environment)
			return
		}
		for _, workspace := range base.Workspaces {
			for _, name := range workspace.Environments {
				d.checkEnvironmentOf(o.path.Attribute("model"), fmt.Sprintf("workspace %q: ", workspace.Name), name)
			}
		}
		for workload, target := range base.Targets() {
			name := FullName(workload.Name, target.Name)
			adoptManifests(d, o.path.Attribute("manifests"), target, name, manifests[name], manifestsAreUnknown)
		}
		adoptBase(d, base)
		for _, container := range base.ConfigContainers {
			adoptConfig(d, o.path.Attribute("config"), &container, config, configIsUnknown)
		}
	}
}

func (d *decoder) isOtherEnvironment(name string) bool {
	return isSet(name) && d.EnvironmentKnown && name != d.Fleet.Environment
}

func readEntries(o *ObjectReader, attribute string) (entries map[string]any, isUnknown bool) {
	value, path := o.Value(attribute)
	if o.Require(attribute, "is required"); value == nil {
		return nil, true
	}
	given, _ := o.reader.object(tableIn(o, attribute), path, value)
	if given == nil {
		return nil, true
	}
	known := readRequired(given, "known")
	pending, _ := given.Value("pending")
	given.Finish()
	if isSet(known) {
		texts, err := ParseEntries(known)
		if err != nil {
			given.Report("known", "%s", err)
			return nil, true
		}
		entries = make(map[string]any, len(texts))
		for name, text := range texts {
			entries[name] = text
		}
		unknown, _ := pending.(map[string]any)
		for name := range unknown {
			entries[name] = Unknown{}
		}
	}
	return entries, entries == nil
}

func adoptManifests(d *decoder, path *Path, target *DeploymentTarget, name string, entry any, isUnknown bool) {
	text, isText := entry.(string)
	switch {
	case isUnknown || entry == (Unknown{}):
	case isText:
		if err := parseStrictly(text, &target.Manifests); err != nil {
			d.Report(path.Key(name), "must be the JSON of manifests, as provider::flotilla::fleet returned it")
		}
		target.ManifestsPending = false
	default:
		d.Report(path, "deployment target %q has no entry", name)
	}
}

func adoptConfig(d *decoder, path *Path, container *ConfigContainer, entries map[string]any, isUnknown bool) {
	name := container.Name
	entry := entries[name]
	text, isText := entry.(string)
	switch {
	case isUnknown || entry == (Unknown{}):
		d.Pending = append(d.Pending, name)
	case isText:
		value, err := ParseJSON(text)
		if _, isObject := value.(map[string]any); err != nil || !isObject {
			d.Report(path.Key(name), "must be the JSON of an object, as provider::flotilla::fleet returned it")
		}
		d.Config[name] = text
	default:
		d.Report(path, "config container %q has no entry", name)
	}
	beside := SecretsEntry(name)
	switch entry := entries[beside].(type) {
	case Unknown:
		d.Config[beside] = UnknownEntry
		d.Pending = append(d.Pending, beside)
	case string:
		d.Config[beside] = entry
		if _, known, err := d.Config.Secrets(container); err != nil || !known {
			d.Report(path.Key(beside), "must be the JSON of references and encrypted files, as provider::flotilla::fleet returned it")
		}
	}
}

// adoptBase takes over objects without checking them again.
func adoptBase(d *decoder, base *Fleet) {
	environment := d.Fleet.Environment
	*d.Fleet = *base
	d.Fleet.Environment = environment
	for collection, names := range base.names() {
		d.adoptNames(collection, names)
	}
	d.adoptNames("assignments", namesOf(base.Assignments, ExplicitAssignment.key))
	for _, workload := range base.Workloads {
		placed := localWorkload{name: workload.Name}
		for _, target := range workload.DeploymentTargets {
			placed.targets = append(placed.targets, localTarget{name: target.Name})
		}
		d.workloads = append(d.workloads, placed)
		d.workloadNames = append(d.workloadNames, workload.Name)
	}
}

func (c *crossReferences) adoptNames(collection string, names []string) {
	for _, name := range names {
		c.paths[objectKey{collection, name}] = nil
	}
}
