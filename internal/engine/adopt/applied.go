package adopt

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
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
		if _, _, isChanged := a.kustomized(o.file); isChanged || o.outside {
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
