package render_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	helmChart = fleet.Manifests{
		Manifests: folder.Manifests{Storage: "helm", Repo: "https://charts.example.com", Chart: "podinfo", Version: "6.7.x"},
		Parameters: map[string]any{
			"secret_ref": "charts",
			"values":     map[string]any{"replicas": json.Number("2"), "message": "hello: \"world\"\n"},
		},
	}
	ociManifests = fleet.Manifests{
		Manifests: folder.Manifests{Storage: "oci", Repo: "oci://registry.example.com/hello", Tag: "1.2.3", Path: "./deploy"},
	}
	ociChart = fleet.Manifests{
		Manifests: folder.Manifests{Storage: "oci", Repo: "oci://registry.example.com/charts/", Chart: "podinfo", Version: "6.7.x"},
	}
	gitChart = fleet.Manifests{
		Manifests: folder.Manifests{
			Storage: "git",
			Repo:    "ssh://git@git.example.com/hello",
			Commit:  "0123456789abcdef0123456789abcdef01234567",
			Path:    "charts/hello",
		},
		Type: "helm",
	}
	gitTag = fleet.Manifests{Manifests: folder.Manifests{Storage: "git", Repo: "https://git.example.com/hello", Tag: "v1.2.3"}}
)

func required(name string, manifests fleet.Manifests) fleet.Workload {
	return fleet.Workload{
		Name: name, Workspace: "kaizen",
		DeploymentTargets: []fleet.DeploymentTarget{{Name: "dev", Manifests: manifests}},
	}
}

// team is a workspace with every setting of the built-in policy.
var team = fleet.Workspace{
	Name: "kaizen", ContributorGroups: []string{"kaizen-devs", `the "A" team`}, ReaderGroups: []string{"auditors"},
	ResourceQuota: map[string]string{"requests.cpu": "4", "pods": "20"}, NetworkPolicy: "isolated",
	LimitRange: []fleet.Limit{
		{Type: "Container", Default: map[string]string{"cpu": "1"}, DefaultRequest: map[string]string{"cpu": "100m"}},
		{
			Type:                 "Pod",
			Max:                  map[string]string{"memory": "4Gi"},
			Min:                  map[string]string{"memory": "16Mi"},
			MaxLimitRequestRatio: map[string]string{"cpu": "10"},
		},
	},
	ServiceAccount: "kaizen", ArgocdProject: &fleet.ArgocdProject{Name: "kaizen", Render: true}, Secrets: []string{"charts"},
}

// awkward has values that break careless templates.
var awkward = map[string]any{
	"BOOLEAN":   true,
	"COLON":     "key: value # no comment",
	"EMPTY":     "",
	"INTEGER":   json.Number("911"),
	"LARGE":     json.Number("123456789012345678901234567890"),
	"LEADING":   "0123",
	"LIST":      []any{"a", json.Number("1"), map[string]any{"b": nil}},
	"LOOKALIKE": "yes",
	"MULTILINE": "first\n  second\n\nlast\n",
	"NUMBER":    json.Number("1500000.5"),
	"OBJECT":    map[string]any{"host": "db", "ports": []any{json.Number("1"), json.Number("2")}},
	"QUOTES":    `it's "quoted" \ and {{ .Namespace }}`,
	"UNICODE":   "grüße 🚢",
}

// Stores of a cluster type, and references to one and to several of them.
var (
	stores = map[string]fleet.SecretStore{
		"vault": {}, "cloud": {Name: "key-vault", Kind: "ClusterSecretStore"}, "team": {Name: "own", Kind: "SecretStore"},
	}
	providers = map[string]fleet.SecretStore{
		"csi-vault": {Provider: "vault", Parameters: map[string]string{"roleName": "apps", "vaultAddress": "https://vault.example.com"}},
		"csi-azure": {Provider: "azure", Parameters: map[string]string{"keyvaultName": "apps", "tenantID": "0123"}},
		"csi-aws":   {Provider: "aws", Parameters: map[string]string{"region": "eu-west-1"}},
		"csi-gcp":   {Provider: "gcp", Parameters: map[string]string{"project": "apps", "auth": "provider-adc"}},
	}
	vaultSecrets = map[string]fleet.SecretReference{
		"DB_PASSWORD": {Store: "vault", Key: "prod/db", Property: "password", Version: "3"},
		"tls.crt":     {Store: "vault", Key: `it's "quoted" {{ .Namespace }}`},
	}
	twoStoreSecrets = map[string]fleet.SecretReference{
		"API_TOKEN": {
			Store:   "cloud",
			Key:     "api-token",
			Version: "0123456789abcdef",
		}, "DB_PASSWORD": {Store: "team", Key: "db", Property: "password"},
	}
)

// providerSecrets returns two references to a store: one with all attributes of its provider, and one with fewer.
func providerSecrets(store, key, property, version string) map[string]fleet.SecretReference {
	minimal := fleet.SecretReference{Store: store, Key: "cert/" + key}
	switch store {
	case "csi-vault":
		minimal.Property = "user"
	case "csi-aws":
		minimal = fleet.SecretReference{
			Store:   store,
			Key:     "arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-AbCdEf",
			Version: "uuid/01234567-89ab-cdef-0123-456789abcdef",
		}
	case "csi-gcp":
		minimal.Key = "projects/other/locations/europe-west1/secrets/" + key
	}
	return map[string]fleet.SecretReference{"DB_PASSWORD": {Store: store, Key: key, Property: property, Version: version}, "other.key": minimal}
}

// pin adds a pin to manifests, as flotilla_artifacts does.
func pin(manifests fleet.Manifests) fleet.Manifests {
	manifests.Pin = folder.Pin{Commit: strings.Repeat("c0", 20)}
	if manifests.Storage != "git" {
		manifests.Pin = folder.Pin{Version: cmp.Or(manifests.Tag, "6.7.1"), Digest: "sha256:" + strings.Repeat("d1", 32)}
	}
	return manifests
}

func TestBuiltinTemplates(t *testing.T) {
	redis := required("redis", helmChart)
	api := required("api", fromGit())
	cases := map[string]deployment{
		"flux-git":         {},
		"flux-git-commit":  {manifests: gitChart},
		"flux-git-tag":     {manifests: gitTag},
		"flux-helm":        {manifests: helmChart, requires: []fleet.Workload{api, redis}},
		"flux-oci":         {manifests: ociManifests, requires: []fleet.Workload{api, redis}},
		"flux-oci-chart":   {manifests: ociChart},
		"flux-cluster":     {cluster: true},
		"argocd-git":       {reconciler: "argocd", requires: []fleet.Workload{api, redis}},
		"argocd-git-chart": {reconciler: "argocd", manifests: gitChart},
		"argocd-helm":      {reconciler: "argocd", manifests: helmChart},
		"argocd-oci":       {reconciler: "argocd", manifests: ociManifests},
		"argocd-oci-chart": {reconciler: "argocd", manifests: ociChart},
		"hub-git":          {reconciler: "argocd-hub", requires: []fleet.Workload{api, redis}},
		"hub-helm":         {reconciler: "argocd-hub", manifests: helmChart, config: awkward, configAs: fleet.ConfigAs{"values"}},
		"hub-cluster":      {reconciler: "argocd-hub", manifests: ociChart, cluster: true},
		"tenant-hub":       {workspace: team, reconciler: "argocd-hub"},
		"fleet-git":        {reconciler: "fleet", manifests: gitTag},
		"fleet-helm":       {reconciler: "fleet", manifests: helmChart, requires: []fleet.Workload{api, redis}},
		"fleet-oci-chart":  {reconciler: "fleet", manifests: ociChart},
		"sync-git":         {reconciler: "config-sync", requires: []fleet.Workload{api}},
		"sync-git-tag":     {reconciler: "config-sync", manifests: withParameters(gitTag, map[string]any{"secret_ref": "hello-git"})},
		"sync-git-ssh": {
			reconciler: "config-sync",
			manifests: fleet.Manifests{
				Manifests:  folder.Manifests{Storage: "git", Repo: "git@git.example.com:hello.git"},
				Parameters: map[string]any{"secret_ref": "hello-git"},
			},
		},
		"sync-oci":          {reconciler: "config-sync", manifests: ociManifests},
		"sync-long-name":    {reconciler: "config-sync", namespace: "a-namespace-of-the-team"},
		"tenant-sync":       {workspace: team, reconciler: "config-sync"},
		"zarf-git":          {reconciler: "zarf"},
		"zarf-git-chart":    {reconciler: "zarf", manifests: gitChart},
		"zarf-helm":         {reconciler: "zarf", manifests: helmChart},
		"zarf-oci-chart":    {reconciler: "zarf", manifests: ociChart},
		"policy":            {workspace: team},
		"config-configmap":  {config: awkward},
		"config-json":       {configType: "json", config: awkward},
		"config-env":        {configType: "env", config: awkward},
		"config-properties": {configType: "properties", config: awkward},
		"config-symphony":   {configType: "symphony", config: awkward},
		"config-none":       {configType: "env"},

		"zarf-json":       {reconciler: "zarf", configType: "json", config: awkward},
		"zarf-env":        {reconciler: "zarf", configType: "env", config: awkward},
		"zarf-properties": {reconciler: "zarf", configType: "properties", config: awkward},

		"secrets-one-store":      {secretService: "external-secrets", stores: stores, secrets: vaultSecrets, config: awkward},
		"secrets-several-stores": {secretService: "external-secrets", stores: stores, secrets: twoStoreSecrets},
		"secrets-named": {
			secretService: "external-secrets",
			stores:        stores,
			secrets:       vaultSecrets,
			configAs:      fleet.ConfigAs{"secret:credentials"},
			reconciler:    "argocd",
		},
		"secrets-values-flux": {
			secretService: "external-secrets",
			stores:        stores,
			secrets:       vaultSecrets,
			configAs:      fleet.ConfigAs{"configmap", "values:global.platform"},
			manifests:     helmChart,
			config:        map[string]any{"REGION": "east"},
		},
		"secrets-values-alone": {
			secretService: "external-secrets",
			stores:        stores,
			secrets:       vaultSecrets,
			configAs:      fleet.ConfigAs{"values"},
			manifests: withParameters(
				ociChart,
				parseObject(t, `{"helm_release": {"valuesFrom": [{"kind": "ConfigMap", "name": "more"}]}, "values": {"DB_PASSWORD": "none"}}`),
			),
		},
		"secrets-values-fleet": {
			secretService: "external-secrets",
			stores:        stores,
			secrets:       twoStoreSecrets,
			configAs:      fleet.ConfigAs{"values:{{ fail }}"},
			manifests:     withParameters(helmChart, parseObject(t, `{"helm_op": {"helm": {"valuesFrom": [{"configMapKeyRef": {"name": "more"}}]}}}`)),
			reconciler:    "fleet",
		},
		"secrets-csi-vault": {
			secretService: "secrets-store-csi",
			stores:        providers,
			secrets:       providerSecrets("csi-vault", "secret/data/db", "password", "3"),
		},
		"secrets-csi-azure": {
			secretService: "secrets-store-csi",
			stores:        providers,
			secrets:       providerSecrets("csi-azure", "db-password", "", "0123456789abcdef"),
		},
		"secrets-csi-aws": {
			secretService: "secrets-store-csi",
			stores:        providers,
			secrets:       providerSecrets("csi-aws", "prod/db", "user.pass-word", "AWSPREVIOUS"),
		},
		"secrets-csi-gcp": {secretService: "secrets-store-csi", stores: providers, secrets: providerSecrets("csi-gcp", "db", "password", "3")},
		"secrets-none":    {secretService: "external-secrets", stores: stores},

		"values-flux":     {manifests: helmChart, config: awkward, configAs: fleet.ConfigAs{"configmap:settings", "values:global.platform"}},
		"values-flux-oci": {manifests: ociChart, config: awkward, configAs: fleet.ConfigAs{"values"}},
		"values-argocd":   {reconciler: "argocd", manifests: helmChart, config: awkward, configAs: fleet.ConfigAs{"values"}},
		"values-fleet":    {reconciler: "fleet", manifests: helmChart, config: awkward, configAs: fleet.ConfigAs{"values:platform"}},
		"substitute": {
			config:   map[string]any{"REGION": "east", "REPLICAS": json.Number("3"), "DEBUG": true},
			configAs: fleet.ConfigAs{"substitute"},
		},
		"tenant-flux":       {workspace: team},
		"tenant-flux-helm":  {workspace: team, manifests: helmChart},
		"tenant-argocd":     {workspace: team, reconciler: "argocd"},
		"tenant-fleet":      {workspace: team, reconciler: "fleet"},
		"tenant-fleet-helm": {workspace: team, reconciler: "fleet", manifests: helmChart},
		"namespace-given":   {namespace: "monitoring", requires: []fleet.Workload{api}},
	}
	for name, manifests := range map[string]fleet.Manifests{"git": fromGit(), "tag": gitTag, "helm": helmChart, "oci": ociManifests, "oci-chart": ociChart} {
		manifests = pin(manifests)
		for reconciler, deploysCharts := range map[string]bool{"flux": true, "argocd": true, "argocd-hub": true, "config-sync": false, "fleet": true, "zarf": true} {
			isChart := strings.Contains(name, "helm") || strings.Contains(name, "chart")
			if name == "oci" && (reconciler == "fleet" || reconciler == "zarf") || isChart && !deploysCharts {
				continue // the reconciler does not deploy them
			}
			cases["pinned-"+reconciler+"-"+name] = deployment{reconciler: reconciler, manifests: manifests}
		}
	}
	for name, test := range everyField {
		cases["parameters-"+name] = deployment{
			reconciler: test.reconciler, workspace: workspaceAllowing(name), manifests: withParameters(test.manifests, parseObject(t, test.parameters)),
		}
	}
	for name, deployment := range cases {
		t.Run(name, func(t *testing.T) {
			files := deployment.render(t)
			folder := filepath.Join("testdata", "builtin", name)
			if *update {
				writeFolder(t, folder, files)
			}
			want := map[string]string{}
			for path, content := range readFolder(t, folder) {
				want[path] = string(content)
			}
			for path := range files {
				if files[path] != want[path] {
					t.Errorf("%s/%s is\n%s\nwant\n%s", name, path, files[path], want[path])
				}
			}
			for path := range want {
				if _, ok := files[path]; !ok {
					t.Errorf("%s/%s is not written", name, path)
				}
			}
		})
	}
}

func writeFolder(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEveryBuiltinTemplateOfTheModelExists(t *testing.T) {
	for kind, names := range fleet.BuiltinTemplates {
		folder := filepath.Join("templates", kind)
		if kind == "reconciler" {
			folder = "../reconciler/templates"
		}
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, entry := range entries {
			files = append(files, strings.TrimSuffix(entry.Name(), filepath.Ext(entry.Name())))
		}
		slices.Sort(files)
		if !slices.Equal(files, slices.Sorted(slices.Values(names))) {
			t.Errorf("templates/%s has %q, the model has %q", kind, files, names)
		}
	}
	if kinds := slices.Sorted(maps.Keys(fleet.BuiltinTemplates)); !slices.Equal(kinds, slices.Sorted(slices.Values(fleet.TemplateTypes))) {
		t.Errorf("got types %q of built-in templates, want %q", kinds, fleet.TemplateTypes)
	}
}
