package fleet

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

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
	var only *textPart
	for _, part := range splitDocuments(text) {
		if onlyDirectives(part.text) {
			continue
		}
		if only != nil {
			return nil, fmt.Errorf("holds more than one YAML document, the second from line %d", part.line)
		}
		only = &part
	}
	if only == nil {
		return nil, nil
	}
	value, err := parseYAML(only.text)
	if err != nil {
		return nil, errors.New("invalid YAML" + yamlProblem(err, only.line))
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

// textPart is the text of one document. Its first line is that after the document's marker, unless
// the document begins on the marker's line.
type textPart struct {
	text string
	line int
}

// splitDocuments splits at YAML's document markers, "---" and "...", because the parser reads the
// first document and passes over the others. At the start of a line they are markers whatever they
// stand in: block scalars are indented, and quoted ones may not hold them.
func splitDocuments(text string) []textPart {
	text = lineBreaks.Replace(strings.TrimPrefix(text, "\ufeff"))
	var parts []textPart
	start, startLine := 0, 1
	cut := func(end, next, nextLine int) {
		if part := text[start:end]; !onlyDirectives(part) {
			parts = append(parts, textPart{part, startLine})
		}
		start, startLine = next, nextLine
	}
	for offset, line := 0, 1; offset < len(text); line++ {
		end := endOfLine(text, offset)
		current := text[offset:end]
		switch after, begins := markerIn(current, "---"); {
		case begins && strings.TrimSpace(after) == "":
			cut(offset, end, line+1)
		case begins:
			cut(offset, offset, line)
		default:
			if _, ends := markerIn(current, "..."); ends {
				cut(offset, end, line+1)
			}
		}
		offset = end
	}
	cut(len(text), len(text), 0)
	return parts
}

// lineBreaks does to a text what reading it as YAML would do.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// endOfLine returns where the next line begins. YAML knows more line breaks than that of Unix.
func endOfLine(text string, offset int) int {
	at := strings.IndexAny(text[offset:], "\n\u0085\u2028\u2029")
	if at < 0 {
		return len(text)
	}
	_, size := utf8.DecodeRuneInString(text[offset+at:])
	return offset + at + size
}

// markerIn returns what follows a document marker on its line.
func markerIn(line, marker string) (after string, found bool) {
	after, found = strings.CutPrefix(line, marker)
	return after, found && (after == "" || strings.IndexAny(after, " \t\n\u0085\u2028\u2029") == 0)
}

// onlyDirectives says whether there is nothing but comments and directives, such as "%YAML 1.2".
func onlyDirectives(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}
