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

// manifestObject is an object of a reconciler.
type manifestObject struct {
	file            string
	kind            *reconciler.ObjectKind
	namespace, name string
	fields          map[string]any // apiVersion, kind, metadata and spec
	host            *host
	own             bool            // it is of the agent itself
	outside         bool            // it is in no folder of a host
	made            bool            // it is what was rendered, not what was read
	tried, isRoot   bool            // it was rendered, and what it brings is taken in its place
	why             string          // why it could not be
	depth           int             // how many roots have brought it
	set             *manifestObject // the ApplicationSet that makes it
}

func (o *manifestObject) String() string {
	return strings.TrimSpace(o.kind.Kind + " " + strings.TrimPrefix(o.namespace+"/"+o.name, "/"))
}

// key is what no other object of a cluster has.
func (o *manifestObject) key() string { return o.kind.Group + " " + o.String() }

func (o *manifestObject) spec() map[string]any {
	spec, _ := o.fields["spec"].(map[string]any)
	return spec
}

// at returns the value of a field below an object; nil where there is none.
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

// overlay is what a kustomization says of what it has.
type overlay struct {
	components  []string // those of the entries that are components
	namespace   string
	changes     string // the first field by which it changes what it has; "" where it changes nothing
	isComponent bool
}

// harmless are the fields of a kustomization that change no object of a reconciler. Labels do not change what it does.
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

// kustomizations are the names of the files that kustomize reads.
var kustomizations = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// documentation matches the names of files for people that a repository has beside its manifests, such as README.md and LICENSE.
var documentation = regexp.MustCompile(`^([A-Z][A-Z_-]+|.+\.(md|txt|adoc|rst))$`)

func (a *adoption) read(texts []fleet.YAMLText) {
	a.overlays, a.usedBy = map[string]overlay{}, map[string][]string{}
	for _, text := range texts {
		if documentation.MatchString(path.Base(text.Name)) {
			continue
		}
		switch extension := path.Ext(text.Name); extension {
		case ".yaml", ".yml", ".json":
		default:
			if strings.Contains(text.Name, "/") && extension != "" {
				continue // a file that is no manifest
			}
		}
		name := path.Clean(text.Name)
		a.files = append(a.files, name)
		for _, problem := range text.Problems {
			a.listed = append(a.listed, Listed{File: text.Name, Reason: problem})
		}
		for _, document := range text.Documents {
			fields, _ := document.Value.(map[string]any)
			if slices.Contains(kustomizations, path.Base(name)) {
				a.overlay(path.Dir(name), fields)
			} else {
				a.document(name, fields, 0)
			}
		}
	}
}

// document reads an object, or those of a list. A document that is no object, such as values of a chart, is nothing to
// adopt.
func (a *adoption) document(file string, fields map[string]any, depth int) {
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

// objectsOf are the objects that are read of what was made, or what is wrong with it.
func (a *adoption) objectsOf(file string, fields map[string]any) (made []*manifestObject, problem string) {
	before, listed := a.objects, len(a.listed)
	defer func() { a.objects, a.listed = before, a.listed[:listed] }()
	a.objects = nil
	a.document(file, fields, 0)
	if len(a.listed) > listed {
		problem = a.listed[listed].Reason
	}
	return a.objects, problem
}

// isRead says whether objects of a kind say what is deployed.
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

// others lists an object that no reconciler's work is told by.
func (a *adoption) others(o *manifestObject) {
	reason := "is no object that says what a reconciler deploys: it stays where it is"
	if of := reconciler.OfGroup(o.kind.Group); of != nil {
		reason = "is an object of " + of.Product + " that deploys nothing by itself: it stays where it is"
	}
	a.list(o, false, reason)
}

func (a *adoption) overlay(folder string, fields map[string]any) {
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

// mayReach says whether a patch of a kustomization may change objects of reconcilers.
func mayReach(patch any) bool {
	kind := textAt(patch, "target.kind")
	return kind == "" || strings.ContainsAny(kind, `|.*[(\`) || reconciler.KindNamed(kind) != nil
}

// imageMarker begins the comment by which Flux' image automation finds a field that it updates.
const imageMarker = `{"$imagepolicy":`

// listMarkers lists files of adopted objects that have markers of image automation: these are comments, and no object has them.
func (a *adoption) listMarkers(units []*unit) {
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
				Reason: "has markers of image automation, which are comments: files that Flotilla writes have none, so Flux no longer updates these fields. Set them in the fleet",
			})
		}
	}
}
