package fleet

// base starts from another fleet, as provider::flotilla::fleet or control_plane returned it.
func (d *decoder) base(root *object) {
	root.attribute("base", func(o *object) {
		environment, model := o.required("environment"), o.required("model")
		config, configIsUnknown := o.attributeObject("config")
		o.finish()
		if environment != unknownText && d.environmentKnown && environment != d.fleet.Environment {
			o.report("environment", "the base fleet is of environment %q, this one of %q", environment, d.fleet.Environment)
			return
		}
		if model == unknownText || model == "" {
			d.unknownObjects()
			return
		}
		base, err := ParseModel(model)
		if err != nil {
			o.report("model", "%s", err)
			return
		}
		d.adopt(base)
		for _, container := range base.ConfigContainers {
			text, known := config[container.Name].(string)
			switch {
			case known:
				d.config[container.Name] = text
			case configIsUnknown || config[container.Name] == Unknown{}:
				d.pending = append(d.pending, container.Name)
			default:
				o.report("config", "config container %q has no entry", container.Name)
			}
		}
	})
}

// attributeObject reads an attribute that is an object, without decoding what is in it.
func (o *object) attributeObject(attribute string) (fields map[string]any, isUnknown bool) {
	switch value := o.fields[attribute].(type) {
	case Unknown:
		fields, isUnknown = nil, true
	case map[string]any:
		fields = value
	default:
		o.report(attribute, "must be an object, not %s", kindOf(value))
	}
	o.read = append(o.read, attribute)
	return fields, isUnknown
}

// adopt takes over the objects of another fleet, which were checked when it was made.
func (d *decoder) adopt(base *Fleet) {
	environment := d.fleet.Environment
	*d.fleet = *base
	d.fleet.Environment = environment
	for _, workspace := range base.Workspaces {
		d.paths[objectKey{"workspaces", workspace.Name}] = nil
	}
	for _, clusterType := range base.ClusterTypes {
		d.paths[objectKey{"cluster_types", clusterType.Name}] = nil
	}
	for _, cluster := range base.Clusters {
		d.paths[objectKey{"clusters", cluster.Name}] = nil
	}
	for _, workload := range base.Workloads {
		d.paths[objectKey{"workloads", workload.Name}] = nil
		d.workloadNames = append(d.workloadNames, workload.Name)
	}
	for _, policy := range base.TargetPolicies {
		d.paths[objectKey{"target_policies", policy.Name}] = nil
	}
	for _, container := range base.ConfigContainers {
		d.paths[objectKey{"config_containers", container.Name}] = nil
	}
	for _, schema := range base.ConfigSchemas {
		d.paths[objectKey{"config_schemas", schema.Name}] = nil
	}
	for _, template := range base.Templates {
		d.paths[objectKey{"templates", template.Type + "/" + template.Name}] = nil
	}
}
