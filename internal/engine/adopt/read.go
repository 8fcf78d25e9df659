package adopt

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// manifestObject is an object for a reconciler.
type manifestObject struct {
	file            string
	kind            *reconciler.ObjectKind
	namespace, name string
	fields          map[string]any // apiVersion, kind, metadata and spec
	host            *host
	own             bool            // belongs to the agent
	outside         bool            // outside all host folders
	made            bool            // rendered, not read
	tried, isRoot   bool            // rendered, and replaced by its objects
	why             string          // rendering error
	depth           int             // number of roots above
	set             *manifestObject // its ApplicationSet
}

func (o *manifestObject) String() string {
	return strings.TrimSpace(o.kind.Kind + " " + strings.TrimPrefix(o.namespace+"/"+o.name, "/"))
}

func (o *manifestObject) kindAndName() string { return o.kind.Kind + " " + o.name }

// key is unique in a cluster.
func (o *manifestObject) key() string { return o.kind.Group + " " + o.String() }

func (o *manifestObject) spec() map[string]any {
	spec, _ := o.fields["spec"].(map[string]any)
	return spec
}

// at returns a field by path; nil if it is absent.
func at(value any, field string) any {
	for step := range strings.SplitSeq(field, ".") {
		switch within := value.(type) {
		case map[string]any:
			value = within[step]
		case []any:
			if step != "0" || len(within) != 1 {
				return nil
			}
			value = within[0]
		default:
			return nil
		}
	}
	return value
}

func textAt(value any, field string) string {
	text, _ := at(value, field).(string)
	return text
}

// documentation matches documents for people, such as README.md and LICENSE.
var documentation = regexp.MustCompile(`^([A-Z][A-Z_-]+|.+\.(md|txt|adoc|rst))$`)

type documents struct {
	texts      map[string]string   // by path, or nil
	files      []string            // names of all texts
	folders    map[string]bool     // files, and all folders above them
	objects    []*manifestObject   // to be adopted
	generators []*manifestObject   // generators of artifacts
	filesOf    map[string][]string // by kind and name of an object
	overlays   map[string]overlay  // kustomizations, by folder
	usedBy     map[string][]string // folders of kustomizations, by entry
	clusters   []*cluster          // destinations of Argo CD, by name
	listed     notes
}

// decode reads parsed texts. given are the texts, with paths if it is a map.
func decode(parsed []fleet.YAMLText, given any) *documents {
	d := &documents{
		texts: map[string]string{}, folders: map[string]bool{}, filesOf: map[string][]string{},
		overlays: map[string]overlay{}, usedBy: map[string][]string{},
	}
	charts := map[string]bool{}
	for _, text := range parsed {
		if name := path.Clean(text.Name); path.Base(name) == "Chart.yaml" {
			charts[path.Dir(name)] = true
		}
	}
	withTemplates := map[string]bool{}
	for _, text := range parsed {
		extension := path.Ext(text.Name)
		isManifest := slices.Contains([]string{".yaml", ".yml", ".json"}, extension)
		if documentation.MatchString(path.Base(text.Name)) || !isManifest && strings.Contains(text.Name, "/") && extension != "" {
			continue
		}
		name := path.Clean(text.Name)
		d.files = append(d.files, name)
		for at := name; !d.folders[at] && at != "." && at != "/"; at = path.Dir(at) {
			d.folders[at] = true
		}
		before := len(d.listed)
		for _, problem := range text.Problems {
			d.listed = append(d.listed, Listed{File: text.Name, Reason: problem})
		}
		for _, document := range text.Documents {
			fields, _ := document.Value.(map[string]any)
			if slices.Contains(kustomizationFiles, path.Base(name)) {
				d.readOverlay(path.Dir(name), fields)
			} else {
				d.readDocument(name, fields, 0)
			}
		}
		folder := templatesFolder(charts, name)
		if folder == "" || len(d.listed) == before {
			continue
		}
		if d.listed = d.listed[:before]; !withTemplates[folder] {
			withTemplates[folder] = true
			d.listed = append(d.listed, Listed{File: folder, Reason: "has templates of a Helm chart: they stay where they are"})
		}
	}
	byPath, _ := given.(map[string]any)
	for name, text := range byPath {
		text, isText := text.(string)
		if clean := path.Clean(name); isText && !path.IsAbs(clean) && clean != ".." && !strings.HasPrefix(clean, "../") {
			d.texts[clean] = text
		}
	}
	for _, o := range d.objects {
		d.filesOf[o.kindAndName()] = append(d.filesOf[o.kindAndName()], o.file)
	}
	slices.SortFunc(d.clusters, func(a, b *cluster) int { return strings.Compare(a.name, b.name) })
	return d
}

// templatesFolder returns "" for other files than chart templates.
func templatesFolder(charts map[string]bool, file string) string {
	for folder := path.Dir(file); folder != "." && folder != "/"; folder = path.Dir(folder) {
		if path.Base(folder) == "templates" && charts[path.Dir(folder)] {
			return folder
		}
	}
	return ""
}

func (a *documents) agentsRepository() string {
	for _, o := range a.objects {
		if url := textAt(o.spec(), "url"); o.own && o.kind.For == reconciler.Git && o.kind.Is(reconciler.Source) && url != "" {
			return url
		}
	}
	return ""
}

// readDocument reads an object or list, and ignores other documents, such as chart values.
func (a *documents) readDocument(file string, fields map[string]any, depth int) {
	apiVersion, _ := fields["apiVersion"].(string)
	kindName, _ := fields["kind"].(string)
	if items, isList := objects.Items(fields); isList && depth == 0 {
		for _, item := range items {
			inner, _ := item.(map[string]any)
			a.readDocument(file, inner, depth+1)
		}
		return
	}
	if apiVersion == "" || kindName == "" {
		return
	}
	group := objects.GroupOf(apiVersion)
	kind := reconciler.KindOf(group, kindName)
	isTaken := isRead(kind)
	if kind == nil {
		kind = &reconciler.ObjectKind{Group: group, Kind: kindName}
	}
	o := &manifestObject{file: file, kind: kind, name: textAt(fields, "metadata.name"), namespace: textAt(fields, "metadata.namespace")}
	if a.readCluster(o, fields) {
		return
	}
	if !isTaken {
		if reconciler.IsGenerator(group, kindName) {
			o.fields = fields
			a.generators = append(a.generators, o)
		}
		reason := "is no object that deploys anything: it stays where it is"
		if of := reconciler.OfGroup(group); of != nil {
			reason = "is an object of " + of.Product + " that deploys nothing by itself: it stays where it is"
		}
		a.listed.add(o, false, reason)
		return
	}
	metadata, hasMetadata := fields["metadata"].(map[string]any)
	spec, hasSpec := fields["spec"].(map[string]any)
	switch problem := fleet.CheckSubdomainName(o.name); {
	case !hasMetadata || o.name == "":
		a.listed.add(o, false, "has no metadata.name")
		return
	case problem != "":
		a.listed.add(o, false, "metadata.name "+problem)
		return
	case o.namespace != "" && fleet.CheckLabelName(o.namespace) != "" || at(metadata, "namespace") != nil && o.namespace == "":
		a.listed.add(o, false, "metadata.namespace is no name of a namespace")
		return
	case !hasSpec:
		a.listed.add(o, false, "spec must be an object")
		return
	}
	kept := map[string]any{}
	for _, key := range []string{"name", "namespace", "labels", "annotations", "finalizers"} {
		if value := metadata[key]; value != nil {
			kept[key] = value
		}
	}
	for _, key := range []string{"labels", "annotations"} {
		if !areTexts(kept[key]) {
			a.listed.add(o, false, "metadata."+key+" must be an object of strings")
			return
		}
	}
	o.own = reconciler.IsAgents(o.name) && reconciler.InNamespace(o.namespace) != nil
	o.fields = map[string]any{"apiVersion": apiVersion, "kind": kindName, "metadata": kept, "spec": spec}
	a.objects = append(a.objects, o)
}

// objectsOf reads a rendered object or list, and returns the first problem.
func objectsOf(file string, fields map[string]any) (made []*manifestObject, problem string) {
	var rendered documents
	rendered.readDocument(file, fields, 0)
	if len(rendered.listed) > 0 {
		problem = rendered.listed[0].Reason
	}
	for _, o := range rendered.objects {
		o.made = true
	}
	return rendered.objects, problem
}

// isRead reports whether a kind determines deployments.
func isRead(kind *reconciler.ObjectKind) bool {
	return kind.Is(reconciler.Follows | reconciler.Consumer | reconciler.Maker | reconciler.Source)
}

func areTexts(value any) bool {
	if value == nil {
		return true
	}
	object, isObject := value.(map[string]any)
	for _, member := range object {
		if _, isText := member.(string); !isText {
			return false
		}
	}
	return isObject
}
