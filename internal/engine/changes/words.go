package changes

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

const maxWord = 120

const maxLine = 500

// word returns a user's text on one line, with escapes for unprintable characters, and shortened.
func word(text string) string { return shown(text, maxWord) }

func oneLine(text string) string { return shown(text, maxLine) }

func shown(text string, most int) string {
	var b strings.Builder
	count := 0
	for _, r := range text {
		if count++; count > most {
			b.WriteString("…")
			break
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) || unicode.In(r, unicode.Mn, unicode.Me) {
			escaped := strconv.QuoteRuneToASCII(r)
			b.WriteString(escaped[1 : len(escaped)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func quoted(name string) string {
	return `"` + strings.ReplaceAll(word(name), `"`, `\"`) + `"`
}

// listWords lists up to three words, or two and the number of others.
func listWords(words []string, more int, what string) string {
	if len(words) > 3 || more > 0 {
		shown := min(2, len(words))
		more += len(words) - shown
		words = words[:shown]
	}
	text := strings.Join(words, ", ")
	if more > 0 {
		text += " and " + counted(more, "more "+what)
	}
	return text
}

func names(all []string, what string) string {
	shown := make([]string, len(all))
	for i, name := range all {
		shown[i] = word(name)
	}
	return listWords(shown, 0, what)
}

// counted returns "1 assignment", "2 assignments".
func counted(n int, what string) string { return wording.Count(n, what, what+"s") }
