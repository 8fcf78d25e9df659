package adopt

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
)

// Render renders a request for a folder as a reconciler does. files has texts by path and never changes.
type Render func(files map[string]string, request *objects.Request) (*objects.Rendering, error)

const (
	maxRendered = 500 // folders to render
	maxDepth    = 20  // nesting of roots
)

type applier struct {
	docs       *documents
	placer     *placer
	repository manifests // of the documents
	render     Render
	objects    []*manifestObject // to be adopted
	all        []*manifestObject // read or rendered
	owners     *ownership
	results    map[string]*objects.Rendering // by request
	built      map[string]string             // rendering errors by folder of a kustomization, or ""
	listed     notes

	templates          *render.TextRenderer // of ApplicationSets
	madeText, madeWork int                  // bytes of Applications, and of interpolated texts
	selectorLabels     map[string]bool      // in selectors of ApplicationSets
}

func newApplier(d *documents, p *placer, repository manifests, by Render) *applier {
	return &applier{
		docs: d, placer: p, repository: repository, render: by, objects: slices.Clone(d.objects), all: d.objects,
		results: map[string]*objects.Rendering{}, built: map[string]string{}, templates: render.NewTextRenderer(argoFunctions),
		selectorLabels: map[string]bool{},
	}
}

// applyAll replaces roots by their objects, and others by the output of their kustomizations. The new objects may be
// roots, too.
func (a *applier) applyAll() {
	for again := true; again; {
		a.owners = newOwnership(a.docs, a.repository, a.objects, a.all)
		again = a.expandRoots() || a.expandKustomizations() || a.expandSets()
	}
}

// expandRoots replaces roots, which apply objects that apply or generate others. Clusters follow the repository
// through roots, so a root is no workload.
func (a *applier) expandRoots() (expanded bool) {
	for _, root := range a.roots() {
		root.tried = true
		made, err := a.broughtBy(root)
		if err != nil {
			root.why = err.Error()
			continue
		}
		if !slices.ContainsFunc(made, (*manifestObject).brings) {
			continue
		}
		root.isRoot, expanded = true, true
		for _, o := range made {
			if a.placer.placeObject(o, root.file); !o.host.isCluster {
				o.host = root.host
			}
			o.outside, o.depth = false, root.depth+1
		}
		a.addObjects(made)
	}
	if expanded {
		a.removeReplaced(func(o *manifestObject) (by string, isReplaced, isUsed bool) {
			owners := a.owners.ownersOf(o)
			if len(owners) == 0 || slices.ContainsFunc(owners, func(owner *manifestObject) bool { return !owner.isRoot }) {
				return "", false, false
			}
			within := a.docs.kustomizationsOf(o.file)
			for _, owner := range owners {
				folder := a.owners.foldersOf(owner)[0]
				// Flux combines all kustomizations in a folder without its own.
				isUsed = isUsed || within[folder] || !a.docs.hasOverlay(folder) && len(within) > 0 && owner.kind.IsOfFolders()
			}
			return owners[0].String(), true, isUsed
		})
	}
	return expanded
}

func (a *applier) broughtBy(root *manifestObject) ([]*manifestObject, error) {
	if root.depth >= maxDepth {
		return nil, fmt.Errorf("more than %d objects bring each other", maxDepth)
	}
	if _, isGenerated := a.owners.generatedFrom(root); isGenerated {
		return nil, errors.New("its source is generated")
	}
	request := &objects.Request{Path: a.owners.foldersOf(root)[0]}
	if problems := root.kind.Final.Request(root.fields, request); len(problems) > 0 {
		return nil, errors.New(strings.Join(problems, ", "))
	}
	for name, text := range a.docs.texts {
		if request.Helm != nil && isBelow(name, path.Join(request.Path, "templates")) && strings.Contains(text, ".Files") {
			return nil, fmt.Errorf("%s reads files of its chart, which may be others than the documents", name)
		}
	}
	return a.renderObjects(request)
}

func (o *manifestObject) brings() bool { return o.kind.Is(reconciler.Follows | reconciler.Maker) }

// roots returns the untried objects at the top of the hierarchy.
func (a *applier) roots() (roots []*manifestObject) {
	found := map[*manifestObject]bool{}
	for _, o := range a.objects {
		if o.made || o.own || !o.brings() {
			continue
		}
		for _, owner := range a.owners.ownersOf(o) {
			found[owner] = true
		}
	}
	for _, o := range a.objects {
		if o.tried || o.own || o.outside || o.set != nil || o.kind.Final == nil || !o.brings() || len(a.owners.ownersOf(o)) > 0 {
			continue
		}
		if folders := a.owners.foldersOf(o); found[o] || len(folders) > 0 && a.docs.hasReconcilerChart(folders[0]) {
			roots = append(roots, o)
		}
	}
	return roots
}

// hasReconcilerChart reports whether a folder is a chart that may contain reconciler objects. Chart templates need
// not be YAML.
func (a *documents) hasReconcilerChart(folder string) bool {
	if _, isChart := a.texts[path.Join(folder, "Chart.yaml")]; !isChart {
		return false
	}
	for name, text := range a.texts {
		if isBelow(name, folder+"/templates") && kindLine.MatchString(text) {
			return true
		}
	}
	return false
}

var kindLine = func() *regexp.Regexp {
	var names []string
	for _, kind := range reconciler.Kinds() {
		if kind.Is(reconciler.Follows | reconciler.Maker) {
			names = append(names, kind.Kind)
		}
	}
	return regexp.MustCompile(`(?m)^kind: *["']?(` + strings.Join(names, "|") + `)["']?\s*$`)
}()

// expandKustomizations replaces objects by the output of kustomizations that change or repeat them.
func (a *applier) expandKustomizations() (expanded bool) {
	wanted := map[string]*manifestObject{} // one object by folder
	for _, o := range a.objects {
		if o.made || o.own || len(a.owners.ownersOf(o)) > 0 {
			continue
		}
		if _, _, isChanged := a.kustomized(o); isChanged || o.outside {
			for _, folder := range a.docs.outermost(o.file) {
				wanted[folder] = o
			}
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(wanted)) {
		if _, isTried := a.built[folder]; isTried {
			continue
		}
		file := path.Join(folder, kustomizationFiles[0])
		at := &manifestObject{kind: wanted[folder].kind}
		if a.placer.placeObject(at, file); at.outside {
			continue
		}
		made, err := a.renderObjects(&objects.Request{Path: folder, Kustomize: &objects.Kustomize{Generate: true}})
		if err != nil {
			a.built[folder] = err.Error()
			continue
		}
		a.built[folder], expanded = "", true
		for _, o := range made {
			a.placer.placeObject(o, file)
		}
		a.addObjects(made)
	}
	if expanded {
		a.removeReplaced(func(o *manifestObject) (by string, isReplaced, isUsed bool) {
			if len(a.owners.ownersOf(o)) > 0 {
				return "", false, false
			}
			for _, folder := range a.docs.outermost(o.file) {
				if problem, isBuilt := a.built[folder]; isBuilt && problem == "" {
					by, isReplaced = path.Join(folder, kustomizationFiles[0]), true
				} else if isBuilt {
					return "", false, false
				}
			}
			return by, isReplaced, true
		})
	}
	return expanded
}

func (a *applier) renderObjects(request *objects.Request) (made []*manifestObject, err error) {
	key, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	result := a.results[string(key)]
	if result == nil {
		if len(a.results) >= maxRendered {
			return nil, fmt.Errorf("more than %d folders would be rendered", maxRendered)
		}
		if result, err = a.render(a.docs.texts, request); err != nil {
			return nil, errors.New(shortened(strings.Join(strings.Fields(err.Error()), " "), 300))
		}
		a.results[string(key)] = result
	}
	for i := range result.Objects {
		one := &result.Objects[i]
		if kind := reconciler.KindOf(one.Group, one.Kind); !isRead(kind) {
			continue // already listed from the documents
		}
		value, err := fleet.ParseYAML(string(one.YAML))
		if err != nil {
			return nil, err
		}
		fields, _ := value.(map[string]any)
		if metadata, isObject := fields["metadata"].(map[string]any); isObject && one.Namespace != "" {
			metadata["namespace"] = one.Namespace
		}
		file := path.Join(request.Path, kustomizationFiles[0])
		if files := a.docs.filesOf[one.Kind+" "+one.Name]; len(files) == 1 {
			file = files[0]
		}
		more, problem := objectsOf(file, fields)
		if problem != "" {
			object := one.Kind + " " + strings.TrimPrefix(one.Namespace+"/"+one.Name, "/")
			a.listed = append(a.listed, Listed{File: file, Object: object, Reason: problem})
		}
		made = append(made, more...)
	}
	return made, nil
}

// addObjects adds rendered objects, before their source objects in look-ups.
func (a *applier) addObjects(made []*manifestObject) {
	a.objects = append(a.objects, made...)
	a.all = append(slices.Clone(made), a.all...)
}

// removeReplaced removes replaced objects and lists the unused ones. by is the replacement.
func (a *applier) removeReplaced(by func(o *manifestObject) (by string, isReplaced, isUsed bool)) {
	made := map[string]bool{}
	for _, o := range a.objects {
		if o.made {
			made[o.kindAndName()] = true
		}
	}
	replaced := map[*manifestObject]bool{}
	for _, o := range a.objects {
		if o.made || o.own {
			continue
		}
		name, isReplaced, isUsed := by(o)
		if isReplaced && !isUsed && !made[o.kindAndName()] {
			a.listed.add(o, false, fmt.Sprintf("is not among the objects that %s makes, which are taken", name))
		}
		replaced[o] = isReplaced
	}
	a.objects = slices.DeleteFunc(a.objects, func(o *manifestObject) bool { return replaced[o] })
}

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
			problem = fmt.Sprintf("comes with %s, which brings its folder", owners[0])
			if why := owners[0].why; why != "" {
				problem += ", and is not adopted itself: " + why
			}
		case o.outside:
			problem = "is in no folder of a host: it comes with what brings its folder, or stays where it is"
		default:
			namespace, problem, _ = a.kustomized(o)
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

// kustomized returns the namespace that kustomizations set for an object that was read, or the problem with them.
// isChanged reports that rendering would solve it.
func (a *applier) kustomized(o *manifestObject) (namespace, problem string, isChanged bool) {
	folder := path.Dir(o.file)
	switch {
	case o.made:
		return "", "", false
	case len(a.docs.usedBy[o.file]) == 0 && a.docs.hasOverlay(folder):
		const format = "is not among the resources of %s: it is not known whether it is applied"
		return "", fmt.Sprintf(format, path.Join(folder, kustomizationFiles[0])), false
	}
	seen := map[string]bool{}
	for at := o.file; ; {
		by := slices.Compact(slices.Sorted(slices.Values(a.docs.usedBy[at])))
		if len(by) > 1 {
			problem = fmt.Sprintf("is in the kustomizations of %s, and it is not known how it is applied", strings.Join(by, ", "))
			return "", problem + a.unbuilt(o.file), true
		}
		if len(by) == 0 || seen[by[0]] {
			return namespace, "", false
		}
		at = by[0]
		seen[at] = true
		named := a.docs.overlays[at]
		if changes := a.docs.changesOf(named, 0); changes != "" {
			const format = "may be changed by %s of %s, and it is not known how it is applied"
			return "", fmt.Sprintf(format, changes, path.Join(at, kustomizationFiles[0])) + a.unbuilt(o.file), true
		}
		namespace = cmp.Or(named.namespace, namespace)
	}
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
