// Package wording is how messages for people count, list and quote: the same everywhere.
package wording

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Count is "1 host" or "2 hosts".
func Count(number int, one, many string) string {
	return fmt.Sprintf("%d %s", number, OneOrMany(number, one, many))
}

// OneOrMany is the word that fits the number.
func OneOrMany(number int, one, many string) string {
	if number == 1 {
		return one
	}
	return many
}

// Counts are words with their numbers, without those of which there is none: "2 added", "1 removed".
func Counts(numbers []int, words ...string) []string {
	var counts []string
	for i, number := range numbers {
		if number > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", number, words[i]))
		}
	}
	return counts
}

// AllCounts are words with their numbers, those of which there is none too: "0 changed, 2 added, 1 removed".
func AllCounts(numbers []int, words ...string) string {
	counts := make([]string, len(numbers))
	for i, number := range numbers {
		counts[i] = fmt.Sprintf("%d %s", number, words[i])
	}
	return strings.Join(counts, ", ")
}

// Named is how many names an error lists.
const Named = 10

// List joins names, and counts those beyond a number of them: "a, b and 3 more".
func List(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Quoted has each of the names in quotes.
func Quoted(names []string) []string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return quoted
}

// Either names alternatives, at least two, each with a mark around it: `a`, `b` or `c`.
func Either(names []string, mark string) string {
	last := len(names) - 1
	return mark + strings.Join(names[:last], mark+", "+mark) + mark + " or " + mark + names[last] + mark
}

// Lines is List with a line for each.
func Lines(lines []string, most int) string {
	if len(lines) <= most {
		return strings.Join(lines, "\n")
	}
	return fmt.Sprintf("%s\n… and %d more", strings.Join(lines[:most], "\n"), len(lines)-most)
}

// IsLine says whether a text is one line in which Visible changes nothing, and without tabs.
func IsLine(text string) bool {
	return !strings.ContainsAny(text, "\n\t") && Visible(text) == text
}

// OrNil is a text that may be missing: nil in place of an empty one.
func OrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// Visible is a text that can do nothing to the terminal on which it is printed: it has U+FFFD in place of control
// characters, other than tabs and line breaks, and of what changes the direction of text or hides it.
func Visible(text string) string {
	text = lineBreaks.Replace(strings.ToValidUTF8(text, ""))
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// maxSaid is how many bytes are shown of what a server said.
const maxSaid = 300

// OneLine is what a server said, short enough for a diagnostic, and [Visible].
func OneLine(said string) string {
	isPlain := func(c byte) bool { return c > ' ' && c < 0x7f }
	for i := 0; i < len(said) && isPlain(said[i]); i++ {
		if i == len(said)-1 { // a word, as most names are
			return Cut(said, maxSaid)
		}
	}
	return Cut(Line(said), maxSaid)
}

// Line is a text as one line, and [Visible].
func Line(text string) string { return Visible(strings.Join(strings.Fields(text), " ")) }

// Cut is a text of at most so many bytes, and "..." where it was longer.
func Cut(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// CutMiddle returns the first and the last half of so many bytes of a longer text: errors that include each other have the first
// place at the beginning, and the cause at the end.
func CutMiddle(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most/2], "") + " ... " + strings.ToValidUTF8(text[len(text)-most/2:], "")
}
