package fleet

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// ReadConfigMapValue reads one value of a ConfigMap as Kalypso does: a YAML map or list is decoded, all else stays text.
// Single quotes, and white space around them, are removed and keep it text.
//
// Several YAML documents stay text (Kalypso drops all but the first). The only error is a [*BoundError].
func ReadConfigMapValue(text string) (any, error) {
	if len(text) > maxExpanded {
		return nil, newBoundError("is larger than %s, which is the most that a ConfigMap can hold", sizeText(maxExpanded))
	}
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "'") && strings.HasSuffix(trimmed, "'") {
		return strings.Trim(trimmed, "'"), nil
	}
	if !mayBeCollection(text) || len(SplitYAML(text)) > 1 {
		return text, nil
	}
	parsed, err := ParseLooseYAML(text)
	if _, isBound := errors.AsType[*BoundError](err); isBound {
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
