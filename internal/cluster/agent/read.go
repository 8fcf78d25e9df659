package agent

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Kinds returns the kinds of objects that [Read] reads, without duplicates.
func Kinds() []*reconciler.ObjectKind {
	var kinds []*reconciler.ObjectKind
	for _, name := range inCluster() {
		for _, one := range templates()[name] {
			if kind := kindOf(&one); kind != nil && !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds
}

func inCluster() []string {
	return slices.DeleteFunc(reconciler.Agents(), func(name string) bool { return reconciler.Named(name).OnHub() })
}

func kindOf(one *template) *reconciler.ObjectKind {
	if one.Part == Feedback || one.object.GetLabels()[reconciler.ClusterLabel] == "" {
		return nil
	}
	return reconciler.KindOf(one.object.GroupVersionKind().Group, one.object.GetKind())
}

// Refused is an agent with values that [Render] never writes. Any user who may create objects in a namespace can have
// created it.
type Refused struct {
	Settings Settings
	Problem  string // printable line without secrets
}

func (r Refused) String() string {
	s := r.Settings.withDefaults()
	name, namespace := wording.OneLine(s.Name), wording.OneLine(s.Namespace)
	return fmt.Sprintf("agent %q in namespace %q of cluster %q: %s", name, namespace, s.Cluster, r.Problem)
}

// Read returns the settings of the agents in a cluster, sorted by namespace and name, without defaults. Their objects
// do not show the installation and the reports, and only name the Secret with credentials.
func Read(cluster string, live []*unstructured.Unstructured) (found []Settings, refused []Refused) {
	objects := make(map[ID]*unstructured.Unstructured, len(live))
	for _, object := range live {
		objects[(&StagedObject{Unstructured: object}).ID()] = object
	}
	for _, name := range inCluster() {
		for _, object := range live {
			for _, one := range templates()[name] {
				if one.Folder != "both" {
					continue
				}
				settings, ok := readAgent(name, cluster, &one, object, objects)
				if !ok {
					continue
				}
				if problem := settings.checkRead(); problem != "" {
					refused = append(refused, Refused{settings, problem})
				} else {
					found = append(found, settings)
				}
			}
		}
	}
	compare := func(a, b Settings) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	slices.SortStableFunc(found, compare)
	slices.SortStableFunc(refused, func(a, b Refused) int { return compare(a.Settings, b.Settings) })
	return found, refused
}

// checkRead returns the first problem of read settings; "" if [Render] could have written them.
func (s Settings) checkRead() string {
	given := s.withDefaults()
	given.Repository = s.Repository // withDefaults cleans the path
	r := &settingsValidator{settings: &given}
	r.checkNames()
	r.checkRepository()
	r.checkDecryption()
	if given.CredentialsSecret != "" {
		r.checkCredentials()
	}
	for _, problem := range r.problems {
		if !problem.Warning {
			return wording.OneLine(problem.String())
		}
	}
	return ""
}

// readAgent reads the settings if the object follows the folder of a cluster type.
func readAgent(
	name, cluster string, root *template, object *unstructured.Unstructured, objects map[ID]*unstructured.Unstructured,
) (Settings, bool) {
	values := placeholderValues{"folder.suffix": "cluster-type", "cluster_label": render.LabelValue(cluster)}
	if !isOf(root, object) || !values.readIdentity(root, object) {
		return Settings{}, false
	}
	values.readFields(root.object.Object, object.Object)
	at := values["folder.path"]
	for _, one := range templates()[name] {
		if kindOf(&one) == nil || one.Folder != "" {
			continue
		}
		id := (&StagedObject{Unstructured: one.object}).ID()
		id.Namespace, id.Name = values.expand(id.Namespace), values.expand(id.Name)
		other := objects[id]
		if other != nil && isOf(&one, other) && values.readIdentity(&one, other) {
			values.readFields(one.object.Object, other.Object)
		}
	}
	s := Settings{
		Cluster: cluster, ClusterType: path.Base(at), Reconciler: name, Name: values["name"], Namespace: values["namespace"],
		Repository: folder.Location{URL: values["url"], Branch: values["branch"], Path: path.Dir(at)},
		Interval:   values.duration("interval", defaultInterval), Timeout: values.duration("timeout", defaultTimeout),
		CredentialsSecret: values["secret"],
	}
	if values["decryption.provider"] != "" {
		s.Decryption = &fleet.Decryption{Secret: values["decryption.secret"], ServiceAccount: values["decryption.service_account"]}
	}
	if at == "" || s.Repository.URL == "" || s.Repository.Branch == "" || values["cluster_type_label"] != render.LabelValue(s.ClusterType) {
		return Settings{}, false
	}
	if s.Repository.Path == "." {
		s.Repository.Path = ""
	}
	if s.Name == defaultName {
		s.Name = ""
	}
	if s.Namespace == s.reconciler().Namespace {
		s.Namespace = ""
	}
	return s, true
}

// IsCalled reports whether the agent has a name and a namespace; "" is the default.
func (s Settings) IsCalled(name, namespace string) bool {
	of, called := s.withDefaults(), Settings{Reconciler: s.Reconciler, Name: name, Namespace: namespace}.withDefaults()
	return of.Name == called.Name && of.Namespace == called.Namespace
}

func isOf(one *template, object *unstructured.Unstructured) bool {
	return one.object.GroupVersionKind().GroupKind() == object.GroupVersionKind().GroupKind() &&
		object.GetLabels()[reconciler.ManagedLabel] == reconciler.ManagedBy
}

type placeholderValues map[string]string

// readIdentity reports whether the identity of an object matches earlier values.
func (r placeholderValues) readIdentity(one *template, object *unstructured.Unstructured) bool {
	fits := r.matchText(one.object.GetName(), object.GetName()) && r.matchText(one.object.GetNamespace(), object.GetNamespace())
	for key, value := range one.object.GetLabels() {
		fits = fits && r.matchText(value, object.GetLabels()[key])
	}
	return fits
}

// readFields reads the values of a template's matching strings from an object.
func (r placeholderValues) readFields(made, live any) {
	switch made := made.(type) {
	case string:
		if text, isText := live.(string); isText {
			r.matchText(made, text)
		}
	case map[string]any:
		object, _ := live.(map[string]any)
		for name, element := range made {
			if name != "metadata" {
				r.readFields(element, object[name])
			}
		}
	case []any:
		list, _ := live.([]any)
		for i := range min(len(made), len(list)) {
			r.readFields(made[i], list[i])
		}
	}
}

var placeholder = regexp.MustCompile(`\$\{([a-z0-9_.]+)\}`)

func (r placeholderValues) expand(made string) string {
	return placeholder.ReplaceAllStringFunc(made, func(found string) string {
		return cmp.Or(r[placeholder.FindStringSubmatch(found)[1]], found)
	})
}

// matchText reads the values of placeholders and reports whether the text matches.
func (r placeholderValues) matchText(made, live string) bool {
	var pattern strings.Builder
	var unknown []string
	rest := made
	for _, at := range placeholder.FindAllStringSubmatchIndex(made, -1) {
		start := len(made) - len(rest)
		pattern.WriteString(regexp.QuoteMeta(made[start:at[0]]))
		name := made[at[2]:at[3]]
		if value, isKnown := r[name]; isKnown {
			pattern.WriteString(regexp.QuoteMeta(value))
		} else {
			unknown = append(unknown, name)
			pattern.WriteString("(.+)")
		}
		rest = made[at[1]:]
	}
	pattern.WriteString(regexp.QuoteMeta(rest))
	whole, err := regexp.Compile("^" + pattern.String() + "$")
	if err != nil { // a value is not UTF-8
		return false
	}
	match := whole.FindStringSubmatch(live)
	if match == nil {
		return false
	}
	for i, name := range unknown {
		r[name] = match[i+1]
	}
	return true
}

func (r placeholderValues) duration(name string, otherwise time.Duration) time.Duration {
	given, err := time.ParseDuration(r[name])
	if err != nil || given == otherwise {
		return 0
	}
	return given
}
