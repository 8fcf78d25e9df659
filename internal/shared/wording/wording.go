// Package wording counts, lists and quotes in messages for people.
package wording

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Count returns "1 host" or "2 hosts".
func Count(number int, one, many string) string {
	return fmt.Sprintf("%d %s", number, OneOrMany(number, one, many))
}

// OneOrMany returns the singular or the plural.
func OneOrMany(number int, one, many string) string {
	if number == 1 {
		return one
	}
	return many
}

// Counts pairs words with their numbers, and omits zeros: "2 added", "1 removed".
func Counts(numbers []int, words ...string) []string {
	var counts []string
	for i, number := range numbers {
		if number > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", number, words[i]))
		}
	}
	return counts
}

// AllCounts pairs words with their numbers, including zeros: "0 changed, 2 added, 1 removed".
func AllCounts(numbers []int, words ...string) string {
	counts := make([]string, len(numbers))
	for i, number := range numbers {
		counts[i] = fmt.Sprintf("%d %s", number, words[i])
	}
	return strings.Join(counts, ", ")
}

// Named is the maximum number of names in an error.
const Named = 10

// List joins at most most names, and counts the others: "a, b and 3 more".
func List(names []string, most int) string { return joinFirst(names, most, ", ", " and ") }

// Lines is like List, with one line for each.
func Lines(lines []string, most int) string { return joinFirst(lines, most, "\n", "\n… and ") }

func joinFirst(texts []string, most int, separator, last string) string {
	if len(texts) <= most {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s%s%d more", strings.Join(texts[:most], separator), last, len(texts)-most)
}

// Quoted quotes each name.
func Quoted(names []string) []string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return quoted
}

// Either joins two or more alternatives, each between marks: `a`, `b` or `c`.
func Either(names []string, mark string) string {
	last := len(names) - 1
	return mark + strings.Join(names[:last], mark+", "+mark) + mark + " or " + mark + names[last] + mark
}

// IsLine reports whether a text is one line without tabs that Visible leaves unchanged.
func IsLine(text string) bool {
	return !strings.ContainsAny(text, "\n\t") && Visible(text) == text
}

// OrNil returns nil for an empty text.
func OrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// Visible makes a text safe for a terminal: U+FFFD replaces control characters, except tabs and line breaks, and characters that
// hide text or change its direction.
func Visible(text string) string {
	text = lineBreaks.Replace(strings.ToValidUTF8(text, ""))
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// maxSaid is the maximum length of a server's message, in bytes.
const maxSaid = 300

// OneLine shortens a server's message to one [Visible] line.
func OneLine(said string) string {
	isPlain := func(c byte) bool { return c > ' ' && c < 0x7f }
	for i := 0; i < len(said) && isPlain(said[i]); i++ {
		if i == len(said)-1 { // most names are a single word
			return Cut(said, maxSaid)
		}
	}
	return Cut(Line(said), maxSaid)
}

// Line joins a text into one [Visible] line.
func Line(text string) string { return Visible(strings.Join(strings.Fields(text), " ")) }

// Cut shortens a text to most bytes and "...".
func Cut(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// CutRunes shortens a text to most characters and "…".
func CutRunes(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}

// CutMiddle removes the middle of a text over most bytes: nested errors have the place at the beginning and the cause at the end.
func CutMiddle(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most/2], "") + " ... " + strings.ToValidUTF8(text[len(text)-most/2:], "")
}

// Groups groups values by key, in the order of addition. The zero value is empty.
type Groups[K comparable, V any] struct {
	keys []K
	of   map[K][]V
}

// Add appends a value to a key's group.
func (g *Groups[K, V]) Add(key K, value V) {
	if g.of == nil {
		g.of = map[K][]V{}
	}
	if g.of[key] == nil {
		g.keys = append(g.keys, key)
	}
	g.of[key] = append(g.of[key], value)
}

// All yields each key with its values, at least one.
func (g *Groups[K, V]) All() iter.Seq2[K, []V] {
	return func(yield func(K, []V) bool) {
		for _, key := range g.keys {
			if !yield(key, g.of[key]) {
				return
			}
		}
	}
}

// DidYouMean returns "; did you mean ...?" with the nearest candidate, or "".
func DidYouMean(word string, candidates []string) string {
	best, bestDistance := "", max(2, len(word)/3)+1
	for _, candidate := range candidates {
		if distance := editDistance(word, candidate); distance < bestDistance {
			best, bestDistance = candidate, distance
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// editDistance counts insertions, deletions, substitutions and swaps of neighbours.
func editDistance(a, b string) int {
	before, previous := make([]int, len(b)+1), make([]int, len(b)+1)
	current := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}
