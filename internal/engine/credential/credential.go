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
	f := finder{known: known}
	f.searchValue("", value)
	return f.found
}

// Masked copies a value, and replaces matching texts by the result of mask.
func Masked(value any, mask func(path, text string) string) any {
	f := finder{mask: mask}
	return f.searchValue("", value)
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
		word := withoutNumber(text[start:i])
		if hasEnding(word) && (kindOf(word) != plain || endsSpacedKey(text[:start+len(word)], word)) {
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
	steps []step
	mask  func(path, text string) string // nil: values are not copied
}

type step struct {
	name      string
	isElement bool
}

func (f *finder) path() string {
	path := ""
	for _, step := range f.steps {
		switch {
		case step.isElement:
			path += "[" + step.name + "]"
		case path != "":
			path += "." + step.name
		default:
			path = step.name
		}
	}
	return path
}

func (f *finder) searchBelow(step step, key string, value any) any {
	f.steps = append(f.steps, step)
	copied := f.searchValue(key, value)
	f.steps = f.steps[:len(f.steps)-1]
	return copied
}

// searchValue searches the value of a key. List elements inherit the key.
func (f *finder) searchValue(key string, value any) any {
	switch value := value.(type) {
	case string:
		if masked, isFound := f.searchText(key, value); isFound {
			return masked
		}
	case []any:
		return f.searchList(key, value)
	case map[string]any:
		return f.searchObject(value)
	}
	return value
}

func (f *finder) searchText(key, text string) (masked string, isFound bool) {
	judged := text
	for _, known := range f.known {
		judged = strings.ReplaceAll(judged, known, "")
	}
	rule, line := findInText(key, judged)
	if rule == "" {
		return text, false
	}
	path := f.path()
	f.found = append(f.found, Match{path, line, rule})
	if f.mask == nil {
		return text, true
	}
	return f.mask(path, text), true
}

func (f *finder) searchList(key string, list []any) any {
	var copied []any
	if f.mask != nil {
		copied = make([]any, len(list))
	}
	for i, element := range list {
		of := key
		if i > 0 {
			if flag := flagBefore(list[i-1], element); flag != "" {
				of = flag
			}
		}
		name := strconv.Itoa(i)
		if object, isObject := element.(map[string]any); isObject {
			if given, _ := object["name"].(string); isShown(given) {
				name = given
			}
		}
		element = f.searchBelow(step{name: name, isElement: true}, of, element)
		if copied != nil {
			copied[i] = element
		}
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
	rule, _ := findInText("", name)
	return rule == ""
}

const hiddenKey = "(hidden)"

func (f *finder) searchObject(object map[string]any) any {
	var copied map[string]any
	if f.mask != nil {
		copied = make(map[string]any, len(object))
	}
	named, _ := object["name"].(string)
	keys := slices.AppendSeq(make([]string, 0, len(object)), maps.Keys(object))
	slices.Sort(keys)
	for _, key := range keys {
		of := key
		if key == "value" && named != "" {
			of = named
		}
		at, copiedKey := step{name: key}, key
		if rule, _ := findInText("", key); rule != "" {
			at.name = hiddenKey
			copiedKey, _ = f.searchBelow(at, "", key).(string)
		}
		value := f.searchBelow(at, of, object[key])
		if copied != nil {
			copied[copiedKey] = value
		}
	}
	return copied
}

func findInText(key, text string) (rule string, line int) {
	if kind := kindOf(key); kind != plain && isLiteral(kind, text) {
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
