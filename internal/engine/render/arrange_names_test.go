package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

func TestObjectsOfAFolderAreListed(t *testing.T) {
	own := fleet.Template{Type: "reconciler", Name: "own", Manifests: []string{
		"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a, namespace: b}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
		"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: d}\n",
		"apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: e, namespace: f}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: g}\n",
		"apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: h}\n---\napiVersion: example.com/v1\nkind: ExternalSecret\nmetadata: {name: i}\n",
	}}
	for name, test := range map[string]struct {
		deployment deployment
		want       string
	}{
		"Flux":                       {deployment{}, "[{Kustomization flux-system dev-drone-hello-dev}]"},
		"Flux, a chart":              {deployment{manifests: helmChart}, "[{HelmRelease flux-system dev-drone-hello-dev}]"},
		"Argo CD":                    {deployment{reconciler: "argocd"}, "[{Application argocd dev-drone-hello-dev}]"},
		"Argo CD on a hub":           {deployment{reconciler: "argocd-hub"}, "[{ApplicationSet argocd dev-drone-hello-dev}]"},
		"Rancher Fleet":              {deployment{reconciler: "fleet"}, "[{GitRepo fleet-local dev-drone-hello-dev}]"},
		"Rancher Fleet, a chart":     {deployment{reconciler: "fleet", manifests: helmChart}, "[{HelmOp fleet-local dev-drone-hello-dev}]"},
		"Config Sync":                {deployment{reconciler: "config-sync"}, "[{RootSync config-management-system dev-drone-hello-dev}]"},
		"Config Sync, long names":    {deployment{reconciler: "config-sync", namespace: "a-namespace-of-the-team"}, "[{RootSync config-management-system a-namespace-of-the-team-hello-27107d15}]"},
		"Zarf":                       {deployment{reconciler: "zarf"}, "[]"},
		"a configured namespace":     {deployment{namespace: "given"}, "[{Kustomization flux-system given-hello-dev-f674cb19}]"},
		"a secret":                   {deployment{secretService: "external-secrets", stores: stores, secrets: vaultSecrets}, "[{ExternalSecret dev-drone-hello-dev platform-secrets} {Kustomization flux-system dev-drone-hello-dev}]"},
		"a named secret":             {deployment{secretService: "external-secrets", stores: stores, secrets: vaultSecrets, configAs: fleet.ConfigAs{"secret:credentials"}}, "[{ExternalSecret dev-drone-hello-dev credentials} {Kustomization flux-system dev-drone-hello-dev}]"},
		"no secret":                  {deployment{secretService: "external-secrets", stores: stores}, "[{Kustomization flux-system dev-drone-hello-dev}]"},
		"a secret for a chart":       {deployment{secretService: "external-secrets", stores: stores, secrets: vaultSecrets, manifests: helmChart, configAs: fleet.ConfigAs{"values"}}, "[{ExternalSecret flux-system dev-drone-hello-dev-platform-values} {HelmRelease flux-system dev-drone-hello-dev}]"},
		"a secret of the CSI driver": {deployment{secretService: "secrets-store-csi", stores: providers, secrets: providerSecrets("csi-azure", "db", "", "")}, "[{Kustomization flux-system dev-drone-hello-dev}]"},
		"a custom template":          {deployment{reconciler: "own", templates: []fleet.Template{own}}, "[{Kustomization b a} {Application  d} {ExternalSecret f e} {SealedSecret  h}]"},
	} {
		t.Run(name, func(t *testing.T) {
			templates, subject := test.deployment.compile(t)
			files, err := templates.Render(subject)
			if err != nil {
				t.Fatal(err)
			}
			got := templates.Objects(subject, files)
			if fmt.Sprint(got) != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
			content := ""
			for _, file := range files {
				content += string(file.Content)
			}
			for _, object := range got {
				if !strings.Contains(content, "kind: "+object.Kind) || !strings.Contains(content, object.Name) {
					t.Errorf("%v is not in\n%s", object, content)
				}
			}
		})
	}
}

func TestLabelValues(t *testing.T) {
	long := strings.Repeat("a", 64)
	for name, want := range map[string]string{
		"drone":                               "drone",
		"clusters/drone-1":                    "clusters.drone-1",
		"dev.eu_1":                            "dev.eu_1",
		"clusters/" + strings.Repeat("a", 54): "clusters." + strings.Repeat("a", 54),
	} {
		if got := render.LabelValue(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	seen := map[string]string{}
	for _, name := range []string{long, long + "a", "clusters/" + long[:60], "clusters/" + long[:61], "a/b", "a b", "é", "", "-", "a-", strings.Repeat("é", 40), "/"} {
		value := render.LabelValue(name)
		if problem := fleet.CheckLabelValue(value); problem != "" || seen[value] != "" {
			t.Errorf("%q is %q: problem %q, same value as %q", name, value, problem, seen[value])
		}
		seen[value] = name
	}
}

func TestUnknownOwnerMakesTheReconcilerUnknown(t *testing.T) {
	templates, subject := deployment{}.compile(t)
	subject.Owner = ""
	if _, err := templates.Render(subject); err == nil || !strings.Contains(err.Error(), "not known yet") {
		t.Errorf("got error %v, want that the owner is not known yet", err)
	}
	templates, subject = deployment{reconciler: "zarf"}.compile(t)
	subject.Owner = ""
	if _, err := templates.Render(subject); err != nil {
		t.Errorf("a template that does not read the owner: %v", err)
	}
}

func TestMisspeltFieldsAreWarnings(t *testing.T) {
	prefix := `workloads["hello"].deployment_targets["dev"].manifests.parameters.kustomization.`
	for name, test := range map[string]struct {
		deployment deployment
		parameters string
		want       string
	}{
		"misspelt":           {deployment{}, `{"kustomization": {"intervall": "1m", "timeOut": "1m", "wait": true}}`, prefix + "intervall: is no field of a Kustomization that Flotilla knows; did you mean \"interval\"?\n" + prefix + "timeOut: is no field of a Kustomization that Flotilla knows; did you mean \"timeout\"?"},
		"new":                {deployment{}, `{"kustomization": {"somethingOfNextYear": 1}}`, ""},
		"a field of a field": {deployment{}, `{"kustomization": {"healthChecks": [{"kind": "Deployment", "name": "a", "namespce": "b"}]}}`, prefix + "healthChecks[0].namespce: is no field of a Kustomization that Flotilla knows; did you mean \"namespace\"?"},
		"a cluster type":     {deployment{parameters: parseObject(t, `{"git_repository": {"secretref": {}}}`)}, `{}`, `cluster_types["drone"].parameters.git_repository.secretref: is no field of a GitRepository that Flotilla knows; did you mean "secretRef"?`},
		"a custom template":  {deployment{reconciler: "own", templates: []fleet.Template{{Type: "reconciler", Name: "own", Manifests: []string{""}}}}, `{"kustomization": {"intervall": "1m"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.deployment.manifests = withParameters(fromGit(), parseObject(t, test.parameters))
			templates, subject := test.deployment.compile(t)
			findings, warnings := templates.ChooseWriters([]*schedule.Assignment{subject.Assignment, subject.Assignment})
			if findings != nil || warnings.Error() != test.want {
				t.Errorf("findings %v, warnings\n%v\nwant\n%s", findings, warnings, test.want)
			}
		})
	}
}
