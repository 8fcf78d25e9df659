package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
)

func TestDefinitionsAndNamespacesOfInstallComeFirst(t *testing.T) {
	settings := smallSettings("flux")
	settings.Install = []agent.Text{{Path: "install", Text: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: kustomize-controller, namespace: flux-system}
spec: {template: {spec: {containers: [{name: manager, args: [--feature-gates=CancelHealthCheckOnNewRevision=true]}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: source-controller, namespace: flux-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: flux-system, labels: {a: b}}
---
apiVersion: v1
kind: List
items:
  - {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gitrepositories.source.toolkit.fluxcd.io}}
`}}
	want := strings.Join([]string{
		"definitions install CustomResourceDefinition gitrepositories.source.toolkit.fluxcd.io",
		"namespaces install Namespace flux-system",
		"rest install Deployment flux-system/kustomize-controller",
		"rest install Deployment flux-system/source-controller",
		"rest source GitRepository flux-system/flotilla",
		"rest root Kustomization flux-system/flotilla-cluster-type",
		"rest root Kustomization flux-system/flotilla-cluster",
	}, "\n")
	if got := listNames(renderObjects(t, settings)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSettingsAreAddedToObjectsOfInstall(t *testing.T) {
	settings := smallSettings("argocd")
	settings.Feedback = &agent.Reporting{Forge: "gitea", Token: "secret"}
	settings.Install = []agent.Text{{Path: "install", Text: `
{apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-cm, namespace: argocd}, data: {theirs: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-notifications-cm, namespace: argocd}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: argocd-repo-server, namespace: argocd}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: argocd-notifications-controller, namespace: argocd}}
`}}
	seen := map[string]int{}
	for _, object := range renderObjects(t, settings) {
		seen[object.GetKind()+" "+object.GetName()]++
		if object.GetName() != "argocd-cm" {
			continue
		}
		data, _ := object.Object["data"].(map[string]any)
		if object.Part != agent.Install || data["theirs"] != "1" || data["resource.customizations.health.argoproj.io_Application"] == nil {
			t.Errorf("%s: %v", object.Part, data)
		}
	}
	for _, name := range []string{"ConfigMap argocd-cm", "ConfigMap argocd-notifications-cm", "AppProject default"} {
		if seen[name] != 1 {
			t.Errorf("got %s %d times, want once", name, seen[name])
		}
	}

	settings.Install[0].Text = strings.Replace(
		settings.Install[0].Text,
		"theirs:",
		"resource.customizations.health.argoproj.io_Application:",
		1,
	)
	if got := strings.Join(renderProblems(settings), "\n"); !strings.Contains(
		got,
		`install: ConfigMap argocd/argocd-cm has "resource.customizations.health.argoproj.io_Application" in it, which Flotilla sets`,
	) {
		t.Errorf("got the problems %s", got)
	}
}

func TestASlowFluxIsAWarning(t *testing.T) {
	for args, want := range map[string]string{
		"":                "has 4 workers",
		"--concurrent=2":  "has 2 workers",
		"--concurrent=20": "",
		"--concurrent=x":  "has 4 workers",
		"--feature-gates=Other=true,CancelHealthCheckOnNewRevision=true": "",
	} {
		settings := smallSettings("flux")
		settings.Install = []agent.Text{{Path: "install", Text: `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: source-controller, namespace: flux-system}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: kustomize-controller, namespace: flux-system},
 spec: {template: {spec: {containers: [{args: ["` + args + `"]}]}}}}
`}}
		_, problems := agent.Render(settings)
		got := ""
		for _, problem := range problems {
			if !problem.Warning {
				t.Error(problem)
			}
			got += problem.String()
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
}

// Install adds the flags that confine the controllers of Flux, unless Unconfined is set.
func TestInstallConfinesTheControllersOfFlux(t *testing.T) {
	t.Parallel()
	settings := smallSettings("flux")
	settings.Install = []agent.Text{{Path: "install", Text: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: kustomize-controller, namespace: flux-system}
spec: {template: {spec: {serviceAccountName: kustomize-controller, containers: [{name: manager, image: "ghcr.io/fluxcd/kustomize-controller:v1.9.5",
  args: [--concurrent=20, --no-cross-namespace-refs=false]}]}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: source-controller, namespace: flux-system}, spec: {template: {spec: {containers: [{name: manager, args: [--a]}]}}}}
`}}
	for unconfined, want := range map[bool]string{
		false: "[--concurrent=20 --no-cross-namespace-refs=false --default-service-account=kustomize-controller --no-cross-namespace-refs=true --no-remote-bases=true] [--a] ",
		true:  "[--concurrent=20 --no-cross-namespace-refs=false] [--a] ",
	} {
		settings.Unconfined = unconfined
		got := ""
		for _, object := range renderObjects(t, settings) {
			if object.GetKind() == "Deployment" {
				containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
				got += fmt.Sprint(containers[0].(map[string]any)["args"]) + " "
			}
		}
		if got != want {
			t.Errorf("unconfined %t: %s", unconfined, got)
		}
	}
}

// A value of a wrong type is an error, because Kubernetes refuses it. An unknown field is a warning, because a newer cluster may have it.
func TestInstallIsCheckedAgainstTheSchemasOfItsKinds(t *testing.T) {
	settings := smallSettings("flux")
	settings.Install = []agent.Text{{Path: "install", Text: `
apiVersion: v1
kind: Service
metadata: {name: webhook, namespace: flux-system}
spec: {ports: [{port: "eighty"}], sessionAfinity: None}
`}}
	_, problems := agent.Render(settings)
	var got []string
	for _, problem := range problems {
		got = append(got, fmt.Sprint(problem.Warning, " ", problem.Finding))
	}
	want := []string{
		"false install: line 1: Service webhook: spec.ports[0].port must be of type integer, and is a string",
		"true install: line 1: Service webhook: spec.sessionAfinity is no field of this kind",
	}
	if len(got) < 2 || !slices.Equal(got[:2], want) { // the other problems report missing controllers
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestProvidersOfNotificationsAreChecked(t *testing.T) {
	t.Parallel()
	settings := smallSettings("flux")
	settings.Install = []agent.Text{{Path: "install", Text: `
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Provider
metadata: {name: mine, namespace: flux-system}
spec: {type: pigeon}
`}}
	_, problems := agent.Render(settings)
	if !slices.ContainsFunc(problems, func(one agent.SettingsProblem) bool {
		return !one.Warning && strings.Contains(one.String(), "Provider mine: spec.type")
	}) {
		t.Errorf("got the problems %v", problems)
	}
}
