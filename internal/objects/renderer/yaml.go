package renderer

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	goyaml "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"
)

// toYAML writes JSON as YAML, byte for byte as yaml.JSONToYAML does, which reads it as YAML and so takes eight times as long.
func toYAML(text []byte) ([]byte, error) {
	if !isSimple(text) {
		return yaml.JSONToYAML(text)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if w := (yamlWriter{text: make([]byte, 0, len(text)+len(text)/4)}); w.document(value) {
		return w.text, nil
	}
	return goyaml.Marshal(value)
}

// isSimple tells whether JSON is certainly the same when it is read as YAML, which refuses some characters. Its numbers fit
// into 64 bits with a sign.
func isSimple(text []byte) bool {
	digits := 0
	for _, b := range text {
		switch {
		case b > '~':
			return false
		case isDigit(b):
			if digits++; digits > 18 {
				return false
			}
		default:
			digits = 0
		}
	}
	return true
}

// yamlWriter writes common values as the library does. Its methods return false where the library has to write the document.
type yamlWriter struct {
	text []byte
}

func (w *yamlWriter) document(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) > 0 && w.mapping(value, 0)
	case []any:
		return len(value) > 0 && w.sequence(value, 0)
	}
	return false
}

// mapping writes the entries of a map at a column, the first one at the end of the text.
func (w *yamlWriter) mapping(object map[string]any, column int) bool {
	keys, isOrdered := make([]string, 0, len(object)), true
	for key := range object {
		if len(key) > 100 || !isPlain(key) { // else the library writes it in another form
			return false
		}
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		order, isKnown := compareKeys(a, b)
		isOrdered = isOrdered && isKnown
		return order
	})
	for i, key := range keys {
		if i > 0 {
			w.pad(column)
		}
		w.text = append(append(w.text, key...), ':')
		value := object[key]
		switch inner := value.(type) {
		case map[string]any:
			if len(inner) > 0 {
				w.text = append(w.text, '\n')
				w.pad(column + 2)
				if !w.mapping(inner, column+2) {
					return false
				}
				continue
			}
		case []any:
			if len(inner) > 0 {
				w.text = append(w.text, '\n')
				w.pad(column)
				if !w.sequence(inner, column) {
					return false
				}
				continue
			}
		}
		w.text = append(w.text, ' ')
		if !w.scalar(value, column) {
			return false
		}
	}
	return isOrdered
}

// sequence writes the elements of a list at a column, the first one at the end of the text.
func (w *yamlWriter) sequence(list []any, column int) bool {
	for i, element := range list {
		if i > 0 {
			w.pad(column)
		}
		w.text = append(w.text, "- "...)
		var done bool
		switch inner := element.(type) {
		case map[string]any:
			done = len(inner) > 0 && w.mapping(inner, column+2)
		case []any:
			done = len(inner) > 0 && w.sequence(inner, column+2)
		}
		if !done && !w.scalar(element, column) {
			return false
		}
	}
	return true
}

func (w *yamlWriter) pad(column int) {
	for range column {
		w.text = append(w.text, ' ')
	}
}

// scalar writes a scalar, or an empty map or list, and ends the line. The library says how others than the common ones are
// written; the lines of a text of several are indented with what is around them.
func (w *yamlWriter) scalar(value any, column int) bool {
	switch value := value.(type) {
	case nil:
		w.text = append(w.text, "null\n"...)
		return true
	case bool:
		w.text = append(strconv.AppendBool(w.text, value), '\n')
		return true
	case string:
		if isPlain(value) && w.fits(value) {
			w.text = append(append(w.text, value...), '\n')
			return true
		}
	case json.Number:
		if strings.Trim(string(value), "0123456789") == "" {
			w.text = append(append(w.text, value...), '\n')
			return true
		}
	case map[string]any:
		if len(value) > 0 {
			return false
		}
	case []any:
		if len(value) > 0 {
			return false
		}
	}
	written := libraryScalar(value)
	if written == "" || written[0] != '|' && (strings.Count(written, "\n") > 1 || !w.fits(written)) {
		return false
	}
	for i, line := range strings.SplitAfter(written, "\n") {
		if i > 0 && len(line) > 1 {
			w.pad(column)
		}
		w.text = append(w.text, line...)
	}
	return true
}

// libraryScalars are short texts as the library writes them: charts have the same ones in all of their objects.
var libraryScalars struct {
	sync.Mutex
	written map[string]string
}

// libraryScalar is a scalar as the library writes it in the outermost map, with the newline; "" where it has another form.
func libraryScalar(value any) string {
	text, isText := value.(string)
	isText = isText && len(text) <= 100
	all := &libraryScalars
	all.Lock()
	defer all.Unlock()
	if isText && all.written[text] != "" {
		return all.written[text]
	}
	entry, err := goyaml.Marshal(map[string]any{"k": value})
	written, is := strings.CutPrefix(string(entry), "k: ")
	if err != nil || !is {
		return ""
	}
	if isText {
		if all.written == nil || len(all.written) == 4096 {
			all.written = map[string]string{}
		}
		all.written[text] = written
	}
	return written
}

// fits tells whether the library certainly does not break a text, which it does at spaces beyond the width of a page.
func (w *yamlWriter) fits(text string) bool {
	return !strings.Contains(text, " ") || len(w.text)-bytes.LastIndexByte(w.text, '\n')+len(text) <= 80
}

// keywords are the plain scalars that begin with a letter and are no texts.
var keywords = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

// isPlain says whether the library certainly writes a text without quotes. False means that it may.
func isPlain(text string) bool {
	if text == "" || !isLetter(text[0]) && text[0] != '/' && text[0] != '_' || len(text) <= 5 && slices.Contains(keywords, strings.ToLower(text)) {
		return false
	}
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case isLetter(c), isDigit(c), strings.IndexByte("_-./@+=", c) >= 0:
		case (c == ':' || c == ' ') && i+1 < len(text) && text[i+1] != ' ' && text[i+1] != '#':
		default:
			return false
		}
	}
	return true
}

// compareKeys is the library's order of plain keys: letters after all other characters. Where numbers decide it is not known.
func compareKeys(a, b string) (order int, isKnown bool) {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == b[i]:
			continue
		case isLetter(a[i]) == isLetter(b[i]):
			return int(a[i]) - int(b[i]), !isDigit(a[i]) && !isDigit(b[i])
		case isLetter(a[i]):
			return 1, true
		}
		return -1, true
	}
	return len(a) - len(b), true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// templateYAML is Helm's toYaml.
func templateYAML(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	if text, err = toYAML(text); err != nil {
		return ""
	}
	return strings.TrimSuffix(string(text), "\n")
}
