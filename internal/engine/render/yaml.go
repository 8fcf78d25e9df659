package render

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// toYAML writes block YAML byte for byte as Kalypso does, because values of ConfigMaps are texts.
func (w *yamlWriter) toYAML(value any) (string, error) {
	text, err := w.marshal(value)
	return strings.TrimSuffix(text, "\n"), err
}

// stringify writes all values as strings, as in a ConfigMap. Objects and lists become YAML.
func (w *yamlWriter) stringify(value any) (string, error) {
	object, ok := value.(map[string]any)
	if !ok {
		if text, isScalar := scalarText(value); isScalar {
			return w.toYAML(text)
		}
		return w.toYAML(value)
	}
	if w.texts == nil {
		w.texts = map[string]any{}
	}
	clear(w.texts)
	for key, element := range object {
		switch element.(type) {
		case map[string]any, []any:
			text, err := w.marshal(element)
			if err != nil {
				return "", err
			}
			w.texts[key] = text
		case string:
			w.texts[key] = element
		default:
			text, isScalar := scalarText(element)
			if !isScalar {
				return "", problemf("a value of type %T has no YAML form", element)
			}
			w.texts[key] = text
		}
	}
	return w.toYAML(w.texts)
}

// marshal uses the library only for uncommon values, since it takes ten times as long.
func (w *yamlWriter) marshal(value any) (string, error) {
	w.buffer = w.buffer[:0]
	if w.write(value) {
		return string(w.buffer), nil
	}
	return libraryYAML(value)
}

func libraryYAML(value any) (string, error) {
	exact, err := exactNumbers(value)
	if err != nil {
		return "", err
	}
	text, err := yaml.Marshal(exact)
	return string(text), err
}

// exactNumbers turns numbers that the library would write as strings or with an exponent into nodes.
func exactNumbers(value any) (any, error) {
	switch value := value.(type) {
	case json.Number:
		return numberNode(value.String()), nil
	case float64:
		return numberNode(numberText(value)), nil
	case string:
		if isMerge(value) {
			return quotedNode(value), nil
		}
	case map[string]any:
		_, merges := value["<<"]
		_, isDefault := value["="]
		if merges || isDefault {
			return quotedKeys(value)
		}
		result := make(map[string]any, len(value))
		for key, element := range value {
			exact, err := exactNumbers(element)
			if err != nil {
				return nil, err
			}
			result[key] = exact
		}
		return result, nil
	case []any:
		result := make([]any, len(value))
		for i, element := range value {
			exact, err := exactNumbers(element)
			if err != nil {
				return nil, err
			}
			result[i] = exact
		}
		return result, nil
	}
	switch reflect.ValueOf(value).Kind() {
	case reflect.Func, reflect.Chan, reflect.Struct, reflect.Pointer:
		return nil, problemf("a value of type %T has no YAML form", value)
	}
	return value, nil
}

// isMerge reports whether YAML 1.1 gives a text a meaning that needs quotes.
func isMerge(text string) bool { return text == "<<" || text == "=" }

func quotedNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: yaml.DoubleQuotedStyle}
}

func quotedKeys(object map[string]any) (any, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, key := range slices.SortedFunc(maps.Keys(object), compareKeys) {
		exact, err := exactNumbers(object[key])
		if err != nil {
			return nil, err
		}
		name := &yaml.Node{}
		value, isNode := exact.(*yaml.Node)
		if !isNode {
			value = &yaml.Node{}
			err = value.Encode(exact)
		}
		if err := errors.Join(err, name.Encode(key)); err != nil {
			return nil, err
		}
		if isMerge(key) {
			name = quotedNode(key)
		}
		node.Content = append(node.Content, name, value)
	}
	return node, nil
}

// numberNode sets no tag, which the library would write.
func numberNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: text}
}

// yamlWriter writes common values byte for byte like go.yaml.in/yaml/v3. With the library alone, the engine takes 2.1 times as
// long; with it and a cache of entries, 1.4 times, and a quarter more memory.
type yamlWriter struct {
	buffer  []byte
	scalars map[string]string
	texts   map[string]any // of stringify, which refills it
}

const (
	maxScalars   = 4096 // texts in the cache
	maxScalar    = 256  // bytes of a cached text
	maxSimpleKey = 100  // longer keys begin with "?"
	yamlIndent   = 4
)

// write returns false if only the library can write the value.
func (w *yamlWriter) write(value any) bool {
	if hasElements(value) {
		return w.writeCollection(value, 0, 0)
	}
	return w.writeScalar(value, true) && w.newline()
}

func hasElements(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) > 0
	case []any:
		return len(value) > 0
	}
	return false
}

// writeCollection writes elements at a column, the first one at the end of the buffer.
func (w *yamlWriter) writeCollection(value any, column, depth int) bool {
	if list, isList := value.([]any); isList {
		return depth <= maxNest && w.writeSequence(list, column, depth)
	}
	return depth <= maxNest && w.writeMapping(value.(map[string]any), column, depth)
}

func (w *yamlWriter) writeMapping(object map[string]any, column, depth int) bool {
	var few [16]string
	keys := few[:0]
	for key := range object {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareKeys)
	for i, key := range keys {
		if len(key) > maxSimpleKey || strings.ContainsAny(key, "\n\r") {
			return false
		}
		if i > 0 || depth == 0 {
			w.pad(column)
		}
		if !w.writeScalar(key, false) {
			return false
		}
		w.buffer = append(w.buffer, ':')
		if !w.writeChild(object[key], column, depth) {
			return false
		}
	}
	return true
}

func (w *yamlWriter) writeChild(value any, column, depth int) bool {
	if hasElements(value) {
		inner := yamlIndent * ((column + yamlIndent) / yamlIndent)
		w.newline()
		w.pad(inner)
		return w.writeCollection(value, inner, depth+1)
	}
	w.buffer = append(w.buffer, ' ')
	return w.writeScalar(value, column == 0) && w.newline()
}

func (w *yamlWriter) writeSequence(list []any, column, depth int) bool {
	for i, element := range list {
		if i > 0 {
			w.pad(column)
		}
		w.buffer = append(w.buffer, "- "...)
		var isWritten bool
		if hasElements(element) {
			isWritten = w.writeCollection(element, column+2, depth+1)
		} else {
			isWritten = w.writeScalar(element, false) && w.newline()
		}
		if !isWritten {
			return false
		}
	}
	return true
}

func (w *yamlWriter) newline() bool {
	w.buffer = append(w.buffer, '\n')
	return true
}

func (w *yamlWriter) pad(column int) {
	for range column {
		w.buffer = append(w.buffer, ' ')
	}
}

// writeScalar writes a scalar or an empty collection. Texts of several lines must be outermost.
func (w *yamlWriter) writeScalar(value any, isOutermost bool) bool {
	switch value := value.(type) {
	case nil:
		w.buffer = append(w.buffer, "null"...)
	case bool:
		w.buffer = strconv.AppendBool(w.buffer, value)
	case int:
		w.buffer = strconv.AppendInt(w.buffer, int64(value), 10)
	case int64:
		w.buffer = strconv.AppendInt(w.buffer, value, 10)
	case float64:
		w.buffer = strconv.AppendFloat(w.buffer, value, 'f', -1, 64)
	case json.Number:
		w.buffer = append(w.buffer, value...)
	case string:
		if isPlain(value) {
			w.buffer = append(w.buffer, value...)
			return true
		}
		if isOutermost && isLiteral(value) {
			w.writeLiteral(value)
			return true
		}
		if !isOutermost && strings.ContainsAny(value, "\n\r\u0085\u2028\u2029") {
			return false
		}
		text, ok := w.libraryText(value)
		w.buffer = append(w.buffer, text...)
		return ok
	case map[string]any:
		w.buffer = append(w.buffer, "{}"...)
	case []any:
		w.buffer = append(w.buffer, "[]"...)
	default:
		return false
	}
	return true
}

// isLiteral reports whether the library certainly writes lines below "|".
func isLiteral(text string) bool {
	if !strings.Contains(text, "\n") || text[0] == ' ' || text[0] == '\n' || text[len(text)-1] == ' ' || strings.HasSuffix(text, "\n\n") {
		return false
	}
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c > '~') && c != '\n' || c == '\n' && text[i-1] == ' ' {
			return false
		}
	}
	return true
}

func (w *yamlWriter) writeLiteral(text string) {
	w.buffer = append(w.buffer, '|')
	lines, ends := strings.CutSuffix(text, "\n")
	if !ends {
		w.buffer = append(w.buffer, '-')
	}
	for line := range strings.SplitSeq(lines, "\n") {
		w.newline()
		if line != "" {
			w.pad(yamlIndent)
			w.buffer = append(w.buffer, line...)
		}
	}
}

func (w *yamlWriter) libraryText(value string) (string, bool) {
	if isMerge(value) {
		return `"` + value + `"`, true
	}
	if text, ok := w.scalars[value]; ok {
		return text, true
	}
	written, err := yaml.Marshal(map[string]string{"k": value})
	text, ok := strings.CutPrefix(string(written), "k: ")
	if err != nil || !ok {
		return "", false
	}
	text = strings.TrimSuffix(text, "\n")
	if len(value) <= maxScalar {
		if len(w.scalars) >= maxScalars || w.scalars == nil {
			w.scalars = map[string]string{}
		}
		w.scalars[value] = text
	}
	return text, true
}

// keywords are no strings in YAML 1.1 or 1.2.
var keywords = newSet("y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf")

// isPlain reports whether the library certainly writes no quotes.
func isPlain(text string) bool {
	if text == "" || !isLetter(text[0]) && text[0] != '/' && text[0] != '_' {
		return false
	}
	if len(text) <= 5 && keywords[strings.ToLower(text)] {
		return false
	}
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case isLetter(c), '0' <= c && c <= '9', strings.IndexByte("_-./@+=%", c) >= 0:
		case (c == ':' || c == ' ') && i+1 < len(text) && text[i+1] != ' ' && text[i+1] != '#':
		default:
			return false
		}
	}
	return true
}

func isLetter(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z'
}

// compareKeys has the library's order: letters after other characters, and "a2" before "a10".
func compareKeys(first, second string) int {
	for i := 0; ; i++ {
		if i == len(first) || i == len(second) {
			return cmp.Compare(len(first), len(second))
		}
		if first[i] == second[i] {
			continue
		}
		if !isWord(first[i]) || !isWord(second[i]) || i > 0 && !isWord(first[i-1]) {
			return compareNaturally(first, second)
		}
		if isLetter(first[i]) == isLetter(second[i]) {
			return cmp.Compare(first[i], second[i])
		}
		if isLetter(second[i]) {
			return -1
		}
		return 1
	}
}

// isWord reports whether keys compare this byte by value.
func isWord(c byte) bool {
	return isLetter(c) || c == '_' || c == '-' || c == '.'
}

func compareNaturally(first, second string) int {
	a, b := []rune(first), []rune(second)
	afterDigit := false
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] == b[i] {
			afterDigit = unicode.IsDigit(a[i])
			continue
		}
		aLetter, bLetter := unicode.IsLetter(a[i]), unicode.IsLetter(b[i])
		switch {
		case aLetter && bLetter:
			return cmp.Compare(a[i], b[i])
		case aLetter != bLetter:
			if aLetter == afterDigit {
				return -1
			}
			return 1
		}
		return compareNumbers(a, b, i)
	}
	return cmp.Compare(len(a), len(b))
}

// compareNumbers compares keys whose numbers differ at index i.
func compareNumbers(a, b []rune, i int) int {
	var aNumber, bNumber int64
	if a[i] == '0' || b[i] == '0' { // zeros after another digit belong to a number
		for j := i - 1; j >= 0 && unicode.IsDigit(a[j]); j-- {
			if a[j] != '0' {
				aNumber, bNumber = 1, 1
				break
			}
		}
	}
	aEnd, bEnd := i, i
	for ; aEnd < len(a) && unicode.IsDigit(a[aEnd]); aEnd++ {
		aNumber = withDigit(aNumber, a[aEnd])
	}
	for ; bEnd < len(b) && unicode.IsDigit(b[bEnd]); bEnd++ {
		bNumber = withDigit(bNumber, b[bEnd])
	}
	return cmp.Or(cmp.Compare(aNumber, bNumber), cmp.Compare(aEnd, bEnd), cmp.Compare(a[i], b[i]))
}

// withDigit stops at the largest int64, where the library has no defined order.
func withDigit(number int64, digit rune) int64 {
	if number > math.MaxInt64/20 {
		return math.MaxInt64
	}
	return number*10 + int64(digit-'0')
}
