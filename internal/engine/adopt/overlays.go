package adopt

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// overlay is a kustomization.
type overlay struct {
	components  []string // entries that are components
	namespace   string
	changes     string // first field that changes objects, or ""
	isComponent bool
}

// harmless lists fields that leave reconciler objects equal. Labels have no effect on them.
var harmless = []string{
	"apiVersion", "kind", "metadata", "resources", "bases", "components", "namespace", "labels", "commonLabels", "commonAnnotations",
	"generatorOptions", "configMapGenerator", "secretGenerator", "sortOptions", "buildMetadata",
}

var kustomizationFiles = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

func (a *documents) readOverlay(folder string, fields map[string]any) {
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

func (a *documents) hasOverlay(folder string) bool {
	_, has := a.overlays[folder]
	return has
}

const maxComponents = 20

// changesOf returns the field that makes a kustomization or its components change objects.
func (a *documents) changesOf(named overlay, depth int) string {
	if named.changes != "" {
		return named.changes
	}
	for _, component := range named.components {
		if inner, isHere := a.overlays[component]; !isHere || depth > maxComponents || a.changesOf(inner, depth+1) != "" {
			return "components"
		}
	}
	return ""
}

// outermost returns the kustomizations of a file that no other includes.
func (a *documents) outermost(file string) (folders []string) {
	for _, folder := range slices.Sorted(maps.Keys(a.kustomizationsOf(file))) {
		if len(a.usedBy[folder]) == 0 && !a.overlays[folder].isComponent {
			folders = append(folders, folder)
		}
	}
	return folders
}

func (a *documents) kustomizationsOf(file string) map[string]bool {
	found := map[string]bool{}
	var search func(at string)
	search = func(at string) {
		for _, by := range a.usedBy[at] {
			if !found[by] {
				found[by] = true
				search(by)
			}
		}
	}
	search(file)
	return found
}
