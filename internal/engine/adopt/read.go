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

// key is unique in a cluster.
func (o *manifestObject) key() string { return o.kind.Group + " " + o.String() }

func (o *manifestObject) spec() map[string]any {
	spec, _ := o.fields["spec"].(map[string]any)
	return spec
}

// at returns a field by path, or nil.
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

// overlay describes a kustomization.
type overlay struct {
	components  []string // entries that are components
	namespace   string
	changes     string // first field that changes objects, or ""
	isComponent bool
}

// harmless lists kustomization fields that leave reconciler objects equal. Labels have no effect on them.
var harmless = []string{
	"apiVersion",
	"kind",
	"metadata",
	"resources",
	"bases",
	"components",
	"namespace",
	"labels",
	"commonLabels",
	"commonAnnotations",
	"generatorOptions",
	"configMapGenerator",
	"secretGenerator",
	"sortOptions",
	"buildMetadata",
}

// kustomizationFiles lists the file names that kustomize reads.
var kustomizationFiles = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// documentation matches names of documents for people, such as README.md and LICENSE.
var documentation = regexp.MustCompile(`^([A-Z][A-Z_-]+|.+\.(md|txt|adoc|rst))$`)

func (a *documents) read(texts []fleet.YAMLText) {
	a.overlays, a.usedBy = map[string]overlay{}, map[string][]string{}
	for _, text := range texts {
		if documentation.MatchString(path.Base(text.Name)) {
			continue
		}
		switch extension := path.Ext(text.Name); extension {
		case ".yaml", ".yml", ".json":
		default:
			if strings.Contains(text.Name, "/") && extension != "" {
				continue // not a manifest
			}
		}
		name := path.Clean(text.Name)
		a.files = append(a.files, name)
		for _, problem := range text.Problems {
			a.listed = append(a.listed, Listed{File: text.Name, Reason: problem})
		}
		for _, document := range text.Documents {
			fields, _ := document.Value.(map[string]any)
			if slices.Contains(kustomizationFiles, path.Base(name)) {
				a.overlay(path.Dir(name), fields)
			} else {
				a.document(name, fields, 0)
			}
		}
	}
}

// document reads an object or list. It ignores other documents, such as chart values.
func (a *documents) document(file string, fields map[string]any, depth int) {
	apiVersion, _ := fields["apiVersion"].(string)
	kindName, _ := fields["kind"].(string)
	if items, isList := objects.Items(fields); isList && depth == 0 {
		for _, item := range items {
			inner, _ := item.(map[string]any)
			a.document(file, inner, depth+1)
		}
		return
	}
	if apiVersion == "" || kindName == "" {
		return
	}
	group, _, hasGroup := strings.Cut(apiVersion, "/")
	if !hasGroup {
		group = ""
	}
	kind := reconciler.KindOf(group, kindName)
	isTaken := isRead(kind)
	if kind == nil {
		kind = &reconciler.ObjectKind{Group: group, Kind: kindName}
	}
	o := &manifestObject{file: file, kind: kind, name: textAt(fields, "metadata.name"), namespace: textAt(fields, "metadata.namespace")}
	if group == "" && a.cluster(kindName, file, fields) {
		return
	}
	if !isTaken {
		if reconciler.IsGenerator(group, kindName) {
			o.fields = fields
			a.generators = append(a.generators, o)
		}
		a.others(o)
		return
	}
	metadata, hasMetadata := fields["metadata"].(map[string]any)
	spec, hasSpec := fields["spec"].(map[string]any)
	switch problem := fleet.CheckSubdomainName(o.name); {
	case !hasMetadata || o.name == "":
		a.list(o, false, "has no metadata.name")
		return
	case problem != "":
		a.list(o, false, "metadata.name "+problem)
		return
	case o.namespace != "" && fleet.CheckLabelName(o.namespace) != "" || at(metadata, "namespace") != nil && o.namespace == "":
		a.list(o, false, "metadata.namespace is no name of a namespace")
		return
	case !hasSpec:
		a.list(o, false, "spec must be an object")
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
			a.list(o, false, "metadata."+key+" must be an object of strings")
			return
		}
	}
	o.own = reconciler.IsAgents(o.name) && reconciler.InNamespace(o.namespace) != nil
	o.fields = map[string]any{"apiVersion": apiVersion, "kind": kindName, "metadata": kept, "spec": spec}
	a.objects = append(a.objects, o)
}

// objectsOf reads rendered objects, and returns the first problem.
func (a *documents) objectsOf(file string, fields map[string]any) (made []*manifestObject, problem string) {
	before, listed := a.objects, len(a.listed)
	defer func() { a.objects, a.listed = before, a.listed[:listed] }()
	a.objects = nil
	a.document(file, fields, 0)
	if len(a.listed) > listed {
		problem = a.listed[listed].Reason
	}
	return a.objects, problem
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

// others lists an object that determines no deployment.
func (a *documents) others(o *manifestObject) {
	reason := "is no object that says what a reconciler deploys: it stays where it is"
	if of := reconciler.OfGroup(o.kind.Group); of != nil {
		reason = "is an object of " + of.Product + " that deploys nothing by itself: it stays where it is"
	}
	a.list(o, false, reason)
}

func (a *documents) overlay(folder string, fields map[string]any) {
	read := overlay{isComponent: textAt(fields, "kind") == "Component"}
	read.namespace, _ = fields["namespace"].(string)
	for key, value := range fields {
		entries, _ := value.([]any)
		switch key {
		case "resources", "bases", "components":
			for _, entry := range entries {
				if text, isText := entry.(string); isText && !strings.Contains(text, "://") {
					named := path.Join(folder, text)
					a.usedBy[named] = append(a.usedBy[named], folder)
					if key == "components" {
						read.components = append(read.components, named)
					}
				} else if key == "components" {
					read.components = append(read.components, "")
				}
			}
		case "patches":
			if !slices.ContainsFunc(entries, mayReach) {
				continue
			}
		}
		if !slices.Contains(harmless, key) && value != nil && (read.changes == "" || key < read.changes) {
			read.changes = key
		}
	}
	a.overlays[folder] = read
}

// mayReach reports whether a kustomization's patch may change reconciler objects.
func mayReach(patch any) bool {
	kind := textAt(patch, "target.kind")
	return kind == "" || strings.ContainsAny(kind, `|.*[(\`) || reconciler.KindNamed(kind) != nil
}

// imageMarker begins the comment that marks a field for Flux' image automation.
const imageMarker = `{"$imagepolicy":`

// listMarkers lists files with markers of image automation, because comments are not adopted.
func (a *documents) listMarkers(units []*unit) {
	files := map[string]bool{}
	for _, u := range units {
		for _, o := range u.objects {
			files[o.file] = true
		}
	}
	for file := range files {
		if strings.Contains(a.texts[file], imageMarker) {
			a.listed = append(a.listed, Listed{
				File: file, Taken: true,
				Reason: "has markers of image automation, which are comments: " +
					"files that Flotilla writes have none, so Flux no longer updates these fields. Set them in the fleet",
			})
		}
	}
}
