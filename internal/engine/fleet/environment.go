package fleet

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

func readEnvironment(d *decoder, root *ObjectReader) {
	name := readRequired(root, "environment")
	d.Fleet.Environment = name
	if name == unknownText {
		d.EnvironmentKnown, d.Known, d.ContainersKnown = false, false, false
	} else if problem := fleetTable.find("environment").Form.check(name); problem != "" && name != "" {
		root.Report("environment", "%q %s", name, problem)
	}
}

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
			decodeEnvironment(o)
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

func decodeEnvironment(o *ObjectReader) belonging {
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

// belongs reads environment. An object without it belongs to the fleet's environment.
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

// checkEnvironment reports a name that environments lacks.
func (r *Reader) checkEnvironment(path *Path, name string) {
	r.checkEnvironmentOf(path, "", name)
}

// checkEnvironmentOf reports it for a name of another object; before names the object.
func (r *Reader) checkEnvironmentOf(path *Path, before, name string) {
	if r.allEnvironments == nil || !isSet(name) || slices.Contains(r.allEnvironments, name) {
		return
	}
	r.Report(path, "%sno environment is called %q%s", before, name, DidYouMean(name, r.allEnvironments))
}

// environmentLabel is the reserved label with an assignment's environment.
const environmentLabel = "environment"

func checkEnvironmentLabel(o *ObjectReader, attribute string, labels map[string]string) {
	o.reader.checkEnvironment(o.path.Attribute(attribute).Key(environmentLabel), labels[environmentLabel])
}
