package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"k8s.io/apimachinery/pkg/util/validation"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/secretservice"
)

// defaultSecretName is the name of the Secret with what references name.
const defaultSecretName = "platform-secrets"

// secretName returns the name of the Secret; "" where config_as wants none.
func secretName(target *fleet.DeploymentTarget) string {
	name, written := target.Manifests.ConfigAs.Secret()
	if !written {
		return ""
	}
	return cmp.Or(name, defaultSecretName)
}

// storesID is a text that is equal for equal stores.
func storesID(stores map[string]fleet.SecretStore) string {
	if len(stores) == 0 {
		return ""
	}
	text, err := json.Marshal(stores)
	if err != nil {
		panic(err) // they hold only strings
	}
	return string(text)
}

// secretsOf is what templates see of references: a list, sorted by key, of {key, store, storeName, storeKind, provider,
// parameters, remoteKey, property, version}. A store that the cluster type lacks is an error of [Templates.CheckSecrets].
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

// valuesSuffix ends the name of a Secret with values of a chart, after the name of the reconciler's objects. Where an agent has
// such Secrets in its own namespace, the name belongs to the workload as that of its objects does.
const valuesSuffix = "-platform-values"

// valuesSecretOf is what templates see of the Secret with those values of a chart that references name: {name, namespace,
// labels, data}, or nil. data is the text of each key, as a template of External Secrets Operator.
func (t *Templates) valuesSecretOf(subject Subject) map[string]any {
	assignment := subject.Assignment
	host := t.hosts[assignment.Host.ClusterType.Name]
	below, among := assignment.Target.Target.Manifests.ConfigAs.Values()
	if !among || len(subject.Secrets) == 0 || host == nil || noSecretValues(host, subject) != "" {
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

// without is a copy of values in which nothing is in the place of references, which are below some keys.
func without(values map[string]any, below []string, references map[string]fleet.SecretReference) map[string]any {
	values = maps.Clone(values)
	if len(below) == 0 {
		maps.DeleteFunc(values, func(key string, _ any) bool { _, isReference := references[key]; return isReference })
		return values
	}
	switch inner, isObject := values[below[0]].(map[string]any); {
	case isObject:
		values[below[0]] = without(inner, below[1:], references)
	default:
		delete(values, below[0])
	}
	return values
}

// noSecretValues says why the secrets of references cannot be among the values of a chart on a host; "" where they can.
func noSecretValues(host *host, subject Subject) string {
	switch {
	case host.reconciler == nil:
		return "how a reconciler template of your own gets values from a Secret is not known"
	case host.reconciler.SecretValues == nil:
		return host.reconciler.NoSecretValues
	case host.service != nil && host.service.NoValues != "":
		return host.service.NoValues
	case host.service == nil || !host.service.NamespacedStores || host.reconciler.SecretValues.Namespace == "":
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(subject.Secrets)) {
		if name := subject.Secrets[key].Store; host.stores[name].Kind == secretservice.NamespacedStore {
			return fmt.Sprintf("store %q is a %s, in the namespace of the workload, and %s reads values in %s", name, secretservice.NamespacedStore,
				host.reconciler.Product, host.reconciler.SecretValues.Namespace)
		}
	}
	return ""
}

// referenceProblems is what is wrong with the references to secrets that reach an assignment. What it says is the same for
// all assignments on clusters of one type, so that it is said once.
func (t *Templates) referenceProblems(host *host, subject Subject) error {
	if len(subject.Secrets) == 0 {
		return nil
	}
	clusterType := subject.Assignment.Host.ClusterType.Name
	var found fleet.Findings
	report := func(path *fleet.Path, format string, arguments ...any) {
		found = append(found, fleet.Finding{Path: path.String(), Message: fmt.Sprintf(format, arguments...)})
	}
	var root *fleet.Path
	keys := slices.Sorted(maps.Keys(subject.Secrets))
	if !host.hasSecrets {
		at := root.Attribute("cluster_types").Key(clusterType).Attribute("secret_service")
		for _, key := range keys {
			report(at, "is not set, and config container %q has references to secrets for assignments there: use one of %s, or a template "+
				`of your own of type "secret"`, subject.containerOf(key), strings.Join(fleet.BuiltinTemplates["secret"], ", "))
		}
		return found
	}
	first := subject.Secrets[keys[0]].Store
	for _, key := range keys {
		reference, path := subject.Secrets[key], root.Attribute("config_containers").Key(subject.containerOf(key)).Attribute("secrets").Key(key)
		if len(validation.IsConfigMapKey(key)) > 0 {
			report(path, `key %q cannot be one of a Secret: letters, digits, "-", "_" and "." can, up to 253 of them, and it does not start with ".."`, key)
		}
		store, known := host.stores[reference.Store]
		if !known {
			report(path.Attribute("store"), "cluster type %q has no store %q among its secret_stores%s", clusterType, reference.Store,
				fleet.DidYouMean(reference.Store, slices.Sorted(maps.Keys(host.stores))))
			continue
		}
		if host.service == nil {
			continue
		}
		if host.service.OneStore && reference.Store != first {
			report(path.Attribute("store"), "is %q, and the store of %q is %q: secret_service %q of cluster type %q gets all secrets of an assignment from one store",
				reference.Store, keys[0], first, host.service.Name, clusterType)
		}
		if provider := host.service.Provider(secretservice.Store(store)); provider != nil {
			if attribute, problem := provider.Cannot(secretservice.Store(store), secretservice.Reference(reference)); problem != "" {
				report(path.Attribute(attribute), "%s; it is that of store %q of cluster type %q", problem, reference.Store, clusterType)
			}
		}
	}
	if found == nil {
		return nil
	}
	return found
}

// containerOf is the name of the config container that decides a key; "" where that is not known.
func (s *Subject) containerOf(key string) string {
	if s.Origin == nil {
		return ""
	}
	return s.Origin(key)
}

// secretFormProblem is what is wrong with the forms in which references to secrets reach an assignment.
func (t *Templates) secretFormProblem(host *host, subject Subject) error {
	if len(subject.Secrets) == 0 {
		return nil
	}
	target, clusterType := subject.Assignment.Target, subject.Assignment.Host.ClusterType.Name
	forms, name := target.Target.Manifests.ConfigAs, secretName(target.Target)
	path := targetPath(target)
	isListed := slices.ContainsFunc(forms, func(form string) bool { return form == "secret" || strings.HasPrefix(form, "secret:") })
	var found fleet.Findings
	if _, among := forms.Values(); among && !isListed {
		if reason := noSecretValues(host, subject); reason != "" {
			found = append(found, fleet.Finding{Path: path.Attribute("config_as").String(), Message: fmt.Sprintf(
				`"values" cannot have the references to secrets on cluster type %q: %s. Add "secret", and let the chart take the existing Secret %q`,
				clusterType, reason, cmp.Or(name, defaultSecretName))})
		}
	} else if !among && name == "" {
		found = append(found, fleet.Finding{Path: path.Attribute("config_as").String(), Message: `has no form for the references to secrets that reach it: add "secret"`})
	}
	for _, file := range subject.Encrypted {
		if name != "" && file.Name == name {
			found = append(found, fleet.Finding{Path: path.Attribute("config_as").String(), Message: fmt.Sprintf(
				`an encrypted file is of the Secret %q, too: give that of the references another name, "secret:<name>"`, name)})
		}
	}
	if found == nil {
		return nil
	}
	return found
}
