package fleet

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// checkReferences reports what can only be seen across objects: names that refer to nothing, and
// names that collide.
func (d *decoder) checkReferences() {
	f := d.fleet
	workspaces := names(f.Workspaces, func(w Workspace) string { return w.Name })
	clusterTypes := names(f.ClusterTypes, func(c ClusterType) string { return c.Name })
	clusters := names(f.Clusters, func(c Cluster) string { return c.Name })

	for _, clusterType := range f.ClusterTypes {
		path := d.paths[objectKey{"cluster_types", clusterType.Name}]
		d.checkTemplate(path.Attribute("reconciler"), "reconciler", clusterType.Reconciler)
		d.checkTemplate(path.Attribute("namespace_service"), "namespace", clusterType.NamespaceService)
		d.checkTemplate(path.Attribute("config_type"), "config", clusterType.ConfigType)
	}
	for _, cluster := range f.Clusters {
		path := d.paths[objectKey{"clusters", cluster.Name}].Attribute("cluster_type")
		d.checkReference(path, "cluster_types", "cluster type", cluster.ClusterType, clusterTypes)
	}
	for _, policy := range f.TargetPolicies {
		path := d.paths[objectKey{"target_policies", policy.Name}].Attribute("workspace")
		d.checkReference(path, "workspaces", "workspace", policy.Workspace, workspaces)
	}
	d.checkWorkloads(workspaces)
	targets := fullNames(f)
	for _, placement := range f.Assignments {
		key := fmt.Sprintf("%s/%s/%s", placement.ClusterType, placement.Cluster, placement.DeploymentTarget)
		path := d.paths[objectKey{"assignments", key}]
		d.checkReference(path.Attribute("cluster_type"), "cluster_types", "cluster type", placement.ClusterType, clusterTypes)
		d.checkReference(path.Attribute("cluster"), "clusters", "cluster", placement.Cluster, clusters)
		d.checkReference(path.Attribute("deployment_target"), "workloads", "deployment target",
			placement.DeploymentTarget, targets)
	}
}

func names[T any](list []T, name func(T) string) []string {
	names := make([]string, len(list))
	for i, element := range list {
		names[i] = name(element)
	}
	return names
}

// fullNames returns those of every deployment target, sorted.
func fullNames(f *Fleet) []string {
	var all []string
	for _, workload := range f.Workloads {
		for _, target := range workload.DeploymentTargets {
			all = append(all, FullName(workload.Name, target.Name))
		}
	}
	slices.Sort(all)
	return all
}

func (d *decoder) checkReference(path *Path, collection, kind, name string, candidates []string) {
	if name == "" || name == unknownText || d.incomplete[collection] {
		return
	}
	if _, found := slices.BinarySearch(candidates, name); found {
		return
	}
	d.report(path, "no %s of environment %q is called %q%s", kind, d.fleet.Environment, name, didYouMean(name, candidates))
}

func (d *decoder) checkTemplate(path *Path, templateType, name string) {
	if name == unknownText || d.incomplete["templates"] {
		return
	}
	candidates, otherType := slices.Clone(BuiltinTemplates[templateType]), ""
	for _, template := range d.fleet.Templates {
		if template.Type == templateType {
			candidates = append(candidates, template.Name)
		} else if template.Name == name {
			otherType = template.Type
		}
	}
	switch {
	case slices.Contains(candidates, name):
	case otherType != "":
		d.report(path, "template %q is of type %s, not %s", name, otherType, templateType)
	default:
		d.report(path, "no template of type %s is called %q%s", templateType, name, didYouMean(name, candidates))
	}
}

// checkWorkloads checks what workloads refer to, and that their targets' full names are unique and
// fit a label.
func (d *decoder) checkWorkloads(workspaces []string) {
	owners := map[string]string{}
	for _, workload := range d.fleet.Workloads {
		path := d.paths[objectKey{"workloads", workload.Name}]
		d.checkReference(path.Attribute("workspace"), "workspaces", "workspace", workload.Workspace, workspaces)
		d.checkMayDeploy(path.Attribute("workspace"), workload)
		for _, name := range workload.Requires {
			if name == workload.Name {
				d.report(path.Attribute("requires"), "workload %q requires itself", name)
			} else if name != unknownText && !d.incomplete["workloads"] && !slices.Contains(d.workloadNames, name) {
				d.report(path.Attribute("requires"), "no workload is called %q%s", name, didYouMean(name, d.workloadNames))
			}
		}
		if workload.Name == unknownText {
			continue
		}
		for _, target := range workload.DeploymentTargets {
			fullName := FullName(workload.Name, target.Name)
			at := path.Attribute("deployment_targets").Key(target.Name)
			if owner, taken := owners[fullName]; taken && owner != workload.Name {
				d.report(at, "its full name %q is also that of a deployment target of workload %q: rename one", fullName, owner)
			}
			owners[fullName] = workload.Name
			if len(fullName) > 63 {
				d.report(at, "its full name %q has %d characters: more than the 63 of a Kubernetes label", fullName, len(fullName))
			}
		}
	}
	d.checkCycles()
}

func (d *decoder) checkMayDeploy(path *Path, workload Workload) {
	for _, workspace := range d.fleet.Workspaces {
		if workspace.Name == workload.Workspace && len(workspace.Environments) > 0 && d.environmentKnown &&
			!slices.Contains(workspace.Environments, unknownText) &&
			!slices.Contains(workspace.Environments, d.fleet.Environment) {
			d.report(path, "workspace %q may not deploy to environment %q, only to %s",
				workspace.Name, d.fleet.Environment, strings.Join(workspace.Environments, ", "))
		}
	}
}

// checkCycles reports workloads that require each other in a circle, once for each circle.
func (d *decoder) checkCycles() {
	requires := map[string][]string{}
	for _, workload := range d.fleet.Workloads {
		requires[workload.Name] = workload.Requires
	}
	done := map[string]bool{}
	var trail []string
	var visit func(name string)
	visit = func(name string) {
		if start := slices.Index(trail, name); start >= 0 {
			circle := append(slices.Clone(trail[start:]), name)
			if len(circle) > 2 { // one that requires itself is reported where it says so
				d.report(d.paths[objectKey{"workloads", name}].Attribute("requires"),
					"workloads require each other in a circle: %s", strings.Join(circle, " → "))
			}
			return
		}
		if done[name] {
			return
		}
		trail = append(trail, name)
		for _, required := range requires[name] {
			visit(required)
		}
		trail = trail[:len(trail)-1]
		done[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(requires)) {
		visit(name)
	}
}

// number returns "" for an absent, unknown or wrong number.
func (o *object) number(attribute string) json.Number {
	switch value := o.value(attribute).(type) {
	case nil, Unknown:
	case json.Number:
		number, err := CanonicalNumber(value)
		if err == nil && number != "0" {
			return number
		}
	default:
		o.report(attribute, "must be a number, not %s", kindOf(value))
	}
	return ""
}

// checkQuantity says what is wrong with a Kubernetes quantity, or "".
func checkQuantity(text string) string {
	if text == unknownText {
		return ""
	}
	if _, err := resource.ParseQuantity(text); err != nil {
		return fmt.Sprintf(`%q is not a quantity such as "500m", "2" or "4Gi"`, text)
	}
	return ""
}
