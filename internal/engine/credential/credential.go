// Package credential finds likely credentials in plain configuration: private keys, tokens of known services, URLs
// with a password, and passwords by the name of their key. It uses only those rules of gitleaks that match the token
// itself, because its others report too much in configuration.
package credential

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Match locates a likely credential, without its value.
type Match struct {
	// Path joins keys, and indices or names of list elements: containers[till].env[PASSWORD].value.
	Path string
	// Line counts from 1 in a text of several lines, and is 0 in others.
	Line int
	// Rule is an identifier of gitleaks, "private-key", "password-in-url" or "password".
	Rule string
}

// Find returns the matches in a value of map[string]any, []any and texts, sorted by path, at most one for each text.
// It ignores other types and the texts in known. A name beside a value, as in an env entry, and the flag before an
// argument count as keys.
func Find(value any, known ...string) []Match {
	f := finder{known: known, mask: func(_, text string) string { return text }}
	f.value("", "", value)
	return f.found
}

// Masked copies a value, and replaces matching texts by the result of mask.
func Masked(value any, mask func(path, text string) string) any {
	f := finder{mask: mask}
	return f.value("", "", value)
}

// Texts returns the matching texts in a value.
func Texts(value any) (texts []string) {
	Masked(value, func(_, text string) string {
		texts = append(texts, text)
		return text
	})
	return texts
}

// MayHave reports whether [Find] may match in a YAML or JSON text. It is much faster than parsing.
func MayHave(text string) bool {
	start := 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && isOfKey(rune(text[i])) {
			continue
		}
		if start < i && (kindOf(text[start:i]) != plain || endsSpacedKey(text[:i], text[start:i])) {
			return true
		}
		start = i + 1
	}
	token, _ := findToken(text)
	return token != "" || hasPasswordInURL(text)
}

type finder struct {
	found []Match
	known []string
	mask  func(path, text string) string
}

// value searches the value of a key, and returns a copy. List elements inherit the key.
func (f *finder) value(path, key string, value any) any {
	switch value := value.(type) {
	case string:
		return f.text(path, key, value)
	case []any:
		return f.list(path, key, value)
	case map[string]any:
		return f.object(path, value)
	}
	return value
}

func (f *finder) text(path, key, text string) string {
	judged := text
	for _, known := range f.known {
		judged = strings.ReplaceAll(judged, known, "")
	}
	rule, line := inText(key, judged)
	if rule == "" {
		return text
	}
	f.found = append(f.found, Match{path, line, rule})
	return f.mask(path, text)
}

func (f *finder) list(path, key string, list []any) any {
	copied := make([]any, len(list))
	for i, element := range list {
		below := key
		if i > 0 {
			if flag := flagBefore(list[i-1], element); flag != "" {
				below = flag
			}
		}
		step := strconv.Itoa(i)
		if object, isObject := element.(map[string]any); isObject {
			if name, _ := object["name"].(string); isShown(name) {
				step = name
			}
		}
		copied[i] = f.value(path+"["+step+"]", below, element)
	}
	return copied
}

// flagBefore returns the flag before an argument, unless it is harmless.
func flagBefore(before, element any) string {
	flag, _ := before.(string)
	argument, _ := element.(string)
	if !strings.HasPrefix(flag, "-") || strings.HasPrefix(argument, "-") || kindOf(flag) == plain {
		return ""
	}
	return flag
}

// isShown reports whether a path may contain a name.
func isShown(name string) bool {
	const longest = 253
	if name == "" || len(name) > longest || strings.ContainsAny(name, "\r\n") {
		return false
	}
	rule, _ := inText("", name)
	return rule == ""
}

const hiddenKey = "(hidden)"

func (f *finder) object(path string, object map[string]any) any {
	copied := make(map[string]any, len(object))
	named, _ := object["name"].(string)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		shown, of := key, key
		if rule, _ := inText("", key); rule != "" {
			shown = hiddenKey
		}
		below := shown
		if path != "" {
			below = path + "." + shown
		}
		if key == "value" && named != "" {
			of = named
		}
		copiedKey := key
		if shown != key {
			copiedKey = f.text(below, "", key)
		}
		copied[copiedKey] = f.value(below, of, object[key])
	}
	return copied
}

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
