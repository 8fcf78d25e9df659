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

// Render renders a request for a folder as a reconciler does. files maps paths to texts; it never changes.
type Render func(files map[string]string, request *objects.Request) (*objects.Rendering, error)

const (
	maxRendered = 500 // folders to render
	maxDepth    = 20  // nesting of roots
)

// kustomizations renders the kustomizations among the documents.
type kustomizations struct {
	*documents
	render  Render
	results map[string]*objects.Rendering // by request
	built   map[string]string             // rendering errors by folder, or ""
}

func newKustomizations(d *documents, render Render) *kustomizations {
	return &kustomizations{documents: d, render: render, results: map[string]*objects.Rendering{}, built: map[string]string{}}
}

// applier replaces objects by what a reconciler applies for them.
type applier struct {
	*placer
	following map[string][]*manifestObject // objects that apply a folder
	folders   map[string]bool              // files and folders

	templates          *render.TextRenderer // of ApplicationSets
	madeText, madeWork int                  // bytes of Applications, and of interpolated texts
}

// apply replaces objects by their applied form: roots by their objects, and others by the output of their
// kustomizations. The new objects may be roots, too.
func (a *applier) apply() {
	for again := true; again; {
		a.follow()
		again = a.expandRoots() || a.expandKustomizations() || a.expandSets()
	}
}

// expandRoots replaces roots by their objects. A root applies further objects that apply or generate objects:
// clusters follow the repository through roots, so a root is no workload.
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
			if a.put(o, root.file); !o.host.isCluster {
				o.host = root.host
			}
			o.outside, o.depth = false, root.depth+1
		}
		a.add(made)
	}
	if expanded {
		a.replace(func(o *manifestObject) (by string, isReplaced, isUsed bool) {
			owners := a.ownersOf(o)
			if len(owners) == 0 || slices.ContainsFunc(owners, func(owner *manifestObject) bool { return !owner.isRoot }) {
				return "", false, false
			}
			within := a.kustomizationsOf(o.file)
			for _, owner := range owners {
				folder := a.foldersOf(owner)[0]
				// Flux combines all kustomizations in a folder without its own.
				isUsed = isUsed || within[folder] || !a.hasOverlay(folder) && len(within) > 0 && owner.kind.IsOfFolders()
			}
			return owners[0].String(), true, isUsed
		})
	}
	return expanded
}

// broughtBy returns the reconciler objects that a root applies.
func (a *applier) broughtBy(root *manifestObject) ([]*manifestObject, error) {
	if root.depth >= maxDepth {
		return nil, fmt.Errorf("more than %d objects bring each other", maxDepth)
	}
	if _, isGenerated := a.generated(root); isGenerated {
		return nil, errors.New("its source is generated")
	}
	request := &objects.Request{Path: a.foldersOf(root)[0]}
	if problems := root.kind.Final.Request(root.fields, request); len(problems) > 0 {
		return nil, errors.New(strings.Join(problems, ", "))
	}
	for name, text := range a.texts {
		if request.Helm != nil && isBelow(name, path.Join(request.Path, "templates")) && strings.Contains(text, ".Files") {
			return nil, fmt.Errorf("%s reads files of its chart, which may be others than the documents", name)
		}
	}
	return a.rendered(request)
}

// brings reports whether an object applies or generates reconciler objects.
func (o *manifestObject) brings() bool { return o.kind.Is(reconciler.Follows | reconciler.Maker) }

// roots returns the untried objects at the top of the hierarchy.
func (a *applier) roots() (roots []*manifestObject) {
	found := map[*manifestObject]bool{}
	for _, o := range a.objects {
		if o.made || o.own || !o.brings() {
			continue
		}
		for _, owner := range a.ownersOf(o) {
			found[owner] = true
		}
	}
	for _, o := range a.objects {
		if o.tried || o.own || o.outside || o.set != nil || o.kind.Final == nil || !o.brings() || len(a.ownersOf(o)) > 0 {
			continue
		}
		if folders := a.foldersOf(o); found[o] || len(folders) > 0 && a.chartOf(folders[0]) {
			roots = append(roots, o)
		}
	}
	return roots
}

// chartOf reports whether a folder is a chart that may contain reconciler objects. Chart templates need not be YAML.
func (a *documents) chartOf(folder string) bool {
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

// kindLine matches the kind of an object that applies or generates others.
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
		if o.made || o.own || len(a.ownersOf(o)) > 0 {
			continue
		}
		if _, _, isChanged := a.kustomized(o.file); isChanged || o.outside {
			for _, folder := range a.outermost(o.file) {
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
		if a.put(at, file); at.outside {
			continue
		}
		made, err := a.rendered(&objects.Request{Path: folder, Kustomize: &objects.Kustomize{Generate: true}})
		if err != nil {
			a.built[folder] = err.Error()
			continue
		}
		a.built[folder], expanded = "", true
		for _, o := range made {
			a.put(o, file)
		}
		a.add(made)
	}
	if expanded {
		a.replace(func(o *manifestObject) (by string, isReplaced, isUsed bool) {
			if len(a.ownersOf(o)) > 0 {
				return "", false, false
			}
			for _, folder := range a.outermost(o.file) {
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

// outermost returns the folders of kustomizations that include a file and are included by no other.
func (a *kustomizations) outermost(file string) (folders []string) {
	for _, folder := range slices.Sorted(maps.Keys(a.kustomizationsOf(file))) {
		if len(a.usedBy[folder]) == 0 && !a.overlays[folder].isComponent {
			folders = append(folders, folder)
		}
	}
	return folders
}

// kustomizationsOf returns the folders of all kustomizations that include a file.
func (a *kustomizations) kustomizationsOf(file string) map[string]bool {
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

// rendered returns the reconciler objects that a request renders.
func (a *kustomizations) rendered(request *objects.Request) (made []*manifestObject, err error) {
	result, err := a.renderOnce(request)
	if err != nil {
		return nil, err
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
		if files := a.filesOf[one.Kind+" "+one.Name]; len(files) == 1 {
			file = files[0]
		}
		more, problem := a.objectsOf(file, fields)
		if problem != "" {
			a.listed = append(
				a.listed,
				Listed{File: file, Object: one.Kind + " " + strings.TrimPrefix(one.Namespace+"/"+one.Name, "/"), Reason: problem},
			)
		}
		made = append(made, more...)
	}
	for _, o := range made {
		o.made = true
	}
	return made, nil
}

// renderOnce caches results by request.
func (a *kustomizations) renderOnce(request *objects.Request) (*objects.Rendering, error) {
	key, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	if known := a.results[string(key)]; known != nil {
		return known, nil
	}
	if len(a.results) >= maxRendered {
		return nil, fmt.Errorf("more than %d folders would be rendered", maxRendered)
	}
	result, err := a.render(a.texts, request)
	if err != nil {
		return nil, errors.New(shortened(strings.Join(strings.Fields(err.Error()), " "), 300))
	}
	a.results[string(key)] = result
	return result, nil
}

// keepTexts keeps texts with paths, for rendering.
func (a *documents) keepTexts(documents any) {
	byPath, _ := documents.(map[string]any)
	a.texts, a.filesOf = map[string]string{}, map[string][]string{}
	for name, text := range byPath {
		text, isText := text.(string)
		if clean := path.Clean(name); isText && !path.IsAbs(clean) && clean != ".." && !strings.HasPrefix(clean, "../") {
			a.texts[clean] = text
		}
	}
	for _, o := range a.objects {
		name := o.kind.Kind + " " + o.name
		a.filesOf[name] = append(a.filesOf[name], o.file)
	}
}

// add adds rendered objects.
func (a *documents) add(made []*manifestObject) {
	a.objects = append(a.objects, made...)
	a.all = append(slices.Clone(made), a.all...) // before their source objects in lookups
	a.sources = nil
}

// replace removes replaced objects and lists the unused ones. by names the replacement.
func (a *documents) replace(by func(o *manifestObject) (by string, isReplaced, isUsed bool)) {
	made := map[string]bool{}
	for _, o := range a.objects {
		if o.made {
			made[o.kind.Kind+" "+o.name] = true
		}
	}
	replaced := map[*manifestObject]bool{}
	for _, o := range a.objects {
		if o.made || o.own {
			continue
		}
		name, isReplaced, isUsed := by(o)
		if isReplaced && !isUsed && !made[o.kind.Kind+" "+o.name] {
			a.list(o, false, fmt.Sprintf("is not among the objects that %s makes, which are taken", name))
		}
		replaced[o] = isReplaced
	}
	a.objects = slices.DeleteFunc(a.objects, func(o *manifestObject) bool { return replaced[o] })
}
