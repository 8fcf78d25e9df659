package changes

import "strings"

// parseEnv reads "KEY=value" lines as a shell would: a quoted value may have several lines. It returns false
// where any line has another form, since part of a value must never be taken for a key.
func parseEnv(text string) (map[string]string, bool) {
	pairs := map[string]string{}
	for len(text) > 0 {
		line, _, _ := strings.Cut(text, "\n")
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
			text = strings.TrimPrefix(text[len(line):], "\n")
			continue
		}
		equals := strings.IndexByte(line, '=')
		if equals <= 0 || !isVariable(line[:equals]) {
			return nil, false
		}
		key, rest := line[:equals], text[equals+1:]
		end := endOfShellWord(rest)
		if _, twice := pairs[key]; end < 0 || twice {
			return nil, false
		}
		pairs[key] = rest[:end]
		text = strings.TrimPrefix(rest[end:], "\n")
	}
	return pairs, true
}

func isVariable(name string) bool {
	for i := 0; i < len(name); i++ {
		if c := name[i]; !isKeyByte(c) || c == '/' {
			return false
		}
	}
	return true
}

// endOfShellWord returns the end of the line on which a value ends; -1 where a quote is not closed.
func endOfShellWord(text string) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\n':
			return i
		case '\\':
			i++
		case '\'':
			end := strings.IndexByte(text[i+1:], '\'')
			if end < 0 {
				return -1
			}
			i += 1 + end
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if i >= len(text) {
				return -1
			}
		}
	}
	return len(text)
}

// parseProperties reads Java's format: a key ends at the first "=", ":" or white space that is not escaped,
// and a line that ends in a backslash continues on the next line.
func parseProperties(text string) (map[string]string, bool) {
	pairs := map[string]string{}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimLeft(lines[i], " \t\f")
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for goesOn(line) && i+1 < len(lines) {
			i++
			line = line[:len(line)-1] + strings.TrimLeft(lines[i], " \t\f")
		}
		end := 0
		for end < len(line) && strings.IndexByte("=: \t\f", line[end]) < 0 {
			if line[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end, len(line))
		if _, twice := pairs[line[:end]]; end == 0 || twice {
			return nil, false
		}
		pairs[line[:end]] = line[end:]
	}
	return pairs, true
}

// goesOn says whether a line continues: it ends in a backslash that is not escaped itself.
func goesOn(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}
