package hydrate

import (
	"encoding/json"
	"regexp"
)

// checkLeniently checks values that include strings from text-only sources, by pointer. A string that violates the schema
// but reads as a number or boolean is checked as one.
func (s *schema) checkLeniently(texts map[string]string, check func(readings map[string]any) ([]violation, []leafError)) []violation {
	found, leaves := check(nil)
	readings := map[string]any{}
	for _, leaf := range leaves {
		if text, isText := texts[leaf.pointer]; isText {
			if reading, ok := readText(text); ok {
				readings[leaf.pointer] = reading
			}
		}
	}
	if len(readings) == 0 {
		return found
	}
	for len(readings) > 0 {
		found, leaves = check(readings)
		before := len(readings)
		for _, leaf := range leaves {
			if leaf.keyword == "type" {
				delete(readings, leaf.pointer)
			}
		}
		if len(readings) == before {
			return found
		}
	}
	found, _ = check(nil)
	return found
}

const maxNumber = 1000

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// readText parses a JSON number or boolean: "0123", "+1" and "1_000" are neither.
func readText(text string) (any, bool) {
	switch text {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	if len(text) > maxNumber || !jsonNumber.MatchString(text) || isExtreme(json.Number(text)) {
		return nil, false
	}
	return json.Number(text), true
}
