package fleet

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v2"
	nodes "go.yaml.in/yaml/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// maxDocuments is per text: each takes kilobytes of memory.
const maxDocuments = 4_000

// ReadObjects returns the objects in a text, up to the first error.
func ReadObjects(text string) ([]map[string]any, error) {
	documents, err := ReadYAMLDocuments(text, func(string) bool { return false })
	objects := make([]map[string]any, 0, len(documents))
	for _, document := range documents {
		if object, isObject := document.(map[string]any); isObject {
			objects = append(objects, object)
		}
	}
	return objects, err
}

// YAMLText is one named text with its YAML documents.
type YAMLText struct {
	Name      string // its key or index
	Documents []Document
	Problems  []string
}

// Document is a YAML document. Number and Line start at 1.
type Document struct {
	Number, Line int
	Value        any
}

// ReadTexts parses YAML texts, sorted by key. An invalid document is a problem of its text. known is false if any
// element is unknown.
func ReadTexts(documents any) (texts []YAMLText, known bool, findings Findings) {
	p := &controlPlane{decoder: newDecoder()}
	known = documents != Unknown{}
	for _, element := range p.textsOf((*Path)(nil).Attribute("documents"), documents) {
		switch value := element.Value.(type) {
		case Unknown:
			known = false
		case string:
			text := YAMLText{Name: element.Name}
			text.Documents, text.Problems = readDocuments(value, unmarshalAsApplied, " cannot be read")
			texts = append(texts, text)
		default:
			p.Report(element.Path, "must be the text of YAML documents, not %s", kindOf(value))
		}
	}
	return texts, known, p.Findings
}

func readDocuments(text string, unmarshal func([]byte, any) error, cannot string) (documents []Document, problems []string) {
	parts := SplitYAML(text)
	if len(parts) > maxDocuments {
		return nil, []string{fmt.Sprintf("has %d YAML documents, but one text may have %d at most: split it", len(parts), maxDocuments)}
	}
	for i, part := range parts {
		value, err := readYAML(part.Text, unmarshal)
		if err != nil {
			problems = append(problems, fmt.Sprintf("document %d%s%s", i+1, cannot, yamlProblem(err, part.Line)))
		} else if value != nil {
			documents = append(documents, Document{i + 1, part.Line, value})
		}
	}
	return documents, problems
}

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
