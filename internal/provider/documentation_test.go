package provider_test

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/metrics"
)

var (
	linkPattern    = regexp.MustCompile(`\]\(([^)\s[]+)\)`) // except patterns of JSON Schemas
	headingPattern = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	anchorPattern  = regexp.MustCompile(`<a id="([^"]+)">`)
	codePattern    = regexp.MustCompile("(?ms)^```.*?^```$")
	// objectPattern matches resources, data sources, ephemeral resources, actions and metrics; functionPattern matches
	// functions.
	objectPattern   = regexp.MustCompile(`\bflotilla_([a-z_]*[a-z])\b`)
	functionPattern = regexp.MustCompile(`provider::flotilla::([a-z_]*[a-z])\b`)
	// slugPattern matches characters that GitHub and the registry omit from anchors.
	slugPattern = regexp.MustCompile(`[^\p{L}\p{N}\-_ ]`)
)

// Links must lead to existing pages and headings, both in docs/ and in the Markdown that GitHub shows.
func TestLinksOfTheDocumentationResolve(t *testing.T) {
	t.Parallel()
	pages := readDocumentation(t)
	for name, text := range pages {
		for _, match := range linkPattern.FindAllStringSubmatch(codePattern.ReplaceAllString(text, ""), -1) {
			to, err := url.Parse(match[1])
			if err != nil {
				t.Errorf("%s: %q is not a link: %v", name, match[1], err)
				continue
			}
			if to.Scheme != "" {
				continue
			}
			target := name
			if to.Path != "" {
				target = path.Join(path.Dir(name), to.Path)
			}
			if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(target))); err != nil {
				t.Errorf("%s: the target of %q does not exist", name, match[1])
			} else if strings.HasPrefix(name, "docs/") && !strings.HasPrefix(target, "docs/") {
				t.Errorf("%s: %q leads to a page outside of the registry", name, match[1])
			} else if to.Fragment != "" && !anchors(pages[target])[to.Fragment] {
				t.Errorf("%s: %q leads to no heading", name, match[1])
			}
		}
	}
}

// Each page also has a subcategory.
func TestTheStartPageLeadsToEveryGuide(t *testing.T) {
	t.Parallel()
	pages := readDocumentation(t)
	for name, text := range pages {
		guide, isGuide := strings.CutPrefix(name, "docs/guides/")
		switch {
		case isGuide && !strings.Contains(pages["docs/index.md"], "](guides/"+guide+")"):
			t.Errorf("the start page does not lead to %s", name)
		case !isGuide && strings.Count(name, "/") == 2 && strings.Contains(text, "\nsubcategory: \"\"\n"):
			t.Errorf("%s has no subcategory", name)
		}
	}
}

// The guide on delivery also names every public server, and the guide on observing every type of Flux Provider.
func TestTheDocumentationNamesEveryGitHost(t *testing.T) {
	t.Parallel()
	pages := readDocumentation(t)
	for _, kind := range forge.Kinds() {
		for _, name := range []string{"docs/index.md", "docs/guides/delivery.md"} {
			if !strings.Contains(pages[name], kind.Title) {
				t.Errorf("%s does not name %s", name, kind.Title)
			}
		}
		if !strings.Contains(pages["docs/guides/delivery.md"], "\n| "+kind.Title) {
			t.Errorf("the guide does not say which servers of %s were tested", kind.Title)
		}
		if !strings.Contains(pages["docs/guides/reference-observing.md"], "`"+kind.Flux+"`") {
			t.Errorf("the guide on observing does not name Flux' type %s", kind.Flux)
		}
		for _, server := range kind.Servers {
			if !strings.Contains(pages["docs/guides/delivery.md"], strings.TrimPrefix(server, "*.")) {
				t.Errorf("the guide does not say that %s is recognized by %s", kind.Title, server)
			}
		}
	}
}

// Objects and functions exist if they have a page.
func TestTheDocumentationNamesOnlyExistingObjects(t *testing.T) {
	t.Parallel()
	pages := readDocumentation(t)
	metricNames := map[string]bool{}
	for _, metric := range append(metrics.Metrics(), metrics.Omitted) {
		metricNames[metric.Name] = true
	}
	for name, text := range pages {
		if !strings.HasPrefix(name, "docs/") {
			continue
		}
		for _, match := range objectPattern.FindAllStringSubmatch(text, -1) {
			if !metricNames["flotilla_"+match[1]] && pages["docs/resources/"+match[1]+".md"] == "" && pages["docs/data-sources/"+match[1]+".md"] == "" &&
				pages["docs/ephemeral-resources/"+match[1]+".md"] == "" &&
				pages["docs/actions/"+match[1]+".md"] == "" {
				t.Errorf("%s: flotilla_%s does not exist", name, match[1])
			}
		}
		for _, match := range functionPattern.FindAllStringSubmatch(text, -1) {
			if pages["docs/functions/"+match[1]+".md"] == "" {
				t.Errorf("%s: function %s does not exist", name, match[1])
			}
		}
	}
}

// readDocumentation returns the pages of docs/ and of the root, by path.
func readDocumentation(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for name, text := range files(t, filepath.Join("..", "..", "docs")) {
		pages["docs/"+name] = text
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"} {
		pages[name] = readFile(t, filepath.Join("..", "..", name))
	}
	if len(pages) < 40 {
		t.Fatalf("got %d pages, want at least 40", len(pages))
	}
	return pages
}

func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, match := range anchorPattern.FindAllStringSubmatch(page, -1) {
		found[match[1]] = true
	}
	for _, match := range headingPattern.FindAllStringSubmatch(codePattern.ReplaceAllString(page, ""), -1) {
		heading := slugPattern.ReplaceAllString(strings.ToLower(match[1]), "")
		found[strings.ReplaceAll(heading, " ", "-")] = true
	}
	return found
}
