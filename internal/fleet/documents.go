package fleet

import (
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
