package expression

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// Failure explains an evaluation error with its position. Interpreter messages contain values, which may be secrets,
// so it shows only the kind, and a key only if the expression contains it.
func Failure(compiled *cel.Ast, source string, err error) string {
	where := ""
	var failed *types.Err
	if errors.As(err, &failed) && failed.NodeID() != 0 {
		position := compiled.NativeRep().SourceInfo().GetStartLocation(failed.NodeID())
		if position.Line() > 0 {
			where = fmt.Sprintf(" at line %d, column %d", position.Line(), position.Column()+1)
		}
	}
	return fmt.Sprintf("cannot be evaluated%s: %s", where, kindOf(source, err.Error()))
}

var failures = []struct{ start, said string }{
	{"too large: ", "its result would be too large"},
	{"lists.range: ", "the result is too large, or negative"},
	{"no such key", "there is no such key; test with has() or `in`, or use `[?…].orValue(…)`"},
	{"no such field", "there is no such field"},
	{"no such overload", "a function or operator does not take values of these types"},
	{"index out of bounds", "an index is out of bounds"},
	{"index '", "an index is out of bounds"},
	{"division by zero", "division by zero"},
	{"modulus by zero", "division by zero"},
	{"type conversion error", "a value cannot be converted"},
	{"unsupported index", "a value cannot be an index"},
	{"optional.none() dereference", "an optional value that is absent is used"},
}

func kindOf(source, message string) string {
	if key, ok := strings.CutPrefix(message, "no such key: "); ok && hasKey(source, key) {
		return fmt.Sprintf("there is no key %q; test with has() or `in`, or use `[?…].orValue(…)`", key)
	}
	for _, kind := range failures {
		if strings.HasPrefix(message, kind.start) {
			return kind.said
		}
	}
	if strings.Contains(message, "overflow") || strings.Contains(message, "out of range") {
		return "a number or an index is out of range"
	}
	return "a function does not take this value"
}

func hasKey(source, key string) bool {
	return key != "" && (strings.Contains(source, "."+key) || strings.Contains(source, "'"+key+"'") || strings.Contains(source, `"`+key+`"`))
}
