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

// Find returns the findings in a value that is made of map[string]any, []any and texts, sorted by path. It passes over other
// types, such as numbers and unknown values. Each text has one finding at most. The value of an object with a name, as in the env
// of a container, is judged by that name, and an argument by the flag before it. Elements of lists have their names in paths:
// containers[till].env[PASSWORD].value. Find ignores the texts in known wherever they are.
func Find(value any, known ...string) []Finding {
	f := finder{known: known}
	f.value("", "", value)
	return f.found
}

// Masked returns a copy of a value in which mask replaces each text with a finding.
func Masked(value any, mask func(path, text string) string) any {
	f := finder{mask: mask}
	return f.value("", "", value)
}

// Texts returns the texts with findings in a value.
func Texts(value any) (texts []string) {
	Masked(value, func(_, text string) string {
		texts = append(texts, text)
		return text
	})
	return texts
}

// MayHave reports whether [Find] may find something in a value that text is the YAML or JSON of. It takes a fraction of the time
// that parsing takes.
func MayHave(text string) bool {
	start := 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && isOfKey(rune(text[i])) {
			continue
		}
		if start < i && kindOf(text[start:i]) != plain {
			return true
		}
		start = i + 1
	}
	rule, _ := inText("", text)
	return rule != ""
}

type finder struct {
	found []Finding
	known []string
	mask  func(path, text string) string // nil: values are not copied
}

// value looks into the value of a key, and returns its copy. The elements of a list have the key of the list.
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
	f.found = append(f.found, Finding{path, line, rule})
	if f.mask == nil {
		return text
	}
	return f.mask(path, text)
}

func (f *finder) list(path, key string, list []any) any {
	var copied []any
	if f.mask != nil {
		copied = make([]any, len(list))
	}
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
		element = f.value(path+"["+step+"]", below, element)
		if f.mask != nil {
			copied[i] = element
		}
	}
	if f.mask == nil {
		return nil
	}
	return copied
}

// flagBefore returns the flag whose argument an element of a list is; "" if that cannot be a password.
func flagBefore(before, element any) string {
	flag, _ := before.(string)
	argument, _ := element.(string)
	if !strings.HasPrefix(flag, "-") || strings.HasPrefix(argument, "-") || kindOf(flag) == plain {
		return ""
	}
	return flag
}

// isShown reports whether a path may have a name: it is none of several lines, and no credential itself.
func isShown(name string) bool {
	const longest = 253
	if name == "" || len(name) > longest || strings.ContainsAny(name, "\r\n") {
		return false
	}
	rule, _ := inText("", name)
	return rule == ""
}

// hiddenKey stands in paths for a key that looks like a credential.
const hiddenKey = "(hidden)"

func (f *finder) object(path string, object map[string]any) any {
	var copied map[string]any
	if f.mask != nil {
		copied = make(map[string]any, len(object))
	}
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
		member := f.value(below, of, object[key])
		if f.mask != nil {
			copied[copiedKey] = member
		}
	}
	if f.mask == nil {
		return nil
	}
	return copied
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
