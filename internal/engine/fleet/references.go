package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

type reference struct {
	path       *Path
	collection string // templates/<type> for templates
	name       string
}

const deploymentTargets = "deployment_targets"

var kindNames = map[string]string{
	"workspaces": "workspace", "cluster_types": "cluster type", "clusters": "cluster",
	deploymentTargets: "deployment target",
}

// refer notes a reference. References to templates are checked even if the environment is unknown: templates belong to none.
func (c *crossReferences) refer(path *Path, collection, name string) {
	if isSet(name) && (c.decoded.EnvironmentKnown || strings.HasPrefix(collection, templatesOf(""))) {
		c.references = append(c.references, reference{path, collection, name})
	}
}

func (c *crossReferences) checkReferences() {
	names := c.decoded.Fleet.names()
	names[deploymentTargets] = fullNames(c.decoded.Fleet, func(*DeploymentTarget) bool { return true })
	c.incomplete[deploymentTargets] = c.incomplete["workloads"]
	for templateType, builtin := range BuiltinTemplates {
		collection := templatesOf(templateType)
		names[collection] = slices.Sorted(slices.Values(slices.Concat(builtin, names[collection])))
	}
	for _, reference := range c.references {
		collection, _, _ := strings.Cut(reference.collection, "/")
		if _, found := slices.BinarySearch(names[reference.collection], reference.name); !found && !c.incomplete[collection] {
			c.reader.Report(reference.path, "%s", c.describeMissing(reference, names))
		}
	}
}

func (c *crossReferences) describeMissing(of reference, names map[string][]string) string {
	hint := DidYouMean(of.name, names[of.collection])
	templateType, isTemplate := strings.CutPrefix(of.collection, templatesOf(""))
	switch {
	case isTemplate:
		for _, other := range TemplateTypes {
			if slices.Contains(names[templatesOf(other)], of.name) {
				return fmt.Sprintf("template %q is of type %s, not %s", of.name, other, templateType)
			}
		}
		return fmt.Sprintf("no template of type %s is called %q%s", templateType, of.name, hint)
	case of.collection == "cluster_types":
		for _, former := range c.formerNames {
			if former.name == of.name {
				return fmt.Sprintf("cluster type %q is called %q now", of.name, former.now)
			}
		}
	}
	return fmt.Sprintf("no %s of environment %q is called %q%s", kindNames[of.collection], c.decoded.Fleet.Environment, of.name, hint)
}

// names returns the names of all objects but explicit assignments. Templates are by type.
func (f *Fleet) names() map[string][]string {
	names := map[string][]string{
		"workspaces":        namesOf(f.Workspaces, func(w Workspace) string { return w.Name }),
		"cluster_types":     namesOf(f.ClusterTypes, func(c ClusterType) string { return c.Name }),
		"clusters":          namesOf(f.Clusters, func(c Cluster) string { return c.Name }),
		"workloads":         namesOf(f.Workloads, func(w Workload) string { return w.Name }),
		"target_policies":   namesOf(f.TargetPolicies, func(p TargetPolicy) string { return p.Name }),
		"config_containers": namesOf(f.ConfigContainers, func(c ConfigContainer) string { return c.Name }),
		"config_schemas":    namesOf(f.ConfigSchemas, func(s ConfigSchema) string { return s.Name }),
	}
	for _, template := range f.Templates {
		collection := templatesOf(template.Type)
		names[collection] = append(names[collection], template.Name)
	}
	return names
}

func templatesOf(templateType string) string { return "templates/" + templateType }

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
	// The base fleet stays first: a collision is reported in the input.
	ofInput := slices.IndexFunc(c.workloads, func(w localWorkload) bool { return w.path != nil })
	slices.SortStableFunc(c.workloads[max(ofInput, 0):], func(a, b localWorkload) int { return cmp.Compare(a.name, b.name) })
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
				c.reader.Report(target.path, "a deployment target of workload %[2]q has the same full name %[1]q: rename one", fullName, owner)
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
