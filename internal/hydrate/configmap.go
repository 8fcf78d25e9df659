package hydrate

import (
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// ReadConfigMapValue reads one value of a ConfigMap as Kalypso does: text that is a YAML map or list
// becomes one, everything else stays the exact text. Single quotes around the text keep it text, and
// are trimmed together with the white space around them.
//
// Unlike Kalypso, which silently drops all documents but the first, text of several YAML documents
// stays text; so does YAML that JSON cannot say (infinity, keys that are maps).
func ReadConfigMapValue(text string) any {
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "'") && strings.HasSuffix(trimmed, "'") {
		return strings.Trim(trimmed, "'")
	}
	if !mayBeCollection(text) || hasSeveralDocuments(text) {
		return text
	}
	document, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return text
	}
	parsed, err := fleet.ParseJSON(string(document))
	if err != nil {
		return text
	}
	switch parsed.(type) {
	case map[string]any, []any:
		if value, err := normalized(parsed); err == nil {
			return value
		}
	}
	return text
}

// mayBeCollection says whether text holds any of the characters that begin a YAML map or list. Most
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
