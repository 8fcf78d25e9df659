package gitops

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// The append functions write JSON with indented members, for readable diffs. encoding/json would take as long for the records
// of many hosts as the rest of an apply. Their line separates members: a line break with indentation, or inline.
const inline = " "

func appendHead(b []byte, format int, environment, holder string) []byte {
	b = strconv.AppendInt(appendName(append(b, '{'), "\n  ", "format"), int64(format), 10)
	b = appendOptional(b, "\n  ", "environment", environment)
	return appendOptional(b, "\n  ", "holder", holder)
}

// appendName begins a member.
func appendName(b []byte, line, name string) []byte {
	isFirst := b[len(b)-1] == '{'
	if !isFirst {
		b = append(b, ',')
	}
	if !isFirst || line != inline {
		b = append(b, line...)
	}
	return append(appendText(b, name), ": "...)
}

func appendMember(b []byte, line, name, value string) []byte {
	return appendText(appendName(b, line, name), value)
}

func appendOptional(b []byte, line, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendMember(b, line, name, value)
}

// appendList appends a member with a line for each value, if there are any.
func appendList[T any](b []byte, line, name string, values []T, appendValue func([]byte, T) []byte) []byte {
	if len(values) == 0 {
		return b
	}
	b = append(appendName(b, line, name), '[')
	for i, value := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendValue(append(append(b, line...), "  "...), value)
	}
	return append(append(b, line...), ']')
}

func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			return appendEscaped(b, text)
		}
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}

func appendEscaped(b []byte, text string) []byte {
	var quoted bytes.Buffer
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // strings always encode
	return append(b, bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))...)
}

// fields are members that this version does not know.
type fields map[string]json.RawMessage

func (f fields) encode(b []byte, line string) []byte {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		var value bytes.Buffer // indenting would grow with the square of the depth
		_ = json.Compact(&value, f[name])
		b = append(appendName(b, line, name), value.Bytes()...)
	}
	return b
}

// drop removes known members. encoding/json ignores the case of their names.
func (f fields) drop(known ...string) {
	maps.DeleteFunc(f, func(name string, _ json.RawMessage) bool {
		return slices.ContainsFunc(known, func(member string) bool { return strings.EqualFold(member, name) })
	})
}

func memberNames(of reflect.Type) (names []string) {
	for _, field := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func checkFormat(format int) error {
	if format < 1 {
		return errors.New("it has no format, or one below 1")
	}
	return nil
}
