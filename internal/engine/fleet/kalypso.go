package fleet

import (
	"cmp"
	"maps"
	"slices"
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
	inner := &ObjectReader{reader: o.reader, table: &manifestsKind.Table, parent: o, path: o.path, fields: fields}
	return readManifests(inner)
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
			return readLabelSelector(t, "labelSelector")
		})
		s.Require("clusterTypeSelector", "is required: a policy without it selects no host")
		policy.ClusterTypeSelector = ReadObject(s, "clusterTypeSelector", func(c *ObjectReader) *Selector {
			return cmp.Or(readLabelSelector(c, "labelSelector"), &Selector{})
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
