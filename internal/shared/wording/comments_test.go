package wording_test

import (
	"flag"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "lower the limits in testdata/comments.txt to today's figures")

// verbs follow a relative pronoun that stands in place of a noun.
const verbs = `(?:is|are|was|were|has|have|had|it|they|a|an|the|each|others?|no|nothing|somebody|anybody|one|can|cannot|could|may|` +
	`does|do|did|goes|comes|came|stays|follows|belongs|makes|made|needs|takes|says|said|wants|waits|reads|applies|decides|becomes|` +
	`happens|there|this|that|these|those|all|any|its|their|to)`

// stumbles are constructions that make comments hard to read: most are relative clauses in place of a noun.
var stumbles = compile(
	`\bwhat `+verbs+`\b`, `\bwhat [a-z]+s\b`, `\bthose (?:of|that|which|who|in|with|whose)\b`, `\bthat of\b`,
	`\bthe ones? (?:of|that|which|with)\b`, `\b(?:of|by|with|from|in|at|to|for) which\b`, `\bof whom\b`, `\bas far as\b`,
	`\bwhere that is\b`, `\bof (?:it|them|those|these) (?:is|are|was|were|has|have|that)\b`,
	`\b(?:one|none|all|some|each|any|both|few|others?) of (?:which|whom|what)\b`, `\bsuch (?:a|an) [a-z]+ (?:is|has)\b`,
	`\bis one of\b`, `\bis that of\b`, `\bare those of\b`, `\bis (?:another|other|another one|none|no [a-z]+) (?:than|of)\b`,
	`\bas it (?:was|is|stands)\b`, `\ball that\b`, `\bwhatever\b`, `\bwhichever\b`, `\bwho (?:may|has|is|wants)\b`,
	`\b(?:says|tells|said|told) (?:of|so|by)\b`, `\bso that (?:no|nothing|nobody)\b`, `\bnothing else\b`, `\bbesides\b`,
	`\bwould not\b (?:find|know)\b`,
)

func compile(patterns ...string) []*regexp.Regexp {
	compiled := make([]*regexp.Regexp, len(patterns))
	for i, pattern := range patterns {
		compiled[i] = regexp.MustCompile("(?i)" + pattern)
	}
	return compiled
}

func countStumbles(text string) int {
	count := 0
	for _, pattern := range stumbles {
		count += len(pattern.FindAllString(text, -1))
	}
	return count
}

// commentFigures counts the words of a package's comments, and the constructions in them that make readers stumble.
type commentFigures struct{ stumbles, words int }

var word = regexp.MustCompile(`[A-Za-z']+`)

const limitsFile = "testdata/comments.txt"

// TestCommentsArePlain compares the comments of each package and of its tests with the limits of testdata/comments.txt. The limits only fall. A package that is not listed may have three stumbles per 1,000 words.
func TestCommentsArePlain(t *testing.T) {
	t.Parallel()
	if countStumbles("Together is what is known of clusters that were found in several places.") == 0 {
		t.Error("the patterns find nothing")
	}
	found := map[string]commentFigures{}
	examples := map[string][]string{}
	for _, file := range sourcesAndTests(t) {
		if strings.Contains(file.path, "testdata") {
			continue
		}
		relative, err := filepath.Rel(filepath.Join("..", ".."), filepath.Dir(file.path))
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.ToSlash(relative)
		if strings.HasSuffix(file.path, "_test.go") {
			folder += "/*_test.go"
		}
		figures := found[folder]
		for _, group := range file.Comments {
			text := group.Text()
			count := countStumbles(strings.Join(strings.Fields(text), " "))
			figures.stumbles += count
			figures.words += len(word.FindAllString(text, -1))
			if count > 0 {
				examples[folder] = append(examples[folder], fmt.Sprintf("%s: %.160s", file.at(group.Pos()), text))
			}
		}
		found[folder] = figures
	}
	limits := readLimits(t)
	if *update {
		writeLimits(t, found, limits)
		return
	}
	for folder, figures := range found {
		limit, isListed := limits[folder]
		if !isListed {
			limit = commentFigures{stumbles: figures.words * 3 / 1000, words: figures.words}
		}
		if figures.stumbles > limit.stumbles {
			t.Errorf("internal/%s has %d constructions that make readers stumble, the limit is %d. All of them:\n%s",
				folder, figures.stumbles, limit.stumbles, strings.Join(examples[folder], "\n"))
		}
		if figures.words > limit.words+limit.words/20+50 {
			t.Errorf("the comments of internal/%s have %d words, the limit is %d and a twentieth more: "+
				"remove text that repeats the code", folder, figures.words, limit.words)
		}
	}
}

func readLimits(t *testing.T) map[string]commentFigures {
	t.Helper()
	content, err := os.ReadFile(limitsFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	limits := map[string]commentFigures{}
	for line := range strings.Lines(string(content)) {
		var folder string
		var figures commentFigures
		if _, err := fmt.Sscan(line, &folder, &figures.stumbles, &figures.words); err != nil {
			t.Fatalf("%s: %q: %v", limitsFile, line, err)
		}
		limits[folder] = figures
	}
	return limits
}

func writeLimits(t *testing.T, found, limits map[string]commentFigures) {
	t.Helper()
	var text strings.Builder
	for _, folder := range slices.Sorted(maps.Keys(found)) {
		figures := found[folder]
		if limit, isListed := limits[folder]; isListed {
			figures.stumbles, figures.words = min(figures.stumbles, limit.stumbles), min(figures.words, limit.words)
		}
		fmt.Fprintf(&text, "%s %d %d\n", folder, figures.stumbles, figures.words)
	}
	if err := os.WriteFile(limitsFile, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// unclearNames are words that say nothing as a whole name: verbs without their object, and pronouns.
var unclearNames = regexp.MustCompile(
	`^(?i:know|ask|arrange|hold|arrive|yield|said|told|gift|whats?|as|of|leave|besides|farewell|touched|those|such|them|it)$`)

// TestNamesOfDeclarationsAreClear checks the names of functions, methods, types and interface methods, also in tests.
func TestNamesOfDeclarationsAreClear(t *testing.T) {
	t.Parallel()
	for _, file := range sourcesAndTests(t) {
		if strings.Contains(file.path, "testdata") {
			continue
		}
		check := func(name *ast.Ident) {
			if unclearNames.MatchString(name.Name) {
				t.Errorf("%s: %s does not say what it is of: write a verb and its object, or a noun", file.at(name.Pos()), name.Name)
			}
		}
		for _, declaration := range file.Decls {
			switch declaration := declaration.(type) {
			case *ast.FuncDecl:
				check(declaration.Name)
			case *ast.GenDecl:
				for _, spec := range declaration.Specs {
					if named, ok := spec.(*ast.TypeSpec); ok {
						check(named.Name)
						if methods, ok := named.Type.(*ast.InterfaceType); ok {
							for _, method := range methods.Methods.List {
								for _, name := range method.Names {
									check(name)
								}
							}
						}
					}
				}
			}
		}
	}
}
