package adopt

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
)

// sift keeps the objects that a reconciler applies unchanged and lists the others. Roots, the agent's own objects and
// the content of other objects are not workloads.
func (a *applier) sift() {
	var kept []*manifestObject
	firsts := map[string]*manifestObject{} // by host and key
	for _, o := range a.objects {
		owners := a.ownersOf(o)
		var namespace, problem string
		switch {
		case o.own:
			problem = "is the agent's own: it goes on to follow its folder"
		case o.isRoot:
			problem = "brings objects of reconcilers, which are adopted themselves: it goes on to follow its folder"
		case len(owners) > 0:
			problem = fmt.Sprintf("comes with %s, which brings its folder", owners[0]) + because(owners[0].why)
		case o.outside:
			problem = "is in no folder of a host: it comes with what brings its folder, or stays where it is"
		default:
			namespace, problem = a.asKustomized(o)
		}
		if problem != "" {
			a.list(o, false, problem)
			continue
		}
		if namespace != "" {
			o.namespace = namespace
			metadata := maps.Clone(o.fields["metadata"].(map[string]any))
			metadata["namespace"] = namespace
			o.fields = maps.Clone(o.fields)
			o.fields["metadata"] = metadata
		}
		if placeholder := findPlaceholder(o.fields); placeholder != "" {
			a.list(o, false, fmt.Sprintf("has the text %q, which the template of adopted objects replaces", placeholder))
			continue
		}
		first := firsts[o.host.name+" "+o.key()]
		switch {
		case first == nil:
			firsts[o.host.name+" "+o.key()] = o
			kept = append(kept, o)
		case reflect.DeepEqual(first.fields, o.fields):
			a.list(o, false, "is also in "+first.file+", with the same content")
		default:
			a.list(
				o,
				false,
				fmt.Sprintf("is also in %s, with other content, which is taken: if both are for different clusters, give the option hosts", first.file),
			)
		}
	}
	a.objects = kept
}

// ownersOf returns the objects whose folder contains a file. Several clusters may follow one folder.
func (a *applier) ownersOf(o *manifestObject) []*manifestObject {
	if o.made {
		return nil // applied by an owner
	}
	owners := a.followers(o.file, o)
	seen := map[*manifestObject]bool{o: true}
	for at := owners; len(at) > 0 && !at[0].made; at = a.followers(at[0].file, at[0]) {
		if seen[at[0]] {
			return nil // a cycle
		}
		seen[at[0]] = true
	}
	return owners
}

// follow indexes objects by the folders that they apply.
func (a *applier) follow() {
	a.following = map[string][]*manifestObject{}
	if a.folders == nil {
		a.folders = map[string]bool{}
		for _, file := range a.files {
			for at := file; !a.folders[at] && at != "." && at != "/"; at = path.Dir(at) {
				a.folders[at] = true
			}
		}
	}
	for _, o := range a.objects {
		if !o.kind.Is(reconciler.Follows) || o.own || o.outside {
			continue
		}
		for _, folder := range a.foldersOf(o) {
			a.following[folder] = append(a.following[folder], o)
		}
	}
}

// foldersOf returns the folders of the documents that an object applies, or none if it uses another repository.
func (a *applier) foldersOf(o *manifestObject) (folders []string) {
	paths, isGenerated := a.generated(o)
	if !isGenerated && a.isHere(o) {
		paths = a.pathFields(o)
	}
	for _, field := range paths {
		folder := path.Clean(strings.TrimLeft(field, "/"))
		// Exclude the folder of the object itself.
		if folder != "." && !isBelow(o.file, folder) && a.folders[folder] {
			folders = append(folders, folder)
		}
	}
	return folders
}

func (a *applier) pathFields(o *manifestObject) (paths []string) {
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

// isHere reports whether an object's content is in the documents' repository.
func (a *applier) isHere(o *manifestObject) bool {
	if named := sourcesOf(o); len(named) > 0 {
		return a.comesFromHere(named[0], o.host)
	}
	return a.points(o)
}

// comesFromHere reports whether a source is the documents' repository. The agent's installer creates its own source,
// which may be missing from the documents.
func (a *applier) comesFromHere(named sourceReference, on *host) bool {
	if named.kind == nil || named.kind.For != reconciler.Git {
		return false
	}
	source := a.find(named, on)
	return source == nil || a.points(source)
}

// points reports whether an object names the documents' repository.
func (a *documents) points(o *manifestObject) bool {
	return a.isRepository(pointed(o, reconciler.Repo))
}

// isRepository reports whether a URL may be the documents' repository. It ignores letter case, as Git hosts do.
func (a *documents) isRepository(url string) bool {
	here := a.options.repository.Repo
	return url != "" && (here == "" || reconciler.SameRepository(strings.ToLower(here), strings.ToLower(url)))
}

// locate takes the repository from the agent's own source, if the options lack it.
func (a *documents) locate() {
	for _, o := range a.objects {
		if a.options.repository.Repo == "" && o.own && o.kind.For == reconciler.Git && o.kind.Is(reconciler.Source) {
			a.options.repository.Repo = textAt(o.spec(), "url")
		}
	}
}

// followers returns the objects that apply a file, innermost folder first, or through a kustomization in another
// folder.
func (a *applier) followers(file string, except *manifestObject) []*manifestObject {
	seen := map[string]bool{}
	var of func(file string) []*manifestObject
	of = func(file string) []*manifestObject {
		if seen[file] {
			return nil
		}
		seen[file] = true
		for at := file; at != "." && at != "/"; at = path.Dir(at) {
			if all := a.following[at]; len(all) > 0 && (len(all) > 1 || all[0] != except) {
				return slices.DeleteFunc(slices.Clone(all), func(one *manifestObject) bool { return one == except })
			}
		}
		for at := file; at != "." && at != "/"; at = path.Dir(at) {
			for _, folder := range a.usedBy[at] {
				if !isBelow(at, folder) {
					if found := of(folder + "/kustomization.yaml"); found != nil {
						return found
					}
				}
			}
		}
		return nil
	}
	return of(file)
}

// kustomized returns the namespace that kustomizations set for a file's objects, or the problem with them. isChanged
// reports that rendering the kustomizations would solve it.
func (a *kustomizations) kustomized(file string) (namespace, problem string, isChanged bool) {
	if folder := path.Dir(file); len(a.usedBy[file]) == 0 && a.hasOverlay(folder) {
		return "", fmt.Sprintf(
			"is not among the resources of %s: it is not known whether it is applied",
			path.Join(folder, kustomizationFiles[0]),
		), false
	}
	seen := map[string]bool{}
	for at := file; ; {
		by := slices.Compact(slices.Sorted(slices.Values(a.usedBy[at])))
		if len(by) > 1 {
			return "", fmt.Sprintf(
				"is in the kustomizations of %s, and it is not known how it is applied",
				strings.Join(by, ", "),
			) + a.unbuilt(file), true
		}
		if len(by) == 0 || seen[by[0]] {
			return namespace, "", false
		}
		at = by[0]
		seen[at] = true
		named := a.overlays[at]
		if changes := a.changesOf(named, 0); changes != "" {
			return "", fmt.Sprintf(
				"may be changed by %s of %s, and it is not known how it is applied",
				changes,
				path.Join(at, kustomizationFiles[0]),
			) + a.unbuilt(file), true
		}
		if named.namespace != "" {
			namespace = named.namespace
		}
	}
}

// asKustomized is kustomized for an object that was read.
func (a *kustomizations) asKustomized(o *manifestObject) (namespace, problem string) {
	if !o.made {
		namespace, problem, _ = a.kustomized(o.file)
	}
	return namespace, problem
}

// unbuilt returns the rendering error of a file's kustomizations, as the end of a sentence.
func (a *kustomizations) unbuilt(file string) string {
	for _, folder := range a.outermost(file) {
		if problem := a.built[folder]; problem != "" {
			return ": " + problem
		}
	}
	return ""
}

func (a *kustomizations) hasOverlay(folder string) bool {
	_, has := a.overlays[folder]
	return has
}

// maxComponents bounds nested components.
const maxComponents = 20

// changesOf returns the field that makes a kustomization or its components change objects, or "".
func (a *kustomizations) changesOf(named overlay, depth int) string {
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

// because adds the cause to a reason.
func because(why string) string {
	if why == "" {
		return ""
	}
	return ", and is not adopted itself: " + why
}

// findPlaceholder returns the first text of an object that the template would replace, or "".
func findPlaceholder(value any) (found string) {
	deep.Holds(value, func(part any) bool {
		text, _ := part.(string)
		name, isPlaceholder := strings.CutPrefix(text, "$(")
		if strings.Contains(text, ofCluster) || isPlaceholder && slices.Contains(said, strings.TrimSuffix(name, ")")) {
			found = min(text, cmp.Or(found, text))
		}
		return false
	})
	return found
}
