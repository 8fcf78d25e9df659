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

func TestGuidesShowExistingExamples(t *testing.T) {
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
		readExample := func(name string) (string, error) {
			content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
			return string(content), err
		}
		parsed, err := template.New(filepath.Base(guide)).
			Funcs(template.FuncMap{"tffile": readExample, "codefile": func(_, name string) (string, error) { return readExample(name) }}).
			Parse(string(text))
		if err == nil {
			err = parsed.Execute(io.Discard, nil)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

func guideText(t *testing.T, guide string) string {
	t.Helper()
	return readFile(t, filepath.Join("..", "..", "templates", "guides", guide))
}

// guideExample returns an example that a guide shows or links to.
func guideExample(t *testing.T, guide, example string) string {
	t.Helper()
	text, folder := guideText(t, guide), "/tree/main/"+strings.TrimSuffix(example, "/main.tf")+")"
	if !strings.Contains(text, "{{ tffile "+strconv.Quote(example)+" }}") && !strings.Contains(text, folder) {
		t.Fatalf("%s does not show %s", guide, example)
	}
	return readFile(t, filepath.Join("..", "..", filepath.FromSlash(example)))
}

func guideBlock(t *testing.T, guide, with string) string {
	t.Helper()
	return guideBlockOf(t, guide, "terraform", with)
}

func guideBlockOf(t *testing.T, guide, language, with string) string {
	t.Helper()
	for _, block := range strings.Split(guideText(t, guide), "```"+language+"\n")[1:] {
		if block, _, _ = strings.Cut(block, "```"); strings.Contains(block, with) {
			return block
		}
	}
	t.Fatalf("%s has no %s with %q", guide, language, with)
	return ""
}

// hclBlocks returns the HCL blocks by type and labels: "resource flotilla_agent store". Locals have their first key as a label.
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

// kindsOfGuides lists the subcategories in order. mostLines limits the lines outside of listings; 0 is no limit.
var kindsOfGuides = []struct {
	subcategory string
	mostLines   int
}{{"Tutorials", 300}, {"How-to guides", 300}, {"Explanation", 300}, {"Reference", 0}}

func TestGuidesHaveFourKinds(t *testing.T) {
	t.Parallel()
	const most = 20
	pages := readDocumentation(t)
	guides := guidesOfTheStartPage(t)
	if len(guides) > most {
		t.Errorf("got %d guides, want at most %d", len(guides), most)
	}
	kind := 0
	for _, guide := range guides {
		text := pages["docs/guides/"+guide]
		_, subcategory, _ := strings.Cut(text, "\nsubcategory: \"")
		subcategory, _, _ = strings.Cut(subcategory, "\"")
		for kind < len(kindsOfGuides)-1 && kindsOfGuides[kind].subcategory != subcategory {
			kind++
		}
		if kindsOfGuides[kind].subcategory != subcategory {
			t.Errorf("%s has the subcategory %q, which is unknown or in a different place", guide, subcategory)
		}
		lines := strings.Count(codePattern.ReplaceAllString(text, ""), "\n")
		if limit := kindsOfGuides[kind].mostLines; limit > 0 && lines >= limit {
			t.Errorf("%s has %d lines outside of listings", guide, lines)
		}
	}
}

// Blocks with output are consoles, not shell.
func TestShellCommandsHaveNoPrompt(t *testing.T) {
	t.Parallel()
	for name, text := range readDocumentation(t) {
		for _, block := range strings.Split(text, "```shell\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			if strings.HasPrefix(block, "$ ") || strings.Contains(block, "\n$ ") {
				t.Errorf("%s has a prompt in\n%s", name, block)
			}
		}
	}
}

// A command that asks for confirmation would read the next line of the block as the answer.
func TestShellCommandsCanBePasted(t *testing.T) {
	t.Parallel()
	asks := regexp.MustCompile(`(?m)^(?:terraform|tofu) (?:apply|destroy|force-unlock)(?: .*)?\n.`)
	for name, text := range readDocumentation(t) {
		for _, block := range strings.Split(text, "```shell\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			if asks.MatchString(strings.ReplaceAll(block, "-auto-approve", "\n")) {
				t.Errorf("%s has commands after one that asks for confirmation, in\n%s", name, block)
			}
		}
	}
}

// guidesOfTheStartPage returns the files of guides in order.
func guidesOfTheStartPage(t *testing.T) []string {
	t.Helper()
	_, list, _ := strings.Cut(readFile(t, filepath.Join("..", "..", "templates", "index.md.tmpl")), "\n## Documentation\n")
	list, _, _ = strings.Cut(list, "\n## ")
	var guides []string
	for _, link := range regexp.MustCompile(`(?m)^\d+\. \[[^\]]+\]\(guides/([a-z-]+\.md)\)`).FindAllStringSubmatch(list, -1) {
		guides = append(guides, link[1])
	}
	return guides
}

// Reference pages have no order.
func TestEachGuideLeadsToTheNextOne(t *testing.T) {
	t.Parallel()
	guides := guidesOfTheStartPage(t)
	for i, guide := range guides {
		if strings.HasPrefix(guide, "reference-") || guide == "troubleshooting.md" {
			continue
		}
		name := filepath.Join("..", "..", "templates", "guides", guide)
		if _, err := os.Stat(name); err != nil {
			name += ".tmpl"
		}
		_, next, _ := strings.Cut(readFile(t, name), "\nNext: ")
		if next, _, _ = strings.Cut(next, ")"); !strings.HasSuffix(next, "("+guides[i+1]) {
			t.Errorf("%s leads to %q, want %s", guide, next, guides[i+1])
		}
	}
}
