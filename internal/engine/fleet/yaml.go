package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v2"
	nodes "go.yaml.in/yaml/v3"
)

// YAML is read as by Kubernetes: YAML 1.1, limited to JSON's values. Bounds are checked first: a few bytes of a tenant's
// YAML can expand to gigabytes.
const (
	// maxDocument is Kubernetes' largest object, in bytes.
	maxDocument = 3 << 19
	// maxExpanded is with aliases: the largest ConfigMap, in bytes.
	maxExpanded = 1 << 20
	// maxValues bounds keys and values, of a few hundred bytes each.
	maxValues = 100_000
)

// ParseYAML parses one document. Duplicate keys are errors; beyond the bounds, the error is a [*BoundError].
func ParseYAML(text string) (any, error) {
	parts := SplitYAML(text)
	if len(parts) == 0 {
		return nil, nil
	}
	if len(parts) > 1 {
		return nil, fmt.Errorf("has more than one YAML document, the second from line %d", parts[1].Line)
	}
	only := parts[0]
	value, err := readYAML(only.Text, yaml.UnmarshalStrict)
	if bound, isBound := errors.AsType[*BoundError](err); isBound {
		return nil, newBoundError("YAML from line %d %s", only.Line, bound)
	}
	if err != nil {
		return nil, errors.New("invalid YAML" + yamlProblem(err, only.Line))
	}
	return value, nil
}

// ParseLooseYAML parses the first document of a text. The last of duplicate keys wins.
func ParseLooseYAML(text string) (any, error) {
	return readYAML(text, yaml.Unmarshal)
}

func readYAML(text string, unmarshal func([]byte, any) error) (any, error) {
	if err := CheckYAML(text); err != nil {
		return nil, err
	}
	var value any
	if err := unmarshal([]byte(text), &value); err != nil {
		return nil, err
	}
	return toJSONValue(value, 0)
}

// BoundError is the error of a text beyond the bounds.
type BoundError struct{ message string }

func (e *BoundError) Error() string { return e.message }

func newBoundError(format string, arguments ...any) error {
	return &BoundError{fmt.Sprintf(format, arguments...)}
}

// CheckYAML does not decode. The error is a [*BoundError], or a syntax error in a document with aliases.
func CheckYAML(text string) error {
	if len(text) > maxDocument {
		return newBoundError("is larger than %s, which is the most that Kubernetes stores as one object", sizeText(maxDocument))
	}
	if valuesAtMost(text) > maxValues {
		return newBoundError("has more than %d keys and values", maxValues)
	}
	if !mayHaveAliases(text) {
		return nil
	}
	var document nodes.Node
	if err := nodes.Unmarshal([]byte(text), &document); err != nil {
		return err
	}
	switch all := (expansion{}).measure(&document); {
	case all.bytes > maxExpanded:
		return newBoundError("its aliases make it larger than %s, which is the most that a ConfigMap can hold", sizeText(maxExpanded))
	case all.values > maxValues:
		return newBoundError("its aliases make more than %d keys and values of it", maxValues)
	}
	return nil
}

// CheckYAMLText returns the first bounds error, and the first line of its document.
func CheckYAMLText(text string) (line int, err *BoundError) {
	if len(text)*2 <= maxValues && !mayHaveAliases(text) {
		return 0, nil
	}
	for _, document := range SplitYAML(text) {
		if errors.As(CheckYAML(document.Text), &err) {
			return document.Line, err
		}
	}
	return 0, nil
}

func sizeText(bytes int) string {
	return strconv.FormatFloat(float64(bytes)/(1<<20), 'f', -1, 64) + " MiB"
}

// valuesAtMost counts beginnings of keys and values. Block scalars hold whole files and do not count.
func valuesAtMost(text string) int {
	if len(text)*2 <= maxValues {
		return 0
	}
	c := counter{}
	scalar := -1 // lines are indented more
	for line := range strings.Lines(text) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if scalar >= 0 && (indent > scalar || strings.TrimSpace(line) == "") {
			continue
		}
		scalar = -1
		if !c.flow {
			if match := blockScalar.FindStringSubmatchIndex(line); match != nil {
				scalar = max(match[3], match[5])
			}
		}
		c.line(line)
	}
	return c.count + 1
}

var blockScalar = regexp.MustCompile(`^(?: *(?:- +)*()(?:"[^"\\]*"|'[^']*'|[\w./-]+) *: +| *(?:- +)*()- +)[|>][+-]? *\r?\n$`)

type counter struct {
	count int
	flow  bool
}

func (c *counter) line(line string) {
	begins := true
	for i := 0; i < len(line); i++ {
		ends := i+1 == len(line) || line[i+1] <= ' ' || line[i+1] >= utf8.RuneSelf
		switch char := line[i]; {
		case char == '[' || char == '{':
			c.flow = true
			c.count++
		case char == ',' && c.flow:
			c.count++
		case char == ':' && (c.flow || ends):
			c.count += 2
			begins = true
		case char == '?' && (c.flow || ends && begins):
			c.count += 2
		case char == '-' && ends && begins:
			c.count++
		case char == '\r' || char >= utf8.RuneSelf:
			begins = true
		case char != ' ' && char != '\t':
			begins = false
		}
	}
}

func mayHaveAliases(text string) bool {
	anchor := findIndicator(text, '&')
	return anchor >= 0 && findIndicator(text[anchor:], '*') >= 0
}

func findIndicator(text string, c byte) int {
	for from := 0; ; {
		at := strings.IndexByte(text[from:], c)
		if at < 0 {
			return -1
		}
		at += from
		if at == 0 || strings.IndexByte(" \t\r\n[{,:", text[at-1]) >= 0 || text[at-1] >= utf8.RuneSelf {
			return at
		}
		from = at + 1
	}
}

// expansion has the sizes of anchors.
type expansion map[*nodes.Node]size

type size struct{ bytes, values int }

// measure counts an alias to its own parent as nothing: decoders refuse it.
func (e expansion) measure(node *nodes.Node) size {
	if node.Kind == nodes.AliasNode {
		return e[node.Alias] // an anchor is before its aliases
	}
	all := size{bytes: len(node.Value) + 1, values: 1}
	for _, child := range node.Content {
		inner := e.measure(child)
		all.bytes = min(all.bytes+inner.bytes, maxExpanded+1)
		all.values = min(all.values+inner.values, maxValues+1)
	}
	if node.Anchor != "" {
		e[node] = all
	}
	return all
}

// toJSONValue turns keys into texts, as Kubernetes does.
func toJSONValue(value any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	switch value := value.(type) {
	case nil, bool:
		return value, nil
	case string:
		if !utf8.ValidString(value) { // of a !!binary
			return string([]rune(value)), nil
		}
		return value, nil
	case int, int64, uint64:
		return json.Number(fmt.Sprint(value)), nil
	case float64:
		text, err := json.Marshal(value)
		if err != nil {
			return nil, errors.New(strings.TrimPrefix(err.Error(), "json: "))
		}
		return json.Number(text), nil
	case []any:
		for i := range value {
			var err error
			if value[i], err = toJSONValue(value[i], depth+1); err != nil {
				return nil, err
			}
		}
		return value, nil
	case map[string]any:
		for key := range value {
			var err error
			if value[key], err = toJSONValue(value[key], depth+1); err != nil {
				return nil, err
			}
		}
		return value, nil
	case map[any]any:
		object := make(map[string]any, len(value))
		for key, member := range value {
			name, err := keyText(key)
			if err != nil {
				return nil, err
			}
			if _, twice := object[name]; twice {
				return nil, fmt.Errorf("key %q already set in map", name)
			}
			if object[name], err = toJSONValue(member, depth+1); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return nil, fmt.Errorf("JSON has no values of type %T", value)
}

func keyText(key any) (string, error) {
	switch key := key.(type) {
	case string:
		return string([]rune(key)), nil
	case bool, int, int64:
		return fmt.Sprint(key), nil
	case float64:
		switch text := strconv.FormatFloat(key, 'g', -1, 32); text {
		case "+Inf":
			return ".inf", nil
		case "-Inf":
			return "-.inf", nil
		case "NaN":
			return ".nan", nil
		default:
			return text, nil
		}
	}
	return "", errors.New("a key is not a string")
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:unmarshal errors:\n\s*)?(?:line (\d+): )?`)

// yamlProblem counts lines from firstLine.
func yamlProblem(err error, firstLine int) string {
	message := err.Error()
	match := yamlLine.FindStringSubmatch(message)
	rest := strings.Join(strings.Fields(strings.TrimPrefix(message, match[0])), " ")
	if strings.HasPrefix(rest, "invalid map key: ") {
		rest = "a key is not a string" // the library prints the key as Go
	}
	line, numberErr := strconv.Atoi(match[1])
	if numberErr != nil {
		return fmt.Sprintf(", from line %d: %s", firstLine, rest)
	}
	return fmt.Sprintf(", line %d: %s", firstLine+line-1, rest)
}

// YAMLDocument is the text of one document. Line counts from 1.
type YAMLDocument struct {
	Text string
	Line int
}

// SplitYAML splits at "---" and "...", which are always markers at the start of a line: parsers read only the first
// document. Documents of comments and directives are left out.
func SplitYAML(text string) []YAMLDocument {
	text = strings.TrimPrefix(text, "\ufeff")
	if strings.Contains(text, "\r") {
		text = lineBreaks.Replace(text)
	}
	var parts []YAMLDocument
	start, startLine := 0, 1
	cut := func(end, next, nextLine int) {
		if part := text[start:end]; !onlyDirectives(part) {
			parts = append(parts, YAMLDocument{part, startLine})
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

var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func endOfLine(text string, offset int) int {
	for i := offset; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			return i + 1
		case c < utf8.RuneSelf:
		case strings.HasPrefix(text[i:], "\u0085"):
			return i + len("\u0085")
		case strings.HasPrefix(text[i:], "\u2028"), strings.HasPrefix(text[i:], "\u2029"):
			return i + len("\u2028")
		}
	}
	return len(text)
}

func markerIn(line, marker string) (after string, found bool) {
	after, found = strings.CutPrefix(line, marker)
	return after, found && (after == "" || strings.IndexAny(after, " \t\n\u0085\u2028\u2029") == 0)
}

func onlyDirectives(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}
