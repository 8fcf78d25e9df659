package render

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
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
			"storeKind": cmp.Or(store.Kind, "ClusterSecretStore"), "provider": store.Provider, "parameters": parameters,
			"remoteKey": reference.Key, "property": reference.Property, "version": reference.Version,
		})
	}
	return list
}
