package secret

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

const (
	// window is the number of bytes of a value that an error must not repeat: a library may truncate values.
	window = 8
	// shortest is the minimum length of a whole word.
	shortest = 4
)

// Unrepeated masks every part of an error's text that repeats a text or a long number of the JSON values: as it is, truncated,
// quoted, escaped, in base64 or in hexadecimal. Parts that match keep, such as names of files, stay; keep may be nil.
func Unrepeated(text string, keep *regexp.Regexp, values ...any) string {
	r := repeated{text: text, windows: make(map[uint64]bool, len(text)), words: map[string]bool{}, starts: map[string]bool{}}
	for i := range len(text) - window + 1 {
		r.windows[binary.LittleEndian.Uint64([]byte(text[i:i+window]))] = false
	}
	for _, value := range values {
		r.value(value)
	}
	return r.masked(keep)
}

type repeated struct {
	text    string
	windows map[uint64]bool // of the text; true: also in a value
	words   map[string]bool // values shorter than a window
	starts  map[string]bool // beginnings of values, to recognize truncated ones
}

func (r *repeated) value(value any) {
	switch value := value.(type) {
	case string:
		r.add(value)
	case []any:
		for _, element := range value {
			r.value(element)
		}
	case map[string]any:
		for _, member := range value {
			r.value(member)
		}
	case map[string]string:
		for _, member := range value {
			r.add(member)
		}
	case nil, bool:
	default:
		if number := fmt.Sprint(value); len(number) > shortest {
			r.add(number)
		}
	}
}

func (r *repeated) add(value string) {
	value = strings.TrimSpace(value)
	if at, err := url.Parse(value); err == nil && at.User != nil {
		if password, has := at.User.Password(); has {
			r.form(password)
		}
	}
	for line := range strings.Lines(value) {
		r.form(strings.TrimSpace(line))
	}
	if len(value) < shortest || plainWords[strings.ToLower(value)] {
		return
	}
	r.form(value)
	quoted := strconv.Quote(value)
	inJSON, _ := json.Marshal(value) //nolint:errchkjson // a string always has a JSON form
	for _, form := range []string{
		quoted[1 : len(quoted)-1], string(inJSON[1 : len(inJSON)-1]), html.EscapeString(value), strings.ReplaceAll(value, "'", "''"),
		url.QueryEscape(value), url.PathEscape(value), strings.ToUpper(value), strings.ToLower(value), hex.EncodeToString([]byte(value)),
	} {
		r.form(form)
	}
	// Text before the value shifts its base64 form, and mixes with the characters at its ends.
	const block, moved = 3, 2
	for before := range block {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat(" ", before) + value))
		for _, form := range []string{encoded, strings.NewReplacer("+", "-", "/", "_").Replace(encoded)} {
			r.form(form[min(len(form), moved*before):max(min(len(form), moved*before), len(form)-1)])
		}
	}
}

// plainWords reveal nothing.
var plainWords = map[string]bool{"true": true, "false": true, "null": true, "none": true}

func (r *repeated) form(form string) {
	for n := shortest; n <= min(len(form), window); n++ {
		r.starts[form[:n]] = true
	}
	if len(form) < window {
		if len(form) >= shortest && !plainWords[strings.ToLower(form)] {
			r.words[form] = true
		}
		return
	}
	for i := range len(form) - window + 1 {
		key := binary.LittleEndian.Uint64([]byte(form[i : i+window]))
		if _, has := r.windows[key]; has {
			r.windows[key] = true
		}
	}
}

var wordPattern = regexp.MustCompile("[^\\s\"'`,;:=(){}\\[\\]<>|&]+")

func (r *repeated) masked(keep *regexp.Regexp) string {
	repeats := make([]bool, len(r.text))
	mark := func(from, to int, as bool) {
		for i := from; i < to; i++ {
			repeats[i] = as
		}
	}
	for i := range len(r.text) - window + 1 {
		if r.windows[binary.LittleEndian.Uint64([]byte(r.text[i:i+window]))] {
			mark(i, i+window, true)
		}
	}
	for _, at := range wordPattern.FindAllStringIndex(r.text, -1) {
		word := r.text[at[0]:at[1]]
		if r.words[word] || r.words[strings.TrimRight(word, ".")] {
			mark(at[0], at[1], true)
		}
	}
	for at := range r.text {
		if !strings.HasPrefix(r.text[at:], "...") {
			continue
		}
		for n := shortest; n <= min(at, window); n++ {
			if r.starts[r.text[at-n:at]] {
				mark(at-n, at, true)
			}
		}
	}
	if keep != nil {
		for _, at := range keep.FindAllStringIndex(r.text, -1) {
			mark(at[0], at[1], false)
		}
	}
	var b strings.Builder
	for i := range len(r.text) {
		switch {
		case !repeats[i]:
			b.WriteByte(r.text[i])
		case i == 0 || !repeats[i-1]:
			b.WriteString("***")
		}
	}
	return strings.ToValidUTF8(b.String(), "")
}
