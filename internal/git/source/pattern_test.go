package source

import (
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// matches reports whether one of the patterns matches a path that a walk from the root reaches.
func matches(patterns []pattern, path string) bool {
	for i := range patterns {
		p := &patterns[i]
		for folder := git.Parent(path); ; folder = git.Parent(folder) {
			if !p.mayMatch(folder) {
				break
			}
			if folder == "" {
				if matching(patterns[i:i+1], path) != nil {
					return true
				}
				break
			}
		}
	}
	return false
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
		{"{a/**,b}/c", "a/c a/x/c b/c", "c x/c"},
		{"a{/b,/c/d}/*", "a/b/x a/c/d/x", "a/x a/c/x"},
		{"{**/x,y}", "x a/b/x y", "a/y"},
		{"a{,.bak}", "a a.bak", "b"},
		{"[!a]", "b", "a"},
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
		strings.Repeat("{a,b}", 20), "{x" + strings.Repeat("{a,b}", 20) + "}",
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

// A walk reaches every match: it prunes no folder above a match, and fetches the folders below ** at once.
func FuzzPatterns(f *testing.F) {
	for _, seed := range [][2]string{
		{"**/*.yaml", "a/b.yaml"}, {"a/**/b", "a/b"}, {"{a,b}/?", "b/c"}, {"[a-", "a"}, {`\`, "a"}, {"a/**", "a"}, {"**/a/**/b/*", "x/a/b/c"},
		{"{a/**,b}/c", "a/x/c"}, {"a{/b,/c/d}/*", "a/c/d/e"}, {"{**,a}", "x/y"}, {"x/{*,{a,b/c}}/d", "x/b/c/d"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		patterns, err := parsePatterns([]string{text})
		if err != nil || path == "" || strings.Contains("/"+path+"/", "//") || matching(patterns, path) == nil {
			return
		}
		if !matches(patterns, path) {
			t.Errorf("%q matches %q, and a folder on the way to it is not read", text, path)
		}
	})
}

// The pattern's alternatives and length bound the cost of a match for every path.
func TestHostilePatternsAreBounded(t *testing.T) {
	t.Parallel()
	path := strings.Repeat(strings.Repeat("a", 200)+"/", 19) + "b"
	for _, text := range []string{
		strings.Repeat("*a", 2000) + "c", strings.Repeat("**/a*/", 600) + "c", strings.Repeat("{*,?*}", 8) + "c", "**/" + strings.Repeat("*{a,aa}", 8) + "c",
		"{" + strings.Repeat("*a,", 255) + "c}/**/c", strings.Repeat("[!b]*", 800),
	} {
		patterns, err := parsePatterns([]string{text})
		if err != nil {
			t.Errorf("%.20s: %v", text, err)
			continue
		}
		before := fleettest.ProcessorTime()
		matches(patterns, path)
		if took := fleettest.ProcessorTime() - before; took > 5*time.Second {
			t.Errorf("%.20s takes %s", text, took)
		}
	}
}
