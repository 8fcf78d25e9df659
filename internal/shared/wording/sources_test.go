package wording_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// vague matches pronouns that leave the subject open. Messages name it: another assignment, another manager, no cluster.
var vague = regexp.MustCompile(`(?i)\b(nobody|somebody|whoever)\b`)

// unclear lists phrases that are hard to guess for non-native readers, by their plain replacements.
var unclear = map[string]*regexp.Regexp{
	`"selects no host", "has no host"`: regexp.MustCompile(`(?i)\bgo(es)? nowhere\b`),
	`"appears twice"`:                  regexp.MustCompile(`(?i)\bstands twice\b`),
	`"negative", "0"`:                  regexp.MustCompile(`(?i)\bthan nothing\b`),
	`"repairs it", "is repaired"`:      regexp.MustCompile(`(?i)\b(puts? it|is put|are put) right\b`),
	`"releases", "no longer managed"`:  regexp.MustCompile(`(?i)\b(lets? go of|is let go)\b`),
	`"rolls back", "is rolled back"`:   regexp.MustCompile(`(?i)\b(went|gone) back\b`),
	`"Git host unreachable"`:           regexp.MustCompile(`(?i)(^|[^t ] ?)\bhost (is )?(unreachable|cannot be reached)`),
	`"again"`:                          regexp.MustCompile(`(?i)\banew\b`),
}

// what matches texts that begin with a clause in place of a subject. Headings and names
// of pages may begin so.
var (
	what    = regexp.MustCompile(`(?m)(^|[.!?:]\s+|^[ \t]*(?:[-*]|\d+\.) |\| |\*\*)What\b[^|\n]*`)
	noneIs  = regexp.MustCompile(`(?i)\bnone (is|are|was|were|has|have)\b`)
	unasked = regexp.MustCompile("(?ms)\\A---$.*?^---$|^```.*?^```$|^#+ .*?$")
)

// notYet matches texts of files in repositories: a change would be a commit for each user.
var notYet = regexp.MustCompile("^`\\. What is changed here by hand is put back")

// TestSentencesBeginWithTheirSubject finds sentences that begin with "What", in the guides, descriptions and messages.
func TestSentencesBeginWithTheirSubject(t *testing.T) {
	t.Parallel()
	for text, bad := range map[string]bool{
		"What is kept stays.": true, "It is so. What is kept stays.": true, "- What is kept": true, "| What is kept |": true, "It is\nso.\nWhat is": true,
		"It says what is kept.": false, "See [What is rendered](a.md).": false, "Whatever": false,
	} {
		if what.MatchString(text) != bad {
			t.Errorf("%q: %t", text, !bad)
		}
	}
	looked := 0
	check := func(at, text string) {
		looked++
		for _, found := range what.FindAllString(text, -1) {
			t.Errorf("%s: a sentence has a subject first: %.120s", at, strings.TrimSpace(found))
		}
	}
	eachText(t, func(at, text string) {
		if !notYet.MatchString(text) {
			check(at, text)
		}
	})
	for _, extension := range []string{".md", ".tmpl"} {
		eachFile(t, filepath.Join("..", "..", "..", "templates"), extension, func(path string, content []byte) {
			text := unasked.ReplaceAllString(strings.ReplaceAll(string(content), "\r\n", "\n"), "")
			check(path, text)
			if phrase := noneIs.FindString(text); phrase != "" {
				t.Errorf("%s: say it with a number, or with \"no\": %q", path, phrase)
			}
		})
	}
	if looked < 3000 {
		t.Errorf("only %d texts were found", looked)
	}
}

// TestMessagesAndGuidesAreInPlainWords checks all text for users: diagnostics, descriptions and commit messages in the sources,
// the overview's page, and the guides.
func TestMessagesAndGuidesAreInPlainWords(t *testing.T) {
	t.Parallel()
	looked := 0
	check := func(at, text string) {
		looked++
		if word := vague.FindString(text); word != "" {
			t.Errorf("%s: %q does not say who is meant: %.120s", at, word, text)
		}
		for plain, pattern := range unclear {
			if phrase := pattern.FindString(text); phrase != "" {
				t.Errorf("%s: write %s for %q: %.120s", at, plain, phrase, text)
			}
		}
	}
	eachText(t, check)
	checkLines := func(path string, content []byte) {
		for line := range strings.Lines(string(content)) {
			check(path, line)
		}
	}
	for _, extension := range []string{".md", ".tmpl"} {
		eachFile(t, filepath.Join("..", "..", "..", "templates"), extension, checkLines)
	}
	eachFile(t, filepath.Join("..", "..", "views", "report", "assets"), ".html", checkLines)
	if looked < 5000 {
		t.Errorf("only %d texts were found", looked)
	}
}

// eachText calls do for each unquoted string of more than one word in the sources.
func eachText(t *testing.T, do func(at, text string)) {
	t.Helper()
	for _, source := range parsedSources(t) {
		ast.Inspect(source.File, func(node ast.Node) bool {
			if text, ok := node.(*ast.BasicLit); ok && text.Kind == token.STRING && strings.Contains(text.Value, " ") {
				value, err := strconv.Unquote(text.Value)
				if err != nil {
					t.Fatal(err)
				}
				do(source.at(text.Pos()), value)
			}
			return true
		})
	}
}

// source is a parsed file of the product, with its comments.
type source struct {
	*ast.File
	path      string
	positions *token.FileSet
}

func (s *source) at(position token.Pos) string { return s.positions.Position(position).String() }

// parsedSources returns all sources of the product, without tests. They are parsed once, and shared by all tests: read only.
func parsedSources(t *testing.T) []source {
	t.Helper()
	sources, err := parseSources()
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

var parseSources = sync.OnceValues(func() ([]source, error) {
	return parse(func(path string) bool { return !strings.HasSuffix(path, "_test.go") })
})

// sourcesAndTests also returns the tests of all packages.
func sourcesAndTests(t *testing.T) []source {
	t.Helper()
	tests, err := parseTests()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(parsedSources(t), tests)
}

var parseTests = sync.OnceValues(func() ([]source, error) {
	return parse(func(path string) bool { return strings.HasSuffix(path, "_test.go") })
})

func parse(isWanted func(path string) bool) (all []source, err error) {
	positions := token.NewFileSet()
	err = walkFiles(filepath.Join("..", ".."), ".go", func(path string, content []byte) error {
		if !isWanted(path) {
			return nil
		}
		file, err := parser.ParseFile(positions, path, content, parser.ParseComments|parser.SkipObjectResolution)
		all = append(all, source{file, path, positions})
		return err
	})
	return all, err
}

// eachFile calls do for each file with this extension in a folder and below it.
func eachFile(t *testing.T, folder, extension string, do func(path string, content []byte)) {
	t.Helper()
	err := walkFiles(folder, extension, func(path string, content []byte) error {
		do(path, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func walkFiles(folder, extension string, do func(path string, content []byte) error) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != extension {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return do(path, content)
	})
}
