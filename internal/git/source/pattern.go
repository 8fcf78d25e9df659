package source

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// pattern is a path pattern with the syntax of Terraform's fileset: *, ? and [a-z] within a name, ** for any number of folders,
// {a,b} for alternatives, and \ to escape a character.
type pattern struct {
	text string // as given
	glob string

	// fixed has the segments that match one name each, up to the first that may match several. deep reports whether there is one.
	fixed []string
	deep  bool
}

const (
	maxPatterns   = 256 // including alternatives, which are matched one by one
	maxPatternLen = 4096
	anyDepth      = "**"
)

func parsePatterns(texts []string) ([]pattern, error) {
	patterns, alternatives := make([]pattern, len(texts)), 0
	for i, text := range texts {
		p, count, err := parsePattern(text)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", text, err)
		}
		if alternatives += count; alternatives > maxPatterns {
			return nil, fmt.Errorf("there are more than %d patterns, alternatives in braces counted", maxPatterns)
		}
		patterns[i] = p
	}
	return patterns, nil
}

// parsePattern returns a pattern and the number of its alternatives.
func parsePattern(text string) (pattern, int, error) {
	switch {
	case text == "":
		return pattern{}, 0, errors.New("it is empty")
	case len(text) > maxPatternLen:
		return pattern{}, 0, fmt.Errorf("it is longer than %d bytes", maxPatternLen)
	case strings.HasPrefix(text, "/"):
		return pattern{}, 0, errors.New("it begins with a slash; patterns are relative to path, so remove the slash")
	case !doublestar.ValidatePattern(text):
		return pattern{}, 0, errors.New("a bracket is not closed, a brace is not closed or not opened, or a backslash has nothing after it; " +
			"write \\{ for the character itself")
	}
	p := pattern{text: text, glob: strings.TrimPrefix(text, "./")}
	segments, alternatives := split(p.glob)
	for _, segment := range segments {
		switch {
		case segment == "":
			return pattern{}, 0, errors.New("it ends with a slash, or has two in a row; all files of a folder are folder/**")
		case segment == "." || segment == "..":
			return pattern{}, 0, fmt.Errorf("it has a segment %q", segment)
		case segment != anyDepth && strings.Contains(segment, anyDepth) && !strings.Contains(segment, "{"):
			return pattern{}, 0, errors.New("** must stand alone between slashes, as in **/*.yaml")
		}
		p.deep = p.deep || strings.Contains(segment, anyDepth) || strings.Contains(segment, "/")
		if !p.deep {
			p.fixed = append(p.fixed, segment)
		}
	}
	return p, alternatives, nil
}

// split splits a pattern at slashes outside of braces. alternatives is an upper bound of the combinations in braces.
func split(glob string) (segments []string, alternatives int) {
	alternatives = 1
	var commas []int // of the open braces
	begin := 0
	for i := 0; i < len(glob); i++ {
		depth := len(commas)
		switch glob[i] {
		case '\\':
			i++
		case '{':
			commas = append(commas, 0)
		case ',':
			if depth > 0 {
				commas[depth-1]++
			}
		case '}':
			if depth > 0 {
				alternatives = min(alternatives*(commas[depth-1]+1), maxPatterns+1)
				commas = commas[:depth-1]
			}
		case '/':
			if depth == 0 {
				segments, begin = append(segments, glob[begin:i]), i+1
			}
		}
	}
	return append(segments, glob[begin:]), alternatives
}

// matching returns a pattern that matches a path; nil for none.
func matching(patterns []pattern, path string) *pattern {
	for i := range patterns {
		if doublestar.MatchUnvalidated(patterns[i].glob, path) {
			return &patterns[i]
		}
	}
	return nil
}

// mayMatch reports whether paths below a folder may match; "" is the root.
func (p *pattern) mayMatch(folder string) bool {
	names := strings.FieldsFunc(folder, func(r rune) bool { return r == '/' })
	if !p.deep && len(names) >= len(p.fixed) {
		return false
	}
	n := min(len(names), len(p.fixed))
	return doublestar.MatchUnvalidated(strings.Join(p.fixed[:n], "/"), strings.Join(names[:n], "/"))
}

// mayMatchDeep reports whether paths at any depth below a folder may match.
func (p *pattern) mayMatchDeep(folder string) bool {
	names := 0
	if folder != "" {
		names = strings.Count(folder, "/") + 1
	}
	return p.deep && names >= len(p.fixed) && p.mayMatch(folder)
}
