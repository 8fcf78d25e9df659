// Package wording is how messages for people count, list and quote: the same everywhere.
package wording

import (
	"fmt"
	"strings"
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

// Named is how many names an error lists.
const Named = 10

// List joins names, and counts those beyond a number of them: "a, b and 3 more".
func List(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Lines is List with a line for each.
func Lines(lines []string, most int) string {
	if len(lines) <= most {
		return strings.Join(lines, "\n")
	}
	return fmt.Sprintf("%s\n… and %d more", strings.Join(lines[:most], "\n"), len(lines)-most)
}

// maxSaid is how many bytes are shown of what a server said.
const maxSaid = 300

// OneLine is what a server said, short enough for a diagnostic.
func OneLine(said string) string {
	said = strings.ToValidUTF8(strings.Join(strings.Fields(said), " "), "")
	if len(said) > maxSaid {
		said = strings.ToValidUTF8(said[:maxSaid], "") + "..."
	}
	return said
}
