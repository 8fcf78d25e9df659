package fleet

import (
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v2"
)

// document is one YAML document of a text, with its position.
type document struct {
	path   *Path
	number int // of the document in its text, from 1
	line   int // of its first line in its text, from 1
	value  any
}

// maxDocuments bounds the documents of one text, since even the smallest take some kilobytes while they
// are read.
const maxDocuments = 4_000

// documents splits a text and parses what is in it. Empty documents are left out.
func (d *decoder) documents(path *Path, text string) []document {
	parts := SplitYAML(text)
	if len(parts) > maxDocuments {
		d.Report(path, "has %d YAML documents, but one text may have %d at most: split it", len(parts), maxDocuments)
		return nil
	}
	var documents []document
	for i, part := range parts {
		value, err := readYAML(part.Text, yaml.UnmarshalStrict)
		if err != nil {
			d.Report(path, "document %d%s", i+1, yamlProblem(err, part.Line))
			continue
		}
		if value != nil {
			documents = append(documents, document{path: path, number: i + 1, line: part.Line, value: value})
		}
	}
	return documents
}

// ReadObjects reads the objects among the YAML documents of a text. With an error, they are those before it.
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

// Text is one text of several, as people have them in files: its documents, and those that cannot be read.
type Text struct {
	Name      string // its key, where the texts are a map, such as the name of a file; else its number
	Documents []Document
	// Problems are sentences, each about one document that is not YAML or is beyond the bounds.
	Problems []string
}

// Document is one YAML document of a text. Its line, from 1, is that of its beginning.
type Document struct {
	Line  int
	Value any
}

// ReadTexts reads a list or map of texts of YAML documents, sorted by key. A document that cannot be read is a problem of
// its text; findings are about elements that are no texts, at their paths below `documents`. known is false while any
// element is unknown.
func ReadTexts(documents any) (texts []Text, known bool, findings Findings) {
	p := &controlPlane{decoder: newDecoder()}
	known = documents != Unknown{}
	for i, element := range p.textsOf((*Path)(nil).Attribute("documents"), documents) {
		name := strconv.Itoa(i)
		if _, isMap := documents.(map[string]any); isMap {
			name = element.key
		}
		switch value := element.value.(type) {
		case Unknown:
			known = false
		case string:
			texts = append(texts, readText(name, value))
		default:
			p.Report(element.path, "must be the text of YAML documents, not %s", kindOf(value))
		}
	}
	return texts, known, p.Findings
}

func readText(name, content string) Text {
	text := Text{Name: name}
	parts := SplitYAML(content)
	if len(parts) > maxDocuments {
		text.Problems = []string{fmt.Sprintf("has %d YAML documents, but one text may have %d at most", len(parts), maxDocuments)}
		return text
	}
	for i, part := range parts {
		value, err := readYAML(part.Text, yaml.UnmarshalStrict)
		if err != nil {
			text.Problems = append(text.Problems, fmt.Sprintf("document %d cannot be read%s", i+1, yamlProblem(err, part.Line)))
		} else if value != nil {
			text.Documents = append(text.Documents, Document{part.Line, value})
		}
	}
	return text
}
