package adopt

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
)

// siftObjects returns the objects that a reconciler applies unchanged. It lists the others, roots, the agent's own objects
// and the content of other objects.
func (a *applier) siftObjects() (kept []*manifestObject) {
	firsts := map[string]*manifestObject{} // by host and key
	for _, o := range a.objects {
		owners := a.owners.ownersOf(o)
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
			a.listed.add(o, false, problem)
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
			a.listed.add(o, false, fmt.Sprintf("has the text %q, which the template of adopted objects replaces", placeholder))
			continue
		}
		first := firsts[o.host.name+" "+o.key()]
		switch {
		case first == nil:
			firsts[o.host.name+" "+o.key()] = o
			kept = append(kept, o)
		case reflect.DeepEqual(first.fields, o.fields):
			a.listed.add(o, false, "is also in "+first.file+", with the same content")
		default:
			const format = "is also in %s, with other content, which is taken: if both are for different clusters, give the option hosts"
			a.listed.add(o, false, fmt.Sprintf(format, first.file))
		}
	}
	return kept
}

// kustomized returns the namespace that kustomizations set for a file's objects, or the problem with them. isChanged
// reports that rendering would solve it.
func (a *applier) kustomized(file string) (namespace, problem string, isChanged bool) {
	if folder := path.Dir(file); len(a.docs.usedBy[file]) == 0 && a.docs.hasOverlay(folder) {
		const format = "is not among the resources of %s: it is not known whether it is applied"
		return "", fmt.Sprintf(format, path.Join(folder, kustomizationFiles[0])), false
	}
	seen := map[string]bool{}
	for at := file; ; {
		by := slices.Compact(slices.Sorted(slices.Values(a.docs.usedBy[at])))
		if len(by) > 1 {
			problem = fmt.Sprintf("is in the kustomizations of %s, and it is not known how it is applied", strings.Join(by, ", "))
			return "", problem + a.unbuilt(file), true
		}
		if len(by) == 0 || seen[by[0]] {
			return namespace, "", false
		}
		at = by[0]
		seen[at] = true
		named := a.docs.overlays[at]
		if changes := a.docs.changesOf(named, 0); changes != "" {
			const format = "may be changed by %s of %s, and it is not known how it is applied"
			return "", fmt.Sprintf(format, changes, path.Join(at, kustomizationFiles[0])) + a.unbuilt(file), true
		}
		namespace = cmp.Or(named.namespace, namespace)
	}
}

func (a *applier) asKustomized(o *manifestObject) (namespace, problem string) {
	if !o.made {
		namespace, problem, _ = a.kustomized(o.file)
	}
	return namespace, problem
}

// unbuilt returns the rendering error of a file's kustomizations, as the end of a sentence.
func (a *applier) unbuilt(file string) string {
	for _, folder := range a.docs.outermost(file) {
		if problem := a.built[folder]; problem != "" {
			return ": " + problem
		}
	}
	return ""
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ", and is not adopted itself: " + why
}

// findPlaceholder returns a text that the template would replace, or "".
func findPlaceholder(value any) (found string) {
	deep.Holds(value, func(part any) bool {
		text, _ := part.(string)
		name, isPlaceholder := strings.CutPrefix(text, "$(")
		if strings.Contains(text, ofCluster) || isPlaceholder && slices.Contains(placeholderNames, strings.TrimSuffix(name, ")")) {
			found = min(text, cmp.Or(found, text))
		}
		return false
	})
	return found
}
