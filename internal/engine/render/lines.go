package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
)

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	plainInEnv   = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=-]*$`)
)

// toEnv writes sorted lines of NAME=value, quoted for shells and .env parsers. Objects and lists are JSON.
func toEnv(values map[string]any) (string, error) {
	return toLines(values, func(key, text string) (string, error) {
		if !variableName.MatchString(key) {
			return "", problemf("key %q cannot be the name of an environment variable: use letters, digits and _", key)
		}
		if strings.ContainsRune(text, 0) {
			return "", problemf("the value of key %q holds a null character, which an environment variable cannot", key)
		}
		if plainInEnv.MatchString(text) {
			return key + "=" + text, nil
		}
		return key + "='" + strings.ReplaceAll(text, "'", `'\''`) + "'", nil
	})
}

// toProperties writes for java.util.Properties. Objects and lists are JSON.
func toProperties(values map[string]any) (string, error) {
	return toLines(values, func(key, text string) (string, error) {
		return escapeProperty(key, true) + "=" + escapeProperty(text, false), nil
	})
}

func toLines(values map[string]any, line func(key, text string) (string, error)) (string, error) {
	lines := make([]string, 0, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		text, isScalar := scalarText(values[key])
		if !isScalar {
			var err error
			if text, err = toRawJSON(values[key]); err != nil {
				return "", err
			}
		}
		written, err := line(key, text)
		if err != nil {
			return "", err
		}
		lines = append(lines, written)
	}
	return strings.Join(lines, "\n"), nil
}

// escapeProperty escapes non-ASCII characters, since programs may read the file as Latin-1.
func escapeProperty(text string, isKey bool) string {
	var escaped strings.Builder
	for i, r := range text {
		switch {
		case r == '\n':
			escaped.WriteString(`\n`)
		case r == '\r':
			escaped.WriteString(`\r`)
		case r == '\t':
			escaped.WriteString(`\t`)
		case r == '\\', isKey && strings.ContainsRune("=:#! ", r), !isKey && i == 0 && r == ' ':
			escaped.WriteRune('\\')
			escaped.WriteRune(r)
		case r < ' ' || r > '~':
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&escaped, `\u%04x`, unit)
			}
		default:
			escaped.WriteRune(r)
		}
	}
	return escaped.String()
}
