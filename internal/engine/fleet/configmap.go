package fleet

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v2"
)

// ReadConfigMapValue reads one value of a ConfigMap as Kalypso does: a YAML map or list is decoded, all else stays text.
// Single quotes, and white space around them, are removed and keep it text.
//
// Several YAML documents stay text (Kalypso drops all but the first). The only error is a [*BoundError].
func ReadConfigMapValue(text string) (any, error) {
	if len(text) > maxExpanded {
		return nil, tooLarge("is larger than %s, which is the most that a ConfigMap can hold", sizeText(maxExpanded))
	}
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "'") && strings.HasSuffix(trimmed, "'") {
		return strings.Trim(trimmed, "'"), nil
	}
	if !mayBeCollection(text) || len(SplitYAML(text)) > 1 {
		return text, nil
	}
	parsed, err := ParseLooseYAML(text)
	var bound *BoundError
	if errors.As(err, &bound) {
		if parsed, isJSON := largeJSON(text); isJSON {
			return Canonical(parsed)
		}
		return nil, err
	}
	if err != nil {
		return text, nil //nolint:nilerr // not YAML
	}
	switch parsed.(type) {
	case map[string]any, []any:
		if value, err := Canonical(parsed); err == nil {
			return value, nil
		}
	}
	return text, nil
}

// checkConfigMapValue reads only values that can fail.
func checkConfigMapValue(text string) error {
	if len(text) > maxExpanded || mayBeCollection(text) && (valuesAtMost(text) > maxValues || mayHaveAliases(text)) {
		_, err := ReadConfigMapValue(text)
		return err
	}
	return nil
}

// largeJSON reads JSON beyond the bounds for YAML, since JSON takes less memory. The result equals YAML's.
func largeJSON(text string) (any, bool) {
	if at := strings.TrimLeft(text, " \t\r\n"); at == "" || at[0] != '{' && at[0] != '[' || jsonEscape.MatchString(text) {
		return nil, false
	}
	value, err := ParseJSON(text)
	if err != nil {
		return nil, false
	}
	return asYAML(value), true
}

var jsonEscape = regexp.MustCompile(`\\/|\\u[dD][89a-fA-F]`)

// asYAML modifies the value: numbers as from the YAML parser.
func asYAML(value any) any {
	switch value := value.(type) {
	case json.Number:
		if plainInteger(string(value)) {
			return value
		}
		var number any
		if err := yaml.Unmarshal([]byte(value), &number); err != nil {
			return string(value)
		}
		if read, err := jsonable(number, 0); err == nil {
			return read
		}
		return string(value)
	case []any:
		for i := range value {
			value[i] = asYAML(value[i])
		}
	case map[string]any:
		for key, member := range value {
			value[key] = asYAML(member)
		}
	}
	return value
}

// mayBeCollection is a thousand times faster than the parser.
func mayBeCollection(text string) bool {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '[', '{':
			return true
		case ':', '-', '?':
			if i+1 == len(text) || strings.IndexByte(" \t\r\n\x00", text[i+1]) >= 0 || text[i+1] >= utf8.RuneSelf {
				return true
			}
		}
	}
	return false
}
