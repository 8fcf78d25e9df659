package changes

import "regexp"

// Lines of key=value as the functions toEnv and toProperties of templates write them. A value of the first form may go on over
// several lines in single quotes.
var (
	envLine      = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)=((?:[A-Za-z0-9_./:@%+,=-]|'[^']*'|\\')*)(?:\n|$)`)
	propertyLine = regexp.MustCompile(`^((?:[^\\=:#!\s]|\\.)+)=((?:[^\\\n]|\\.)*)(?:\n|$)`)
	emptyLine    = regexp.MustCompile(`^[ \t]*(?:#[^\n]*)?(?:\n|$)`)
)

// pairs compares texts of such lines.
func (c *collector) pairs(before, after string, line *regexp.Regexp) bool {
	one, ok := readPairs(before, line)
	other, otherOK := readPairs(after, line)
	if !ok || !otherOK {
		return false
	}
	for _, key := range unionOfKeys(one, other) {
		old, had := one[key]
		value, has := other[key]
		if had != has || old != value {
			c.atSegment(key, func() { c.member(false, true, had, has) })
		}
	}
	return true
}

// readPairs returns false where any line has another form, since part of a value must never be taken for a key.
func readPairs(text string, line *regexp.Regexp) (map[string]string, bool) {
	pairs := map[string]string{}
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
