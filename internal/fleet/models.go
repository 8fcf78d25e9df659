package fleet

import (
	"cmp"
	"maps"
	"slices"
)

// The JSON models are those of control planes that keep applications, clusters, namespaces and target
// policies as plain objects: their metadata are labels, their selectors are maps of labels, in which
// "name" is the object's name.

// modelTarget is the name of the one deployment target that an Application has.
const modelTarget = "default"

// modelKind tells which model an object without kind is, as an API gives it, by what no other has.
func modelKind(fields map[string]any) string {
	for _, only := range []struct{ attribute, kind string }{
		{"repo_url", "Application"}, {"short_name", "Cluster"}, {"group", "Namespace"},
		{"app_selector", "TargetPolicy"}, {"cluster_selector", "TargetPolicy"},
	} {
		if _, has := fields[only.attribute]; has {
			return only.kind
		}
	}
	return ""
}

func (p *controlPlane) modelApplication(o *object) {
	name := o.name(CheckLabelName)
	workload := Workload{Name: name, Workspace: o.text("namespace"), Labels: o.labels("metadata")}
	manifests := &object{decoder: o.decoder, path: o.path, fields: map[string]any{
		"repo": o.value("repo_url"), "branch": o.value("repo_branch"), "path": o.value("repo_path"),
	}, written: map[string]string{"repo": "repo_url", "branch": "repo_branch", "path": "repo_path"}}
	if o.fields["repo_url"] == nil {
		o.report("repo_url", "is required")
		manifests.fields["repo"] = "https://missing"
	}
	workload.DeploymentTargets = []DeploymentTarget{{Name: modelTarget, Manifests: manifests.manifests()}}
	o.finishModel()
	p.register("workloads", name, o.path)
	p.fleet.Workloads = append(p.fleet.Workloads, workload)
	p.workloads = append(p.workloads, placedWorkload{
		path: o.path, name: name, targets: []placedTarget{{o.path, modelTarget}},
	})
}

func (p *controlPlane) modelCluster(o *object) {
	cluster := Cluster{Name: o.name(CheckLabelName), ClusterType: o.text("cluster_type"), Labels: o.labels("metadata")}
	belongs := p.whereabouts(o)
	o.text("short_name")
	o.finishModel()
	if belongs == elsewhere {
		return
	}
	if cluster.ClusterType == "" {
		cluster.ClusterType = "default"
		p.needsDefault = true
	}
	if belongs == here {
		p.register("clusters", cluster.Name, o.path)
		p.refer(o.path.Attribute("cluster_type"), "cluster_types", cluster.ClusterType)
	}
	p.fleet.Clusters = append(p.fleet.Clusters, cluster)
}

func (p *controlPlane) modelNamespace(o *object) {
	workspace := Workspace{Name: o.name(CheckLabelName), ContributorGroups: o.sortedTexts("group"), Labels: o.labels("metadata")}
	o.finishModel()
	p.register("workspaces", workspace.Name, o.path)
	p.fleet.Workspaces = append(p.fleet.Workspaces, workspace)
}

func (p *controlPlane) modelPolicy(o *object) {
	policy := TargetPolicy{Name: o.name(CheckSubdomainName), Workspace: o.text("namespace"), Effect: "schedule"}
	policy.DeploymentTargetSelector = o.modelSelector("app_selector", map[string]string{
		"name": "workload", "namespace": "workspace",
	})
	policy.ClusterSelector = o.modelSelector("cluster_selector", map[string]string{
		"name": "cluster", "cluster_type": "cluster-type",
	})
	if o.fields["cluster_selector"] == nil {
		o.report("cluster_selector", "is required: a policy without it goes nowhere")
	}
	if o.fields["app_selector"] == nil {
		o.report("app_selector", "is required")
	}
	o.finishModel()
	p.register("target_policies", policy.Name, o.path)
	p.fleet.TargetPolicies = append(p.fleet.TargetPolicies, policy)
}

// modelSelector reads a map of labels, in which some keys stand for attributes of the object.
func (o *object) modelSelector(attribute string, attributes map[string]string) *Selector {
	wanted := o.wantedLabels(attribute)
	if _, isMap := o.fields[attribute].(map[string]any); !isMap {
		return nil
	}
	selector := &Selector{}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		label := key
		if reserved, ok := attributes[key]; ok {
			label = reserved
		}
		if problem := cmp.Or(CheckLabelKey(label), CheckLabelValue(wanted[key])); problem != "" {
			o.decoder.report(o.path.Attribute(attribute).Key(key), "%s", problem)
		}
		if selector.MatchLabels == nil {
			selector.MatchLabels = map[string]string{}
		}
		selector.MatchLabels[label] = wanted[key]
	}
	return selector
}

// finishModel passes over what the systems that keep such models add to them.
func (o *object) finishModel() {
	added := []string{"apiVersion", "id", "onboard_status", "created_at", "created_by", "updated_at", "updated_by", "deleted_at"}
	o.finish(slices.DeleteFunc(added, func(attribute string) bool { return o.fields[attribute] == nil })...)
}
