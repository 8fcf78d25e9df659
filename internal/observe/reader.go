package observe

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/verdict"
)

// evidenceReader reads JSON whose values are objects and text, as in evidence. It takes half the processor's time of
// encoding/json with structs, and so does the writer; and it finds members that appear twice.
type evidenceReader struct {
	text []byte
	at   int

	texts map[string]string    // each text once: most come many times
	times map[string]time.Time // by what was read
}

func newEvidenceReader(text []byte) *evidenceReader {
	return &evidenceReader{text: text, texts: map[string]string{}, times: map[string]time.Time{}}
}

// space skips what is between two values, and returns where the next one begins.
func (r *evidenceReader) space() int {
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return r.at
		}
	}
	return r.at
}

// next takes one byte that has to come.
func (r *evidenceReader) next(want byte, what string) error {
	if !r.take(want) {
		return fmt.Errorf("%s is missing at byte %d", what, r.at)
	}
	return nil
}

// take takes one byte if it comes.
func (r *evidenceReader) take(want byte) bool {
	if r.space() == len(r.text) || r.text[r.at] != want {
		return false
	}
	r.at++
	return true
}

// object reads an object, with a call for each name that reads its value.
func (r *evidenceReader) object(member func(name string) error) error {
	if err := r.next('{', "an object"); err != nil || r.take('}') {
		return err
	}
	for {
		name, err := r.string()
		if err != nil {
			return err
		}
		if err := r.next(':', "a colon"); err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
		if !r.take(',') {
			return r.next('}', "the end of an object")
		}
	}
}

// string reads a text.
func (r *evidenceReader) string() (string, error) {
	if err := r.next('"', "a text in quotes"); err != nil {
		return "", err
	}
	from, plain := r.at, true
	for ; ; r.at++ {
		switch {
		case r.at >= len(r.text):
			return "", fmt.Errorf("the text at byte %d has no end", from-1)
		case r.at-from > maxText:
			return "", fmt.Errorf("the text at byte %d is longer than %d bytes", from-1, maxText)
		}
		switch c := r.text[r.at]; {
		case c == '"':
			raw := r.text[from:r.at]
			r.at++
			if plain {
				return r.once(raw), nil
			}
			return unquote(r.text[from-1:r.at], from-1)
		case c == '\\':
			plain = false
			r.at++
		case c < ' ' || c >= utf8.RuneSelf:
			plain = false
		}
	}
}

func (r *evidenceReader) once(raw []byte) string {
	if text, ok := r.texts[string(raw)]; ok {
		return text
	}
	text := string(raw)
	r.texts[text] = text
	return text
}

func unquote(quoted []byte, at int) (text string, err error) {
	if !utf8.Valid(quoted) || json.Unmarshal(quoted, &text) != nil {
		return "", fmt.Errorf("the text at byte %d is not valid", at)
	}
	return text, nil
}

// time reads a time.
func (r *evidenceReader) time() (time.Time, error) {
	text, err := r.string()
	if err != nil {
		return time.Time{}, err
	}
	if at, ok := r.times[text]; ok {
		return at, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.IsZero() {
		return time.Time{}, fmt.Errorf("%q is not a time as in 2026-01-31T00:00:00Z (RFC 3339)", text)
	}
	at = at.UTC().Truncate(time.Second)
	r.times[text] = at
	return at, nil
}

// sinceTime reads a time, or "" where none is known.
func (r *evidenceReader) sinceTime() (time.Time, error) {
	before := r.space()
	if text, err := r.string(); err != nil || text == "" {
		return time.Time{}, err
	}
	r.at = before
	return r.time()
}

// commit reads the id of a commit, or "" for none.
func (r *evidenceReader) commit() (string, error) { return r.id("a commit") }

func (r *evidenceReader) id(of string) (string, error) {
	text, err := r.string()
	if err == nil && text != "" && !isID(text) {
		err = fmt.Errorf("%q is not the id of %s", text, of)
	}
	return text, err
}

// subject reads what a verdict was said of.
func (r *evidenceReader) subject() (isRoot bool, err error) {
	text, err := r.string()
	if err == nil && text != ofAssignment && text != ofTheRoot {
		err = fmt.Errorf("%q is neither assignment nor root", text)
	}
	return text == ofTheRoot, err
}

func (r *evidenceReader) verdict() (verdict.Verdict, error) {
	text, err := r.string()
	if err == nil && !slices.Contains(verdict.All, verdict.Verdict(text)) {
		err = fmt.Errorf("the verdict %q is none of failed, behind, progressing, unknown, ready", text)
	}
	return verdict.Verdict(text), err
}
