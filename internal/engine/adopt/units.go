package adopt

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

type manifests struct {
	Storage, Type, Repo, Branch, Tag, Commit, Path, Chart, Version, Digest string
}

// unit is a future deployment target on a host: an object with its private sources.
type unit struct {
	main      *manifestObject
	objects   []*manifestObject
	manifests manifests
	namespace string
	key, name string // equal for units of one workload
}

var placeholderNames = []string{
	string(reconciler.Repo), string(reconciler.Path), string(reconciler.Chart), string(reconciler.Version), string(reconciler.Branch),
	string(reconciler.Revision), string(reconciler.Ref), string(reconciler.Namespace),
}

type sourceReference struct {
	kind            *reconciler.ObjectKind
	namespace, name string
}

// sourcesOf returns the sources in fields whose name ends in "Ref".
func sourcesOf(o *manifestObject) (references []sourceReference) {
	var search func(value any)
	search = func(value any) {
		switch value := value.(type) {
		case []any:
			for _, element := range value {
				search(element)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				kind := reconciler.KindNamed(textAt(value[key], "kind"))
				if name := textAt(value[key], "name"); strings.HasSuffix(key, "Ref") && name != "" && kind.Is(reconciler.Source) {
					references = append(references, sourceReference{kind, cmp.Or(textAt(value[key], "namespace"), o.namespace), name})
					continue
				}
				search(value[key])
			}
		}
	}
	if o.kind.Is(reconciler.Follows | reconciler.Consumer) {
		search(o.spec())
	}
	return references
}

type sourceIndex map[sourceReference][]*manifestObject

func indexSources(all []*manifestObject) sourceIndex {
	index := sourceIndex{}
	for _, o := range all {
		if o.kind.Is(reconciler.Source) {
			key := sourceReference{o.kind, o.namespace, o.name}
			index[key] = append(index[key], o)
		}
	}
	return index
}

// find prefers the source on the host.
func (s sourceIndex) find(named sourceReference, on *host) *manifestObject {
	all := s[named]
	if len(all) == 0 {
		return nil
	}
	return all[max(0, slices.IndexFunc(all, func(o *manifestObject) bool { return o.host == on }))]
}

type builder struct {
	environment    string
	repository     manifests // of the documents
	sources        sourceIndex
	selectorLabels map[string]bool // in selectors of ApplicationSets
	listed         notes
}

func (a *builder) units(objects []*manifestObject) (units []*unit) {
	users := map[*manifestObject][]*manifestObject{} // objects of a host by source
	taken := map[*manifestObject]bool{}
	for _, o := range objects {
		taken[o] = true
		for _, named := range sourcesOf(o) {
			if source := a.sources.find(named, o.host); source != nil && source.host == o.host {
				users[source] = append(users[source], o)
			}
		}
	}
	for _, o := range objects {
		if o.kind.Is(reconciler.Source) && len(users[o]) == 1 {
			continue // part of its user's unit
		}
		one := &unit{main: o, objects: []*manifestObject{o}, key: o.key(), name: o.name}
		var source *manifestObject
		var first *sourceReference
		for _, named := range sourcesOf(o) {
			found := a.sources.find(named, o.host)
			if first == nil {
				source, first = found, &named
			}
			if found != nil && found.host == o.host && len(users[found]) == 1 && taken[found] {
				one.objects = append(one.objects, found)
			}
		}
		if a.setManifests(one, first, source, users[o]) {
			units = append(units, one)
			if o.kind.Template != "" && o.why != "" {
				a.listed.add(o, true, "is taken as it is, and goes on to choose its clusters: "+o.why)
			}
			continue
		}
		for _, of := range one.objects {
			a.listed.add(of, false, "its repository is not among the documents: give the option repository, which is then its manifests.repo")
		}
	}
	return units
}

const imageMarker = `{"$imagepolicy":`

// listMarkers lists files with markers of Flux' image automation, because comments are not adopted.
func (a *builder) listMarkers(units []*unit, texts map[string]string) {
	files := map[string]bool{}
	for _, u := range units {
		for _, o := range u.objects {
			files[o.file] = true
		}
	}
	for file := range files {
		if strings.Contains(texts[file], imageMarker) {
			a.listed = append(a.listed, Listed{
				File: file, Taken: true,
				Reason: "has markers of image automation, which are comments: " +
					"files that Flotilla writes have none, so Flux no longer updates these fields. Set them in the fleet",
			})
		}
	}
}

// setManifests sets the manifests and namespace, or returns false without a known repository. named is the source of the
// main object, and source that object, if any. charts name the main object as source.
func (a *builder) setManifests(u *unit, named *sourceReference, source *manifestObject, charts []*manifestObject) bool {
	m := &u.manifests
	m.Storage = "git"
	var kind *reconciler.ObjectKind
	if named != nil {
		kind = named.kind
	} else if u.main.kind.Is(reconciler.Source) {
		kind = u.main.kind
	}
	switch {
	case kind != nil && kind.For == reconciler.OCI:
		m.Storage = "oci"
	case kind != nil && kind.For == reconciler.Helm:
		m.Storage = "helm"
	case kind == nil && (u.main.kind.For == reconciler.Helm|reconciler.OCI || pointed(u.main, reconciler.Chart) != ""):
		m.Storage = "helm"
	}
	for _, of := range []*manifestObject{source, u.main} {
		if of != nil {
			m.readObject(of)
		}
	}
	if strings.HasPrefix(m.Repo, "oci://") && m.Storage == "git" {
		m.Storage, m.Version, m.Tag, m.Branch = "oci", cmp.Or(m.Version, m.Tag), "", ""
		if artifact.IsDigest(m.Version) {
			m.Version, m.Digest = "", m.Version
		}
	}
	if source == nil && named != nil && kind.For == reconciler.Git && reconciler.IsAgents(named.name) { // created by its installer
		m.Repo, m.Branch = a.repository.Repo, a.repository.Branch
	}
	if m.Chart != "" && m.Storage == "git" || u.main.kind.For == reconciler.Charts && m.Storage != "helm" {
		m.Type = "helm"
	}
	if m.Storage == "git" && m.Path == "" && m.Type == "helm" {
		m.Path, m.Chart = m.Chart, ""
	}
	if m.Storage == "helm" && m.Chart == "" && len(charts) > 0 { // a repository of several charts
		m.Chart, m.Version = pointed(charts[0], reconciler.Chart), pointed(charts[0], reconciler.Version)
	}
	u.namespace = pointed(u.main, reconciler.Namespace)
	if a.removeInvalid(u); m.Repo != "" {
		return true
	}
	if a.repository.Repo == "" {
		return false
	}
	*m = manifests{Storage: "git", Type: m.Type, Repo: a.repository.Repo, Branch: a.repository.Branch, Path: m.Path}
	a.removeInvalid(u)
	const reason = "manifests cannot say its source: manifests.repo is the repository of the documents, " +
		"and the source is in parameters.objects"
	for _, of := range u.objects {
		a.listed.add(of, true, reason)
	}
	return m.Repo != ""
}

// pointed returns the field with an attribute of a deployment target.
func pointed(o *manifestObject, is reconciler.TargetAttribute) string {
	for _, pointer := range o.kind.Pointers {
		if text := textAt(o.spec(), pointer.Field); pointer.Is == is && text != "" {
			return text
		}
	}
	return ""
}

// tag matches revisions that are certainly tags.
var tag = regexp.MustCompile(`^v?\d+(\.\d+)+([-+.][0-9A-Za-z.-]+)?$`)

func (m *manifests) readObject(o *manifestObject) {
	m.Repo = cmp.Or(m.Repo, pointed(o, reconciler.Repo))
	m.Path = cmp.Or(m.Path, pointed(o, reconciler.Path))
	m.Chart = cmp.Or(m.Chart, pointed(o, reconciler.Chart))
	m.Version = cmp.Or(m.Version, pointed(o, reconciler.Version))
	m.Branch = cmp.Or(m.Branch, pointed(o, reconciler.Branch))
	switch revision := pointed(o, reconciler.Revision); {
	case revision == "" || revision == "HEAD":
	case m.Storage == "helm":
		m.Version = revision
	case folder.IsCommit(revision):
		m.Commit = revision
	case tag.MatchString(revision):
		m.Tag = revision
	default:
		m.Branch = revision
	}
	for _, pointer := range o.kind.Pointers {
		ref, isObject := at(o.spec(), pointer.Field).(map[string]any)
		switch {
		case !isObject || pointer.Is != reconciler.Ref:
		case m.Storage == "git":
			m.Branch, m.Tag, m.Commit = textAt(ref, "branch"), textAt(ref, "tag"), textAt(ref, "commit")
		case m.Storage == "oci":
			m.Tag, m.Version, m.Digest = textAt(ref, "tag"), textAt(ref, "semver"), textAt(ref, "digest")
		}
	}
}

func (m *manifests) attributes() map[string]any {
	all := map[string]any{}
	for name, value := range m.fields() {
		if *value != "" {
			all[name] = *value
		}
	}
	return all
}

func (m *manifests) fields() map[string]*string {
	return map[string]*string{
		"storage": &m.Storage, "type": &m.Type, "repo": &m.Repo, "branch": &m.Branch, "tag": &m.Tag,
		"commit": &m.Commit, "path": &m.Path, "chart": &m.Chart,
		"version": &m.Version, "digest": &m.Digest,
	}
}

// removeInvalid removes attributes that the fleet refuses, or the repository if that does not help.
func (a *builder) removeInvalid(u *unit) {
	for {
		target := map[string]any{"environment": a.environment, "manifests": u.manifests.attributes()}
		if u.namespace != "" {
			target["namespace"] = u.namespace
		}
		workload := map[string]any{"name": "any", "workspace": "any", "deployment_targets": map[string]any{"any": target}}
		findings := fleet.CheckObject("workloads", workload)
		if len(findings) == 0 {
			return
		}
		left := false
		for _, finding := range findings {
			_, attribute, _ := strings.Cut(finding.Path, `["any"].`)
			field := u.manifests.fields()[strings.TrimPrefix(attribute, "manifests.")]
			switch {
			case attribute == "namespace":
				u.namespace, left = "", true
			case field != nil && *field != "":
				*field, left = "", true
			}
		}
		if !left {
			u.manifests.Repo = ""
			return
		}
	}
}

// parameters returns the objects with placeholders for attributes of the deployment target.
func (u *unit) parameters() []any {
	objects := make([]any, len(u.objects))
	for i, o := range u.objects {
		fields := maps.Clone(o.fields)
		spec := runtime.DeepCopyJSON(o.spec())
		if spec == nil {
			spec = map[string]any{}
		}
		for _, pointer := range o.kind.Pointers {
			value := at(spec, pointer.Field)
			if value == nil || !u.canWrite(pointer.Is, value) {
				continue
			}
			setField(spec, pointer.Field, "$("+string(pointer.Is)+")")
		}
		fields["spec"] = spec
		objects[i] = fields
	}
	return objects
}

// canWrite reports whether the template writes the value for a placeholder.
func (u *unit) canWrite(is reconciler.TargetAttribute, value any) bool {
	m := &u.manifests
	text, _ := value.(string)
	switch is {
	case reconciler.Ref:
		ref, isObject := value.(map[string]any)
		written := map[string]any{}
		for key, value := range map[string]string{"branch": m.Branch, "tag": m.Tag, "commit": m.Commit, "semver": m.Version, "digest": m.Digest} {
			if value != "" {
				written[key] = value
			}
		}
		return isObject && len(ref) > 0 && maps.EqualFunc(ref, written, func(a, b any) bool { return a == b })
	case reconciler.Revision:
		return text != "" && text == cmp.Or(m.Commit, m.Tag, m.Branch, m.Version)
	case reconciler.Namespace:
		return text != "" && text == u.namespace
	}
	return text != "" && text == *m.fields()[string(is)]
}

func setField(value any, field string, by any) {
	step := field
	if i := strings.LastIndex(field, "."); i >= 0 {
		step = field[i+1:]
		value = at(value, field[:i])
	}
	switch within := value.(type) {
	case map[string]any:
		within[step] = by
	case []any:
		within[0] = by
	}
}
