package fleet

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// readEnvironment reads the environment of the fleet.
func readEnvironment(d *decoder, root *ObjectReader) {
	name := readRequired(root, "environment")
	d.Fleet.Environment = name
	if name == unknownText {
		d.EnvironmentKnown, d.Known, d.ContainersKnown = false, false, false
	} else if problem := fleetTable.find("environment").Form.check(name); problem != "" && name != "" {
		root.Report("environment", "%q %s", name, problem)
	}
}

// environments reads the optional list of all environments: names, or objects with a name.
func readEnvironments(d *decoder, root *ObjectReader) {
	value, path := root.Value("environments")
	elements, are := Elements(path, value)
	if !are {
		if value != nil && value != (Unknown{}) {
			root.Report("environments", "must be a list or map of environments, not %s", kindOf(value))
		}
		return
	}
	names, complete := []string{}, true
	for _, element := range elements {
		switch value := element.Value.(type) {
		case Unknown:
			complete = false
		case map[string]any:
			o, _ := d.object(&environmentTable, element.Path, value)
			decodeEnvironment(d, o)
			if name, ok := value["name"].(string); ok {
				names = append(names, name)
			} else {
				complete = false
			}
		case string:
			names = append(names, value)
		default:
			complete = false
			d.Report(element.Path, "must be the name of an environment, or an object with a name, not %s", kindAndHint(value))
		}
	}
	if complete {
		d.allEnvironments = names
		d.checkEnvironment(root.path.Attribute("environment"), d.Fleet.Environment)
	}
}

// environment checks an environment, which is not part of any fleet's model.
func decodeEnvironment(d *decoder, o *ObjectReader) belonging {
	readName(o, formCheck(o, "name"))
	readLabels(o, "labels")
	readText(o, "description")
	if repo := o.Object("gitops_repo"); repo != nil {
		readLocation(repo)
	}
	o.Finish()
	return inEnvironment
}

// readLocation reads a location in a repository. The paths "." and "" are the root.
func readLocation(o *ObjectReader) folder.Location {
	repo := folder.Location{URL: readRequired(o, "url"), Branch: readRequired(o, "branch"), Path: readText(o, "path")}
	if repo.Path == "." || repo.Path == "./" || repo.Path == "/" {
		repo.Path = ""
	}
	o.Finish()
	return repo
}

// belongs reads the attribute "environment" of an object, and says whether it is the fleet's. An object without it
// belongs to the fleet's environment.
func (d *decoder) belongs(o *ObjectReader) belonging {
	environment := readText(o, "environment")
	if problem := labelForm.check(environment); isSet(environment) && problem != "" {
		o.Report("environment", "%q %s", environment, problem)
	}
	d.checkEnvironment(o.path.Attribute("environment"), environment)
	switch {
	case environment == "":
		return inEnvironment
	case environment == unknownText || !d.EnvironmentKnown:
		return maybeInEnvironment
	case environment == d.Fleet.Environment:
		return inEnvironment
	}
	return notInEnvironment
}

// checkEnvironment reports a name that is not among those of the attribute "environments".
func (r *Reader) checkEnvironment(path *Path, name string) {
	r.checkEnvironmentOf(path, "", name)
}

// checkEnvironmentOf is checkEnvironment for a name that the user has not written at this path. before is the
// beginning of the message, and says which object has the name.
func (r *Reader) checkEnvironmentOf(path *Path, before, name string) {
	if r.allEnvironments == nil || !isSet(name) || slices.Contains(r.allEnvironments, name) {
		return
	}
	r.Report(path, "%sno environment is called %q%s", before, name, DidYouMean(name, r.allEnvironments))
}

// environmentLabel is the reserved label that says which environment an assignment is of.
const environmentLabel = "environment"

// checkEnvironmentLabel reports a label that asks for an environment that does not exist.
func checkEnvironmentLabel(o *ObjectReader, attribute string, labels map[string]string) {
	o.reader.checkEnvironment(o.path.Attribute(attribute).Key(environmentLabel), labels[environmentLabel])
}
