package render

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// hubProject is the name of a workspace's AppProject on a hub. Folders of several hosts and environments are
// applied there, and each has a project of its own.
func hubProject(project, environment, host string) string {
	return LabelValue(project + "-" + environment + "-" + host)
}

// rendersProject says whether the workspace of an assignment has its AppProject rendered.
func (t *Templates) rendersProject(assignment *schedule.Assignment) bool {
	return t.workspaceOf(assignment.Target.Workload.Workspace).project.Render
}

// literal escapes values, so that an ApplicationSet does not read them as actions of its templates: a value with
// "{{" in it arrives as it is.
func escapeActions(content []byte, by *reconciler.Reconciler) ([]byte, error) {
	if bytes.Count(content, []byte("{{")) == by.Actions {
		return content, nil
	}
	return rewriteDocuments(content, func(document *yaml.Node) error {
		root := document.Content[0]
		kind := member(root, "kind")
		if kind == nil {
			return nil
		}
		if of := reconciler.KindNamed(kind.Value); of != nil && of.Template != "" {
			template := member(member(root, "spec"), of.Template)
			escapeBraces(template, map[*yaml.Node]bool{
				member(member(template, "metadata"), "name"):                    true,
				member(member(member(template, "spec"), "destination"), "name"): true,
			})
		}
		return nil
	})
}

// escape escapes "{{" in every text, except in those of without.
func escapeBraces(node *yaml.Node, without map[*yaml.Node]bool) {
	if node == nil || without[node] {
		return
	}
	if node.Kind == yaml.ScalarNode && strings.Contains(node.Value, "{{") {
		node.Value = strings.ReplaceAll(node.Value, "{{", `{{ "{{" }}`)
	}
	for _, child := range node.Content {
		escapeBraces(child, without)
	}
}
