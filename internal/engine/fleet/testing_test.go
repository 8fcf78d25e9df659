package fleet_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// unknown stands for an unknown value in the inputs of tests.
const unknown = "(known after apply)"

var sealed = "'" + fleettest.Sealed("tls", "shop") + "'"

// input reads the argument of provider::flotilla::fleet from YAML. SEALED stands for an encrypted file.
func input(t testing.TB, text string) any {
	t.Helper()
	value, err := fleet.ParseYAML(strings.NewReplacer("\t", "  ", "SEALED", sealed).Replace(text))
	if err != nil {
		t.Fatal(err)
	}
	return withUnknowns(value)
}

func withUnknowns(value any) any {
	switch value := value.(type) {
	case string:
		if value == unknown {
			return fleet.Unknown{}
		}
	case []any:
		for i := range value {
			value[i] = withUnknowns(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = withUnknowns(value[key])
		}
	}
	return value
}

// wantFindings checks that there are exactly these findings, each written as "<path>: <part of the message>".
func wantFindings(t *testing.T, got fleet.Findings, want ...string) {
	t.Helper()
	unexpected := slices.Clone(got)
	for _, wanted := range want {
		path, message, _ := strings.Cut(wanted, ": ")
		found := slices.IndexFunc(unexpected, func(f fleet.Finding) bool {
			return f.Path == path && strings.Contains(f.Message, message)
		})
		if found < 0 {
			t.Errorf("no finding %q", wanted)
			continue
		}
		unexpected = slices.Delete(unexpected, found, found+1)
	}
	for _, finding := range unexpected {
		t.Errorf("unexpected finding %q", finding)
	}
	if t.Failed() && len(want) > 0 {
		t.Logf("all findings:\n%s", got.Error())
	}
}

// everything is a valid input with each attribute of each kind.
const everything = `
environment: dev
environments:
- dev
- name: prod
  labels: {stage: last}
  description: where it counts
  gitops_repo: {url: 'https://git.example.com/fleet', branch: prod, path: clusters}
workspaces:
- name: team
  contributor_groups: [developers]
  reader_groups: [auditors]
  environments: [dev, prod]
  resource_quota: {limits.cpu: '16', count/deployments.apps: '20'}
  network_policy: isolated
  limit_range:
  - {default: {cpu: 500m}, default_request: {cpu: 100m}, max: {cpu: '2'}, min: {cpu: 10m}, max_limit_request_ratio: {cpu: '4'}, type: Container}
  service_account: team
  argocd_project: {name: team, render: true}
  secrets: [team-git]
  sources: ['https://git.example.com/', 'https://charts.example.com', 'oci://registry.example.com']
  parameters: [helm_release.valuesFrom, namespace]
  least_render: pointers
  labels: {department: retail}
cluster_types:
- name: drone
  formerly: [glider, plane]
  environment: dev
  labels: {region: east}
  taints: [{key: restricted, value: 'true', effect: NoSchedule}]
  reconciler: ours
  namespace_service: default
  config_type: configmap
  description: flies
  parameters: {kustomization: {interval: 5m}}
  allow_plain: [parameters.helm_release.values.password]
  secret_service: external-secrets
  secret_stores:
    vault: {name: vault-east, kind: SecretStore}
    cloud: {provider: azure, parameters: {keyvaultName: east}}
  decryption: {secret: sops-age, service_account: kustomize-controller}
  render: preview
  kubernetes_version: v1.34.2
  api_versions: [monitoring.coreos.com/v1/ServiceMonitor, example.com/v1beta1]
- name: large
  environment: prod
clusters:
- name: drone-7
  environment: dev
  cluster_type: drone
  labels: {site: north}
  taints: [{key: gpu}]
  description: the seventh
workloads:
- name: hello
  workspace: team
  labels: {family: web}
  requires: [database]
  deployment_targets:
    live:
      environment: dev
      labels: {purpose: live}
      namespace: greetings
      manifests:
        storage: git
        repo: https://git.example.com/hello
        branch: main
        commit: 0123456789abcdef0123456789abcdef01234567
        path: ./live
        type: kustomize
        parameters: {anything: {goes: 1.50}}
      config_as: [configmap, 'values:platform']
      render: preview
      allow_plain: [parameters.helm_release.values.password, ConfigMap.data.password]
      config_schema: '{"type": "object"}'
    later:
      environment: prod
      manifests: {storage: helm, repo: 'https://charts.example.com', chart: hello, version: 1.2.3}
- name: database
  workspace: team
  deployment_targets:
    live:
      environment: dev
      manifests: {storage: oci, repo: 'oci://registry.example.com/database', tag: v1, digest: 'sha256:d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1'}
target_policies:
- name: east
  environment: dev
  workspace: team
  workload_selector: {match_labels: {family: web}}
  deployment_target_selector: {match_expressions: [{key: purpose, operator: In, values: [live, '']}]}
  cluster_type_selector: {expression: 'region in (east, west), !closed'}
  cluster_selector: {}
  tolerations: [{key: restricted, operator: Equal, value: 'true', effect: NoSchedule}, {operator: Exists}]
  placement: {number_of_hosts: 2, prefer: [{selector: {match_labels: {region: east}}, weight: -5}], spread: [{key: region, max_skew: 2}]}
  effect: schedule
config_containers:
- name: platform
  environment: dev
  labels: {region: east}
  data: {DATABASE_URL: 'postgres://db', REPLICAS: 3, NESTED: {list: [1, {a: null}]}}
  secrets:
    DATABASE_PASSWORD: {store: vault, key: dev/db, property: password, version: '3'}
    TOKEN: null
  encrypted: [SEALED]
  allow_plain: [DATABASE_URL]
  priority: 5
  json: computed
- name: elsewhere
  environment: prod
  data: {A: b}
config_schemas:
- name: shape
  environment: dev
  labels: {region: east}
  schema: {type: object, required: [DATABASE_URL]}
templates:
- name: ours
  type: reconciler
  content_type: json
  manifests: ['{}']
constraints:
- name: no-latest
  environment: dev
  match:
    workspace: team
    workload_selector: {match_labels: {family: web}}
    deployment_target_selector: {}
    cluster_type_selector: {expression: region in (east)}
    cluster_selector: {}
    kinds: [Kustomization, GitRepository]
  expression: 'target.manifests.tag != "latest"'
  message: tags stay
  message_expression: '"tag of " + target.name'
  mode: inform
hydration: {precedence: name, on_conflict: warn, lists: merge, list_key: id}
`

// walk calls visit with every value in a tree, its path and a function that replaces it.
func walk(path string, value any, visit func(path string, value any, replace func(any))) {
	var inner func(path string, value any, replace func(any))
	inner = func(path string, value any, replace func(any)) {
		visit(path, value, replace)
		switch value := value.(type) {
		case []any:
			for i := range value {
				inner(path+"[]", value[i], func(replacement any) { value[i] = replacement })
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				inner(path+"."+key, value[key], func(replacement any) { value[key] = replacement })
			}
		}
	}
	inner(path, value, nil)
}

func clone(value any) any {
	switch value := value.(type) {
	case []any:
		list := make([]any, len(value))
		for i := range value {
			list[i] = clone(value[i])
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(value))
		for key := range value {
			object[key] = clone(value[key])
		}
		return object
	}
	return value
}
