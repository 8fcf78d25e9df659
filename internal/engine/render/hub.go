package render

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// hubProject names a workspace's AppProject on a hub, which has one for each host and environment.
func hubProject(project, environment, host string) string {
	return LabelValue(project + "-" + environment + "-" + host)
}

// escapeActions escapes "{{" in values, which an ApplicationSet would run.
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
