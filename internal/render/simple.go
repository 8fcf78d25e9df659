package render

import (
	"bytes"
	"strings"
)

// configMapFrame is the beginning of the built-in template "configmap", with default names.
const (
	configMapFrame = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"" + defaultConfigName + "\"\n  namespace: \""
	configMapData  = "\"\n  labels:\n    app.kubernetes.io/managed-by: flotilla\n"
)

// isSimpleConfigMap says whether a file is certainly a ConfigMap that Kubernetes accepts, as the built-in template
// writes it for common values. False means that the full check is needed, which takes fifty times as long. Half of
// all configurations belong to only one assignment, so that shapes do not help there.
func isSimpleConfigMap(content []byte) bool {
	text, ok := strings.CutPrefix(string(content), configMapFrame)
	namespace, text, ended := strings.Cut(text, configMapData)
	if !ok || !ended || !isSimpleName(namespace) || len(content) > maxConfigMap || hasUnusualBreaks(content) {
		return false
	}
	if text == "" {
		return true
	}
	if text, ok = strings.CutPrefix(text, "data:\n"); !ok || text == "" || text[len(text)-1] != '\n' {
		return false
	}
	keys := map[string]bool{}
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		entry, isEntry := strings.CutPrefix(line, "  ")
		key, value, hasValue := strings.Cut(entry, ": ")
		if !isEntry || !hasValue || !isSimpleKey(key) || keys[key] {
			return false
		}
		keys[key] = true
		text = rest
		if value == "|" || value == "|-" {
			if text, ok = afterSimpleLines(rest); !ok {
				return false
			}
		} else if !isSimpleText(value) {
			return false
		}
	}
	return true
}

// isSimpleName says whether a text is a DNS label.
func isSimpleName(text string) bool {
	for i := range len(text) {
		if c := text[i]; !isAlphanumeric(c) && (i == 0 || i == len(text)-1 || c != '-') || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return text != "" && len(text) <= maxLabel
}

// isSimpleKey says whether a key needs no quotes and may be in a ConfigMap.
func isSimpleKey(text string) bool {
	for i := range len(text) {
		if c := text[i]; !isAlphanumeric(c) && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return len(text) <= 253 && isPlain(text)
}

// isSimpleText says whether a value is certainly a string of one line of printable characters.
func isSimpleText(value string) bool {
	if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		inner := value[1 : len(value)-1]
		return isPrintable(inner) && !strings.ContainsAny(inner, value[:1]+`\`)
	}
	return isPlain(value)
}

func isPrintable(text string) bool {
	return !bytes.ContainsFunc([]byte(text), func(r rune) bool { return r < ' ' || r > '~' })
}

// afterSimpleLines returns what follows the lines of a literal block.
func afterSimpleLines(text string) (rest string, ok bool) {
	column := len(text) - len(strings.TrimLeft(text, " "))
	if column <= 2 || text[column] == '\n' {
		return "", false
	}
	indentation := text[:column]
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		if !strings.HasPrefix(line, indentation) && strings.Trim(line, " ") != "" {
			return text, true
		}
		if !isPrintable(line) {
			return "", false
		}
		text = rest
	}
	return "", true
}
