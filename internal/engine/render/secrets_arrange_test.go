package render_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
)

func TestUndeliverableReferencesAreFindings(t *testing.T) {
	const (
		key  = `config_containers["db"].secrets["DB_PASSWORD"]`
		form = `workloads["web"].deployment_targets["dev"].config_as: `
	)
	referencesTo := func(reference fleet.SecretReference, more ...fleet.SecretReference) map[string]fleet.SecretReference {
		references := map[string]fleet.SecretReference{"DB_PASSWORD": reference}
		for i, reference := range more {
			references[string("ABC"[i])] = reference
		}
		return references
	}
	vault := referencesTo(fleet.SecretReference{Store: "vault", Key: "db", Property: "password"})
	both := []string{"clusters/drone-1", "clusters/drone-2"}
	web := func(target neighbour) map[string]neighbour {
		if target.hosts == nil {
			target.hosts = both
		}
		return map[string]neighbour{"web": target}
	}
	chart := func(references map[string]fleet.SecretReference, forms ...string) map[string]neighbour {
		return web(neighbour{manifests: helmChart, secrets: references, configAs: forms})
	}
	const noArgo = `"values" cannot have the references to secrets on cluster type "drone": Argo CD renders charts before they are on a cluster, ` +
		`and reads no Secrets there. Add "secret", and let the chart use the existing Secret "platform-secrets"`
	for name, test := range map[string]struct {
		neighbours
		want []string
	}{
		"no secret service": {neighbours{targets: web(neighbour{secrets: vault})}, []string{
			`cluster_types["drone"].secret_service: is not set, and config container "db" has references to secrets for assignments there: ` +
				`use one of external-secrets, secrets-store-csi, or a template of your own of type "secret"`,
		}},
		"no such store": {neighbours{secretService: "external-secrets", stores: stores, targets: web(neighbour{secrets: referencesTo(fleet.SecretReference{Store: "valut", Key: "db"})})}, []string{
			key + `.store: cluster type "drone" has no store "valut" among its secret_stores; did you mean "vault"?`,
		}},
		"no store": {neighbours{secretService: "external-secrets", targets: web(neighbour{secrets: vault})}, []string{
			key + `.store: cluster type "drone" has no store "vault" among its secret_stores`,
		}},
		"no key of a Secret": {neighbours{secretService: "external-secrets", stores: stores, targets: web(neighbour{secrets: map[string]fleet.SecretReference{"a b": vault["DB_PASSWORD"]}})}, []string{
			`config_containers["db"].secrets["a b"]: key "a b" cannot be one of a Secret: letters, digits, "-", "_" and "." can, up to 253 of them, and it does not start with ".."`,
		}},
		"several stores": {neighbours{secretService: "secrets-store-csi", stores: providers, targets: web(neighbour{secrets: referencesTo(
			fleet.SecretReference{Store: "csi-vault", Key: "db", Property: "password"}, fleet.SecretReference{Store: "csi-azure", Key: "db"})})}, []string{
			key + `.store: is "csi-vault", and the store of "A" is "csi-azure": "secrets-store-csi", the secret_service of cluster type "drone", gets all secrets of an assignment from one store`,
		}},
		"a property of Azure": {neighbours{secretService: "secrets-store-csi", stores: providers, targets: web(neighbour{secrets: referencesTo(fleet.SecretReference{Store: "csi-azure", Key: "db", Property: "password"})})}, []string{
			key + `.property: is not possible with the provider azure, which reads whole secrets; cluster type "drone" has it for store "csi-azure"`,
		}},
		"no property of Vault": {neighbours{secretService: "secrets-store-csi", stores: providers, targets: web(neighbour{secrets: referencesTo(fleet.SecretReference{Store: "csi-vault", Key: "db"})})}, []string{
			key + `.property: is not set, and without it the provider vault gives the whole answer of Vault; cluster type "drone" has it for store "csi-vault"`,
		}},
		"a chart and Argo CD":                          {neighbours{reconciler: "argocd", secretService: "external-secrets", stores: stores, targets: chart(vault, "values", "configmap")}, []string{form + noArgo}},
		"a chart and a hub":                            {neighbours{reconciler: "argocd-hub", secretService: "external-secrets", stores: stores, targets: chart(vault, "values")}, []string{form + noArgo}},
		"a chart and a Secret of its own with Argo CD": {neighbours{reconciler: "argocd", secretService: "external-secrets", stores: stores, targets: chart(vault, "secret", "values")}, nil},
		"a chart and a driver": {neighbours{secretService: "secrets-store-csi", stores: providers, targets: chart(referencesTo(fleet.SecretReference{Store: "csi-azure", Key: "db"}), "values")}, []string{
			form + `"values" cannot have the references to secrets on cluster type "drone": Secrets Store CSI Driver makes a Secret only for a pod that mounts it. ` +
				`Add "secret", and let the chart use the existing Secret "platform-secrets"`,
		}},
		"a chart and the store of a namespace": {neighbours{secretService: "external-secrets", stores: stores, targets: chart(referencesTo(fleet.SecretReference{Store: "team", Key: "db"}), "values")}, []string{
			form + `"values" cannot have the references to secrets on cluster type "drone": store "team" is a SecretStore, in the namespace of the workload, ` +
				`and Flux reads values in flux-system. Add "secret", and let the chart use the existing Secret "platform-secrets"`,
		}},
		"the store of a namespace and Rancher Fleet": {neighbours{reconciler: "fleet", secretService: "external-secrets", stores: stores, targets: chart(referencesTo(fleet.SecretReference{Store: "team", Key: "db"}), "values")}, nil},
		"variables": {neighbours{secretService: "external-secrets", stores: stores, targets: web(neighbour{secrets: vault, configAs: fleet.ConfigAs{"substitute"}})}, []string{
			form + `has no form for the references to secrets that reach the deployment target: add "secret"`,
		}},
		"variables and a Secret": {neighbours{secretService: "external-secrets", stores: stores, targets: web(neighbour{secrets: vault, configAs: fleet.ConfigAs{"secret", "substitute"}})}, nil},
		"a shared namespace": {neighbours{secretService: "external-secrets", stores: stores, targets: map[string]neighbour{
			"api": {hosts: []string{"clusters/drone-1"}, namespace: "shop", secrets: vault, configAs: fleet.ConfigAs{"configmap:api"}},
			"web": {hosts: []string{"drone"}, namespace: "shop", secrets: vault},
		}}, []string{
			`workloads["api"].deployment_targets["dev"].config_as: deployment target "web-dev" has the Secret "platform-secrets" in namespace "shop", too: give one of them another name, "secret:<name>"`,
		}},
		"names in a shared namespace": {neighbours{secretService: "external-secrets", stores: stores, targets: map[string]neighbour{
			"api": {hosts: []string{"drone"}, namespace: "shop", secrets: vault, configAs: fleet.ConfigAs{"configmap:api", "secret:api"}},
			"cms": {hosts: []string{"drone"}, namespace: "shop", configAs: fleet.ConfigAs{"configmap:cms"}},
			"web": {hosts: []string{"drone"}, namespace: "shop", secrets: vault},
		}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if test.reconciler == "" {
				test.reconciler = "flux"
			}
			_, findings, _ := test.render(t)
			var got []string
			for _, finding := range findings {
				got = append(got, finding.String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestUnusableStoresAreFindings(t *testing.T) {
	const prefix = `cluster_types["drone"].secret_stores["v"].`
	for name, test := range map[string]struct {
		service string
		store   fleet.SecretStore
		want    []string
	}{
		"an object":         {"external-secrets", fleet.SecretStore{Name: "vault", Kind: "SecretStore"}, nil},
		"a provider":        {"secrets-store-csi", fleet.SecretStore{Provider: "gcp"}, nil},
		"a custom template": {"own", fleet.SecretStore{Name: "vault", Provider: "any", Parameters: map[string]string{"objects": "a"}}, nil},
		"attributes of another service": {"external-secrets", fleet.SecretStore{Provider: "vault", Parameters: map[string]string{"roleName": "a"}}, []string{
			prefix + "provider: is for secret services with providers: a store of external-secrets is an object on the clusters",
			prefix + "parameters: are for secret services with providers: a store of external-secrets is an object on the clusters",
		}},
		"no provider": {"secrets-store-csi", fleet.SecretStore{Name: "vault", Kind: "SecretStore"}, []string{
			prefix + "name: is for stores that are objects on the clusters: secrets-store-csi has providers in place of them",
			prefix + "kind: is for stores that are objects on the clusters: secrets-store-csi has providers in place of them",
			prefix + "provider: has to be one of vault, azure, aws, gcp",
		}},
		"an unknown provider": {"secrets-store-csi", fleet.SecretStore{Provider: "azur"}, []string{prefix + `provider: has to be one of vault, azure, aws, gcp; did you mean "azure"?`}},
		"parameters": {"secrets-store-csi", fleet.SecretStore{Provider: "azure", Parameters: map[string]string{"tenantId": "a", "objects": "a"}}, []string{
			prefix + "parameters: lack keyvaultName, which the provider azure needs",
			prefix + "parameters.objects: cannot be set: Flotilla writes it of the references",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			own := fleet.Template{Type: "secret", Name: "own", Manifests: []string{"a: b"}}
			_, findings := render.Compile(
				deployment{
					secretService: test.service,
					stores:        map[string]fleet.SecretStore{"v": test.store},
					templates:     []fleet.Template{own},
				}.fleet(),
			)
			var got []string
			for _, finding := range findings {
				got = append(got, finding.String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}
