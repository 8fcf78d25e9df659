package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

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
	var buffer bytes.Buffer
	if err := writeCanonical(&buffer, value); err != nil {
		return "", err
	}
	return buffer.String(), nil
}

func writeCanonical(buffer *bytes.Buffer, value any) error {
	switch value := value.(type) {
	case nil:
		buffer.WriteString("null")
	case bool:
		if value {
			buffer.WriteString("true")
		} else {
			buffer.WriteString("false")
		}
	case string:
		return writeString(buffer, value)
	case json.Number:
		number, err := CanonicalNumber(value)
		if err != nil {
			return err
		}
		buffer.WriteString(string(number))
	case []any:
		buffer.WriteByte('[')
		for i, element := range value {
			if i > 0 {
				buffer.WriteByte(',')
			}
			if err := writeCanonical(buffer, element); err != nil {
				return err
			}
		}
		buffer.WriteByte(']')
	case map[string]any:
		buffer.WriteByte('{')
		for i, key := range slices.Sorted(maps.Keys(value)) {
			if i > 0 {
				buffer.WriteByte(',')
			}
			if err := writeString(buffer, key); err != nil {
				return err
			}
			buffer.WriteByte(':')
			if err := writeCanonical(buffer, value[key]); err != nil {
				return err
			}
		}
		buffer.WriteByte('}')
	default:
		return fmt.Errorf("a value of type %T has no JSON form", value)
	}
	return nil
}

func writeString(buffer *bytes.Buffer, text string) error {
	if isPlainJSON(text) {
		buffer.WriteByte('"')
		buffer.WriteString(text)
		buffer.WriteByte('"')
		return nil
	}
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return err
	}
	buffer.Truncate(buffer.Len() - 1) // the encoder's newline
	return nil
}

func isPlainJSON(text string) bool {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			return false
		}
	}
	return true
}

// Canonical returns a deep copy with canonical numbers. Equal values are deeply equal; unknown values are errors.
func Canonical(value any) (any, error) {
	switch value := value.(type) {
	case nil, bool, string:
		return value, nil
	case json.Number:
		return CanonicalNumber(value)
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			var err error
			if list[i], err = Canonical(element); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, element := range value {
			var err error
			if object[key], err = Canonical(element); err != nil {
				return nil, err
			}
		}
		return object, nil
	case Unknown:
		return nil, errors.New("a value is not known yet")
	}
	return nil, fmt.Errorf("a value of type %T has no JSON form", value)
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
