// Package armor repairs keys and certificates in text: PEM, and armored OpenPGP.
package armor

import (
	"regexp"
	"strings"
)

const begin = "-----BEGIN "

var (
	lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")
	escapes    = strings.NewReplacer(`\r\n`, "\n", `\n`, "\n", `\r`, "\n")
	escaped    = regexp.MustCompile(begin + `[A-Z0-9 ]+-----[ \t]*\\[rn]`)
)

// Normalize restores line breaks and removes indentation, as PEM requires: CI variables often contain \n, and a heredoc keeps its
// indentation. Text without a block stays unchanged.
func Normalize(text string) string {
	if !strings.Contains(text, begin) {
		return text
	}
	text = lineBreaks.Replace(text)
	if escaped.MatchString(text) {
		text = escapes.Replace(text)
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.Trim(lines[i], " \t")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}
