package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds against texts from repositories and servers.
const (
	maxDepth  = 1000
	maxDigits = 1000 // of a number
)

// ParseJSON parses one JSON value like encoding/json, in a fraction of the memory. Trailing text and duplicate keys are
// errors.
func ParseJSON(text string) (any, error) {
	tokens := newTokens(text)
	value, err := nextValue(tokens, 0)
	if err == nil {
		end := tokens.InputOffset()
		if _, err = tokens.ReadToken(); errors.Is(err, io.EOF) {
			return value, nil
		}
		err = fmt.Errorf("text follows the JSON value at offset %d", end)
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		err = &SyntaxError{syntax}
	}
	return nil, err
}

// SyntaxError is an error of [ParseJSON].
type SyntaxError struct{ *jsontext.SyntacticError }

func (e *SyntaxError) Error() string {
	return strings.TrimPrefix(e.SyntacticError.Error(), "jsontext: ")
}

func newTokens(text string) *jsontext.Decoder {
	return jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func nextValue(tokens *jsontext.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	token, err := tokens.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '"':
		return token.String(), nil
	case '0':
		number := token.String()
		return json.Number(number), checkDigits(number)
	case 't', 'f':
		return token.Bool(), nil
	case '[':
		list := []any{}
		for tokens.PeekKind() != ']' {
			element, err := nextValue(tokens, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, element)
		}
		_, err := tokens.ReadToken()
		return list, err
	case '{':
		object := map[string]any{}
		for tokens.PeekKind() != '}' {
			token, err := tokens.ReadToken()
			if err != nil {
				return nil, err
			}
			key := token.String()
			if _, twice := object[key]; twice {
				return nil, fmt.Errorf("key %q appears twice, the second time at offset %d", key, tokens.InputOffset())
			}
			if object[key], err = nextValue(tokens, depth+1); err != nil {
				return nil, err
			}
		}
		_, err := tokens.ReadToken()
		return object, err
	}
	return nil, nil
}

func checkDigits(number string) error {
	if len(number) > maxDigits {
		return fmt.Errorf("a number of %d characters is longer than the %d that a number may have", len(number), maxDigits)
	}
	return nil
}
