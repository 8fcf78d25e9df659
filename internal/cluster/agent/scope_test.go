package agent_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
)

func TestManifestsWithoutANamespaceUseTheAgentsNamespace(t *testing.T) {
	settings := smallSettings("argocd")
	settings.Install = []agent.Text{{Path: "install", Text: `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: elsewhere}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: c}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: d}}
---
{apiVersion: example.com/v1, kind: Boat, metadata: {name: e}}
---
{apiVersion: example.com/v1, kind: Sea, metadata: {name: f}}
---
{apiVersion: example.org/v1, kind: Unknown, metadata: {name: g}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: boats.example.com}, spec: {group: example.com, scope: Namespaced, names: {kind: Boat}}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: seas.example.com}, spec: {group: example.com, scope: Cluster, names: {kind: Sea}}}
`}}
	objects, problems := agent.Render(settings)
	if agent.Failed(problems) {
		t.Fatal(problems)
	}
	var got []string
	for i := range objects {
		if objects[i].Part == agent.Install && objects[i].Stage == agent.Rest {
			got = append(got, objects[i].ID().String())
		}
	}
	want := "Deployment argocd/a, ConfigMap elsewhere/b, ClusterRole c, Role argocd/d, Boat argocd/e, Sea f, Unknown g"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}

	settings.Install = []agent.Text{
		{
			Path: "install",
			Text: "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: argocd}}\n",
		},
	}
	if _, problems := agent.Render(settings); !agent.Failed(problems) ||
		!strings.Contains(problems[0].Message, "ConfigMap argocd/b appears twice") {
		t.Errorf("got the problems %v", problems)
	}
}
