package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// Workload is an application or a platform service with the deployment targets of one environment.
type Workload struct {
	Name              string             `json:"name"`
	Workspace         string             `json:"workspace,omitempty"`
	Labels            Labels             `json:"labels,omitempty"`
	Requires          []string           `json:"requires,omitempty"`
	DeploymentTargets []DeploymentTarget `json:"deployment_targets,omitempty"`
}

// DeploymentTarget is one way a workload is deployed in one environment.
type DeploymentTarget struct {
	Name          string   `json:"name"`
	Labels        Labels   `json:"labels,omitempty"`
	Namespace     string   `json:"namespace,omitempty"`      // empty: "<environment>-<host>-<target>"
	ConfigSchemas []string `json:"config_schemas,omitempty"` // JSON Schemas
	// Manifests are not part of the model.
	Manifests        Manifests `json:"-"`
	ManifestsPending bool      `json:"-"`
}

var workloadKind = defineKind(Table{
	Name:    "workload",
	Meaning: "An application or a platform service, owned by a workspace, with its deployment targets in every environment.",
}, func(w *Workload) []row {
	return []row{
		namedAttribute(&w.Name, labelForm, "Name of the workload, a DNS label."),
		textAttribute(&w.Workspace, Attribute{Required: true, Meaning: "Name of the workspace that owns it."}),
		labelsAttribute(&w.Labels),
		textsAttribute(&w.Requires, Attribute{Meaning: "Names of workloads that must run on every host that this one runs on."}),
		unstoredAttribute(Attribute{
			Name: "deployment_targets", Type: ObjectMapType, Keys: labelForm, Of: &deploymentTargetKind.Table,
			Meaning: "Deployment targets by name; the full name of one is `<workload>-<target>`, at most 63 characters.",
		}),
	}
})

var deploymentTargetKind = defineKind(Table{
	Name:    "deployment target",
	Meaning: "One way a workload is deployed in one environment. Its name is its key in `deployment_targets`, a DNS label.",
}, func(t *DeploymentTarget) []row {
	return []row{
		unstoredAttribute(Attribute{
			Name: "environment", Required: true, Form: labelForm, Meaning: "Name of the environment that it belongs to.",
		}),
		labelsAttribute(&t.Labels),
		textAttribute(&t.Namespace, Attribute{
			Form: labelForm,
			Meaning: "Where it runs, on each of its hosts. Unset: `<environment>-<host>-<deployment target>`. Deployment targets that set the " +
				"same one share it, and it stays when they go; those of agents, such as `flux-system`, and of Kubernetes cannot be set.",
		}),
		spreadAttribute(t, Attribute{
			Name: "manifests", Type: ObjectType, Required: true, Of: &manifestsKind.Table,
			Meaning: "Where the workload's own manifests are.",
		}, func(o *ObjectReader, t *DeploymentTarget) { readTargetManifests(o, t, readManifests) }),
		contentAttribute(t, Attribute{
			Name: "config_as", Type: TextsType, Default: []string{"configmap"},
			Meaning: "The forms in which it gets its configuration: `configmap` (`configmap:<name>` gives it another name), " +
				"`values` (among a chart's values; `values:<key>` below a key), `substitute` (Flux substitutes it for variables) and `secret` " +
				"(the Secret of references to secrets, which is there with `configmap`, too; `secret:<name>` gives it another name).",
		}, func(o *ObjectReader, m *Manifests) { m.ConfigAs = readConfigAs(o, "config_as") }),
		contentAttribute(t, Attribute{
			Name: "render", Allowed: Renderings,
			Meaning: "How far its manifests are rendered. It may be stronger than `render` of a cluster type that it goes to; " +
				"a weaker one is an error unless `least_render` of the workspace allows it. Unset: as the cluster type says.",
		}, func(o *ObjectReader, m *Manifests) { m.Render = readOneOfOrNone(o, "render") }),
		unstoredAttribute(Attribute{
			Name: "allow_plain", Type: TextsType,
			Meaning: "Names of values that may look like a credential, as the errors and warnings about them give them: in its parameters, " +
				"`parameters.helm_release.values.password`; in files of custom templates and in final objects, `<kind>.<path>`, such as " +
				"`ConfigMap.data.password`. Without it such a value is an error, and in the final objects of a preview a warning.",
		}),
		spreadAttribute(t, Attribute{
			Name: "config_schema", Type: SchemaType, Meaning: "JSON Schema that its values must satisfy: its text, or the object.",
		}, func(o *ObjectReader, t *DeploymentTarget) {
			if schema := readSchema(o, "config_schema"); schema != "" {
				t.ConfigSchemas = []string{schema}
			}
		}),
	}
}).checkedBy(func(o *ObjectReader, t *DeploymentTarget) { checkText(o, "namespace", t.Namespace, checkNotReserved) })

// contentAttribute affects only content. While it is unknown, so are the manifests.
func contentAttribute(t *DeploymentTarget, a Attribute, read func(o *ObjectReader, m *Manifests)) row {
	return spreadAttribute(t, a, func(o *ObjectReader, t *DeploymentTarget) {
		readContent(t, readAside(o, func() { read(o, &t.Manifests) }))
	})
}

func readContent(t *DeploymentTarget, known bool) {
	if t.ManifestsPending = t.ManifestsPending || !known; t.ManifestsPending {
		t.Manifests = Manifests{}
	}
}

// decodeWorkload decodes a workload. It belongs to the environment if a deployment target does.
func decodeWorkload(d *decoder, o *ObjectReader) belonging {
	workload := workloadKind.decode(o)
	belongs, unknownTarget := notInEnvironment, false
	var certain []localTarget
	targets, path := o.Value("deployment_targets")
	switch targets := targets.(type) {
	case nil:
	case Unknown:
		belongs, unknownTarget = maybeInEnvironment, true
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(targets)) {
			path := path.Key(name)
			target, targetBelongs, isUnknown := decodeDeploymentTarget(d, path, name, targets[name])
			belongs = max(belongs, targetBelongs)
			switch targetBelongs {
			case notInEnvironment:
				continue
			case maybeInEnvironment:
				d.incomplete["workloads"] = true
			case inEnvironment:
				certain = append(certain, localTarget{path, name})
			}
			unknownTarget = unknownTarget || isUnknown
			if target != nil {
				workload.DeploymentTargets = append(workload.DeploymentTargets, *target)
			}
		}
	default:
		o.Report("deployment_targets", "must be a map of objects, not %s", kindOf(targets))
	}
	o.Finish()
	d.register("workloads", workload.Name, o.path)
	d.workloadNames = append(d.workloadNames, workload.Name)
	if workload.Name == unknownText {
		d.incomplete["workloads"] = true
	}
	if belongs == notInEnvironment {
		return belongs
	}
	o.unknown = o.unknown || unknownTarget
	d.Fleet.Workloads = append(d.Fleet.Workloads, workload)
	if belongs == inEnvironment {
		d.refer(o.At("workspace"), "workspaces", workload.Workspace)
		d.workloads = append(d.workloads, localWorkload{
			path: o.path, name: workload.Name, workspace: workload.Workspace, requires: workload.Requires, targets: certain,
		})
	}
	return belongs
}

// decodeDeploymentTarget returns nil for an unknown target.
func decodeDeploymentTarget(d *decoder, path *Path, name string, value any) (_ *DeploymentTarget, belongs belonging, isUnknown bool) {
	if problem := labelForm.check(name); problem != "" {
		d.Report(path, "%q %s", name, problem)
	}
	o, isUnknown := d.object(&deploymentTargetKind.Table, path, value)
	if isUnknown {
		return nil, maybeInEnvironment, true
	}
	if o == nil {
		return nil, notInEnvironment, false
	}
	target := deploymentTargetKind.decode(o)
	target.Name = name
	if environment := o.fields["environment"]; environment == nil || environment == "" {
		o.Report("environment", "is required")
	} else if text, ok := environment.(string); ok {
		d.targetEnvironments[text] = true
	}
	belongs = d.belongs(o)
	allowed, allowedKnown := readAllowPlain(o, "allow_plain")
	target.Manifests.AllowPlain = allowed
	readContent(&target, allowedKnown)
	if belongs != notInEnvironment && allowedKnown {
		d.checkCommitted(o, allowed, "manifests", "parameters")
	}
	o.Finish()
	return &target, belongs, o.unknown
}

// checkNotReserved protects agents and Kubernetes from a workspace's quota and policies.
func checkNotReserved(name string) string {
	switch agent := reconciler.InNamespace(name); {
	case agent != nil:
		return fmt.Sprintf("is the namespace of %s itself, which a workspace's quota and network policy could stop: choose another namespace",
			agent.Product)
	case strings.HasPrefix(name, "kube-"):
		return "is a namespace of Kubernetes itself, which a workspace's quota and network policy could stop: choose another namespace"
	}
	return ""
}
