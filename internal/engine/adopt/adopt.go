// Package adopt reads the objects of reconcilers that a fleet has already, and gives the objects of Flotilla that make the
// same: workloads with deployment targets, cluster types, clusters, target policies and the template that writes them. What
// it does not take it lists, with the reason. It is pure.
package adopt

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// Adoption is what was made of the documents.
type Adoption struct {
	Fleet  map[string]any // the keys of provider::flotilla::fleet
	Listed []Listed
}

// Listed is something of the documents that is not in the fleet, or that the fleet cannot say.
type Listed struct {
	File   string // the key of the document's text, or its number
	Object string // "<kind> <namespace>/<name>"; "" for a whole document
	Reason string // a clause
	Taken  bool   // the object is in the fleet nevertheless, as it is
}

// options are what the documents do not say.
type options struct {
	repository manifests // where the documents are from; repo is "" where that is not given
	hosts      []string  // the segments of the pattern of folders; nil where it is not given
}

// templateName is the name of each of the templates that write what was adopted.
const templateName = "adopted"

//go:embed template.yaml
var template string

// configTemplate writes the configuration, but only where there is any.
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

// Adopt reads the arguments of provider::flotilla::adopt: the name of an environment, a list or map of texts of YAML
// documents, and options, {repository = {url, branch}, hosts}, which may be nil. render gives what folders of the documents
// come to. The result is nil, and known is false, while
// any of them is not known.
func Adopt(environment, documents, given any, render Render) (result *Adoption, known bool, findings fleet.Findings) {
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
	texts, textsKnown, found := fleet.ReadTexts(documents)
	findings = slices.Concat(reader.Findings, found)
	if known = textsKnown && !reader.Unknown; !known || len(findings) > 0 {
		return nil, known, findings
	}
	a := &adoption{environment: name, options: settings, render: render, built: map[string]string{}, results: map[string]*objects.Result{}}
	a.read(texts)
	a.keepTexts(documents)
	a.all = slices.Clone(a.objects)
	slices.SortFunc(a.clusters, func(a, b *cluster) int { return strings.Compare(a.name, b.name) })
	a.locate()
	a.place()
	a.apply()
	a.sift()
	a.build()
	slices.SortStableFunc(a.listed, func(a, b Listed) int {
		return strings.Compare(a.File+"\x00"+a.Object, b.File+"\x00"+b.Object)
	})
	return &Adoption{a.fleet(), a.listed}, true, nil
}

// OptionsTable is that of the options.
var OptionsTable = &fleet.Table{
	Name:    "options of adopt",
	Meaning: "The options of `provider::flotilla::adopt`.",
	Attributes: []fleet.Attribute{
		{
			Name:    "repository",
			Type:    fleet.ObjectType,
			Of:      repositoryTable,
			Meaning: "The repository of the documents: that of objects whose own is not among the documents.",
		},
		{
			Name:    "hosts",
			Meaning: "The pattern of the folders that clusters follow, such as `\"clusters/{region}/{cluster_type}\"`: `{cluster_type}` is the name of the cluster type, and others in braces are labels of it.",
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
			o.Report(
				"hosts",
				"has {%s}, a label that Flotilla itself gives to hosts and deployment targets: name it otherwise, such as {in-%[1]s}",
				label,
			)
		case isLabel:
			labels[label] = true
		}
	}
	if !labels[clusterType] {
		o.Report("hosts", "must have {%s}, such as in \"clusters/{%s}\"", clusterType, clusterType)
	}
	return read
}

// clusterType is what stands for the name of a cluster type in a pattern of folders, and the label that has it.
const (
	clusterType      = "cluster_type"
	clusterTypeLabel = "cluster-type"
)

// patternLabel returns the label of a segment "{label}".
func patternLabel(segment string) (label string, is bool) {
	inside, opened := strings.CutPrefix(segment, "{")
	inside, closed := strings.CutSuffix(inside, "}")
	return inside, opened && closed && inside != "" && !strings.ContainsAny(inside, "{}")
}

// adoption is what was read so far.
type adoption struct {
	environment string
	options     options
	listed      []Listed

	render      Render
	results     map[string]*objects.Result // by request
	texts       map[string]string          // by path; nil where they have none
	files       []string                   // the names of all texts
	objects     []*manifestObject          // those that are to be taken
	all         []*manifestObject          // those that were read or made
	filesOf     map[string][]string        // by kind and name of an object
	generators  []*manifestObject          // those that generate artifacts
	sources     map[sourceReference][]*manifestObject
	following   map[string][]*manifestObject // what brings a folder
	folders     map[string]bool              // all files and folders
	overlays    map[string]overlay           // kustomizations, by folder
	usedBy      map[string][]string          // the folders of kustomizations, by what they name
	built       map[string]string            // why a kustomization could not be rendered, by its folder; "" where it was
	hostFolders map[string]string            // the names of folders that clusters follow
	hosts       map[string]*host
	workloads   []*workload

	clusters           []*cluster           // to which Argo CD deploys
	templates          *render.TextRenderer // of ApplicationSets
	madeText, madeWork int                  // bytes of all Applications, and of what parameters are put into
}

func (a *adoption) list(o *manifestObject, taken bool, reason string) {
	a.listed = append(a.listed, Listed{File: o.file, Object: o.String(), Reason: reason, Taken: taken})
}
