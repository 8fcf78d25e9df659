package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/secretservice"
)

const defaultSecretName = "platform-secrets"

// secretName returns "" if config_as asks for no Secret or is not known yet.
func secretName(target *fleet.DeploymentTarget) string {
	name, written := target.Manifests.ConfigAs.Secret()
	if !written || target.ManifestsPending {
		return ""
	}
	return cmp.Or(name, defaultSecretName)
}

func storesID(stores map[string]fleet.SecretStore) string {
	if len(stores) == 0 {
		return ""
	}
	text, err := json.Marshal(stores)
	if err != nil {
		panic(err) // only strings
	}
	return string(text)
}

// secretsOf returns sorted references for templates. [Templates.CheckSecrets] reports unknown stores.
func secretsOf(references map[string]fleet.SecretReference, stores map[string]fleet.SecretStore) []any {
	if len(references) == 0 {
		return nil
	}
	list := make([]any, 0, len(references))
	for _, key := range slices.Sorted(maps.Keys(references)) {
		reference := references[key]
		store := stores[reference.Store]
		parameters := make(map[string]any, len(store.Parameters))
		fillLabels(parameters, store.Parameters)
		list = append(list, map[string]any{
			"key": key, "store": reference.Store, "storeName": cmp.Or(store.Name, reference.Store),
			"storeKind": cmp.Or(store.Kind, secretservice.ClusterStore), "provider": store.Provider, "parameters": parameters,
			"remoteKey": reference.Key, "property": reference.Property, "version": reference.Version,
		})
	}
	return list
}

// valuesSuffix follows the name of the reconciler's objects, so that the workload owns the Secret in the namespace of an
// agent.
const valuesSuffix = "-platform-values"

// valuesSecretOf returns the Secret with values of a chart as {name, namespace, labels, data}, or nil.
func (x *fleetIndex) valuesSecretOf(subject Subject) map[string]any {
	assignment := subject.Assignment
	host := x.hostOf(assignment)
	below, among := assignment.Target.Target.Manifests.ConfigAs.Values()
	if !among || len(subject.Secrets) == 0 || noSecretValues(host, subject.Secrets) != "" {
		return nil
	}
	of := host.reconciler.SecretValues
	labels := make(map[string]any, len(of.Labels))
	fillLabels(labels, of.Labels)
	return map[string]any{
		"name":      objectName(assignment.Target, assignment.Host, assignment.Namespace, subject.Environment) + valuesSuffix,
		"namespace": cmp.Or(of.Namespace, assignment.Namespace),
		"labels":    labels,
		"data":      map[string]any{"values.yaml": secretservice.Values(below, slices.Sorted(maps.Keys(subject.Secrets)))},
	}
}

// withoutReferences copies values without the keys of references.
func withoutReferences(values map[string]any, below []string, references map[string]fleet.SecretReference) map[string]any {
	values = maps.Clone(values)
	if len(below) == 0 {
		maps.DeleteFunc(values, func(key string, _ any) bool { _, isReference := references[key]; return isReference })
		return values
	}
	switch inner, isObject := values[below[0]].(map[string]any); {
	case isObject:
		values[below[0]] = withoutReferences(inner, below[1:], references)
	default:
		delete(values, below[0])
	}
	return values
}

// CheckSecrets reports references to secrets that cannot be delivered. reach returns the sorted references of the assignment
// with index i, and the config container of a key.
func (t *Templates) CheckSecrets(
	assignments []*schedule.Assignment,
	reach func(i int) (references iter.Seq2[string, fleet.SecretReference], origin func(key string) string),
) fleet.Findings {
	a := &secretChecker{
		writerChooser: writerChooser{
			fleetIndex: &t.fleetIndex,
			seen:       map[string]bool{},
			writers:    map[namespaceOn][]*schedule.Assignment{},
		}, checked: map[referenceOn]bool{},
	}
	for i, assignment := range assignments {
		host := t.hostOf(assignment)
		references, origin := reach(i)
		if !a.checkReferences(assignment.Host.ClusterType.Name, host, references, origin) {
			continue
		}
		a.checkForms(host, assignment, references)
		if assignment.Target.Target.Namespace != "" && host.service != nil && secretName(assignment.Target.Target) != "" {
			a.addWriter(assignment)
		}
	}
	a.checkSharedNames()
	return a.findings
}

type referenceOn struct {
	host *hostTemplates
	key  string
	of   fleet.SecretReference
}

type secretChecker struct {
	writerChooser // its writers write Secrets
	checked       map[referenceOn]bool
}

func (a *secretChecker) report(path *fleet.Path, format string, arguments ...any) {
	a.reportOnce(&a.findings, path, format, arguments...)
}

func (a *secretChecker) checkReferences(
	clusterType string, host *hostTemplates, references iter.Seq2[string, fleet.SecretReference], origin func(key string) string,
) (hasAny bool) {
	firstKey, firstStore := "", ""
	for key, reference := range references {
		if !hasAny {
			hasAny, firstKey, firstStore = true, key, reference.Store
		}
		if host.service != nil && host.service.OneStore && reference.Store != firstStore {
			a.report(secretPath(origin(key), key).Attribute("store"),
				"is %q, and the store of %q is %q: %q, the secret_service of cluster type %q, gets all secrets of an assignment from one store",
				reference.Store, firstKey, firstStore, host.service.Name, clusterType)
		}
		if on := (referenceOn{host, key, reference}); !a.checked[on] {
			a.checked[on] = true
			a.checkReference(clusterType, host, key, reference, origin)
		}
	}
	return hasAny
}

func secretPath(container, key string) *fleet.Path {
	return fleet.PathOf("config_containers", container).Attribute("secrets").Key(key)
}

func (a *secretChecker) checkReference(
	clusterType string, host *hostTemplates, key string, reference fleet.SecretReference, origin func(key string) string,
) {
	if !host.hasSecrets {
		a.report(fleet.PathOf("cluster_types", clusterType).Attribute("secret_service"),
			"is not set, and config container %q has references to secrets for assignments there: use one of %s, or a template of your own of "+
				"type \"secret\"", origin(key), strings.Join(fleet.BuiltinTemplates["secret"], ", "))
		return
	}
	report := func(attribute, format string, arguments ...any) {
		path := secretPath(origin(key), key)
		if attribute != "" {
			path = path.Attribute(attribute)
		}
		a.report(path, format, arguments...)
	}
	if len(validation.IsConfigMapKey(key)) > 0 {
		report("",
			`key %q cannot be one of a Secret: letters, digits, "-", "_" and "." can, up to 253 of them, and it does not start with ".."`,
			key)
	}
	store, known := host.stores[reference.Store]
	if !known {
		report("store", "cluster type %q has no store %q among its secret_stores%s", clusterType, reference.Store,
			fleet.DidYouMean(reference.Store, slices.Sorted(maps.Keys(host.stores))))
		return
	}
	if host.service == nil {
		return
	}
	if provider := host.service.Provider(store); provider != nil {
		if attribute, problem := provider.Cannot(store, reference); problem != "" {
			report(attribute, "%s; cluster type %q has it for store %q", problem, clusterType, reference.Store)
		}
	}
}

func (a *secretChecker) checkForms(
	host *hostTemplates, assignment *schedule.Assignment, references iter.Seq2[string, fleet.SecretReference],
) {
	forms := assignment.Target.Target.Manifests.ConfigAs
	if len(forms) == 0 {
		return
	}
	path, clusterType := targetPath(assignment.Target).Attribute("config_as"), assignment.Host.ClusterType.Name
	name := secretName(assignment.Target.Target)
	_, among := forms.Values()
	isListed := slices.ContainsFunc(forms, func(form string) bool { return form == "secret" || strings.HasPrefix(form, "secret:") })
	switch reason := noSecretValues(host, maps.Collect(references)); {
	case among && !isListed && reason != "":
		a.report(path,
			`"values" cannot have the references to secrets on cluster type %q: %s. Add "secret", and let the chart use the existing Secret %q`,
			clusterType, reason, cmp.Or(name, defaultSecretName))
	case !among && name == "":
		a.report(path, `has no form for the references to secrets that reach the deployment target: add "secret"`)
	}
}

func noSecretValues(host *hostTemplates, references map[string]fleet.SecretReference) string {
	switch {
	case host.reconciler == nil:
		return "how a reconciler template of your own reads values from a Secret is not known"
	case host.reconciler.SecretValues == nil:
		return host.reconciler.NoSecretValues
	case host.service == nil:
		return ""
	case host.service.NoValues != "" || host.reconciler.SecretValues.Namespace == "":
		return host.service.NoValues
	}
	for _, key := range slices.Sorted(maps.Keys(references)) {
		if name := references[key].Store; host.stores[name].Kind == secretservice.NamespacedStore {
			return fmt.Sprintf("store %q is a %s, in the namespace of the workload, and %s reads values in %s", name, secretservice.NamespacedStore,
				host.reconciler.Product, host.reconciler.SecretValues.Namespace)
		}
	}
	return ""
}

func (a *secretChecker) checkSharedNames() {
	eachNamespace(a.writers, func(_, all []*schedule.Assignment) {
		first := map[string]*schedule.Assignment{}
		for _, assignment := range all {
			name := secretName(assignment.Target.Target)
			if other := first[name]; other != nil && other.Target != assignment.Target {
				a.report(targetPath(assignment.Target).Attribute("config_as"),
					"deployment target %q has the Secret %q in namespace %q, too: give one of them another name, \"secret:<name>\"",
					other.Target.Name, name, assignment.Namespace)
			} else {
				first[name] = assignment
			}
		}
	})
}

// secretEntry is the text of one reference in a file of "external-secrets". isValid: a check accepted it.
type secretEntry struct {
	text    []byte
	isValid bool
}

// secretEntryKey omits the store, which only the head of the file has.
type secretEntryKey struct {
	template *compiledTemplate
	key      string
	of       fleet.SecretReference
}

const maxEntries = 1 << 17

// renderExternalSecrets composes the file from a head and one entry for each reference, because hardly any two assignments
// have the same references. Without it, rendering the reference fleet takes half as long again (BenchmarkSecrets).
func (t *Templates) renderExternalSecrets(
	host *hostTemplates, template *compiledTemplate, subject Subject,
) (file AssignmentFile, ok bool, err error) {
	_, amongValues := subject.Assignment.Target.Target.Manifests.ConfigAs.Values()
	if !template.isBuiltin || template.kind != "secret" || template.name != "external-secrets" || len(subject.Secrets) < 2 || amongValues {
		return AssignmentFile{}, false, nil
	}
	keys := slices.Sorted(maps.Keys(subject.Secrets))
	store := subject.Secrets[keys[0]].Store
	for _, key := range keys {
		if subject.Secrets[key].Store != store {
			return AssignmentFile{}, false, nil
		}
	}
	row := secretFile{
		Templates: t,
		host:      host,
		template:  template,
		subject:   subject,
		runner:    t.runners.Get().(*runner), // so that the caller's keeps its data
	}
	defer t.runners.Put(row.runner)
	head, isRight, err := row.renderHead(store)
	if err != nil || head == nil {
		return AssignmentFile{}, false, err
	}
	parts := append(make([][]byte, 0, len(keys)+1), head)
	for _, key := range keys {
		entry, err := row.renderEntry(key)
		if err != nil || entry.text == nil {
			return AssignmentFile{}, false, err
		}
		parts, isRight = append(parts, entry.text), isRight && entry.isValid
	}
	return AssignmentFile{Name: template.file, Content: bytes.Join(parts, nil), isValid: isRight}, true, nil
}

type secretFile struct {
	*Templates
	host     *hostTemplates
	template *compiledTemplate
	subject  Subject
	runner   *runner
}

// renderHead returns the part before the entries.
func (r *secretFile) renderHead(store string) (head []byte, isRight bool, err error) {
	subject := r.subject
	subject.ConfigVersion = "head\n" + store
	subject.Secrets = map[string]fleet.SecretReference{"KEY": {Store: store, Key: "key"}} // any reference gives the same head
	file, shape, err := r.renderFile(subject)
	if err != nil {
		return nil, false, err
	}
	if isRight = shape != nil && shape.checked.Load(); !isRight {
		if isRight = r.isValidFile(subject, file); isRight && shape != nil {
			shape.checked.Store(true)
		}
	}
	at := entriesAt(file)
	if at == 0 {
		return nil, false, nil
	}
	return file[:at:at], isRight, nil
}

func (r *secretFile) renderEntry(key string) (secretEntry, error) {
	at := secretEntryKey{r.template, key, r.subject.Secrets[key]}
	at.of.Store = ""
	entry := r.entries.get(&at)
	if entry.text != nil {
		return entry, nil
	}
	subject := r.subject
	subject.Secrets, subject.ConfigVersion = map[string]fleet.SecretReference{key: r.subject.Secrets[key]}, ""
	file, _, err := r.renderFile(subject)
	if begin := entriesAt(file); err == nil && begin > 0 {
		entry = secretEntry{bytes.Clone(file[begin:]), r.isValidFile(subject, file)}
		r.entries.keep(&at, entry, maxEntries)
	}
	return entry, err
}

func (r *secretFile) renderFile(subject Subject) ([]byte, *shape, error) {
	r.runner.isFilled = false
	return r.runner.renderFile(r.Templates, r.host, r.template, subject, slotsOf(subject))
}

func (r *secretFile) isValidFile(subject Subject, content []byte) bool {
	file := &uncheckedFile{template: r.template, file: &AssignmentFile{Content: content}}
	return newFolderCheck(r.Templates, r.host, subject).isQuicklyValid(file)
}

// entriesAt returns the start of the entries; 0 if it has none.
func entriesAt(file []byte) int {
	const before = "\n  data:\n"
	at := bytes.Index(file, []byte(before))
	if at < 0 || file[len(file)-1] != '\n' {
		return 0
	}
	return at + len(before)
}
