package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Bounds of what is read, so that hostile input can exhaust neither the stack nor a processor.
const (
	maxDepth  = 1000 // levels of nesting
	maxDigits = 1000 // characters of a number
)

// ParseJSON reads one JSON value. Text after it and keys that appear twice are errors. It accepts what encoding/json
// accepts, and needs a fraction of the memory.
func ParseJSON(text string) (any, error) {
	r := &jsonReader{text: text}
	value, err := r.value(0)
	if errors.Is(err, errSyntax) {
		return nil, r.syntaxError()
	}
	if err != nil {
		return nil, err
	}
	if r.space(); r.at < len(text) {
		return nil, fmt.Errorf("text follows the JSON value at offset %d", r.at)
	}
	return value, nil
}

// jsonReader reads values from a position on.
type jsonReader struct {
	text string
	at   int
}

// errSyntax says that a text is not JSON; encoding/json then says where and why.
var errSyntax = errors.New("not JSON")

// syntaxError is a [json.SyntaxError], or [io.ErrUnexpectedEOF] where the text ends too early.
func (r *jsonReader) syntaxError() error {
	var raw json.RawMessage
	err := json.Unmarshal([]byte(r.text), &raw)
	var syntax *json.SyntaxError
	switch {
	case strings.Trim(r.text, " \t\r\n") == "":
		return io.EOF
	case err == nil:
		return fmt.Errorf("is not JSON from offset %d on", r.at)
	case errors.As(err, &syntax) && syntax.Offset == int64(len(r.text)) && endsEarly(r.text, err.Error()):
		return io.ErrUnexpectedEOF
	}
	return err
}

// endsEarly says whether a text is not JSON because it ends too early, and not because its last character is wrong:
// encoding/json reads a space after every text.
func endsEarly(text, message string) bool {
	return strings.HasPrefix(message, "unexpected end") ||
		strings.HasPrefix(message, "invalid character ' '") && !strings.HasSuffix(text, " ")
}

func (r *jsonReader) space() {
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case ' ', '\t', '\r', '\n':
			r.at++
		default:
			return
		}
	}
}

// take skips white space and, where it follows, a character.
func (r *jsonReader) take(c byte) bool {
	r.space()
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

func (r *jsonReader) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	if r.space(); r.at == len(r.text) {
		return nil, errSyntax
	}
	switch c := r.text[r.at]; c {
	case '{':
		r.at++
		return r.object(depth)
	case '[':
		r.at++
		return r.list(depth)
	case '"':
		return r.string()
	case 't':
		return r.literal("true", true)
	case 'f':
		return r.literal("false", false)
	case 'n':
		return r.literal("null", nil)
	default:
		return r.number()
	}
}

func (r *jsonReader) literal(word string, value any) (any, error) {
	if !strings.HasPrefix(r.text[r.at:], word) {
		return nil, errSyntax
	}
	r.at += len(word)
	return value, nil
}

func (r *jsonReader) list(depth int) (any, error) {
	list := []any{}
	if r.take(']') {
		return list, nil
	}
	for {
		element, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, element)
		if r.take(']') {
			return list, nil
		}
		if !r.take(',') {
			return nil, errSyntax
		}
	}
}

func (r *jsonReader) object(depth int) (any, error) {
	object := map[string]any{}
	if r.take('}') {
		return object, nil
	}
	for {
		if r.space(); r.at == len(r.text) || r.text[r.at] != '"' {
			return nil, errSyntax
		}
		key, err := r.string()
		if err != nil {
			return nil, err
		}
		if _, twice := object[key]; twice {
			return nil, fmt.Errorf("key %q appears twice, the second time at offset %d", key, r.at)
		}
		if !r.take(':') {
			return nil, errSyntax
		}
		if object[key], err = r.value(depth + 1); err != nil {
			return nil, err
		}
		if r.take('}') {
			return object, nil
		}
		if !r.take(',') {
			return nil, errSyntax
		}
	}
}

// string reads a string from its quotation mark on. Most strings have no escapes and are a part of the text.
func (r *jsonReader) string() (string, error) {
	start := r.at
	plain := true
	for r.at++; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c == '"':
			r.at++
			if inner := r.text[start+1 : r.at-1]; plain || !strings.Contains(inner, "\\") && utf8.ValidString(inner) {
				return inner, nil
			}
			var text string
			if err := json.Unmarshal([]byte(r.text[start:r.at]), &text); err != nil {
				return "", errSyntax
			}
			return text, nil
		case c < ' ':
			return "", errSyntax
		case c == '\\':
			plain = false
			r.at++
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	return "", errSyntax
}

func (r *jsonReader) number() (any, error) {
	start := r.at
	several := func() bool {
		from := r.at
		for r.at < len(r.text) && '0' <= r.text[r.at] && r.text[r.at] <= '9' {
			r.at++
		}
		return r.at > from
	}
	next := func(chars string) bool {
		if r.at < len(r.text) && strings.IndexByte(chars, r.text[r.at]) >= 0 {
			r.at++
			return true
		}
		return false
	}
	next("-")
	if !next("0") && !several() {
		return nil, errSyntax
	}
	if next(".") && !several() {
		return nil, errSyntax
	}
	if next("eE") {
		next("+-")
		if !several() {
			return nil, errSyntax
		}
	}
	if r.at-start > maxDigits {
		return nil, tooManyDigits(r.at - start)
	}
	if r.at == start+1 {
		return digits[r.text[start]-'0'], nil
	}
	return json.Number(r.text[start:r.at]), nil
}

// digits are the most common numbers, allocated once.
var digits = [10]any{
	json.Number("0"), json.Number("1"), json.Number("2"), json.Number("3"), json.Number("4"),
	json.Number("5"), json.Number("6"), json.Number("7"), json.Number("8"), json.Number("9"),
}

func tooManyDigits(length int) error {
	return fmt.Errorf("a number of %d characters is longer than the %d that a number may have", length, maxDigits)
}
