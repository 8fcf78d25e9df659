package changes

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// maxWord is how many characters of a name or key are shown. A Kubernetes label has at most 63.
const maxWord = 120

// maxLine is how many characters of a given line are shown.
const maxLine = 500

// word shows a text from users on one line: characters that cannot be printed are escaped, and a long text is
// cut.
func word(text string) string { return shown(text, maxWord) }

// oneLine is word for a whole line.
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

// quoted is a name in quotes, as HCL would write it.
func quoted(name string) string {
	return `"` + strings.ReplaceAll(word(name), `"`, `\"`) + `"`
}

// listWords lists up to three words, or two and how many more there are.
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

// names lists the first few of some names.
func names(all []string, what string) string {
	shown := make([]string, len(all))
	for i, name := range all {
		shown[i] = word(name)
	}
	return listWords(shown, 0, what)
}

// counted is "1 assignment", "2 assignments".
func counted(n int, what string) string { return wording.Count(n, what, what+"s") }
