package source

import (
	"regexp"
	"strings"
	"testing"
)

// matches says whether one of the patterns matches a path.
func matches(patterns []pattern, path string) bool {
	s := begin(patterns)
	for name := range strings.SplitSeq(path, "/") {
		if !s.mayMatch(patterns) {
			return false
		}
		s = s.into(patterns, name)
	}
	return s.matched(patterns) != nil
}

func TestPatternsMatchAsFilesetsDo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ pattern, matches, not string }{
		{"**", "a a/b .a/.b", ""},
		{"*", "a .a a.yaml", "a/b"},
		{"*.yaml", "a.yaml .yaml", "a/b.yaml a.yml"},
		{"**/*.yaml", "a.yaml a/b.yaml a/b/c.yaml", "a.yml"},
		{"a/**", "a/b a/b/c", "b/a b"},
		{"a/**/b", "a/b a/x/b a/x/y/b a/b/b", "a a/x b"},
		{"**/a/**/b", "a/b x/a/y/b a/a/b/b", "b a x/b"},
		{"a/*/b", "a/x/b", "a/b a/x/y/b"},
		{"{a,b/c}/*.{yaml,yml}", "a/x.yaml a/x.yml b/c/x.yml", "b/x.yaml a/x.json"},
		{"{a,{b,c}}", "a b c", "d"},
		{"[a-c]?", "ax b1", "d1 a"},
		{`\*\{`, "*{", "a{"},
		{"./a", "a", "b"},
		{"**/**/a", "a x/y/a", "b"},
	} {
		patterns, err := parsePatterns([]string{test.pattern})
		if err != nil {
			t.Errorf("%s: %v", test.pattern, err)
			continue
		}
		for _, path := range strings.Fields(test.matches) {
			if !matches(patterns, path) {
				t.Errorf("%s does not match %s", test.pattern, path)
			}
		}
		for _, path := range strings.Fields(test.not) {
			if matches(patterns, path) {
				t.Errorf("%s matches %s", test.pattern, path)
			}
		}
	}
}

func TestPatternsAreChecked(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "/a", "a/", "a//b", "a/../b", "a/.", "a**", "**a/b", "[a", `a\`, "{a", "a}", "{a,b", strings.Repeat("a", 5000),
		strings.Repeat("a/", 70) + "a", strings.Repeat("{a,b}", 20), "{a,}", "{,/b}",
	} {
		if _, err := parsePatterns([]string{text}); err == nil {
			t.Errorf("%.40q is no error", text)
		}
	}
	if _, err := parsePatterns(make([]string, 300)); err == nil {
		t.Error("empty patterns are no error")
	}
	many := make([]string, 300)
	for i := range many {
		many[i] = "a"
	}
	if _, err := parsePatterns(many); err == nil {
		t.Error("so many patterns are no error")
	}
}

// expression is a pattern without braces and brackets as a regular expression.
func expression(p pattern) *regexp.Regexp {
	text := "^"
	for i, segment := range p.segments {
		last := i == len(p.segments)-1
		switch {
		case segment == anyDepth && last:
			text += ".*"
		case segment == anyDepth:
			text += "([^/]+/)*"
		default:
			quoted := regexp.QuoteMeta(segment)
			text += strings.ReplaceAll(strings.ReplaceAll(quoted, `\*`, "[^/]*"), `\?`, "[^/]")
			if !last {
				if i == len(p.segments)-2 && p.segments[i+1] == anyDepth {
					return regexp.MustCompile(text + "(/.*)?$") // "a/**" matches "a", as in fileset
				}
				text += "/"
			}
		}
	}
	return regexp.MustCompile(text + "$")
}

func FuzzPatterns(f *testing.F) {
	for _, seed := range [][2]string{{"**/*.yaml", "a/b.yaml"}, {"a/**/b", "a/b"}, {"{a,b}/?", "b/c"}, {"[a-", "a"}, {`\`, "a"}, {"a/**", "a"}, {"**/a/**/b/*", "x/a/b/c"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		patterns, err := parsePatterns([]string{text})
		if err != nil || path == "" || strings.Contains("/"+path+"/", "//") {
			return
		}
		got := matches(patterns, path)
		if strings.ContainsAny(text, `{}[]\`) || strings.ContainsAny(path, "\n\ufffd") || strings.ToValidUTF8(path, "") != path ||
			strings.ToValidUTF8(text, "") != text {
			return
		}
		if want := expression(patterns[0]).MatchString(path); got != want {
			t.Errorf("%q matches %q: %v, want %v", text, path, got, want)
		}
	})
}
