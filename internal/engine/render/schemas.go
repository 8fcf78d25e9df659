package render

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

// checkSchema reports violations of a schema. For unknown fields of parameters see [writerChooser.checkFieldNames].
func (c *fileCheck) checkSchema(node *yaml.Node, kind string) {
	value, _ := valueOf(node)
	object, isObject := value.(map[string]any)
	if !isObject {
		return // reported elsewhere
	}
	for _, violation := range c.catalog.Check(object) {
		isKnown := !violation.IsUnknown || !c.template.isBuiltin && !c.catalog.MayLackFields(object)
		if !isKnown || isOfForm(kind, violation.Steps) {
			continue
		}
		end := " (schema of " + kind + " in " + c.catalog.Source(object) + ")"
		path, rest := c.attributeOf(kind, violation.Steps)
		if path == nil {
			c.report(lineAt(node, violation.Steps), "%s %s%s", cmp.Or(violation.Path(), "the object"), violation.Message, end)
			continue
		}
		missing := kinds.Violation{Steps: rest}
		message := strings.TrimSpace(missing.Path() + " " + violation.Message)
		c.findings.Report(path, "%s%s", secret.Unrepeated(message, nil, c.subject.Config), end)
	}
}

// valueOf returns JSON, with dates as strings, as in Kubernetes. ok is false if a key is not a string.
func valueOf(node *yaml.Node) (value any, ok bool) {
	switch node = resolve(node); node.Kind {
	case yaml.MappingNode:
		object := make(map[string]any, len(node.Content)/2)
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := resolve(node.Content[i])
			if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
				return nil, false
			}
			if object[key.Value], ok = valueOf(node.Content[i+1]); !ok {
				return nil, false
			}
		}
		return object, true
	case yaml.SequenceNode:
		list := make([]any, len(node.Content))
		for i := range node.Content {
			if list[i], ok = valueOf(node.Content[i]); !ok {
				return nil, false
			}
		}
		return list, true
	}
	switch node.ShortTag() {
	case "!!str", "!!timestamp":
		return node.Value, true
	case "!!null", "!!bool", "!!int", "!!float":
		err := node.Decode(&value)
		return value, err == nil
	}
	return nil, false
}

// isOfForm reports whether [fileCheck.checkObject] checks this part.
func isOfForm(kind string, steps []string) bool {
	switch {
	case len(steps) == 0:
		return false
	case steps[0] == "metadata":
		return len(steps) > 1 && slices.Contains([]string{"name", "namespace", "labels", "annotations"}, steps[1])
	case kind == "ConfigMap":
		return steps[0] == "data" || steps[0] == "binaryData"
	}
	return false
}

func lineAt(node *yaml.Node, steps []string) int {
	for _, step := range steps {
		var next *yaml.Node
		if index, isIndex := indexOf(step); isIndex {
			if node = resolve(node); index < len(node.Content) {
				next = node.Content[index]
			}
		} else {
			next = member(node, step)
		}
		if next == nil {
			break
		}
		node = next
	}
	return node.Line
}

// indexOf parses a step such as "[0]".
func indexOf(step string) (index int, isIndex bool) {
	number, begins := strings.CutPrefix(step, "[")
	if !begins {
		return 0, false
	}
	index, err := strconv.Atoi(strings.TrimSuffix(number, "]"))
	return index, err == nil
}

// attributeOf returns the fleet's attribute behind a part of an object, or nil, and the steps below it.
func (c *fileCheck) attributeOf(kind string, steps []string) (path *fleet.Path, rest []string) {
	of, spec := reconciler.KindNamed(kind), []string{"spec"}
	if of != nil && of.Template != "" {
		of, spec = reconciler.KindNamed(of.Makes[0]), []string{"spec", of.Template, "spec"}
	}
	if of == nil || !c.template.isBuiltin || len(steps) < len(spec) || !slices.Equal(steps[:len(spec)], spec) {
		return nil, nil
	}
	steps = steps[len(spec):]
	target := c.subject.Assignment.Target
	manifests := &target.Target.Manifests
	if said := of.AttributeAt(steps); said == reconciler.Namespace {
		return targetPath(target).Attribute("namespace"), nil
	} else if said != "" {
		return targetPath(target).Attribute("manifests").Attribute(said.Attribute(&manifests.Manifests)), nil
	}
	clusterType := c.subject.Assignment.Host.ClusterType
	ofTarget, ofType := c.templates.parameters[target.Name][of.Parameter], c.templates.hostOf(c.subject.Assignment).parameters[of.Parameter]
	byTarget, byType := countSteps(ofTarget, steps), countSteps(ofType, steps)
	switch {
	case byTarget == 0 && byType == 0:
		return nil, nil
	case byTarget >= byType:
		path, rest = targetPath(target).Attribute("manifests"), steps[byTarget:]
	default:
		path, rest = fleet.PathOf("cluster_types", clusterType.Name), steps[byType:]
	}
	return pathBelow(path.Attribute("parameters").Attribute(of.Parameter), steps[:len(steps)-len(rest)]), rest
}

func pathBelow(path *fleet.Path, steps []string) *fleet.Path {
	for _, step := range steps {
		if index, isIndex := indexOf(step); isIndex {
			path = path.Index(index)
		} else {
			path = path.Attribute(step)
		}
	}
	return path
}

func countSteps(value any, steps []string) int {
	for i, step := range steps {
		switch of := value.(type) {
		case map[string]any:
			below, has := of[step]
			if !has {
				return i
			}
			value = below
		case []any:
			index, isIndex := indexOf(step)
			if !isIndex || index >= len(of) {
				return i
			}
			value = of[index]
		default:
			return i
		}
	}
	return len(steps)
}

// checkFieldNames warns of probable misspellings. They are no errors, because reconcilers get new fields.
func (a *writerChooser) checkFieldNames(path *fleet.Path, parameters map[string]any) {
	for _, kind := range parameterKinds {
		fields, _ := parameters[kind.Parameter].(map[string]any)
		version, _, _ := strings.Cut(kind.Versions, ",")
		object := map[string]any{"apiVersion": kind.Group + "/" + version, "kind": kind.Kind, "spec": fields}
		for _, violation := range a.catalog.Check(object) {
			last := len(violation.Steps) - 1
			if !violation.IsUnknown {
				continue
			}
			if hint := fleet.DidYouMean(violation.Steps[last], violation.Known); hint != "" {
				a.reportOnce(&a.warnings, pathBelow(path.Attribute(kind.Parameter), violation.Steps[1:]),
					"is no field of a %s that Flotilla knows%s", kind.Kind, hint)
			}
		}
	}
}

func (a *writerChooser) checkSpelling(host *hostTemplates, assignment *schedule.Assignment) {
	if host.reconciler == nil {
		return
	}
	if parameters := a.parameters[assignment.Target.Name]; parameters != nil && !a.checkedSpelling[assignment.Target.Name] {
		a.checkedSpelling[assignment.Target.Name] = true
		a.checkFieldNames(targetPath(assignment.Target).Attribute("manifests").Attribute("parameters"), parameters)
	}
	if name := assignment.Host.ClusterType.Name; host.parameters != nil && !a.checkedSpelling["type "+name] {
		a.checkedSpelling["type "+name] = true
		a.checkFieldNames(fleet.PathOf("cluster_types", name).Attribute("parameters"), host.parameters)
	}
}
