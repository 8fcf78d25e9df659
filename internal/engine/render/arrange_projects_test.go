package render_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

func TestAWorkspaceHasOneProjectForEachArgoCD(t *testing.T) {
	team := fleet.Workspace{
		Name: "kaizen", ArgocdProject: &fleet.ArgocdProject{Name: "kaizen", Render: true}, Secrets: []string{"charts"}, Parameters: []string{"namespace"},
	}
	files, findings, _ := neighbours{reconciler: "argocd", workspaces: []fleet.Workspace{team, {Name: "other"}}, targets: map[string]neighbour{
		"b": {hosts: []string{"drone"}},
		"c": {hosts: []string{"drone"}, manifests: ociChart, namespace: "given"},
		"a": {hosts: []string{"clusters/drone-1"}, manifests: helmChart},
		"x": {hosts: []string{"drone"}, workspace: "other"},
	}}.render(t)
	if findings != nil {
		t.Fatal(findings)
	}
	if got := identities(t, files)["AppProject argocd/kaizen"]; !slices.Equal(got, []string{"drone/b-dev/reconciler.yaml"}) {
		t.Fatalf("the project is in %q", got)
	}
	documents := documentsOf(t, []byte(files["drone/b-dev/reconciler.yaml"]))
	wantSources := []any{"https://charts.example.com", "https://git.example.com/hello", "oci://registry.example.com/charts/podinfo"}
	if got := valueAt(documents[0], "spec.sourceRepos"); !reflect.DeepEqual(got, wantSources) {
		t.Errorf("sources %v, want %v", got, wantSources)
	}
	var namespaces []string
	for _, destination := range valueAt(documents[0], "spec.destinations").([]any) {
		namespaces = append(namespaces, textAt(destination, "namespace"))
	}
	if want := []string{"dev-drone-1-a-dev", "dev-drone-b-dev", "given"}; !slices.Equal(namespaces, want) {
		t.Errorf("namespaces %q, want %q", namespaces, want)
	}
	for path, want := range map[string]string{"drone/c-dev": "kaizen", "clusters/drone-1/a-dev": "kaizen", "drone/x-dev": "default"} {
		documents := documentsOf(t, []byte(files[path+"/reconciler.yaml"]))
		if got := textAt(documents[len(documents)-1], "spec.project"); got != want {
			t.Errorf("%s is in project %q, want %q", path, got, want)
		}
	}

	onClusters, _, _ := neighbours{reconciler: "argocd", workspaces: []fleet.Workspace{team}, targets: map[string]neighbour{
		"a": {hosts: []string{"clusters/drone-1", "clusters/drone-2"}},
	}}.render(t)
	want := []string{"clusters/drone-1/a-dev/reconciler.yaml", "clusters/drone-2/a-dev/reconciler.yaml"}
	if got := identities(t, onClusters)["AppProject argocd/kaizen"]; !slices.Equal(got, want) {
		t.Errorf("the project is in %q, want %q", got, want)
	}
}

func TestEveryHostHasItsOwnProjectOnAHub(t *testing.T) {
	team := fleet.Workspace{
		Name: "kaizen", ArgocdProject: &fleet.ArgocdProject{Name: "kaizen", Render: true}, Secrets: []string{"charts"}, Parameters: []string{"namespace"},
	}
	files, findings, _ := neighbours{reconciler: "argocd-hub", workspaces: []fleet.Workspace{team}, targets: map[string]neighbour{
		"b": {hosts: []string{"drone"}},
		"c": {hosts: []string{"drone"}},
		"a": {hosts: []string{"clusters/drone-1", "clusters/drone-2"}},
	}}.render(t)
	if findings != nil {
		t.Fatal(findings)
	}
	projects := map[string][]string{}
	for name, places := range identities(t, files) {
		if strings.HasPrefix(name, "AppProject ") {
			projects[name] = places
		}
	}
	own := func(host string) string { return "AppProject argocd/" + render.LabelValue("kaizen-dev-clusters/"+host) }
	want := map[string][]string{
		"AppProject argocd/kaizen-dev-drone": {"drone/b-dev/reconciler.yaml"},
		own("drone-1"):                       {"clusters/drone-1/a-dev/reconciler.yaml"},
		own("drone-2"):                       {"clusters/drone-2/a-dev/reconciler.yaml"},
	}
	if !reflect.DeepEqual(projects, want) {
		t.Errorf("projects %v, want %v", projects, want)
	}
	for path, want := range map[string]string{
		"drone/c-dev": "server:*", "drone/b-dev": "server:*", "clusters/drone-1/a-dev": "name:drone-1",
	} {
		documents := documentsOf(t, []byte(files[path+"/reconciler.yaml"]))
		project := textAt(documents[len(documents)-1], "spec.template.spec.project")
		if projects["AppProject argocd/"+project] == nil {
			t.Errorf("%s is in project %q, which does not exist", path, project)
		}
		if len(documents) == 2 {
			if got := fmt.Sprint(valueAt(documents[0], "spec.destinations.0")); !strings.Contains(got, want) {
				t.Errorf("%s: the project allows %s, want %s", path, got, want)
			}
		}
	}
}

func TestAProjectIsRenderedForOneWorkspace(t *testing.T) {
	f := deployment{}.fleet()
	f.Workspaces = []fleet.Workspace{
		{
			Name:          "a",
			ArgocdProject: &fleet.ArgocdProject{Name: "shared"},
		}, {Name: "b", ArgocdProject: &fleet.ArgocdProject{Name: "shared", Render: true}},
	}
	_, findings := render.Compile(f)
	if want := `workspaces["a"].argocd_project: project "shared" is rendered for workspace "b", and allows only what belongs to that workspace: choose another name`; findings.Error() != want {
		t.Errorf("findings %v, want %s", findings, want)
	}
}

// If the sources of one deployment target are unknown, so is the folder with the AppProject. Other folders are known.
func TestAProjectWithUnknownSourcesIsUnknown(t *testing.T) {
	team := fleet.Workspace{
		Name: "kaizen", ArgocdProject: &fleet.ArgocdProject{Name: "kaizen", Render: true}, Secrets: []string{"charts"}, Parameters: []string{"namespace"},
	}
	f := &fleet.Fleet{
		Environment: "dev", Workspaces: []fleet.Workspace{team}, Explicit: true,
		ClusterTypes: []fleet.ClusterType{{Name: "drone", Reconciler: "argocd", NamespaceService: "default", ConfigType: "configmap"}},
		Workloads:    []fleet.Workload{required("a", fromGit()), required("b", fromGit()), required("c", fleet.Manifests{})},
	}
	f.Workloads[2].DeploymentTargets[0].ManifestsPending = true
	for _, workload := range f.Workloads {
		f.Assignments = append(f.Assignments, fleet.ExplicitAssignment{ClusterType: "drone", DeploymentTarget: workload.Name + "-dev"})
	}
	scheduled, _ := schedule.Schedule(f)
	templates := compile(t, f)
	if findings, warnings := templates.ChooseWriters(scheduled.Assignments); findings != nil || warnings != nil {
		t.Error(findings, warnings)
	}
	for i, want := range []error{render.ErrUnknown, nil, render.ErrUnknown} {
		subject := render.Subject{Assignment: scheduled.Assignments[i], Environment: "dev", Owner: "platform"}
		if _, err := templates.Render(subject); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", scheduled.Assignments[i].Key(), err, want)
		}
	}
}
