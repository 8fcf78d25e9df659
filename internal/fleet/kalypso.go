package fleet

import (
	"cmp"
	"maps"
	"slices"
)

// kalypsoClusterType reads a ClusterType. Each of the following methods reads one of Kalypso's kinds.
func (p *controlPlane) kalypsoClusterType(o *object) {
	clusterType := ClusterType{}
	clusterType.Name, clusterType.Labels = o.metadata(checkClusterTypeName)
	o.spec(func(s *object) {
		clusterType.Reconciler = cmp.Or(s.text("reconciler"), DefaultReconciler)
		clusterType.NamespaceService = cmp.Or(s.text("namespaceService"), DefaultNamespaceService)
		clusterType.ConfigType = cmp.Or(s.text("configType"), DefaultConfigType)
	})
	p.registerAt(objectKey{"cluster_types", clusterType.Name}, o.path, o.metadataName())
	p.fleet.ClusterTypes = append(p.fleet.ClusterTypes, clusterType)
	spec := o.path.Attribute("spec")
	p.referToTemplate(spec.Attribute("reconciler"), "reconciler", clusterType.Reconciler)
	p.referToTemplate(spec.Attribute("namespaceService"), "namespace", clusterType.NamespaceService)
	p.referToTemplate(spec.Attribute("configType"), "config", clusterType.ConfigType)
}

func (p *controlPlane) kalypsoWorkload(o *object) {
	workload := Workload{}
	workload.Name, workload.Labels = o.metadata(CheckLabelName)
	placed := localWorkload{path: o.path, name: workload.Name}
	seen := map[string]bool{}
	o.spec(func(s *object) {
		shared := s.schemas("configSchemas")
		s.objects("deploymentTargets", func(t *object) {
			target := DeploymentTarget{Name: t.name(CheckLabelName), Labels: t.labels("labels")}
			environment := t.required("environment")
			target.ConfigSchemas = append(t.schemas("configSchemas"), shared...)
			t.targetManifests(&target, (*object).kalypsoManifests)
			t.finish()
			if key := environment + "/" + target.Name; seen[key] {
				t.report("name", "%q is the name of two deployment targets of environment %q", target.Name, environment)
			} else {
				seen[key] = true
			}
			if environment == p.fleet.Environment || !p.environmentKnown {
				workload.DeploymentTargets = append(workload.DeploymentTargets, target)
				placed.targets = append(placed.targets, localTarget{t.path, target.Name})
			}
		})
	})
	p.registerAt(objectKey{"workloads", workload.Name}, o.path, o.metadataName())
	if p.following != nil {
		p.registered[workload.Name] = p.following
	}
	if len(workload.DeploymentTargets) > 0 {
		p.fleet.Workloads = append(p.fleet.Workloads, workload)
	}
	if p.environmentKnown {
		p.workloads = append(p.workloads, placed)
	}
}

func (o *object) schemas(attribute string) []string {
	schemas := o.texts(attribute)
	for i, schema := range schemas {
		if _, err := ParseJSON(schema); err != nil {
			o.decoder.report(o.path.Attribute(attribute).Index(i), "is not JSON: %s", err)
		}
	}
	return schemas
}

// kalypsoManifests reads Kalypso's manifests, which are a free map of strings. Keys for which Flotilla has no attribute
// are parameters.
func (o *object) kalypsoManifests() Manifests {
	known := []string{"storage", "repo", "branch", "tag", "commit", "path", "chart", "version", "type"}
	parameters := map[string]any{}
	fields := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(o.fields)) {
		value := o.fields[key]
		if slices.Contains(known, key) {
			fields[key] = value
			continue
		}
		text, problem := o.scalar(value)
		if problem != "" {
			o.report(key, "%s", problem)
		}
		parameters[key] = text
	}
	if len(parameters) > 0 {
		fields["parameters"] = parameters
	}
	inner := &object{decoder: o.decoder, path: o.path, fields: fields}
	manifests := inner.manifests()
	o.unknown = o.unknown || inner.unknown
	return manifests
}

func (p *controlPlane) kalypsoRegistration(o *object) {
	name, _ := o.metadata(CheckLabelName)
	o.spec(func(s *object) {
		s.value("workload")
		workspace := s.text("workspace")
		if problem := CheckLabelName(workspace); workspace != "" && problem != "" {
			s.report("workspace", "%q %s", workspace, problem)
		}
		p.registrations[name] = workspace
	})
	p.registerAt(objectKey{"workload_registrations", name}, o.path, o.metadataName())
}

func (p *controlPlane) kalypsoPolicy(o *object) {
	policy := TargetPolicy{Effect: "schedule"}
	policy.Name, _ = o.metadata(CheckSubdomainName)
	o.spec(func(s *object) {
		s.attribute("deploymentTargetSelector", func(t *object) {
			policy.Workspace = t.text("workspace")
			policy.DeploymentTargetSelector = t.labelSelector("labelSelector")
			t.finish()
		})
		if s.fields["clusterTypeSelector"] == nil {
			s.report("clusterTypeSelector", "is required: a policy without it selects no host")
		}
		s.attribute("clusterTypeSelector", func(c *object) {
			policy.ClusterTypeSelector = c.labelSelector("labelSelector")
			if policy.ClusterTypeSelector == nil {
				policy.ClusterTypeSelector = &Selector{}
			}
			c.finish()
		})
	})
	p.registerAt(objectKey{"target_policies", policy.Name}, o.path, o.metadataName())
	p.fleet.TargetPolicies = append(p.fleet.TargetPolicies, policy)
}

func (p *controlPlane) kalypsoTemplate(o *object) {
	template := Template{}
	template.Name, _ = o.metadata(CheckSubdomainName)
	o.spec(func(s *object) {
		template.Type = s.oneOf("type", "", "reconciler", "namespace", "config")
		template.ContentType = s.oneOf("contentType", "", ContentTypes...)
		template.Manifests = s.texts("manifests")
		if template.Type == "" {
			s.report("type", "is required")
		}
	})
	switch template.ContentType {
	case "yaml":
		template.ContentType = ""
	case "env": // Kalypso writes these as platform-config.sh
		template.ContentType = "sh"
	}
	p.addTemplate(template, o.path, o.metadataName())
}

func (p *controlPlane) kalypsoSchema(o *object) {
	schema := ConfigSchema{}
	schema.Name, schema.Labels = o.metadata(CheckSubdomainName)
	schema.Labels = WithoutOwnerLabels(schema.Labels)
	o.spec(func(s *object) {
		schema.Schema = s.schema("schema")
		if schema.Schema == "" {
			s.report("schema", "is required")
		}
	})
	p.registerAt(objectKey{"config_schemas", schema.Name}, o.path, o.metadataName())
	p.fleet.ConfigSchemas = append(p.fleet.ConfigSchemas, schema)
}
