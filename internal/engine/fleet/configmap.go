package fleet

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v2"
)

// ReadConfigMapValue reads one value of a ConfigMap as Kalypso does: text that is a YAML map or list becomes one, and
// everything else is returned as the exact text. Text in single quotes is always text; the quotes are removed, with the
// white space around them.
//
// Text of several YAML documents is returned as text; Kalypso drops all documents but the first. So is YAML that has
// no JSON form (infinity, keys that are maps). The error is a [*BoundError]: a value that is larger than a ConfigMap
// can be, or YAML that is too large to be read.
func ReadConfigMapValue(text string) (any, error) {
	if len(text) > maxExpanded {
		return nil, tooLarge("is larger than %s, which is the most that a ConfigMap can hold", sizeText(maxExpanded))
	}
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "'") && strings.HasSuffix(trimmed, "'") {
		return strings.Trim(trimmed, "'"), nil
	}
	if !mayBeCollection(text) || hasSeveralDocuments(text) {
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
		return text, nil //nolint:nilerr // a value that is not YAML is a text
	}
	switch parsed.(type) {
	case map[string]any, []any:
		if value, err := Canonical(parsed); err == nil {
			return value, nil
		}
	}
	return text, nil
}

// checkConfigMapValue returns the error of [ReadConfigMapValue], but reads only the values that may have one.
func checkConfigMapValue(text string) error {
	if len(text) > maxExpanded || mayBeCollection(text) && (valuesAtMost(text) > maxValues || mayHaveAliases(text)) {
		_, err := ReadConfigMapValue(text)
		return err
	}
	return nil
}

// largeJSON reads a value that is JSON and too large to be read as YAML: JSON takes less memory. The result is the same
// as that of reading it as YAML.
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

// jsonEscape are the escapes of JSON that YAML does not have.
var jsonEscape = regexp.MustCompile(`\\/|\\u[dD][89a-fA-F]`)

// asYAML replaces numbers by what the YAML parser would return for them. It changes the value.
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

// mayBeCollection says whether text has any of the characters without which it cannot be a YAML map or list. Most
// values do not, and the YAML parser takes a thousand times longer to find out.
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

// hasSeveralDocuments says whether anything follows the first YAML document. A line that starts with
// a document marker is one even inside of a block scalar.
func hasSeveralDocuments(text string) bool {
	content, ended := false, false
	for line := range strings.Lines(strings.ReplaceAll(text, "\r", "\n")) {
		line = strings.TrimRight(line, " \t\n")
		switch {
		case line == "" || strings.HasPrefix(line, "%") || strings.HasPrefix(strings.TrimLeft(line, " \t"), "#"):
		case line == "...":
			ended = content
		case line == "---" || strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "---\t"):
			if content {
				return true
			}
			content = line != "---"
		case ended:
			return true
		default:
			content = true
		}
	}
	return false
}
