package fleet

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// document is one YAML document of a text, and where it stands.
type document struct {
	path   *Path
	number int // of the document in its text, from 1
	line   int // of its first line in its text, from 1
	value  any
}

// documents splits a text and parses what is in it. Empty documents are left out.
func (d *decoder) documents(path *Path, text string) []document {
	var documents []document
	for i, part := range splitDocuments(text) {
		value, err := parseYAML(part.text)
		if err != nil {
			d.report(path, "document %d%s", i+1, yamlProblem(err, part.line))
			continue
		}
		if value != nil {
			documents = append(documents, document{path: path, number: i + 1, line: part.line, value: value})
		}
	}
	return documents
}

// ParseYAML reads a text of one YAML document. Keys that stand twice are errors.
func ParseYAML(text string) (any, error) {
	parts := splitDocuments(text)
	if len(parts) > 1 {
		return nil, errors.New("holds more than one YAML document")
	}
	value, err := parseYAML(text)
	if err != nil {
		return nil, errors.New("invalid YAML" + yamlProblem(err, 1))
	}
	return value, nil
}

func parseYAML(text string) (any, error) {
	asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	value, err := ParseJSON(string(asJSON))
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	return value, err
}

var yamlLine = regexp.MustCompile(`^(?:error converting YAML to JSON: )?(?:yaml: )?(?:unmarshal errors:\n\s*)?(?:line (\d+): )?`)

// yamlProblem turns the parser's message, whose lines count from the document's start, into
// ", line 7: …", counting from the text's.
func yamlProblem(err error, firstLine int) string {
	message := err.Error()
	match := yamlLine.FindStringSubmatch(message)
	rest := strings.Join(strings.Fields(strings.TrimPrefix(message, match[0])), " ")
	line, numberErr := strconv.Atoi(match[1])
	if numberErr != nil {
		return fmt.Sprintf(", from line %d: %s", firstLine, rest)
	}
	return fmt.Sprintf(", line %d: %s", firstLine+line-1, rest)
}

type textPart struct {
	text string
	line int
}

// splitDocuments splits at YAML's document markers. A marker inside a block scalar would end the
// document all the same.
func splitDocuments(text string) []textPart {
	var parts []textPart
	start, startLine := 0, 1
	for offset, line := 0, 1; offset < len(text); line++ {
		end := strings.IndexByte(text[offset:], '\n')
		if end < 0 {
			end = len(text)
		} else {
			end += offset + 1
		}
		current := text[offset:end]
		if after, ok := strings.CutPrefix(current, "---"); ok && (after == "" || strings.ContainsRune(" \t\r\n", rune(after[0]))) {
			parts = append(parts, textPart{text[start:offset], startLine})
			start, startLine = offset, line
			if strings.TrimSpace(after) == "" {
				start, startLine = end, line+1
			}
		}
		offset = end
	}
	parts = append(parts, textPart{text[start:], startLine})
	if len(parts) > 1 && onlyComments(parts[0].text) {
		parts = parts[1:]
	}
	return parts
}

func onlyComments(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return false
		}
	}
	return true
}
