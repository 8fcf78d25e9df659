package provider_test

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// TestGuidesShowExamplesThatThereAre renders the guides that are templates, as `make docs` does.
func TestGuidesShowExamplesThatThereAre(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	guides, err := filepath.Glob(filepath.Join(root, "templates", "guides", "*.md.tmpl"))
	if err != nil || len(guides) == 0 {
		t.Fatalf("%d guides: %v", len(guides), err)
	}
	for _, guide := range guides {
		text, err := os.ReadFile(guide)
		if err != nil {
			t.Fatal(err)
		}
		shown := func(name string) (string, error) {
			content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
			return string(content), err
		}
		parsed, err := template.New(filepath.Base(guide)).
			Funcs(template.FuncMap{"tffile": shown, "codefile": func(_, name string) (string, error) { return shown(name) }}).
			Parse(string(text))
		if err == nil {
			err = parsed.Execute(io.Discard, nil)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// guideText is the text of a guide, or of its template.
func guideText(t *testing.T, guide string) string {
	t.Helper()
	return readFile(t, filepath.Join("..", "..", "templates", "guides", guide))
}

// guideExample is the HCL of an example that a guide shows.
func guideExample(t *testing.T, guide, example string) string {
	t.Helper()
	if !strings.Contains(guideText(t, guide), "{{ tffile "+strconv.Quote(example)+" }}") {
		t.Fatalf("%s does not show %s", guide, example)
	}
	return readFile(t, filepath.Join("..", "..", filepath.FromSlash(example)))
}

// guideBlock is the block of HCL of a guide that has a text.
func guideBlock(t *testing.T, guide, with string) string {
	t.Helper()
	for _, block := range strings.Split(guideText(t, guide), "```terraform\n")[1:] {
		if block, _, _ = strings.Cut(block, "```"); strings.Contains(block, with) {
			return block
		}
	}
	t.Fatalf("%s has no HCL with %q", guide, with)
	return ""
}

// hclBlocks are the blocks of HCL, by their type and labels: "resource flotilla_agent store". Locals have the first of
// their names in the place of labels.
func hclBlocks(t *testing.T, text string) map[string]string {
	t.Helper()
	file, problems := hclsyntax.ParseConfig([]byte(text), "guide.tf", hcl.InitialPos)
	if problems.HasErrors() {
		t.Fatalf("%v:\n%s", problems, text)
	}
	blocks := map[string]string{}
	for _, block := range file.Body.(*hclsyntax.Body).Blocks {
		label := strings.Join(append([]string{block.Type}, block.Labels...), " ")
		if block.Type == "locals" {
			label += " " + slices.Sorted(maps.Keys(block.Body.Attributes))[0]
		}
		blocks[label] = string(block.Range().SliceBytes([]byte(text)))
	}
	return blocks
}

// TestGuidesShowHCLThatParses reads every block of HCL of every guide.
func TestGuidesShowHCLThatParses(t *testing.T) {
	t.Parallel()
	guides, err := filepath.Glob(filepath.Join("..", "..", "templates", "guides", "*.md*"))
	if err != nil || len(guides) == 0 {
		t.Fatalf("%d guides: %v", len(guides), err)
	}
	for _, guide := range guides {
		for _, block := range strings.Split(guideText(t, filepath.Base(guide)), "```terraform\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			hclBlocks(t, block)
		}
	}
}

// A guide with a reference beside it is a page, and each of the two leads to the other.
func TestGuidesWithAReferenceAreAPage(t *testing.T) {
	t.Parallel()
	const most = 80
	for way, reference := range map[string]string{
		"onboarding-clusters": "onboarding-reference", "what-is-rendered": "what-is-rendered-reference", "what-runs-where": "what-runs-where-reference",
	} {
		text, rest := guideText(t, way+".md.tmpl"), guideText(t, reference+".md.tmpl")
		if lines := strings.Count(text, "\n"); lines > most {
			t.Errorf("%s has %d lines, more than %d", way, lines, most)
		}
		if !strings.Contains(text, "("+reference+".md)") || !strings.Contains(rest, "("+way+".md)") {
			t.Errorf("%s and %s do not lead to each other", way, reference)
		}
		if !strings.Contains(rest, "\n|---|") {
			t.Errorf("%s has no tables", reference)
		}
	}
}

// TestEachGuideLeadsToTheNextOne follows the numbered list of the start page. References are to look up and are left out.
func TestEachGuideLeadsToTheNextOne(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "templates")
	_, list, _ := strings.Cut(readFile(t, filepath.Join(root, "index.md.tmpl")), "\n1. ")
	list, _, _ = strings.Cut(list, "\n\n")
	var order []string
	for _, link := range regexp.MustCompile(`\(guides/([a-z-]+\.md)\)`).FindAllStringSubmatch(list, -1) {
		if page := link[1]; page != "troubleshooting.md" && !strings.Contains(page, "reference") {
			order = append(order, page)
		}
	}
	if len(order) < 20 {
		t.Fatalf("the start page lists %d guides: %q", len(order), order)
	}
	for i, page := range order[:len(order)-1] {
		name := filepath.Join(root, "guides", page)
		if _, err := os.Stat(name); err != nil {
			name += ".tmpl"
		}
		_, next, _ := strings.Cut(readFile(t, name), "\nNext: ")
		if next, _, _ = strings.Cut(next, ")"); !strings.HasSuffix(next, "("+order[i+1]) {
			t.Errorf("%s leads to %q, want %s", page, next, order[i+1])
		}
	}
}
