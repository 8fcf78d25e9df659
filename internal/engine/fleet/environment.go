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
	} else if problem := labelForm.check(name); problem != "" && name != "" {
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
			o, _ := d.object(&environmentKind.Table, element.Path, value)
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

// environment is an element of environments. A fleet keeps only its name.
type environment struct {
	Name        string           `json:"name"`
	Labels      Labels           `json:"labels"`
	Description string           `json:"description"`
	GitopsRepo  *folder.Location `json:"gitops_repo"`
}

var environmentKind = defineKind(Table{
	Name:    "environment",
	Meaning: "A stage of the chain: dev, stage, prod. It names a location in a GitOps repository.",
}, func(e *environment) []row {
	return []row{
		namedAttribute(&e.Name, labelForm, "Name of the environment, a DNS label."),
		labelsAttribute(&e.Labels),
		textAttribute(&e.Description, descriptionAttribute),
		objectAttribute(&e.GitopsRepo, locationKind, Attribute{
			Meaning: "Where the environment is delivered to. `flotilla_environment` requires it.",
		}),
	}
})

var locationKind = defineKind(Table{
	Name:    "location",
	Meaning: "A folder on a branch of a GitOps repository.",
}, func(l *folder.Location) []row {
	return []row{
		textAttribute(&l.URL, Attribute{
			Name: "url", Required: true,
			Meaning: "URL of the repository: http(s), ssh, a local path (`~/` is your home directory) or `file://`, without credentials.",
		}),
		textAttribute(&l.Branch, Attribute{Name: "branch", Required: true, Meaning: "Name of the branch."}),
		textAttribute(&l.Path, Attribute{Name: "path", Meaning: "Folder of the repository. Unset: its root."}),
	}
}).checkedBy(func(_ *ObjectReader, l *folder.Location) {
	if l.Path == "." || l.Path == "./" || l.Path == "/" {
		l.Path = ""
	}
})

func decodeEnvironment(o *ObjectReader) {
	environmentKind.decode(o)
	o.Finish()
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

func (r *Reader) checkEnvironment(path *Path, name string) {
	r.checkEnvironmentOf(path, "", name)
}

// checkEnvironmentOf begins the finding with before, which names the object.
func (r *Reader) checkEnvironmentOf(path *Path, before, name string) {
	if r.allEnvironments == nil || !isSet(name) || slices.Contains(r.allEnvironments, name) {
		return
	}
	r.Report(path, "%sno environment is called %q%s", before, name, DidYouMean(name, r.allEnvironments))
}

const environmentLabel = "environment"

func checkEnvironmentLabel(o *ObjectReader, attribute string, labels map[string]string) {
	o.reader.checkEnvironment(o.path.Attribute(attribute).Key(environmentLabel), labels[environmentLabel])
}
