package secret

import "strings"

// KeyLines are the lines of a private key in PEM text that are secret: an error may repeat one of them alone.
func KeyLines(pem string) (lines []string) {
	for line := range strings.Lines(pem) {
		if line = strings.TrimSpace(line); len(line) > 16 && !strings.HasPrefix(line, "-----") {
			lines = append(lines, line)
		}
	}
	return lines
}
