package provider_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const trustGuide = "../../templates/guides/trust.md"

// The guide on trust is a list of promises. testdata/trust_guide.txt has each sentence and each row of its table, followed by an
// indented line with the names of tests.
func TestEverySentenceOfTheGuideOnTrustHasATest(t *testing.T) {
	t.Parallel()
	known, proofs := testNames(t), readProofs(t)
	promises, _, _ := strings.Cut(readFile(t, trustGuide), "\n## Guarantees about the repository\n") // measured by TestReliability…
	sentences := guideSentences(promises)
	for _, sentence := range sentences {
		names, isProven := proofs[sentence]
		if !isProven {
			t.Errorf("testdata/trust_guide.txt names no test for this sentence of the guide:\n%s", sentence)
		}
		for _, name := range names {
			if !known[name] {
				t.Errorf("test %s does not exist, but is listed for:\n%s", name, sentence)
			}
		}
	}
	for sentence := range proofs {
		if !slices.Contains(sentences, sentence) {
			t.Errorf("the guide does not have this sentence of testdata/trust_guide.txt:\n%s", sentence)
		}
	}
}

func TestTheGuideOnTrustHasARowForEachActor(t *testing.T) {
	t.Parallel()
	guide := readFile(t, trustGuide)
	for _, actor := range []string{
		"runs Terraform, or changes its configuration", "may push to the GitOps repository", "may add a workload", "may push to a workload's repository",
		"serves a chart, in a chart repository or a registry", "may set a commit status", "shares the disk of the runner", "is an agent", "is a cluster",
	} {
		if !strings.Contains(guide, "\n| "+actor+" | ") {
			t.Errorf("the table has no row for the actor %q", actor)
		}
	}
	if lines := strings.Count(guide, "\n"); lines > 300 {
		t.Errorf("the guide has %d lines, want at most 300", lines)
	}
}

func TestSentencesOfAGuideAreFound(t *testing.T) {
	t.Parallel()
	got := guideSentences(
		"---\na: b\n---\n\n# Title\n\nOne `a. B` is\nlong. Two [has](x.md#y) a\nlink: it ends. \n\n| h | i |\n|---|---|\n| a | b. C |\n\n- Three.\n  More.\n- Four\n\n" +
			"```hcl\nx = 1. Y\n```\n\nNext: [x](y).\n",
	)
	want := []string{"One `a. B` is long.", "Two has a link: it ends.", "| a | b. C |", "Three.", "More.", "Four"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func readProofs(t *testing.T) map[string][]string {
	t.Helper()
	proofs, sentence := map[string][]string{}, ""
	for line := range strings.Lines(readFile(t, filepath.Join("testdata", "trust_guide.txt"))) {
		text := strings.TrimSpace(line)
		switch {
		case text == "":
		case strings.HasPrefix(line, "\t"):
			proofs[sentence] = append(proofs[sentence], strings.Fields(text)...)
		case proofs[text] != nil:
			t.Errorf("testdata/trust_guide.txt has this sentence twice:\n%s", text)
		default:
			sentence = text
		}
	}
	return proofs
}

var (
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	markdownLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	codeSpan     = regexp.MustCompile("`[^`]*`")
	sentenceEnd  = regexp.MustCompile(`[.!?] `)
)

func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			for _, found := range testFunction.FindAllStringSubmatch(readFile(t, path), -1) {
				names[found[1]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// guideSentences returns the sentences and table rows of a Markdown page, without links. It skips the front matter, headings, code and
// the link to the next page.
func guideSentences(page string) []string {
	_, page, _ = strings.Cut(strings.TrimPrefix(page, "---\n"), "\n---\n")
	var all []string
	paragraph, inCode, inTable := "", false, false
	end := func() {
		all = append(all, splitSentences(paragraph)...)
		paragraph = ""
	}
	for line := range strings.Lines(page) {
		text := markdownLink.ReplaceAllString(strings.TrimSpace(line), "$1")
		isRow := strings.HasPrefix(text, "|")
		switch {
		case strings.HasPrefix(text, "```"):
			end()
			inCode = !inCode
		case inCode:
		case text == "" || strings.HasPrefix(text, "#") || strings.HasPrefix(text, "Next: "):
			end()
		case isRow && inTable && !strings.HasPrefix(text, "|--"):
			all = append(all, text)
		case isRow: // the head
		case strings.HasPrefix(text, "- "):
			end()
			paragraph = strings.TrimPrefix(text, "- ")
		default:
			paragraph = strings.TrimSpace(paragraph + " " + text)
		}
		inTable = isRow && !inCode
	}
	end()
	return all
}

// splitSentences splits a paragraph. A full stop in a code span does not end a sentence.
func splitSentences(paragraph string) []string {
	masked := codeSpan.ReplaceAllStringFunc(paragraph, func(span string) string { return strings.Repeat("x", len(span)) })
	var sentences []string
	start := 0
	for _, at := range sentenceEnd.FindAllStringIndex(masked, -1) {
		sentences, start = append(sentences, strings.TrimSpace(paragraph[start:at[1]])), at[1]
	}
	if rest := strings.TrimSpace(paragraph[start:]); rest != "" {
		sentences = append(sentences, rest)
	}
	return sentences
}
