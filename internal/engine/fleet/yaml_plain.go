package fleet

import (
	"encoding/json"
	"strings"
)

// ReadYAMLDocuments parses the documents of a text like [ParseYAML], up to the first error. Plain YAML takes a quarter
// of the time.
func ReadYAMLDocuments(text string, mayPass func(document string) bool) ([]any, error) {
	var values []any
	for _, part := range SplitYAML(text) {
		if mayPass(part.Text) {
			continue
		}
		value, ok := readPlainYAML(part.Text)
		if !ok {
			var err error
			if value, err = ParseYAML(part.Text); err != nil {
				return values, err
			}
		}
		values = append(values, value)
	}
	return values, nil
}

// ReadPlainYAML parses a text if all its documents are plain YAML, which every parser reads alike.
func ReadPlainYAML(text string) (values []any, ok bool) {
	if !isPrintable(text) || hasLine(text, "%") || hasLine(text, "...") { // SplitYAML skips these
		return nil, false
	}
	for _, part := range SplitYAML(text) {
		value, isPlain := readPlainYAML(part.Text)
		if !isPlain {
			return nil, false
		}
		values = append(values, value)
	}
	return values, true
}

func isPrintable(text string) bool {
	for i := range len(text) {
		if c := text[i]; c != '\n' && (c < ' ' || c > '~') {
			return false
		}
	}
	return true
}

func hasLine(text, beginning string) bool {
	return strings.HasPrefix(text, beginning) || strings.Contains(text, "\n"+beginning)
}

// maxPlain, in bytes, needs no check of the bounds.
const maxPlain = maxValues / 2

// readPlainYAML parses block maps and lists, simple quoted texts, literal blocks, and unambiguous words and numbers.
func readPlainYAML(text string) (value any, ok bool) {
	if len(text) > maxPlain || !isPrintable(text) {
		return nil, false
	}
	r := plainReader{rest: text}
	r.nextLine()
	if r.done || r.indent != 0 {
		return nil, false
	}
	value = r.readBlock(0)
	return value, !r.unsupported && r.done
}

// plainReader stands at a line that is neither empty nor a comment.
type plainReader struct {
	rest        string
	indent      int
	line        string
	done        bool
	unsupported bool
	depth       int
}

const maxPlainDepth = 40

func (r *plainReader) nextLine() {
	for r.rest != "" {
		r.line, _ = r.cutLine()
		trimmed := strings.TrimLeft(r.line, " ")
		if trimmed == "" || trimmed[0] == '#' {
			continue
		}
		r.indent, r.line = len(r.line)-len(trimmed), strings.TrimRight(trimmed, " ")
		if r.indent == 0 && (strings.HasPrefix(r.line, "---") || strings.HasPrefix(r.line, "...") || r.line[0] == '%') {
			r.unsupported = true
		}
		return
	}
	r.done = true
}

func (r *plainReader) cutLine() (line string, isEnded bool) {
	line, r.rest, isEnded = strings.Cut(r.rest, "\n")
	return line, isEnded
}

func (r *plainReader) readBlock(indent int) any {
	if r.depth++; r.depth > maxPlainDepth {
		r.unsupported = true
		return nil
	}
	defer func() {
		r.depth--
		r.refuseDeeper(indent)
	}()
	if isItem(r.line) {
		return r.readList(indent)
	}
	return r.readObject(indent)
}

func (r *plainReader) refuseDeeper(indent int) {
	r.unsupported = r.unsupported || !r.done && r.indent > indent
}

func isItem(line string) bool { return line == "-" || strings.HasPrefix(line, "- ") }

func (r *plainReader) readList(indent int) any {
	list := []any{}
	for !r.unsupported && !r.done && r.indent == indent && isItem(r.line) {
		if r.line == "-" {
			list = append(list, r.readBelow(indent, false))
			continue
		}
		rest := r.line[2:]
		switch _, _, isMember := member(rest); {
		case rest[0] == ' ' || isItem(rest):
			r.unsupported = true
		case isMember:
			r.indent, r.line = indent+2, rest
			list = append(list, r.readBlock(indent+2))
		default:
			list = append(list, r.readScalar(rest, indent))
		}
	}
	return list
}

func (r *plainReader) readObject(indent int) any {
	object := map[string]any{}
	for !r.unsupported && !r.done && r.indent == indent {
		key, rest, ok := member(r.line)
		if _, twice := object[key]; !ok || twice {
			r.unsupported = true
			break
		}
		if rest == "" {
			object[key] = r.readBelow(indent, true)
		} else {
			object[key] = r.readScalar(rest, indent)
		}
	}
	return object
}

// readBelow allows lists in maps without an indent.
func (r *plainReader) readBelow(indent int, inMap bool) any {
	r.nextLine()
	if !r.done && (r.indent > indent || inMap && r.indent == indent && isItem(r.line)) {
		return r.readBlock(r.indent)
	}
	return nil
}

func (r *plainReader) readScalar(text string, indent int) any {
	if text == "|" || text == "|-" {
		return r.readLiteral(indent, text == "|")
	}
	value, ok := plainScalar(text)
	r.unsupported = r.unsupported || !ok
	r.nextLine()
	r.refuseDeeper(indent)
	return value
}

func (r *plainReader) readLiteral(indent int, ends bool) any {
	var text strings.Builder
	of, empty := -1, 0
	for r.rest != "" {
		before := r.rest
		line, isEnded := r.cutLine()
		trimmed := strings.TrimLeft(line, " ")
		if trimmed == "" {
			if line != "" || of < 0 {
				r.unsupported = true
			}
			empty++
			continue
		}
		if of < 0 {
			of = len(line) - len(trimmed)
		}
		if of <= indent || len(line)-len(trimmed) < of {
			r.rest = before
			break
		}
		for range empty {
			text.WriteByte('\n')
		}
		empty = 0
		r.unsupported = r.unsupported || !isEnded
		text.WriteString(line[of:])
		text.WriteByte('\n')
	}
	r.unsupported = r.unsupported || text.Len() == 0
	r.nextLine()
	r.refuseDeeper(indent)
	if !ends {
		return strings.TrimSuffix(text.String(), "\n")
	}
	return text.String()
}

// maxKey is below YAML's limit for keys without quotes, 1,024 bytes.
const maxKey = 1000

func member(line string) (key, rest string, ok bool) {
	at := 0
	for at < len(line) && line[at] != ':' {
		if c := line[at]; !isAlphanumeric(c) && c != '.' && c != '-' && c != '_' && c != '/' {
			return "", "", false
		}
		at++
	}
	if at == 0 || at > maxKey || at == len(line) || !isLetter(line[0]) || isOddWord(line[:at]) {
		return "", "", false
	}
	if at+1 == len(line) {
		return line[:at], "", true
	}
	if line[at+1] != ' ' {
		return "", "", false
	}
	rest = strings.TrimLeft(line[at+1:], " ")
	return line[:at], rest, rest[0] != '#'
}

func plainScalar(text string) (any, bool) {
	switch first := text[0]; {
	case first == '"' || first == '\'':
		inner := text[1:]
		if !strings.HasSuffix(inner, text[:1]) {
			return nil, false
		}
		inner = inner[:len(inner)-1]
		return inner, !strings.Contains(inner, text[:1]) && (first == '\'' || !strings.Contains(inner, `\`))
	case text == "{}":
		return map[string]any{}, true
	case text == "[]":
		return []any{}, true
	case text == "true":
		return true, true
	case text == "false":
		return false, true
	case first >= '1' && first <= '9' && len(text) <= 15:
		switch unit := strings.TrimLeft(text, "0123456789"); {
		case unit == "":
			return json.Number(text), true
		case len(unit) <= 2 && strings.Trim(unit, "GKMTghikms") == "": // 64Gi, 10m
			return text, true
		}
		return nil, false
	case text == "0":
		return json.Number("0"), true
	case !isLetter(first) && first != '/' || isOddWord(text),
		strings.Contains(text, ": "),
		strings.HasSuffix(text, ":"),
		strings.Contains(text, " #"):
		return nil, false
	}
	return text, true
}

// isOddWord reports that some parser does not read a word as text.
func isOddWord(word string) bool {
	if len(word) > len("false") {
		return false
	}
	switch strings.ToLower(word) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf":
		return true
	}
	return false
}

func isLetter(c byte) bool       { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isAlphanumeric(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' }
