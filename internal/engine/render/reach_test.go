package render_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// confined are workspaces whose workloads may use only what is allowed.
var (
	withAccount = fleet.Workspace{Name: "kaizen", ServiceAccount: "kaizen"}
	withProject = fleet.Workspace{Name: "kaizen", ArgocdProject: &fleet.ArgocdProject{Name: "kaizen", Render: true}}
)

const parametersPath = `workloads["hello"].deployment_targets["dev"].manifests.parameters.`

// attacks are what a team that may only add workloads tried. Each is refused with its field, and allowed by way.
var attacks = map[string]struct {
	deployment deployment
	parameters string
	field      string          // below the parameters
	reaches    string          // a part of the message
	way        fleet.Workspace // what allows it
}{
	"a Secret of others for its source": {
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
	"the keys of others": {
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
	"this cluster, where its type has another": {
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
	"what another's source has": {
		deployment{}, `{"git_repository": {"include": [{"repository": {"name": "dev-drone-other"}, "fromPath": "a"}]}}`,
		"git_repository.include[0].repository.name", "other objects", fleet.Workspace{Parameters: []string{"git_repository.include"}},
	},
	"another namespace": {
		deployment{}, `{"kustomization": {"dependsOn": [{"name": "a", "namespace": "other"}]}}`,
		"kustomization.dependsOn[0].namespace", "namespaces", fleet.Workspace{Parameters: []string{"kustomization.dependsOn"}},
	},
	"a field that nobody knows": {
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
	"the labels of another's bundle": {
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

// refusal is why a deployment cannot be rendered, or "".
func refusal(t *testing.T, d deployment) string {
	t.Helper()
	templates, subject := d.compile(t)
	if _, err := templates.Render(subject); err != nil {
		return err.Error()
	}
	return ""
}

func TestAWorkloadReachesOnlyWhatItsWorkspaceAllows(t *testing.T) {
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			base := attack.deployment
			if base.manifests.Repo == "" {
				base.manifests = fromGit()
			}
			base.manifests.Parameters = object(t, attack.parameters)
			for _, team := range []fleet.Workspace{withAccount, withProject} {
				if team.ArgocdProject != nil && strings.HasSuffix(attack.field, "project") {
					continue // decided by the workspace
				}
				base.workspace = team
				if said := refusal(t, base); !strings.Contains(said, attack.reaches) ||
					!strings.Contains(said, parametersPath+attack.field+": reaches ") ||
					!strings.Contains(said, `which workspace "kaizen" does not allow its workloads: add `) {
					t.Errorf("said %q, want %s, %s", said, attack.field, attack.reaches)
				}
				base.workspace.Secrets, base.workspace.Sources, base.workspace.Parameters = attack.way.Secrets, attack.way.Sources, attack.way.Parameters
				if said := refusal(t, base); said != "" {
					t.Errorf("with %v it says %s", attack.way, said)
				}
			}
			base.workspace = fleet.Workspace{Name: "kaizen"}
			if said := refusal(t, base); said != "" && !strings.Contains(said, "programs of the agent") {
				t.Errorf("a workspace that confines nothing refuses it: %s", said)
			}
			base.workspace = fleet.Workspace{Name: "kaizen", Sources: []string{"https://git.example.com"}}
			if said := refusal(t, base); said == "" {
				t.Error("a workspace that says what its workloads may use allows everything else")
			}
		})
	}
}

// registryChart is a chart of a registry that a HelmRepository names.
var registryChart = fleet.Manifests{
	Manifests: folder.Manifests{Storage: "helm", Repo: "oci://registry.example.com/charts", Chart: "app", Version: "1.2.3"},
}

// trusted are fields that decide what is trusted, each with the deployment that has it. The values make a check ineffective, or
// take it away.
var trusted = map[string]struct {
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

// What is trusted belongs to the platform, also where a workspace confines nothing, or lists the Secret as its own.
func TestAWorkloadDecidesNothingOfWhatIsTrusted(t *testing.T) {
	for field, attack := range trusted {
		t.Run(field, func(t *testing.T) {
			base := attack.deployment
			if base.manifests.Repo == "" {
				base.manifests = fromGit()
			}
			base.manifests.Parameters = object(t, attack.parameters)
			for _, team := range []fleet.Workspace{{Name: "kaizen"}, withAccount, {Name: "kaizen", Secrets: []string{"mine"}}} {
				base.workspace = team
				if said := refusal(t, base); !strings.Contains(said, parametersPath+field+": decides which content or which server is trusted, "+
					`which workspace "kaizen" does not allow its workloads: leave it to the parameters of the cluster type, or add "`) {
					t.Errorf("said %q", said)
				}
			}
			whole, _, _ := strings.Cut(field, "[")
			base.workspace = fleet.Workspace{Name: "kaizen", Parameters: []string{whole}}
			if said := refusal(t, base); said != "" {
				t.Errorf("a workspace that allows %s: %s", whole, said)
			}
		})
	}
}

// A cluster type requires signatures by kinds of sources. The storage, which the team chooses, must not make that ineffective.
func TestWhatAClusterTypeRequiresToBeSignedIsVerified(t *testing.T) {
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
		said := refusal(t, deployment{manifests: test.manifests, parameters: object(t, "{"+test.parameters+"}")})
		if test.want == "" && said != "" || !strings.Contains(said, test.want) {
			t.Errorf("%s, storage %s: %q, want %q", test.parameters, test.manifests.Storage, said, test.want)
		}
	}
}

func TestNoWorkloadUsesWhatIsTheAgentsOrAnotherTeams(t *testing.T) {
	for name, test := range map[string]struct{ parameters, want string }{
		"the Secret of the agent": {`{"secret_ref": "flotilla-repository"}`,
			`secret_ref: "flotilla-repository" is an object or a Secret of the agent itself, which no workload can use`},
		"by its field":            {`{"git_repository": {"secretRef": {"name": "flux-system"}}}`, `"flux-system" is an object or a Secret of the agent itself`},
		"the source of the agent": {`{"git_repository": {"include": [{"repository": {"name": "flotilla"}}]}}`, `"flotilla" is an object or a Secret of the agent itself`},
		"the Secret of a team": {`{"secret_ref": "of-others"}`,
			`secret_ref: "of-others" is a Secret of workspace "other", which this workload of workspace "kaizen" cannot use`},
		"an ordinary one": {`{"secret_ref": "shared"}`, ""},
	} {
		for _, team := range []fleet.Workspace{
			{Name: "kaizen"}, {Name: "kaizen", Parameters: []string{"secret_ref", "git_repository"}},
		} {
			d := deployment{workspace: team, manifests: with(fromGit(), object(t, test.parameters))}
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

func TestSourcesOfAWorkspace(t *testing.T) {
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
		said := refusal(t, deployment{workspace: team, manifests: test.manifests})
		const want = `workloads["hello"].deployment_targets["dev"].manifests.repo: is not among the sources of workspace "kaizen", which are ` +
			`https://git.example.com/team, oci://registry.example.com/team/`
		if test.refused != (said == want) || !test.refused && said != "" {
			t.Errorf("%s: %q", name, said)
		}
	}
	if said := refusal(t, deployment{workspace: fleet.Workspace{Name: "kaizen", Sources: []string{}}}); !strings.HasSuffix(
		said,
		"which are none",
	) {
		t.Errorf("a list that came out empty allows something: %s", said)
	}
}

func TestNamespacesOfAConfinedWorkspace(t *testing.T) {
	for namespace, allowed := range map[string]bool{"kaizen": true, "kaizen-shop": true, "kaizenshop": false, "monitoring": false, "cert-manager": false} {
		said := refusal(t, deployment{workspace: withAccount, namespace: namespace})
		if allowed != (said == "") ||
			!allowed && !strings.HasPrefix(said, `workloads["hello"].deployment_targets["dev"].namespace: workspace "kaizen" does not allow`) {
			t.Errorf("%s: %q", namespace, said)
		}
		free := withAccount
		free.Parameters = []string{"namespace"}
		if said := refusal(t, deployment{workspace: free, namespace: namespace}); said != "" {
			t.Errorf("%s: %q", namespace, said)
		}
	}
}

func TestLabelsOfNamespacesAreDecided(t *testing.T) {
	for parameters, want := range map[string]string{
		`{"application": {"syncPolicy": {"managedNamespaceMetadata": {"labels": {"workspace": "other"}}}}}`: `application.syncPolicy.managedNamespaceMetadata: cannot be set: Flotilla decides the labels and annotations of namespaces`,
		`{"application": {"source": {"kustomize": {"namespace": "other"}}}}`:                                `application.source.kustomize.namespace: cannot be set: the deployment target's namespace sets this`,
		`{"application": {"source": {"plugin": {"name": "x"}}}}`:                                            `application.source.plugin.name: reaches programs of the agent`,
		`{"helm_op": {"namespaceLabels": {"pod-security.kubernetes.io/enforce": "privileged"}}}`:            `helm_op.namespaceLabels: cannot be set: Flotilla decides the labels and annotations of namespaces`,
	} {
		d := deployment{reconciler: "argocd", manifests: with(fromGit(), object(t, parameters))}
		if strings.Contains(parameters, "helm_op") {
			d = deployment{reconciler: "fleet", manifests: with(helmChart, object(t, parameters))}
		}
		if said := refusal(t, d); !strings.Contains(said, parametersPath+want) {
			t.Errorf("%s: %q, want %s", parameters, said, want)
		}
	}
}
