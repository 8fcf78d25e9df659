package render_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Workspaces that confine their workloads.
var (
	withAccount = fleet.Workspace{Name: "kaizen", ServiceAccount: "kaizen"}
	withProject = fleet.Workspace{Name: "kaizen", ArgocdProject: &fleet.ArgocdProject{Name: "kaizen", Render: true}}
)

const parametersPath = `workloads["hello"].deployment_targets["dev"].manifests.parameters.`

// attacks are parameters of a team that may only add workloads. Rendering refuses each with its field, unless permission is set.
var attacks = map[string]struct {
	deployment deployment
	parameters string
	field      string          // path below the parameters
	reaches    string          // a part of the message
	permission fleet.Workspace // settings that permit the field
}{
	"another team's Secret for the source": {
		deployment{}, `{"secret_ref": "other-team"}`, "secret_ref", "Secrets", fleet.Workspace{Secrets: []string{"other-team"}},
	},
	"values from any Secret": {
		deployment{
			manifests: helmChart,
		}, `{"helm_release": {"valuesFrom": [{"kind": "Secret", "name": "db", "valuesKey": "x", "optional": true}]}}`,
		"helm_release.valuesFrom[0].name", "Secrets", fleet.Workspace{Secrets: []string{"db"}},
	},
	"variables from any Secret": {
		deployment{}, `{"kustomization": {"postBuild": {"substituteFrom": [{"kind": "Secret", "name": "db"}]}}}`,
		"kustomization.postBuild.substituteFrom[0].name", "Secrets", fleet.Workspace{Parameters: []string{"kustomization.postBuild"}},
	},
	"another team's keys": {
		deployment{}, `{"kustomization": {"decryption": {"secretRef": {"name": "sops"}}}}`,
		"kustomization.decryption.secretRef.name", "Secrets", fleet.Workspace{Secrets: []string{"sops"}},
	},
	"the keys of the controller": {
		deployment{}, `{"kustomization": {"decryption": {"provider": "sops"}}}`,
		"kustomization.decryption.provider", "another account", fleet.Workspace{Parameters: []string{"kustomization.decryption"}},
	},
	"another cluster": {
		deployment{}, `{"kustomization": {"kubeConfig": {"secretRef": {"name": "hub"}}}}`,
		"kustomization.kubeConfig.secretRef.name", "other clusters", fleet.Workspace{Parameters: []string{"kustomization.kubeConfig"}},
	},
	"another cluster, for a chart": {
		deployment{manifests: helmChart}, `{"helm_release": {"kubeConfig": {"configMapRef": {"name": "hub"}}}}`,
		"helm_release.kubeConfig.configMapRef.name", "other clusters", fleet.Workspace{Parameters: []string{"helm_release.kubeConfig.configMapRef"}},
	},
	"the local cluster in place of another": {
		deployment{}, `{"kustomization": {"kubeConfig": null}}`,
		"kustomization.kubeConfig", "other clusters", fleet.Workspace{Parameters: []string{"kustomization"}},
	},
	"the account of source-controller": {
		deployment{}, `{"git_repository": {"serviceAccountName": "admin"}}`,
		"git_repository.serviceAccountName", "another account", fleet.Workspace{Parameters: []string{"git_repository.serviceAccountName"}},
	},
	"the identity of source-controller": {
		deployment{manifests: ociManifests}, `{"oci_repository": {"provider": "aws"}}`,
		"oci_repository.provider", "another account", fleet.Workspace{Parameters: []string{"oci_repository"}},
	},
	"another team's source": {
		deployment{}, `{"git_repository": {"include": [{"repository": {"name": "dev-drone-other"}, "fromPath": "a"}]}}`,
		"git_repository.include[0].repository.name", "other objects", fleet.Workspace{Parameters: []string{"git_repository.include"}},
	},
	"another namespace": {
		deployment{}, `{"kustomization": {"dependsOn": [{"name": "a", "namespace": "other"}]}}`,
		"kustomization.dependsOn[0].namespace", "namespaces", fleet.Workspace{Parameters: []string{"kustomization.dependsOn"}},
	},
	"an unknown field": {
		deployment{}, `{"kustomization": {"tokenRef": {"name": "x"}}}`,
		"kustomization.tokenRef.name", "what Flotilla does not know", fleet.Workspace{Parameters: []string{"kustomization"}},
	},
	"credentials of Rancher Fleet": {
		deployment{reconciler: "fleet"}, `{"git_repo": {"clientSecretName": "other"}}`,
		"git_repo.clientSecretName", "Secrets", fleet.Workspace{Secrets: []string{"other"}},
	},
	"credentials of Rancher Fleet for charts": {
		deployment{reconciler: "fleet"}, `{"git_repo": {"helmSecretName": "other", "helmRepoURLRegex": ".*"}}`,
		"git_repo.helmSecretName", "Secrets", fleet.Workspace{Secrets: []string{"other"}, Parameters: []string{"git_repo.helmRepoURLRegex"}},
	},
	"other clusters of Rancher Fleet": {
		deployment{reconciler: "fleet"}, `{"git_repo": {"targets": [{"clusterSelector": {}}]}}`,
		"git_repo.targets[0].clusterSelector", "other clusters", fleet.Workspace{Parameters: []string{"git_repo.targets"}},
	},
	"Secrets of any namespace": {
		deployment{reconciler: "fleet", manifests: helmChart},
		`{"helm_op": {"helm": {"valuesFrom": [{"secretKeyRef": {"name": "mine", "namespace": "kube-system", "key": "x"}}]}}}`,
		"helm_op.helm.valuesFrom[0].secretKeyRef.namespace", "namespaces",
		fleet.Workspace{Secrets: []string{"mine"}, Parameters: []string{"helm_op.helm.valuesFrom.secretKeyRef.namespace"}},
	},
	"objects beside the chart": {
		deployment{reconciler: "fleet", manifests: helmChart}, `{"helm_op": {"resources": [{"name": "x", "content": "kind: Secret"}]}}`,
		"helm_op.resources[0].content", "content", fleet.Workspace{Parameters: []string{"helm_op.resources"}},
	},
	"the labels of another bundle": {
		deployment{reconciler: "fleet", manifests: helmChart}, `{"helm_op": {"labels": {"flotilla.dev/owner": "x"}}}`,
		"helm_op.labels.flotilla.dev/owner", "other objects", fleet.Workspace{Parameters: []string{"helm_op.labels"}},
	},
	"another project": {
		deployment{
			reconciler: "argocd",
		}, `{"project": "default"}`, "project", "another account", fleet.Workspace{Parameters: []string{"project"}},
	},
	"another project by its field": {
		deployment{reconciler: "argocd"}, `{"application": {"project": "default"}}`,
		"application.project", "another account", fleet.Workspace{Parameters: []string{"application.project"}},
	},
	"a program of the agent": {
		deployment{reconciler: "argocd"}, `{"application": {"source": {"plugin": {"name": "bash"}}}}`,
		"application.source.plugin.name", "programs", fleet.Workspace{Parameters: []string{"application.source.plugin"}},
	},
	"values from any URL": {
		deployment{
			reconciler: "argocd",
			manifests:  helmChart,
		}, `{"application": {"source": {"helm": {"valueFiles": ["values.yaml", "https://10.0.0.1/x.yaml"]}}}}`,
		"application.source.helm.valueFiles[1]", "other sources", fleet.Workspace{Sources: []string{"https://10.0.0.1", "https://charts.example.com"}},
	},
	"components from any URL": {
		deployment{reconciler: "argocd"}, `{"application": {"source": {"kustomize": {"components": ["git@evil.example.com:x"]}}}}`,
		"application.source.kustomize.components[0]", "other sources", fleet.Workspace{Parameters: []string{"application.source.kustomize.components"}},
	},
}

// refusal returns the error of rendering a deployment, or "".
func refusal(t *testing.T, d deployment) string {
	t.Helper()
	templates, subject := d.compile(t)
	if _, err := templates.Render(subject); err != nil {
		return err.Error()
	}
	return ""
}

func TestAWorkloadUsesOnlyFieldsPermittedByItsWorkspace(t *testing.T) {
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			base := attack.deployment
			if base.manifests.Repo == "" {
				base.manifests = fromGit()
			}
			base.manifests.Parameters = parseObject(t, attack.parameters)
			for _, team := range []fleet.Workspace{withAccount, withProject} {
				if team.ArgocdProject != nil && strings.HasSuffix(attack.field, "project") {
					continue // the workspace sets the project
				}
				base.workspace = team
				if got := refusal(t, base); !strings.Contains(got, attack.reaches) ||
					!strings.Contains(got, parametersPath+attack.field+": reaches ") ||
					!strings.Contains(got, `which workspace "kaizen" does not allow its workloads: add `) {
					t.Errorf("got %q, want %s, %s", got, attack.field, attack.reaches)
				}
				base.workspace.Secrets, base.workspace.Sources, base.workspace.Parameters = attack.permission.Secrets, attack.permission.Sources, attack.permission.Parameters
				if got := refusal(t, base); got != "" {
					t.Errorf("with %v: got error %s", attack.permission, got)
				}
			}
			base.workspace = fleet.Workspace{Name: "kaizen"}
			if got := refusal(t, base); got != "" && !strings.Contains(got, "programs of the agent") {
				t.Errorf("with a workspace that confines nothing: got error %s", got)
			}
			base.workspace = fleet.Workspace{Name: "kaizen", Sources: []string{"https://git.example.com"}}
			if got := refusal(t, base); got == "" {
				t.Error("with a workspace that lists other sources: got no error")
			}
		})
	}
}

// registryChart is a chart in a registry with storage "helm".
var registryChart = fleet.Manifests{
	Manifests: folder.Manifests{Storage: "helm", Repo: "oci://registry.example.com/charts", Chart: "app", Version: "1.2.3"},
}

// trustFields has the fields that control trust, by path. Each value weakens or removes a check.
var trustFields = map[string]struct {
	deployment deployment
	parameters string
}{
	"git_repository.verify":                {deployment{}, `{"git_repository": {"verify": null}}`},
	"git_repository.verify.mode":           {deployment{}, `{"git_repository": {"verify": {"mode": "Tag"}}}`},
	"git_repository.verify.unheard":        {deployment{}, `{"git_repository": {"verify": {"unheard": {}}}}`},
	"git_repository.proxySecretRef":        {deployment{}, `{"git_repository": {"proxySecretRef": null}}`},
	"git_repository":                       {deployment{}, `{"git_repository": null}`},
	"git_repository.verify.secretRef.name": {deployment{}, `{"git_repository": {"verify": {"secretRef": {"name": "mine"}}}}`},
	"oci_repository.verify":                {deployment{manifests: ociManifests}, `{"oci_repository": {"verify": {}}}`},
	"oci_repository.verify.provider":       {deployment{manifests: ociManifests}, `{"oci_repository": {"verify": {"provider": "notation"}}}`},
	"oci_repository.verify.matchOIDCIdentity[0].subject": {
		deployment{manifests: ociManifests}, `{"oci_repository": {"verify": {"matchOIDCIdentity": [{"subject": ".*"}]}}}`,
	},
	"oci_repository.verify.matchOIDCIdentity": {
		deployment{manifests: ociManifests},
		`{"oci_repository": {"verify": {"matchOIDCIdentity": []}}}`,
	},
	"oci_repository.insecure": {deployment{manifests: ociManifests}, `{"oci_repository": {"insecure": true}}`},
	"oci_repository.certSecretRef.name": {
		deployment{manifests: ociManifests},
		`{"oci_repository": {"certSecretRef": {"name": "mine"}}}`,
	},
	"helm_repository.insecure":      {deployment{manifests: helmChart}, `{"helm_repository": {"insecure": true}}`},
	"helm_repository.certSecretRef": {deployment{manifests: helmChart}, `{"helm_repository": {"certSecretRef": null}}`},
	"helm_release.chart.spec.verify.provider": {
		deployment{manifests: registryChart},
		`{"helm_release": {"chart": {"spec": {"verify": {"provider": "x"}}}}}`,
	},
	"git_repo.insecureSkipTLSVerify": {deployment{reconciler: "fleet"}, `{"git_repo": {"insecureSkipTLSVerify": true}}`},
	"git_repo.caBundle":              {deployment{reconciler: "fleet"}, `{"git_repo": {"caBundle": "bWluZQ=="}}`},
	"helm_op.insecureSkipTLSVerify": {
		deployment{reconciler: "fleet", manifests: helmChart},
		`{"helm_op": {"insecureSkipTLSVerify": true}}`,
	},
	"root_sync.git.noSSLVerify": {deployment{reconciler: "config-sync"}, `{"root_sync": {"git": {"noSSLVerify": true}}}`},
	"root_sync.git.proxy":       {deployment{reconciler: "config-sync"}, `{"root_sync": {"git": {"proxy": "http://10.0.0.1"}}}`},
	"root_sync.git.caCertSecretRef.name": {
		deployment{reconciler: "config-sync"},
		`{"root_sync": {"git": {"caCertSecretRef": {"name": "mine"}}}}`,
	},
}

// Trust belongs to the platform, even if a workspace confines nothing or lists the Secret as its own.
func TestAWorkloadCannotChangeTrust(t *testing.T) {
	for field, attack := range trustFields {
		t.Run(field, func(t *testing.T) {
			base := attack.deployment
			if base.manifests.Repo == "" {
				base.manifests = fromGit()
			}
			base.manifests.Parameters = parseObject(t, attack.parameters)
			for _, team := range []fleet.Workspace{{Name: "kaizen"}, withAccount, {Name: "kaizen", Secrets: []string{"mine"}}} {
				base.workspace = team
				if got := refusal(t, base); !strings.Contains(got, parametersPath+field+": decides which content or which server is trusted, "+
					`which workspace "kaizen" does not allow its workloads: leave it to the parameters of the cluster type, or add "`) {
					t.Errorf("got %q", got)
				}
			}
			whole, _, _ := strings.Cut(field, "[")
			base.workspace = fleet.Workspace{Name: "kaizen", Parameters: []string{whole}}
			if got := refusal(t, base); got != "" {
				t.Errorf("with a workspace that permits %s: got error %s", whole, got)
			}
		})
	}
}

// A cluster type requires signatures for kinds of sources. A team must not evade them by its choice of storage.
func TestRequiredSignaturesAreVerified(t *testing.T) {
	const artifacts, charts, git = `"oci_repository": {"verify": {"provider": "cosign"}}`, `"helm_release": {"chart": {"spec": {"verify": {"provider": "cosign"}}}}`,
		`"git_repository": {"verify": {"mode": "HEAD"}}`
	gitChart := fromGit()
	gitChart.Type = "helm"
	for _, test := range []struct {
		parameters string
		manifests  fleet.Manifests
		want       string // "" for none
	}{
		{artifacts, registryChart, `a chart of a registry with storage "helm" would not be verified: use storage "oci"`},
		{artifacts + "," + charts, registryChart, ""},
		{charts, registryChart, ""},
		{charts, ociChart, `a chart of storage "oci" would not be verified: set oci_repository.verify of the cluster type, too`},
		{charts + "," + artifacts, ociChart, ""},
		{charts, gitChart, `a chart of storage "git" would not be verified: set git_repository.verify`},
		{charts + "," + git, gitChart, ""},
		{charts, helmChart, "a chart of a chart repository would not be verified, since Flux does so for registries alone"},
		{charts + "," + artifacts, fromGit(), ""},
		{artifacts, helmChart, ""},
	} {
		got := refusal(t, deployment{manifests: test.manifests, parameters: parseObject(t, "{"+test.parameters+"}")})
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s, storage %s: %q, want %q", test.parameters, test.manifests.Storage, got, test.want)
		}
	}
}

func TestNoWorkloadUsesSecretsOfTheAgentOrAnotherTeam(t *testing.T) {
	for name, test := range map[string]struct{ parameters, want string }{
		"the Secret of the agent": {`{"secret_ref": "flotilla-repository"}`,
			`secret_ref: "flotilla-repository" is an object or a Secret of the agent itself, which no workload can use`},
		"by its field":            {`{"git_repository": {"secretRef": {"name": "flux-system"}}}`, `"flux-system" is an object or a Secret of the agent itself`},
		"the source of the agent": {`{"git_repository": {"include": [{"repository": {"name": "flotilla"}}]}}`, `"flotilla" is an object or a Secret of the agent itself`},
		"the Secret of another team": {`{"secret_ref": "of-others"}`,
			`secret_ref: "of-others" is a Secret of workspace "other", which this workload of workspace "kaizen" cannot use`},
		"an ordinary Secret": {`{"secret_ref": "shared"}`, ""},
	} {
		for _, team := range []fleet.Workspace{
			{Name: "kaizen"}, {Name: "kaizen", Parameters: []string{"secret_ref", "git_repository"}},
		} {
			d := deployment{workspace: team, manifests: withParameters(fromGit(), parseObject(t, test.parameters))}
			f := d.fleet()
			f.Workspaces = append(f.Workspaces, fleet.Workspace{Name: "other", Secrets: []string{"of-others"}})
			templates := compile(t, f)
			_, err := templates.Render(d.subject(f))
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%s: %v, want %s", name, err, test.want)
			}
		}
	}
}

func TestAWorkloadUsesOnlySourcesOfItsWorkspace(t *testing.T) {
	team := fleet.Workspace{Name: "kaizen", Sources: []string{"https://git.example.com/team", "oci://registry.example.com/team/"}}
	for name, test := range map[string]struct {
		manifests fleet.Manifests
		refused   bool
	}{
		"within":              {fleet.Manifests{Manifests: folder.Manifests{Storage: "git", Repo: "https://git.example.com/team/app"}}, false},
		"the same":            {fleet.Manifests{Manifests: folder.Manifests{Storage: "git", Repo: "https://git.example.com/team"}}, false},
		"beside":              {fleet.Manifests{Manifests: folder.Manifests{Storage: "git", Repo: "https://git.example.com/team-b/app"}}, true},
		"elsewhere":           {fleet.Manifests{Manifests: folder.Manifests{Storage: "git", Repo: "https://git.example.com.evil.example/team/app"}}, true},
		"a chart":             {fleet.Manifests{Manifests: folder.Manifests{Storage: "oci", Repo: "oci://registry.example.com/team", Chart: "app", Version: "1"}}, false},
		"a chart that climbs": {fleet.Manifests{Manifests: folder.Manifests{Storage: "oci", Repo: "oci://registry.example.com/team", Chart: "../other/app", Version: "1"}}, true},
	} {
		got := refusal(t, deployment{workspace: team, manifests: test.manifests})
		const want = `workloads["hello"].deployment_targets["dev"].manifests.repo: is not among the sources of workspace "kaizen", which are ` +
			`https://git.example.com/team, oci://registry.example.com/team/`
		if test.refused != (got == want) || !test.refused && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := refusal(t, deployment{workspace: fleet.Workspace{Name: "kaizen", Sources: []string{}}}); !strings.HasSuffix(
		got,
		"which are none",
	) {
		t.Errorf("with an empty list of sources: got %q", got)
	}
}

func TestAConfinedWorkspaceUsesItsOwnNamespaces(t *testing.T) {
	for namespace, allowed := range map[string]bool{"kaizen": true, "kaizen-shop": true, "kaizenshop": false, "monitoring": false, "cert-manager": false} {
		got := refusal(t, deployment{workspace: withAccount, namespace: namespace})
		if allowed != (got == "") ||
			!allowed && !strings.HasPrefix(got, `workloads["hello"].deployment_targets["dev"].namespace: workspace "kaizen" does not allow`) {
			t.Errorf("%s: %q", namespace, got)
		}
		free := withAccount
		free.Parameters = []string{"namespace"}
		if got := refusal(t, deployment{workspace: free, namespace: namespace}); got != "" {
			t.Errorf("%s: %q", namespace, got)
		}
	}
}

func TestParametersCannotSetNamespacesAndTheirLabels(t *testing.T) {
	for parameters, want := range map[string]string{
		`{"application": {"syncPolicy": {"managedNamespaceMetadata": {"labels": {"workspace": "other"}}}}}`: `application.syncPolicy.managedNamespaceMetadata: cannot be set: Flotilla decides the labels and annotations of namespaces`,
		`{"application": {"source": {"kustomize": {"namespace": "other"}}}}`:                                `application.source.kustomize.namespace: cannot be set: the deployment target's namespace sets this`,
		`{"application": {"source": {"plugin": {"name": "x"}}}}`:                                            `application.source.plugin.name: reaches programs of the agent`,
		`{"helm_op": {"namespaceLabels": {"pod-security.kubernetes.io/enforce": "privileged"}}}`:            `helm_op.namespaceLabels: cannot be set: Flotilla decides the labels and annotations of namespaces`,
	} {
		d := deployment{reconciler: "argocd", manifests: withParameters(fromGit(), parseObject(t, parameters))}
		if strings.Contains(parameters, "helm_op") {
			d = deployment{reconciler: "fleet", manifests: withParameters(helmChart, parseObject(t, parameters))}
		}
		if got := refusal(t, d); !strings.Contains(got, parametersPath+want) {
			t.Errorf("%s: %q, want %s", parameters, got, want)
		}
	}
}
