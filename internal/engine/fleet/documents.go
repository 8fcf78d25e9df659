package fleet

import (
	"fmt"
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
