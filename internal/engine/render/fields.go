package render

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// mergeFields merges parameters over specs. Fields keep their order and quotes; new ones come last, sorted. A null removes a
// field.
func (e *runner) mergeFields(content []byte, parameters map[string]any, team *workspace) ([]byte, error) {
	if !slices.ContainsFunc(parameterKinds, func(kind *reconciler.ObjectKind) bool { return parameters[kind.Parameter] != nil }) {
		return content, nil
	}
	return rewriteDocuments(content, func(document *yaml.Node) error { return e.mergeDocument(document, parameters, team) })
}

// rewriteDocuments keeps comments and order. The zero node removes a document.
func rewriteDocuments(content []byte, change func(document *yaml.Node) error) ([]byte, error) {
	var output bytes.Buffer
	encoder := yaml.NewEncoder(&output)
	encoder.SetIndent(2)
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = change(&document)
		}
		if err == nil && !document.IsZero() {
			err = encoder.Encode(&document)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := encoder.Close(); err != nil {
		return nil, err
	}
	return output.Bytes(), nil
}

func (e *runner) mergeDocument(document *yaml.Node, parameters map[string]any, team *workspace) error {
	root := document.Content[0]
	kind, spec := member(root, "kind"), member(root, "spec")
	if kind == nil || spec == nil {
		return nil
	}
	of := reconciler.KindNamed(kind.Value)
	if of != nil && of.Template != "" {
		of, spec = reconciler.KindNamed(of.Makes[0]), member(member(spec, of.Template), "spec")
	}
	if of == nil || of.Parameter == "" {
		return nil
	}
	fields, _ := parameters[of.Parameter].(map[string]any)
	if len(fields) == 0 {
		return nil
	}
	text, err := e.yaml.toYAML(fields)
	if err != nil {
		return err
	}
	var over yaml.Node
	if err := yaml.Unmarshal([]byte(text), &over); err != nil {
		return err
	}
	if either := of.Either; either[0] != "" && member(spec, either[0]) != nil {
		removeField(over.Content[0], either[1]) // from the cluster type, for charts of other storages
	}
	if team.ServiceAccount != "" { // from the cluster type, for other workspaces
		removeField(over.Content[0], of.Account)
	}
	if team.project.Name != "" {
		removeField(over.Content[0], of.Project)
	}
	mergeNode(spec, over.Content[0], of.Extended)
	return nil
}

// mergeNode merges mappings. It extends the lists at the paths added, and replaces others.
func mergeNode(base, over *yaml.Node, added []string) {
	for i := 0; i+1 < len(over.Content); i += 2 {
		key, value := over.Content[i], over.Content[i+1]
		present := member(base, key.Value)
		switch {
		case value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null":
			removeField(base, key.Value)
		case present == nil:
			base.Content = append(base.Content, key, withoutNulls(value))
		case present.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode:
			present.Style &^= yaml.FlowStyle // of an empty mapping, "{}"
			mergeNode(present, value, pathsBelow(added, key.Value))
		case slices.Contains(added, key.Value) && present.Kind == yaml.SequenceNode && value.Kind == yaml.SequenceNode:
			present.Content = append(present.Content, value.Content...)
		default:
			*present = *withoutNulls(value)
		}
	}
}

func pathsBelow(paths []string, step string) []string {
	var rests []string
	for _, path := range paths {
		if rest, isBelow := strings.CutPrefix(path, step+"."); isBelow {
			rests = append(rests, rest)
		}
	}
	return rests
}

func withoutNulls(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.MappingNode {
		for i := len(node.Content) - 2; i >= 0; i -= 2 {
			if value := node.Content[i+1]; value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null" {
				node.Content = append(node.Content[:i], node.Content[i+2:]...)
			} else {
				withoutNulls(value)
			}
		}
	}
	return node
}

func removeField(mapping *yaml.Node, name string) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			mapping.Content = append(mapping.Content[:i], mapping.Content[i+2:]...)
			return
		}
	}
}

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
