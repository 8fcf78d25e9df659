package fleet

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v2"
	nodes "go.yaml.in/yaml/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// unmarshalAsApplied decodes like kustomize what Flux applies, and like kubectl the rest.
func unmarshalAsApplied(text []byte, into any) error {
	var head struct {
		APIVersion string `yaml:"apiVersion"`
	}
	if err := yaml.Unmarshal(text, &head); err == nil {
		group, _, _ := strings.Cut(head.APIVersion, "/")
		if owner := reconciler.OfGroup(group); owner != nil && owner.Agent.BuildsFolders {
			return unmarshalAsKustomize(text, into)
		}
	}
	return yaml.UnmarshalStrict(text, into)
}

// unmarshalAsKustomize reads yes, no, on, off, y, n and dates as texts.
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
