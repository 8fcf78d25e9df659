// Package credential finds what looks like a credential in plain configuration: private keys, tokens of known services,
// URLs with a password, and texts whose key says that they are a password. It is pure.
//
// What tokens look like is gitleaks' knowledge: rules.go has those of its rules that look at the token alone. Its rules
// that look at names and at randomness find too much in configuration; names are judged in key.go instead.
package credential

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Finding is a value that looks like a credential. It does not have the value.
type Finding struct {
	// Path is that of the value: keys, with a dot before each but the first, and indices of lists in brackets, such as
	// database.users[0].password.
	Path string
	// Line is that of a text of several lines, from 1; else 0.
	Line int
	// Rule is what found it: an identifier of gitleaks' rules, or "private-key", "password-in-url" or "password".
	Rule string
}

// Find returns what looks like a credential in a value that is made of map[string]any, []any and texts. All else, such as
// numbers and what is not known yet, is passed over. Each text has one finding at most; they are sorted by path.
func Find(value any) []Finding {
	var f finder
	f.value("", "", value)
	return f.found
}

type finder struct{ found []Finding }

// value looks into the value of a key. The elements of a list have the key of the list.
func (f *finder) value(path, key string, value any) {
	switch value := value.(type) {
	case string:
		if rule, line := inText(key, value); rule != "" {
			f.found = append(f.found, Finding{path, line, rule})
		}
	case []any:
		for i, element := range value {
			f.value(path+"["+strconv.Itoa(i)+"]", key, element)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			below := key
			if path != "" {
				below = path + "." + key
			}
			f.value(below, key, value[key])
		}
	}
}

// inText returns the rule that finds a credential in the value of a key, and the line; "" for none.
func inText(key, text string) (rule string, line int) {
	if isPassword(key, text) {
		return "password", 0
	}
	rule, at := findToken(text)
	if rule == "" {
		rule, at = findPassword(text)
	}
	if rule == "" || !strings.Contains(strings.TrimRight(text, "\r\n"), "\n") {
		return rule, 0
	}
	return rule, 1 + strings.Count(text[:at], "\n")
}
