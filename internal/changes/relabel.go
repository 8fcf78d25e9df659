package changes

import (
	"bytes"
	"hash/maphash"
	"strconv"
	"strings"
)

// relabeler replaces the simple values of two texts by numbers, equal values by the same number: "name: hello"
// becomes "name: <1>". The same keys differ between the two new texts. But the files of thousands of folders, each
// with its own namespace, become the same few texts, so that each of these is parsed only once.
type relabeler struct {
	seed    maphash.Seed
	numbers map[uint64]int // by hash
	values  []value        // by number
	buffer  []byte
}

// value is what a number stands for: text, in quotes or not, or another scalar.
type value struct {
	content []byte
	isText  bool
}

// mark is before every number. Texts that have it themselves are not relabelled.
const mark = "\ue000"

// pair returns both texts relabelled, valid until the next call, or the texts themselves where one of them has the
// mark.
func (r *relabeler) pair(before, after []byte) (relabelledBefore, relabelledAfter []byte) {
	if bytes.Contains(before, []byte(mark)) || bytes.Contains(after, []byte(mark)) {
		return before, after
	}
	if r.numbers == nil {
		r.seed, r.numbers = maphash.MakeSeed(), map[uint64]int{}
	}
	clear(r.numbers)
	r.values = r.values[:0]
	r.buffer = r.buffer[:0]
	r.text(before)
	border := len(r.buffer)
	r.text(after)
	return r.buffer[:border:border], r.buffer[border:]
}

func (r *relabeler) text(text []byte) {
	for len(text) > 0 {
		line := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line = text[:end+1]
		}
		text = text[len(line):]
		r.line(line)
	}
}

func (r *relabeler) line(line []byte) {
	end := len(line)
	for end > 0 && line[end-1] == '\n' {
		end--
	}
	start := simpleValue(line[:end])
	if start < 0 {
		r.buffer = append(r.buffer, line...)
		return
	}
	content := line[start:end]
	quote, comma := content[0] == '"', content[len(content)-1] == ','
	if comma {
		content = content[:len(content)-1]
	}
	one := value{content, false}
	if quote {
		one = value{content[1 : len(content)-1], true}
	} else if isSurelyText(content) {
		one.isText = true
	}
	r.buffer = append(r.buffer, line[:start]...)
	if quote {
		r.buffer = append(r.buffer, '"')
	}
	r.buffer = append(r.buffer, mark...)
	r.buffer = strconv.AppendInt(r.buffer, int64(r.number(one)), 10)
	if quote {
		r.buffer = append(r.buffer, '"')
	}
	if comma {
		r.buffer = append(r.buffer, ',')
	}
	r.buffer = append(r.buffer, line[end:]...)
}

// number returns the number of a value, the same for equal ones.
func (r *relabeler) number(of value) int {
	for hash := maphash.Bytes(r.seed, of.content); ; hash++ {
		number, seen := r.numbers[hash]
		if !seen {
			number = len(r.values)
			r.numbers[hash] = number
			r.values = append(r.values, of)
			return number
		}
		if known := r.values[number]; known.isText == of.isText && bytes.Equal(known.content, of.content) {
			return number
		}
	}
}

// simpleValue returns where the value begins in a line "key: value", "- value" or `"key": "value",` of YAML or
// JSON, if the value can be replaced without a change of the structure; else -1. That also holds where the line is
// part of a block scalar or of a quoted text of several lines: the replaced characters end neither.
func simpleValue(line []byte) int {
	i, item := 0, false
	for i < len(line) && line[i] == ' ' {
		i++
	}
	for i+1 < len(line) && line[i] == '-' && line[i+1] == ' ' {
		i, item = i+2, true
		for i < len(line) && line[i] == ' ' {
			i++
		}
	}
	key, quotedKey := i, false
	if i < len(line) && line[i] == '"' {
		quotedKey = true
		i++
	}
	start := i
	for i < len(line) && isKeyByte(line[i]) {
		i++
	}
	name := line[start:i]
	if quotedKey && i < len(line) && line[i] == '"' {
		i++
	} else if quotedKey {
		name = nil
	}
	switch {
	case len(name) > 0 && name[0] != '-' && i+2 < len(line) && line[i] == ':' && line[i+1] == ' ':
		if string(name) == "kind" { // which is shown
			return -1
		}
		i += 2
	case item:
		i = key
	default:
		return -1
	}
	if isQuotedValue(line[i:]) || !quotedKey && isPlainValue(line[i:]) {
		return i
	}
	return -1
}

func isKeyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' || c == '/'
}

func isPlainValue(value []byte) bool {
	if len(value) == 0 || !isKeyByte(value[0]) || value[0] == '-' || value[0] == '.' {
		return false
	}
	for _, c := range value {
		if !isKeyByte(c) && c != ':' && c != '+' && c != '@' && c != '=' {
			return false
		}
	}
	return value[len(value)-1] != ':'
}

// isSurelyText says whether a plain value is text in every version of YAML.
func isSurelyText(value []byte) bool {
	if first := value[0] | 0x20; first < 'a' || first > 'z' {
		return false
	}
	if len(value) <= len("false") {
		switch strings.ToLower(string(value)) {
		case "true", "false", "yes", "no", "on", "off", "y", "n", "null":
			return false
		}
	}
	return true
}

// isQuotedValue says whether a value is a text in double quotes, with or without a comma after it.
func isQuotedValue(value []byte) bool {
	if len(value) > 0 && value[len(value)-1] == ',' {
		value = value[:len(value)-1]
	}
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return false
	}
	for _, c := range value[1 : len(value)-1] {
		if c == '"' || c == '\\' || c == '\'' || c < ' ' {
			return false
		}
	}
	return true
}
