package changes

import "regexp"

// Lines of key=value, as toEnv and toProperties write them. toEnv continues values over several lines in single
// quotes.
var (
	envLine      = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)=((?:[A-Za-z0-9_./:@%+,=-]|'[^']*'|\\')*)(?:\n|$)`)
	propertyLine = regexp.MustCompile(`^((?:[^\\=:#!\s]|\\.)+)=((?:[^\\\n]|\\.)*)(?:\n|$)`)
	emptyLine    = regexp.MustCompile(`^[ \t]*(?:#[^\n]*)?(?:\n|$)`)
)

// readPairs returns false if any line differs in form: part of a value must never pass for a key.
func readPairs(text string, line *regexp.Regexp) (map[string]any, bool) {
	pairs := map[string]any{}
	for text != "" {
		if empty := emptyLine.FindString(text); empty != "" {
			text = text[len(empty):]
			continue
		}
		match := line.FindStringSubmatch(text)
		if match == nil {
			return nil, false
		}
		if _, twice := pairs[match[1]]; twice {
			return nil, false
		}
		pairs[match[1]], text = match[2], text[len(match[0]):]
	}
	return pairs, true
}
