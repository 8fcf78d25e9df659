package render

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
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
