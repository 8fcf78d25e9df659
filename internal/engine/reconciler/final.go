package reconciler

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Final describes how Flotilla renders the objects that an object deploys, and how that then follows them in the
// GitOps repository.
type Final struct {
	// Request adds an object's settings to a request that has artifact, path and versions. Each problem begins with a
	// field.
	Request func(object map[string]any, into *objects.Request) (problems []string)
	// Follow returns the edits that make the object follow a place instead.
	Follow func(at Place) []Edit
	// Path, Repository and Branch are the fields that locate the place. Without Branch, Repository names a source
	// object.
	Path, Repository, Branch string
	// Applied returns the content and status of an object that follows a place.
	Applied func(all *Listing, one *ListedObject) Applied
	// Wraps reports that the place must be a chart.
	Wraps bool
	// Drops reports whether such an object may lose unknown fields of deployed objects instead of rejecting them.
	Drops func(spec map[string]any) bool
}

// Place is a folder of final objects in the GitOps repository.
type Place struct {
	// Repository and Branch identify the GitOps repository to the agent: a URL or the name of an object.
	Repository, Branch string
	Path               string // path of the folder without leading or trailing slash
	Digest             string // digest of the objects, in hex
}

// Edit changes one field of a spec.
type Edit struct {
	Path  string // keys separated by dots
	Value any    // JSON value; nil removes the field
}

// RequestOf completes a request that has artifact, path and versions from an assignment's objects. Problems are
// sentences without a full stop that name a field.
func (r *Reconciler) RequestOf(rendered []map[string]any, into *objects.Request) (problems []string) {
	for _, object := range rendered {
		name, _ := object["kind"].(string)
		kind := KindNamed(name)
		if kind == nil {
			continue
		}
		if kind.Fetch != nil {
			problems = append(problems, kind.Fetch(object, into)...)
		}
		if !slices.Contains(r.Deployers, name) {
			continue
		}
		if kind.Template != "" {
			template, _ := readFields(object, "spec").value(kind.Template).(map[string]any)
			kind, object = KindNamed(kind.Makes[0]), deep.Mapped(template, unescaped).(map[string]any)
		}
		problems = append(problems, kind.Final.Request(object, into)...)
	}
	return problems
}

// FinalOf returns how Flotilla renders objects deployed by a kind, and the path of the spec to edit.
func (r *Reconciler) FinalOf(kind string) (final *Final, spec string) {
	if !slices.Contains(r.Deployers, kind) {
		return nil, ""
	}
	of := KindNamed(kind)
	if of.Template != "" {
		return KindNamed(of.Makes[0]).Final, "spec." + of.Template + ".spec"
	}
	return of.Final, "spec"
}

// FinalOfKind calls [Reconciler.FinalOf] of the reconciler that deploys with the kind.
func FinalOfKind(kind string) (final *Final, spec string) {
	for _, one := range all {
		if final, spec := one.FinalOf(kind); final != nil {
			return final, spec
		}
	}
	return nil, ""
}

// IsSource reports whether objects of a kind fetch content for others.
func IsSource(kind string) bool { return KindNamed(kind).Is(Source) }

// unescaped reverts the escaping of templates in an ApplicationSet.
func unescaped(part any) any {
	if text, isText := part.(string); isText {
		return strings.ReplaceAll(text, `{{ "{{" }}`, "{{")
	}
	return part
}

// fields reads the fields of an object and collects problems.
type fields struct {
	root     map[string]any
	prefix   string // of the paths in problems
	problems []string
}

func readFields(object map[string]any, at string) *fields {
	below, _ := object[at].(map[string]any)
	return &fields{root: below, prefix: at + "."}
}

func (f *fields) value(path string) any {
	if path == "" {
		return f.root
	}
	return jsonObject(f.root).value(strings.Split(path, ".")...)
}

func (f *fields) report(path, format string, arguments ...any) {
	f.problems = append(f.problems, f.prefix+path+" "+fmt.Sprintf(format, arguments...))
}

// refuse reports a field that is set.
func (f *fields) refuse(path, why string) {
	if !isEmpty(f.value(path)) {
		f.report(path, "cannot be rendered: %s", why)
	}
}

// allowOnly reports unknown fields, because a newer reconciler may render them.
func (f *fields) allowOnly(path string, known ...string) {
	object := f.object(path)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(known, name) {
			f.refuse(strings.TrimPrefix(path+"."+name, "."), "Flotilla does not know what it does")
		}
	}
}

// typed returns a field, or the zero value if the field is absent or of another type, which is a problem.
func typed[T any](f *fields, path, what string) T {
	value := f.value(path)
	read, is := value.(T)
	if value != nil && !is {
		f.report(path, "must be %s", what)
	}
	return read
}

func (f *fields) object(path string) map[string]any {
	return typed[map[string]any](f, path, "an object")
}

func (f *fields) text(path string) string { return typed[string](f, path, "a string") }

func (f *fields) flag(path string) bool { return typed[bool](f, path, "true or false") }

func (f *fields) list(path string) []any { return typed[[]any](f, path, "a list") }

func (f *fields) texts(path string) []string {
	var all []string
	for i, value := range f.list(path) {
		text, isText := value.(string)
		if !isText {
			f.report(fmt.Sprintf("%s[%d]", path, i), "must be a string")
		}
		all = append(all, text)
	}
	return all
}

func (f *fields) textMap(path string) map[string]string {
	object := f.object(path)
	if len(object) == 0 {
		return nil
	}
	all := make(map[string]string, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		text, isText := object[key].(string)
		if !isText {
			f.report(path+"."+key, "must be a string")
		}
		all[key] = text
	}
	return all
}

func (f *fields) each(path string, read func(one *fields)) {
	for i, value := range f.list(path) {
		at := fmt.Sprintf("%s[%d]", path, i)
		object, isObject := value.(map[string]any)
		if !isObject {
			f.report(at, "must be an object")
			continue
		}
		one := &fields{root: object, prefix: f.prefix + at + "."}
		read(one)
		f.problems = append(f.problems, one.problems...)
	}
}

func (f *fields) count(path string) int64 {
	switch value := f.value(path).(type) {
	case json.Number:
		if number, err := value.Int64(); err == nil {
			return number
		}
	case int64:
		return value
	}
	f.report(path, "must be a whole number")
	return 0
}

func (f *fields) patches(path string) (all []objects.Patch) {
	f.each(path, func(one *fields) {
		one.allowOnly("", "patch", "target")
		patch := objects.Patch{Patch: one.text("patch")}
		if one.object("target") != nil {
			one.allowOnly("target", "group", "version", "kind", "name", "namespace", "labelSelector", "annotationSelector")
			patch.Target = &objects.PatchTarget{
				Group: one.text("target.group"), Version: one.text("target.version"), Kind: one.text("target.kind"), Name: one.text("target.name"),
				Namespace: one.text("target.namespace"), LabelSelector: one.text("target.labelSelector"),
				AnnotationSelector: one.text("target.annotationSelector"),
			}
		}
		all = append(all, patch)
	})
	return all
}

func (f *fields) images(path string) (all []objects.Image) {
	f.each(path, func(one *fields) {
		one.allowOnly("", "name", "newName", "newTag", "digest")
		all = append(all, objects.Image{
			Name: one.text("name"), NewName: one.text("newName"), NewTag: one.text("newTag"), Digest: one.text("digest"),
		})
	})
	return all
}

const noObjects = "final objects are rendered for Flux and Argo CD alone"

// digestName is an image name that no manifest uses. It puts the digest into the spec of the object that follows
// final objects, so an old status does not count.
const digestName = "flotilla.dev/objects"

// FinalStatus is the reported status of the final objects in an assignment's folder.
type FinalStatus struct {
	Folder string
	// Commit is the commit that the status is about, Applied the applied commit; "" if unknown. NoFolder means that
	// the object has seen only older commits, without the folder.
	Commit   string
	NoFolder bool
	Applied  string
	// OfChart reports that the object names the running chart version.
	OfChart bool
	// Status ignores newer revisions of the source: every commit on the branch is one.
	verdict.Status
}

// FinalStatus returns the status of the final objects that an object follows at a location, or at the same path
// elsewhere.
func (l *Listing) FinalStatus(one *ListedObject, at folder.Location) (status FinalStatus, ok bool) {
	final := one.of.Final
	if final == nil {
		return FinalStatus{}, false
	}
	key, ok := strings.CutSuffix(clean(one.text(append([]string{"spec"}, strings.Split(final.Path, ".")...)...)), "/"+folder.ObjectsFolder)
	if within := clean(at.Path); ok && within != "" {
		key, ok = strings.CutPrefix(key, within+"/")
	}
	if !ok {
		return FinalStatus{}, false
	}
	lenient := *l
	lenient.anyRevision = true
	applied := final.Applied(&lenient, one)
	return FinalStatus{
		Folder: key, Commit: cmp.Or(applied.Attempted, applied.Commit), NoFolder: applied.NoFolder, Applied: applied.Commit,
		OfChart: final.Wraps, Status: applied.Status,
	}, true
}

// helmReleaseFinalApplied returns the commit of the HelmChart, whose version contains the digest of the objects.
func helmReleaseFinalApplied(l *Listing, h *ListedObject) Applied {
	has := Applied{Status: helmReleaseStatus(l, h)}
	if chart := l.source(h); chart != nil {
		has.Commit = commitOf(chart.text("status", "observedSourceArtifactRevision"))
	}
	return has
}
