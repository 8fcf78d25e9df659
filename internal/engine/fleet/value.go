package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
)

// A value is nil, bool, string, [json.Number], []any or map[string]any: JSON with exact numbers. Input may contain
// [Unknown].

// Unknown is a value that Terraform does not know yet.
type Unknown struct{}

// IsKnown reports whether a value contains no [Unknown].
func IsKnown(value any) bool {
	return !deep.Holds(value, func(part any) bool { return part == Unknown{} })
}

// CanonicalJSON has sorted keys, no white space, no needless escapes, and canonical numbers.
func CanonicalJSON(value any) (string, error) {
	canonical, err := Canonical(value)
	if err != nil {
		return "", err
	}
	return encode(canonical)
}

// Canonical returns a deep copy with canonical numbers. Equal values are deeply equal; unknown values are errors. It returns
// the alphabetically first of several errors.
func Canonical(value any) (any, error) {
	var wrong error
	canonical := deep.Mapped(value, func(part any) any {
		var err error
		switch number := part.(type) {
		case nil, bool, string:
		case json.Number:
			part, err = CanonicalNumber(number)
		case Unknown:
			err = errors.New("a value is not known yet")
		default:
			err = fmt.Errorf("a value of type %T has no JSON form", part)
		}
		if err != nil && (wrong == nil || err.Error() < wrong.Error()) { // objects have no order
			wrong = err
		}
		return part
	})
	if wrong != nil {
		return nil, wrong
	}
	return canonical, nil
}

const numberPrecision = 512

// Larger binary exponents are written as such, or refused: "1e999999999" must not take gigabytes.
const (
	maxPlainExponent = 2048
	maxExponent      = 32768
)

const outOfRange json.Number = "out of the range of numbers"

// CanonicalNumber returns the shortest decimal text, usually without exponent: "1.50" and "15e-1" are both "1.5".
func CanonicalNumber(number json.Number) (json.Number, error) {
	if plainInteger(string(number)) {
		return number, nil
	}
	if err := checkDigits(string(number)); err != nil {
		return "", err
	}
	parsed, _, err := big.ParseFloat(string(number), 10, numberPrecision, big.ToNearestEven)
	if !json.Valid([]byte(number)) { // "Inf" is one for the other parser
		return "", fmt.Errorf("%q is not a number", string(number))
	}
	canonical := outOfRange
	if err == nil {
		canonical = FormatNumber(parsed)
	}
	if canonical == outOfRange {
		return "", fmt.Errorf("%s is %s", number, outOfRange)
	}
	return canonical, nil
}

// FormatNumber is [CanonicalNumber] for a parsed number; out of range, the result is invalid.
func FormatNumber(number *big.Float) json.Number {
	exponent := number.MantExp(nil)
	switch size := max(exponent, -exponent); {
	case number.Sign() == 0:
		return "0"
	case number.IsInf() || size > maxExponent:
		return outOfRange
	case size > maxPlainExponent:
		return json.Number(number.Text('g', -1))
	}
	return json.Number(number.Text('f', -1))
}

func plainInteger(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || len(digits) > 18 || (digits[0] == '0' && len(text) > 1) {
		return false
	}
	return strings.Trim(digits, "0123456789") == ""
}

// Bounds against texts from repositories and servers.
const (
	maxDepth  = 1000
	maxDigits = 1000 // of a number
)

// ParseJSON parses one JSON value like encoding/json, in a fraction of the memory. Trailing text and duplicate keys are
// errors.
func ParseJSON(text string) (any, error) {
	tokens := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
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
