package adopt

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// ownership tells which objects apply which folders of the documents.
type ownership struct {
	docs       *documents
	repository manifests // of the documents
	sources    sourceIndex
	following  map[string][]*manifestObject // objects by the folders that they apply
}

func newOwnership(d *documents, repository manifests, objects, all []*manifestObject) *ownership {
	w := &ownership{docs: d, repository: repository, sources: indexSources(all), following: map[string][]*manifestObject{}}
	for _, o := range objects {
		if !o.kind.Is(reconciler.Follows) || o.own || o.outside {
			continue
		}
		for _, folder := range w.foldersOf(o) {
			w.following[folder] = append(w.following[folder], o)
		}
	}
	return w
}

// ownersOf returns the objects whose folder contains an object. Several clusters may follow one folder.
func (w *ownership) ownersOf(o *manifestObject) []*manifestObject {
	if o.made {
		return nil // applied by an owner
	}
	owners := w.followers(o.file, o)
	seen := map[*manifestObject]bool{o: true}
	for at := owners; len(at) > 0 && !at[0].made; at = w.followers(at[0].file, at[0]) {
		if seen[at[0]] {
			return nil // a cycle
		}
		seen[at[0]] = true
	}
	return owners
}

// followers returns the objects that apply a file, also through kustomizations, innermost folder first.
func (w *ownership) followers(file string, except *manifestObject) []*manifestObject {
	seen := map[string]bool{}
	var search func(file string) []*manifestObject
	search = func(file string) []*manifestObject {
		if seen[file] {
			return nil
		}
		seen[file] = true
		for at := file; at != "." && at != "/"; at = path.Dir(at) {
			if all := w.following[at]; len(all) > 0 && (len(all) > 1 || all[0] != except) {
				return slices.DeleteFunc(slices.Clone(all), func(one *manifestObject) bool { return one == except })
			}
		}
		for at := file; at != "." && at != "/"; at = path.Dir(at) {
			for _, folder := range w.docs.usedBy[at] {
				if !isBelow(at, folder) {
					if found := search(folder + "/kustomization.yaml"); found != nil {
						return found
					}
				}
			}
		}
		return nil
	}
	return search(file)
}

// foldersOf returns the folders that an object applies, except its own folder and folders of other repositories.
func (w *ownership) foldersOf(o *manifestObject) (folders []string) {
	paths, isGenerated := w.generatedFrom(o)
	if !isGenerated && w.isHere(o) {
		paths = pathsOf(o)
	}
	for _, field := range paths {
		folder := path.Clean(strings.TrimLeft(field, "/"))
		if folder != "." && !isBelow(o.file, folder) && w.docs.folders[folder] {
			folders = append(folders, folder)
		}
	}
	return folders
}

// generatedFrom returns the folders that an object's source was generated from.
func (w *ownership) generatedFrom(o *manifestObject) (folders []string, is bool) {
	for _, named := range sourcesOf(o) {
		if !named.kind.IsGenerated() {
			continue
		}
		is = true
		for _, generator := range w.docs.generators {
			if generator.namespace != named.namespace || generator.host != o.host {
				continue
			}
			for _, one := range reconciler.CopiesOf(generator.spec(), named.name) {
				if w.comesFromHere(sourceReference{reconciler.KindNamed(one.Kind), generator.namespace, one.Name}, o.host) {
					folders = append(folders, copiedFrom(one, pathsOf(o))...)
				}
			}
		}
	}
	return folders, is
}

// copiedFrom returns the folders of a source that were copied to the paths of an artifact.
func copiedFrom(one reconciler.Copy, paths []string) (folders []string) {
	from, to := path.Clean("/"+one.From), path.Clean("/"+one.To)
	for _, at := range paths {
		at = path.Clean("/" + at)
		switch {
		case to == "/" || isBelow(at, to):
			folders = append(folders, path.Join(from, strings.TrimPrefix(at, to)))
		case at == "/" || isBelow(to, at):
			folders = append(folders, from)
		}
	}
	return folders
}

func pathsOf(o *manifestObject) (paths []string) {
	for _, pointer := range o.kind.Pointers {
		if pointer.Is != reconciler.Path {
			continue
		}
		if list, isList := at(o.spec(), strings.TrimSuffix(pointer.Field, ".0")).([]any); isList {
			for _, one := range list {
				if text, isText := one.(string); isText {
					paths = append(paths, text)
				}
			}
		} else if text := textAt(o.spec(), pointer.Field); text != "" {
			paths = append(paths, text)
		}
	}
	return paths
}

func (w *ownership) isHere(o *manifestObject) bool {
	if named := sourcesOf(o); len(named) > 0 {
		return w.comesFromHere(named[0], o.host)
	}
	return w.repository.mayBeAt(pointed(o, reconciler.Repo))
}

// comesFromHere reports whether a source is the documents' repository. The agent's own source may be missing from
// them.
func (w *ownership) comesFromHere(named sourceReference, on *host) bool {
	if named.kind == nil || named.kind.For != reconciler.Git {
		return false
	}
	source := w.sources.find(named, on)
	return source == nil || w.repository.mayBeAt(pointed(source, reconciler.Repo))
}

// mayBeAt ignores letter case, as Git hosts do.
func (m *manifests) mayBeAt(url string) bool {
	return url != "" && (m.Repo == "" || reconciler.SameRepository(strings.ToLower(m.Repo), strings.ToLower(url)))
}

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
