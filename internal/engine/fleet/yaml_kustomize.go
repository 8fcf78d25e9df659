package fleet

import (
	"fmt"

	nodes "go.yaml.in/yaml/v3"
)

// unmarshalAsKustomize decodes a YAML document as kustomize does, which Flux builds control planes with: yes, no, on,
// off, y, n and dates are texts.
func unmarshalAsKustomize(text []byte, into any) error {
	var document nodes.Node
	if err := nodes.Unmarshal(text, &document); err != nil {
		return err
	}
	if err := prepareNode(&document); err != nil || document.IsZero() {
		return err
	}
	return document.Decode(into)
}

// prepareNode turns dates into texts, and refuses duplicate keys.
func prepareNode(node *nodes.Node) error {
	if node.ShortTag() == "!!timestamp" {
		node.Tag = "!!str"
	}
	keys := map[string]bool{}
	for i, child := range node.Content {
		if err := prepareNode(child); err != nil {
			return err
		}
		if node.Kind != nodes.MappingNode || i%2 == 1 || child.Kind != nodes.ScalarNode {
			continue
		}
		if keys[child.Value] {
			return fmt.Errorf("yaml: line %d: key %q already set in map", child.Line, child.Value)
		}
		keys[child.Value] = true
	}
	return nil
}
