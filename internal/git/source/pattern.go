package source

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// pattern is a path pattern with the syntax of Terraform's fileset: *, ? and [a-z] within a name, ** for any number of
// folders, {a,b} for alternatives, and \ to escape a character.
type pattern struct {
	text     string
	segments []string // "**" stands for any number
}

// Limits of patterns: a state fits into 64 bits.
const (
	maxPatterns   = 256 // including alternatives
	maxSegments   = 60
	anyDepth      = "**"
	maxPatternLen = 4096
)

// parsePatterns parses patterns, and expands alternatives to several patterns.
func parsePatterns(texts []string) ([]pattern, error) {
	var patterns []pattern
	for _, text := range texts {
		expanded, err := expand(text)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", text, err)
		}
		for _, one := range expanded {
			p, err := parsePattern(one)
			if err != nil {
				return nil, fmt.Errorf("pattern %q: %w", text, err)
			}
			p.text = text
			patterns = append(patterns, p)
		}
		if len(patterns) > maxPatterns {
			return nil, fmt.Errorf("there are more than %d patterns, alternatives in braces counted", maxPatterns)
		}
	}
	return patterns, nil
}

// expand expands the alternatives in braces.
func expand(text string) ([]string, error) {
	if len(text) > maxPatternLen {
		return nil, fmt.Errorf("it is longer than %d bytes", maxPatternLen)
	}
	pending, done := []string{text}, []string(nil)
	for len(pending) > 0 {
		next := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		open, end := braces(next)
		switch {
		case open < 0 && end < 0:
			done = append(done, next)
			continue
		case open < 0 || end < 0:
			return nil, errors.New("a brace is not closed or not opened; write \\{ or \\} for the character itself")
		}
		for alternative := range strings.SplitSeq(next[open+1:end], ",") {
			pending = append(pending, next[:open]+alternative+next[end+1:])
		}
		if len(pending)+len(done) > maxPatterns {
			return nil, fmt.Errorf("its braces have more than %d alternatives", maxPatterns)
		}
	}
	return done, nil
}

// braces returns the first innermost pair of braces; -1 for a missing brace.
func braces(text string) (open, end int) {
	open = -1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '{':
			open = i
		case '}':
			return open, i
		}
	}
	return open, -1
}

func parsePattern(text string) (pattern, error) {
	if text == "" {
		return pattern{}, errors.New("it is empty")
	}
	if strings.HasPrefix(text, "/") {
		return pattern{}, errors.New("it begins with a slash; patterns are relative to path, so remove the slash")
	}
	p := pattern{}
	for segment := range strings.SplitSeq(strings.TrimPrefix(text, "./"), "/") {
		switch {
		case segment == "":
			return pattern{}, errors.New("it ends with a slash, or has two in a row; all files of a folder are folder/**")
		case segment == "." || segment == "..":
			return pattern{}, fmt.Errorf("it has a segment %q", segment)
		case segment == anyDepth:
			if n := len(p.segments); n > 0 && p.segments[n-1] == anyDepth {
				continue
			}
		case strings.Contains(segment, anyDepth):
			return pattern{}, errors.New("** must stand alone between slashes, as in **/*.yaml")
		}
		if _, err := path.Match(segment, "a"); err != nil {
			return pattern{}, errors.New("a bracket is not closed, or a backslash has nothing after it")
		}
		p.segments = append(p.segments, segment)
	}
	if len(p.segments) > maxSegments {
		return pattern{}, fmt.Errorf("it has more than %d segments", maxSegments)
	}
	return p, nil
}

// states holds the progress of a path for each pattern: bit i is set after the path has matched the first i segments.
type states []uint64

func begin(patterns []pattern) states {
	s := make(states, len(patterns))
	for i, p := range patterns {
		s[i] = p.passOver(1)
	}
	return s
}

// passOver adds the states after an empty match of **.
func (p *pattern) passOver(state uint64) uint64 {
	for i, segment := range p.segments {
		if segment == anyDepth && state&(1<<i) != 0 {
			state |= 1 << (i + 1)
		}
	}
	return state
}

// into returns the states after one more name of a path.
func (s states) into(patterns []pattern, name string) states {
	after := make(states, len(s))
	for i := range patterns {
		p := &patterns[i]
		for j, segment := range p.segments {
			if s[i]&(1<<j) == 0 {
				continue
			}
			if segment == anyDepth {
				after[i] |= 1 << j
			} else if matches, _ := path.Match(segment, name); matches {
				after[i] |= 1 << (j + 1)
			}
		}
		after[i] = p.passOver(after[i])
	}
	return after
}

// matched returns a pattern that the whole path matches; nil for none.
func (s states) matched(patterns []pattern) *pattern {
	for i := range patterns {
		if s[i]&(1<<len(patterns[i].segments)) != 0 {
			return &patterns[i]
		}
	}
	return nil
}

// mayMatch reports whether a path below may match.
func (s states) mayMatch(patterns []pattern) bool {
	for i := range patterns {
		if s[i]&(1<<len(patterns[i].segments)-1) != 0 {
			return true
		}
	}
	return false
}

// mayMatchDeep reports whether paths at any depth below may match.
func (s states) mayMatchDeep(patterns []pattern) bool {
	for i := range patterns {
		for j, segment := range patterns[i].segments {
			if segment == anyDepth && s[i]&(1<<j) != 0 {
				return true
			}
		}
	}
	return false
}
