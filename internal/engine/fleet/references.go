package fleet

import (
	"cmp"
	"slices"
	"strings"
)

type reference struct {
	path         *Path
	collection   string
	templateType string
	name         string
}

const deploymentTargets = "deployment_targets"

var kindNames = map[string]string{
	"workspaces": "workspace", "cluster_types": "cluster type", "clusters": "cluster",
	deploymentTargets: "deployment target",
}

func (c *crossReferences) refer(path *Path, collection, name string) {
	if isSet(name) && c.decoded.EnvironmentKnown {
		c.references = append(c.references, reference{path: path, collection: collection, name: name})
	}
}

func (c *crossReferences) referToTemplate(path *Path, templateType, name string) {
	if isSet(name) {
		c.references = append(c.references, reference{path, "templates", templateType, name})
	}
}

func (c *crossReferences) checkReferences() {
	f := c.decoded.Fleet
	names := f.names()
	names[deploymentTargets] = fullNames(f, func(*DeploymentTarget) bool { return true })
	c.incomplete[deploymentTargets] = c.incomplete["workloads"]
	templates := c.templateTypes()
	for _, reference := range c.references {
		if c.incomplete[reference.collection] {
			continue
		}
		if reference.collection == "templates" {
			c.checkTemplate(reference, templates)
			continue
		}
		candidates := names[reference.collection]
		if _, found := slices.BinarySearch(candidates, reference.name); !found {
			if now := c.nameNow(reference.name); reference.collection == "cluster_types" && now != "" {
				c.reader.Report(reference.path, "cluster type %q is called %q now", reference.name, now)
				continue
			}
			c.reader.Report(reference.path, "no %s of environment %q is called %q%s",
				kindNames[reference.collection], f.Environment, reference.name, DidYouMean(reference.name, candidates))
		}
	}
}

func (f *Fleet) names() map[string][]string {
	return map[string][]string{
		"workspaces":        namesOf(f.Workspaces, func(w Workspace) string { return w.Name }),
		"cluster_types":     namesOf(f.ClusterTypes, func(c ClusterType) string { return c.Name }),
		"clusters":          namesOf(f.Clusters, func(c Cluster) string { return c.Name }),
		"workloads":         namesOf(f.Workloads, func(w Workload) string { return w.Name }),
		"target_policies":   namesOf(f.TargetPolicies, func(p TargetPolicy) string { return p.Name }),
		"config_containers": namesOf(f.ConfigContainers, func(c ConfigContainer) string { return c.Name }),
		"config_schemas":    namesOf(f.ConfigSchemas, func(s ConfigSchema) string { return s.Name }),
	}
}

func namesOf[T any](list []T, name func(T) string) []string {
	names := make([]string, len(list))
	for i, element := range list {
		names[i] = name(element)
	}
	return names
}

func fullNames(f *Fleet, is func(*DeploymentTarget) bool) []string {
	var names []string
	for workload, target := range f.Targets() {
		if is(target) {
			names = append(names, FullName(workload.Name, target.Name))
		}
	}
	slices.Sort(names)
	return names
}

func (c *crossReferences) templateTypes() map[string][]string {
	types := map[string][]string{}
	for _, templateType := range TemplateTypes {
		for _, name := range BuiltinTemplates[templateType] {
			types[name] = append(types[name], templateType)
		}
	}
	for _, template := range c.decoded.Fleet.Templates {
		types[template.Name] = append(types[template.Name], template.Type)
	}
	return types
}

func (c *crossReferences) checkTemplate(reference reference, types map[string][]string) {
	found := types[reference.name]
	if slices.Contains(found, reference.templateType) {
		return
	}
	if len(found) > 0 {
		c.reader.Report(reference.path, "template %q is of type %s, not %s", reference.name, found[0], reference.templateType)
		return
	}
	var candidates []string
	for name, ofName := range types {
		if slices.Contains(ofName, reference.templateType) {
			candidates = append(candidates, name)
		}
	}
	slices.Sort(candidates)
	c.reader.Report(reference.path, "no template of type %s is called %q%s",
		reference.templateType, reference.name, DidYouMean(reference.name, candidates))
}

type localWorkload struct {
	path      *Path // nil in the base fleet
	name      string
	workspace string
	requires  []string
	targets   []localTarget
}

type localTarget struct {
	path *Path
	name string
}

func (c *crossReferences) checkWorkloads() {
	c.sortWorkloads()
	workspaces := make(map[string]Workspace, len(c.decoded.Fleet.Workspaces))
	for _, workspace := range c.decoded.Fleet.Workspaces {
		workspaces[workspace.Name] = workspace
	}
	known := make(map[string]bool, len(c.workloadNames))
	for _, name := range c.workloadNames {
		known[name] = true
	}
	owners := map[string]string{}
	for _, workload := range c.workloads {
		c.checkMayDeploy(workload, workspaces[workload.workspace])
		for _, name := range workload.requires {
			switch {
			case !isSet(name):
			case name == workload.name:
				c.reader.Report(workload.path.Attribute("requires"), "workload %q requires itself", name)
			case !known[name] && !c.incomplete["workloads"]:
				c.reader.Report(workload.path.Attribute("requires"), "no workload is called %q%s", name, DidYouMean(name, c.workloadNames))
			}
		}
		if !isSet(workload.name) {
			continue
		}
		for _, target := range workload.targets {
			fullName := FullName(workload.name, target.name)
			if owner, taken := owners[fullName]; taken && owner != workload.name {
				c.reader.Report(target.path, "its full name %q is also that of a deployment target of workload %q: rename one", fullName, owner)
			}
			owners[fullName] = workload.name
			if len(fullName) > maxLabelName {
				c.reader.Report(target.path, "its full name %q has %d characters, and a Kubernetes label may have %d: choose shorter names",
					fullName, len(fullName), maxLabelName)
			}
		}
	}
	c.checkCycles()
}

// sortWorkloads puts the base fleet first: a collision is reported in the input.
func (c *crossReferences) sortWorkloads() {
	slices.SortStableFunc(c.workloads, func(a, b localWorkload) int {
		switch {
		case a.path == nil && b.path != nil:
			return -1
		case a.path != nil && b.path == nil:
			return 1
		}
		return cmp.Compare(a.name, b.name)
	})
}

func (c *crossReferences) checkMayDeploy(workload localWorkload, workspace Workspace) {
	if !c.decoded.EnvironmentKnown || len(workspace.Environments) == 0 || slices.Contains(workspace.Environments, unknownText) ||
		slices.Contains(workspace.Environments, c.decoded.Fleet.Environment) {
		return
	}
	c.reader.Report(workload.path.Attribute("workspace"), "workspace %q may not deploy to environment %q, only to %s",
		workspace.Name, c.decoded.Fleet.Environment, strings.Join(workspace.Environments, ", "))
}

func (c *crossReferences) checkCycles() {
	workloads := make(map[string]localWorkload, len(c.workloads))
	for _, workload := range c.workloads {
		if isSet(workload.name) {
			workloads[workload.name] = workload
		}
	}
	done := map[string]bool{}
	var trail []string
	var visit func(name string)
	visit = func(name string) {
		if start := slices.Index(trail, name); start >= 0 {
			circle := append(slices.Clone(trail[start:]), name)
			if len(circle) > 2 {
				c.reader.Report(workloads[name].path.Attribute("requires"),
					"workloads require each other in a circle: %s", strings.Join(circle, " → "))
			}
			return
		}
		if done[name] {
			return
		}
		trail = append(trail, name)
		for _, required := range workloads[name].requires {
			visit(required)
		}
		trail = trail[:len(trail)-1]
		done[name] = true
	}
	for _, workload := range c.workloads {
		if isSet(workload.name) {
			visit(workload.name)
		}
	}
}
