// Package adopt converts the reconciler objects of an existing repository to a fleet that writes equal objects, and
// lists everything that it leaves out. Values go from step to step: decode reads the documents, placer assigns
// objects to hosts, applier replaces them by applied objects, and builder makes workloads and the fleet. The package
// is pure.
package adopt

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// Adoption is the converted fleet.
type Adoption struct {
	Fleet  map[string]any // arguments of provider::flotilla::fleet
	Listed []Listed
}

// Listed is a part of the documents that is missing from the fleet or incomplete in it.
type Listed struct {
	File   string // key or number of the text
	Object string // "<kind> <namespace>/<name>", or "" for a whole document
	Reason string // a clause
	Taken  bool   // the object is in the fleet unchanged
}

type notes []Listed

func (n *notes) add(o *manifestObject, taken bool, reason string) {
	*n = append(*n, Listed{File: o.file, Object: o.String(), Reason: reason, Taken: taken})
}

type options struct {
	repository manifests // repository of the documents; repo may be ""
	hosts      []string  // segments of the folder pattern, or nil
}

const templateName = "adopted"

//go:embed template.yaml
var template string

const configTemplate = `{{- if .ConfigData -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: "{{ .ConfigName }}"
  namespace: "{{ .Namespace }}"
  labels:
    app.kubernetes.io/managed-by: flotilla
data:
{{ stringify .ConfigData | indent 2 }}
{{- end }}
`

// Adopt converts the arguments of provider::flotilla::adopt: an environment, a list or map of YAML texts, and the
// options {repository = {url, branch}, hosts} or nil. It calls render for kustomizations and charts. While an
// argument is unknown, known is false.
func Adopt(environment, texts, given any, render Render) (result *Adoption, known bool, findings fleet.Findings) {
	reader := &fleet.Reader{}
	var root *fleet.Path
	name, isText := environment.(string)
	if _, isUnknown := environment.(fleet.Unknown); isUnknown {
		reader.Unknown = true
	} else if !isText {
		reader.Report(root.Attribute("environment"), "must be the name of an environment")
	} else if problem := fleet.CheckLabelName(name); problem != "" {
		reader.Report(root.Attribute("environment"), "%q %s", name, problem)
	}
	settings := readOptions(reader, given)
	parsed, textsKnown, found := fleet.ReadTexts(texts)
	findings = slices.Concat(reader.Findings, found)
	if known = textsKnown && !reader.Unknown; !known || len(findings) > 0 {
		return nil, known, findings
	}
	d := decode(parsed, texts)
	if settings.repository.Repo == "" {
		settings.repository.Repo = d.agentsRepository()
	}
	p := newPlacer(d, settings, name)
	for _, o := range slices.Concat(d.objects, d.generators) {
		p.placeObject(o, o.file)
	}
	a := newApplier(d, p, settings.repository, render)
	a.applyAll()
	if settings.hosts != nil && !p.isMatched && len(d.files) > 0 {
		reader.Report(root.Attribute("options").Attribute("hosts"),
			"no object to adopt is in a folder like %q; %q is one of the files: the keys of documents must be paths in the repository",
			strings.Join(settings.hosts, "/"), slices.Min(d.files))
		return nil, true, reader.Findings
	}
	kept := a.siftObjects()
	b := &builder{environment: name, repository: settings.repository, sources: a.owners.sources, selectorLabels: a.selectorLabels}
	units := b.units(kept)
	b.listMarkers(units, d.texts)
	workloads := b.groupUnits(units)
	hosts := hostsOf(workloads, p.hosts)
	d.listClusters(hosts)
	listed := slices.Concat(d.listed, a.listed, b.listed)
	slices.SortStableFunc(listed, func(a, b Listed) int { return strings.Compare(a.File+"\x00"+a.Object, b.File+"\x00"+b.Object) })
	return &Adoption{b.fleet(workloads, hosts), listed}, true, nil
}

// OptionsTable describes the options.
var OptionsTable = &fleet.Table{
	Name:    "options of adopt",
	Meaning: "The options of `provider::flotilla::adopt`.",
	Attributes: []fleet.Attribute{
		{
			Name: "repository", Type: fleet.ObjectType, Of: repositoryTable,
			Meaning: "The repository of the documents. Objects whose own repository is not among the documents get this one.",
		},
		{
			Name: "hosts",
			Meaning: "The pattern of the folders that clusters follow, such as `\"clusters/{region}/{cluster_type}\"`: " +
				"`{cluster_type}` is the name of the cluster type, and others in braces are labels of it.",
		},
	},
}

var repositoryTable = &fleet.Table{
	Name:    "repository of adopt",
	Meaning: "A repository, as manifests of deployment targets have it.",
	Attributes: []fleet.Attribute{
		{Name: "url", Required: true, Meaning: "URL of the repository."},
		{Name: "branch", Meaning: "Its branch."},
	},
}

func readOptions(reader *fleet.Reader, given any) (read options) {
	if given == nil {
		return read
	}
	var root *fleet.Path
	o := reader.Object(OptionsTable, root.Attribute("options"), given)
	if o == nil {
		return read
	}
	read.repository = fleet.ReadObject(o, "repository", func(repository *fleet.ObjectReader) manifests {
		return manifests{Storage: "git", Repo: repository.Required("url"), Branch: repository.Text("branch")}
	})
	hosts := o.Text("hosts")
	o.Finish()
	if hosts == "" {
		return read
	}
	read.hosts = strings.Split(strings.Trim(hosts, "/"), "/")
	labels := map[string]bool{}
	for _, segment := range read.hosts {
		label, isLabel := patternLabel(segment)
		switch {
		case !isLabel && strings.ContainsAny(segment, "{}*"):
			o.Report("hosts", "has %q, which is neither the name of a folder nor a label in braces, such as {region}", segment)
		case isLabel && labels[label]:
			o.Report("hosts", "has {%s} twice", label)
		case isLabel && label != clusterType && fleet.CheckLabelKey(label) != "":
			o.Report("hosts", "has %q, which is no key of a label", label)
		case isLabel && schedule.IsReserved(label):
			const format = "has {%s}, a label that Flotilla itself gives to hosts and deployment targets: name it otherwise, such as {in-%[1]s}"
			o.Report("hosts", format, label)
		case isLabel:
			labels[label] = true
		}
	}
	if !labels[clusterType] {
		o.Report("hosts", "must have {%s}, such as in \"clusters/{%s}\"", clusterType, clusterType)
	}
	return read
}

// clusterType is the placeholder for a cluster type's name in a folder pattern, clusterTypeLabel its label.
const (
	clusterType      = "cluster_type"
	clusterTypeLabel = "cluster-type"
)

func patternLabel(segment string) (label string, is bool) {
	inside, opened := strings.CutPrefix(segment, "{")
	inside, closed := strings.CutSuffix(inside, "}")
	return inside, opened && closed && inside != "" && !strings.ContainsAny(inside, "{}")
}
