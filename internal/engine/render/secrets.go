package render

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/secretservice"
)

// defaultSecretName is the name of the Secret with what references name.
const defaultSecretName = "platform-secrets"

// secretName returns the name of the Secret; "" where config_as wants none, or is not known yet.
func secretName(target *fleet.DeploymentTarget) string {
	name, written := target.Manifests.ConfigAs.Secret()
	if !written || target.ManifestsPending {
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
// parameters, remoteKey, property, version}. A store that the cluster type lacks is an error of [Templates.ArrangeSecrets].
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
	host := t.hostOf(assignment)
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

// without is a copy of values in which nothing is in the place of references, which are below some keys.
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
