package fleet

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

func readKalypsoClusterType(p *controlPlane, o *ObjectReader) {
	clusterType := ClusterType{}
	clusterType.Name, clusterType.Labels = readMetadata(o, checkClusterTypeName)
	readSpec(o, func(s *ObjectReader) {
		clusterType.Reconciler = cmp.Or(readText(s, "reconciler"), DefaultReconciler)
		clusterType.NamespaceService = cmp.Or(readText(s, "namespaceService"), DefaultNamespaceService)
		clusterType.ConfigType = cmp.Or(readText(s, "configType"), DefaultConfigType)
	})
	p.registerAt(objectKey{"cluster_types", clusterType.Name}, o.path, metadataName(o))
	p.Fleet.ClusterTypes = append(p.Fleet.ClusterTypes, clusterType)
	spec := o.path.Attribute("spec")
	p.refer(spec.Attribute("reconciler"), templatesOf("reconciler"), clusterType.Reconciler)
	p.refer(spec.Attribute("namespaceService"), templatesOf("namespace"), clusterType.NamespaceService)
	p.refer(spec.Attribute("configType"), templatesOf("config"), clusterType.ConfigType)
}

func readKalypsoWorkload(p *controlPlane, o *ObjectReader) {
	workload := Workload{}
	workload.Name, workload.Labels = readMetadata(o, CheckLabelName)
	placed := localWorkload{path: o.path, name: workload.Name}
	seen := map[string]bool{}
	readSpec(o, func(s *ObjectReader) {
		shared := readSchemas(s, "configSchemas")
		for _, t := range s.List("deploymentTargets") {
			target := DeploymentTarget{Name: readName(t, CheckLabelName), Labels: readLabels(t, "labels")}
			environment := readRequired(t, "environment")
			target.ConfigSchemas = append(readSchemas(t, "configSchemas"), shared...)
			readTargetManifests(t, &target, readKalypsoManifests)
			t.Finish()
			if key := environment + "/" + target.Name; seen[key] {
				t.Report("name", "%q is the name of two deployment targets of environment %q", target.Name, environment)
			} else {
				seen[key] = true
			}
			if environment == p.Fleet.Environment || !p.EnvironmentKnown {
				workload.DeploymentTargets = append(workload.DeploymentTargets, target)
				placed.targets = append(placed.targets, localTarget{t.path, target.Name})
			}
		}
	})
	p.registerAt(objectKey{"workloads", workload.Name}, o.path, metadataName(o))
	if p.following != nil {
		p.registered[workload.Name] = p.following
	}
	if len(workload.DeploymentTargets) > 0 {
		p.Fleet.Workloads = append(p.Fleet.Workloads, workload)
	}
	if p.EnvironmentKnown {
		p.workloads = append(p.workloads, placed)
	}
}

func readSchemas(o *ObjectReader, attribute string) []string {
	schemas := readTexts(o, attribute)
	for i, schema := range schemas {
		if _, err := ParseJSON(schema); err != nil {
			o.reader.Report(o.path.Attribute(attribute).Index(i), "is not JSON: %s", err)
		}
	}
	return schemas
}

// readKalypsoManifests reads a free map of strings. Unknown keys become parameters.
func readKalypsoManifests(o *ObjectReader) Manifests {
	known := []string{"storage", "repo", "branch", "tag", "commit", "path", "chart", "version", "digest", "type"}
	fields, parameters := map[string]any{}, map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(o.fields)) {
		if slices.Contains(known, key) {
			fields[key] = o.fields[key]
		} else {
			parameters[key] = readText(o, key)
		}
	}
	if len(parameters) > 0 {
		fields["parameters"] = parameters
	}
	return readManifests(&ObjectReader{reader: o.reader, table: &manifestsKind.Table, parent: o, path: o.path, fields: fields})
}

func readKalypsoRegistration(p *controlPlane, o *ObjectReader) {
	name, _ := readMetadata(o, CheckLabelName)
	readSpec(o, func(s *ObjectReader) {
		s.value("workload")
		p.registrations[name] = readChecked(s, "workspace", CheckLabelName)
	})
	p.registerAt(objectKey{"workload_registrations", name}, o.path, metadataName(o))
}

func readKalypsoPolicy(p *controlPlane, o *ObjectReader) {
	policy := TargetPolicy{Effect: "schedule"}
	policy.Name, _ = readMetadata(o, CheckSubdomainName)
	readSpec(o, func(s *ObjectReader) {
		policy.DeploymentTargetSelector = ReadObject(s, "deploymentTargetSelector", func(t *ObjectReader) *Selector {
			policy.Workspace = readText(t, "workspace")
			return readSelectorNamed(t, "labelSelector", kubernetesSelector)
		})
		s.Require("clusterTypeSelector", "is required: a policy without it selects no host")
		policy.ClusterTypeSelector = ReadObject(s, "clusterTypeSelector", func(c *ObjectReader) *Selector {
			return cmp.Or(readSelectorNamed(c, "labelSelector", kubernetesSelector), &Selector{})
		})
	})
	p.registerAt(objectKey{"target_policies", policy.Name}, o.path, metadataName(o))
	p.Fleet.TargetPolicies = append(p.Fleet.TargetPolicies, policy)
}

func readKalypsoTemplate(p *controlPlane, o *ObjectReader) {
	template := Template{}
	template.Name, _ = readMetadata(o, CheckSubdomainName)
	readSpec(o, func(s *ObjectReader) {
		template.Type = readOneOfThese(s, "type", "", "reconciler", "namespace", "config")
		template.ContentType = readOneOfThese(s, "contentType", "", contentTypes...)
		template.Manifests = readTexts(s, "manifests")
		if template.Type == "" {
			s.Report("type", "is required")
		}
	})
	switch template.ContentType {
	case "yaml":
		template.ContentType = ""
	case "env": // Kalypso writes these as platform-config.sh
		template.ContentType = "sh"
	}
	addTemplate(p.decoder, template, o.path, metadataName(o))
}

func readKalypsoSchema(p *controlPlane, o *ObjectReader) {
	schema := ConfigSchema{}
	schema.Name, schema.Labels = readMetadata(o, CheckSubdomainName)
	schema.Labels = WithoutOwnerLabels(schema.Labels)
	readSpec(o, func(s *ObjectReader) {
		schema.Schema = readSchema(s, "schema")
		if schema.Schema == "" {
			s.Report("schema", "is required")
		}
	})
	p.registerAt(objectKey{"config_schemas", schema.Name}, o.path, metadataName(o))
	p.Fleet.ConfigSchemas = append(p.Fleet.ConfigSchemas, schema)
}

// The JSON models have plain objects: metadata are labels, selectors are maps of labels, and the label "name" is the
// object's name.

const modelTarget = "default"

// modelKind infers the model from attributes unique to it.
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

func readModelList(p *controlPlane, o *ObjectReader) {
	for _, item := range o.List("items") {
		if read := p.readers["/"+cmp.Or(readText(item, "kind"), modelKind(item.fields))]; read != nil {
			read(p, item)
			continue
		}
		p.Report(item.path, "is none of Application, Cluster, Namespace and TargetPolicy")
	}
	o.Finish()
}

func readModelApplication(p *controlPlane, o *ObjectReader) {
	name := readName(o, CheckLabelName)
	workload := Workload{Name: name, Workspace: readText(o, "namespace"), Labels: readLabels(o, "metadata")}
	manifests := &ObjectReader{
		reader: o.reader, table: &manifestsKind.Table, path: o.path, fields: map[string]any{},
		written: map[string]string{"repo": "repo_url", "branch": "repo_branch", "path": "repo_path"},
	}
	for name, written := range manifests.written {
		manifests.fields[name], _ = o.Value(written)
	}
	workload.DeploymentTargets = []DeploymentTarget{{Name: modelTarget, Manifests: readManifests(manifests)}}
	finishModel(o)
	p.register("workloads", name, o.path)
	p.Fleet.Workloads = append(p.Fleet.Workloads, workload)
	p.workloads = append(p.workloads, localWorkload{
		path: o.path, name: name, targets: []localTarget{{o.path, modelTarget}},
	})
}

func readModelCluster(p *controlPlane, o *ObjectReader) {
	cluster := Cluster{Name: readName(o, CheckLabelName), ClusterType: readText(o, "cluster_type"), Labels: readLabels(o, "metadata")}
	belongs := p.belongs(o)
	readText(o, "short_name")
	finishModel(o)
	if belongs == notInEnvironment {
		return
	}
	if cluster.ClusterType == "" {
		cluster.ClusterType = "default"
		p.needsDefault = true
	}
	if belongs == inEnvironment {
		p.register("clusters", cluster.Name, o.path)
		p.refer(o.path.Attribute("cluster_type"), "cluster_types", cluster.ClusterType)
	}
	p.Fleet.Clusters = append(p.Fleet.Clusters, cluster)
}

func readModelNamespace(p *controlPlane, o *ObjectReader) {
	workspace := Workspace{
		Name:              readName(o, CheckLabelName),
		ContributorGroups: readSortedTexts(o, "group"),
		Labels:            readLabels(o, "metadata"),
	}
	finishModel(o)
	p.register("workspaces", workspace.Name, o.path)
	p.Fleet.Workspaces = append(p.Fleet.Workspaces, workspace)
}

func readModelPolicy(p *controlPlane, o *ObjectReader) {
	policy := TargetPolicy{Name: readName(o, CheckSubdomainName), Workspace: readText(o, "namespace"), Effect: "schedule"}
	policy.DeploymentTargetSelector = readModelSelector(o, "app_selector", map[string]string{
		"name": "workload", "namespace": "workspace",
	})
	policy.ClusterSelector = readModelSelector(o, "cluster_selector", map[string]string{
		"name": "cluster", "cluster_type": "cluster-type",
	})
	o.Require("cluster_selector", "is required: a policy without it selects no host")
	o.Require("app_selector", "is required")
	switch operation := readText(o, "operation"); operation {
	case "", "CREATE":
	case "PURGE":
		o.Report("operation", "a policy that purges ends the effect of earlier policies, but a fleet has no earlier and later policies: "+
			"remove the policy, and change the policies that select the purged workloads")
	default:
		o.Report("operation", "must be CREATE or PURGE, not %.80q", operation)
	}
	finishModel(o)
	p.register("target_policies", policy.Name, o.path)
	p.Fleet.TargetPolicies = append(p.Fleet.TargetPolicies, policy)
}

func readModelSelector(o *ObjectReader, attribute string, attributes map[string]string) *Selector {
	wanted := readWantedLabels(o, attribute)
	if _, isMap := o.fields[attribute].(map[string]any); !isMap {
		return nil
	}
	selector := &Selector{}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		label := cmp.Or(attributes[key], key)
		values := strings.Split(wanted[key], ",")
		problem := CheckLabelKey(label)
		for _, value := range values {
			problem = cmp.Or(problem, CheckLabelValue(value))
		}
		if problem != "" {
			o.reader.Report(o.path.Attribute(attribute).Key(key), "%s", problem)
		}
		if len(values) > 1 {
			slices.Sort(values)
			selector.MatchExpressions = append(selector.MatchExpressions, Expression{Key: label, Operator: "In", Values: slices.Compact(values)})
			continue
		}
		if selector.MatchLabels == nil {
			selector.MatchLabels = map[string]string{}
		}
		selector.MatchLabels[label] = wanted[key]
	}
	return selector
}

func finishModel(o *ObjectReader) {
	o.Finish("apiVersion", "_id", "id", "description", "cost_center", "onboard_status",
		"created_at", "created_by", "created_on", "updated_at", "updated_by", "updated_on", "deleted_at")
}
