package render_test

import (
	"cmp"
	"encoding/json"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// deployment is one assignment: the deployment target hello-dev on the cluster type drone or its cluster drone-1.
type deployment struct {
	reconciler, namespaceService, configType string
	cluster                                  bool
	manifests                                fleet.Manifests
	labels                                   fleet.Labels
	workspace                                fleet.Workspace
	templates                                []fleet.Template
	config                                   map[string]any
	repo                                     *folder.Location
	requires                                 []fleet.Workload // each with one deployment target
	parameters                               map[string]any   // of the cluster type
	namespace                                string
	configAs                                 fleet.ConfigAs
	secretService                            string
	stores                                   map[string]fleet.SecretStore
	secrets                                  map[string]fleet.SecretReference
}

func fromGit() fleet.Manifests {
	return fleet.Manifests{Manifests: folder.Manifests{Storage: "git", Repo: "https://git.example.com/hello", Branch: "dev", Path: "./deploy"}}
}

// fleet returns the fleet of the deployment, with the defaults for unset fields.
func (d deployment) fleet() *fleet.Fleet {
	orDefault := func(name, byDefault string) string {
		if name == "" {
			return byDefault
		}
		return name
	}
	if d.manifests.Repo == "" {
		d.manifests = fromGit()
	}
	if d.configAs != nil {
		d.manifests.ConfigAs = d.configAs
	}
	if d.workspace.Name == "" {
		d.workspace.Name = "kaizen"
	}
	hello := fleet.Workload{
		Name: "hello", Workspace: d.workspace.Name,
		DeploymentTargets: []fleet.DeploymentTarget{{Name: "dev", Labels: d.labels, Manifests: d.manifests, Namespace: d.namespace}},
	}
	for _, required := range d.requires {
		hello.Requires = append(hello.Requires, required.Name)
	}
	return &fleet.Fleet{
		Environment: "dev",
		Workspaces:  []fleet.Workspace{d.workspace},
		ClusterTypes: []fleet.ClusterType{{
			Name:             "drone",
			Labels:           fleet.Labels{"region": "east-us"},
			Reconciler:       orDefault(d.reconciler, "flux"),
			NamespaceService: orDefault(d.namespaceService, "default"),
			ConfigType:       orDefault(d.configType, "configmap"),
			Parameters:       d.parameters,
			SecretService:    d.secretService,
			SecretStores:     d.stores,
		}},
		Workloads: append([]fleet.Workload{hello}, d.requires...),
		Templates: d.templates,
	}
}

// subject returns the deployment's assignment and its inputs.
func (d deployment) subject(f *fleet.Fleet) render.Subject {
	workload := &f.Workloads[0]
	target := &workload.DeploymentTargets[0]
	host := &schedule.Host{Name: "drone", ClusterType: &f.ClusterTypes[0], Labels: f.ClusterTypes[0].Labels}
	if d.cluster {
		host.Name, host.Cluster = "clusters/drone-1", &fleet.Cluster{Name: "drone-1", ClusterType: "drone"}
	}
	name := fleet.FullName(workload.Name, target.Name)
	assignment := &schedule.Assignment{
		Host:      host,
		Target:    &schedule.Target{Name: name, Workload: workload, Target: target, Labels: fleet.MergeLabels(workload.Labels, target.Labels)},
		Policies:  []string{"everywhere"},
		Namespace: cmp.Or(d.namespace, schedule.Namespace("dev", host.Name, name)),
	}
	for i := range d.requires {
		required := &f.Workloads[1+i]
		needed := &schedule.Target{
			Name: fleet.FullName(required.Name, required.DeploymentTargets[0].Name), Workload: required, Target: &required.DeploymentTargets[0],
		}
		assignment.Requires = append(assignment.Requires, needed.Name)
		assignment.Dependencies = append(assignment.Dependencies, schedule.Dependency{
			Target: needed, Host: host, Namespace: schedule.Namespace("dev", host.Name, needed.Name),
		})
	}
	return render.Subject{
		Assignment: assignment, Environment: "dev", Owner: "platform", ConfigVersion: "c0ffee", Config: d.config, Secrets: d.secrets, Repo: d.repo,
	}
}

// compile compiles the deployment's templates, which must be valid.
func (d deployment) compile(t testing.TB) (*render.Templates, render.Subject) {
	t.Helper()
	f := d.fleet()
	templates, findings := render.Compile(f)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return templates, d.subject(f)
}

// render renders and checks the deployment. It returns contents by file name.
func (d deployment) render(t testing.TB) map[string]string {
	t.Helper()
	templates, subject := d.compile(t)
	files, err := templates.Render(subject)
	if err != nil {
		t.Fatal(err)
	}
	contents := map[string]string{}
	for _, file := range files {
		contents[file.Name] = string(file.Content)
	}
	if findings := templates.Check(subject, files); len(findings) > 0 {
		t.Fatalf("%s\n%v", findings, contents)
	}
	return contents
}

// withTemplate returns a deployment with a custom template of type config.
func withTemplate(contentType string, manifests ...string) deployment {
	return deployment{
		configType: "own",
		templates:  []fleet.Template{{Type: "config", Name: "own", ContentType: contentType, Manifests: manifests}},
		config: map[string]any{
			"DATABASE_URL": "mysql://restricted-host:3306/db",
			"REPLICAS":     json.Number("3"),
			"RATIO":        json.Number("1500000.5"),
			"DEBUG":        false,
			"EMPTY":        "",
			"REGIONS":      []any{"east-us", "west-us"},
			"LIMITS":       map[string]any{"cpu": "500m", "memory": json.Number("128")},
		},
	}
}

// renderText renders a template of content type text for the deployment of withTemplate.
func renderText(t testing.TB, manifest string) (string, error) {
	t.Helper()
	templates, subject := withTemplate("text", manifest).compile(t)
	files, err := templates.Render(subject)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		if file.Name == "platform-config.txt" {
			return string(file.Content), nil
		}
	}
	return "", nil
}
