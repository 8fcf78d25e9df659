package provider_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pageListing is a fenced block of a page. Its key is the path of the page and the anchor of the section, such as
// "guides/rollouts/decisions-by-people". Further listings of a language in a section have a number: "…-2".
type pageListing struct{ page, key, language, text string }

var fencePattern = regexp.MustCompile("(?ms)^( *)```([a-z]*)\n(.*?)^ *```$")

// listingsOf returns the listings of a language in the order of the pages.
func listingsOf(t *testing.T, language string) []pageListing {
	t.Helper()
	pages := readDocumentation(t)
	var found []pageListing
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		name := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(page, "docs/"), ".md"))
		inSection := map[string]int{}
		for _, match := range fencePattern.FindAllStringSubmatchIndex(pages[page], -1) {
			indent, block := pages[page][match[2]:match[3]], pageListing{page: pages[page], key: name, language: pages[page][match[4]:match[5]]}
			if block.language != language {
				continue
			}
			headings := headingPattern.FindAllStringSubmatch(codePattern.ReplaceAllString(pages[page][:match[0]], ""), -1)
			if len(headings) > 0 {
				slug := slugPattern.ReplaceAllString(strings.ToLower(headings[len(headings)-1][1]), "")
				block.key += "/" + strings.ReplaceAll(slug, " ", "-")
			}
			if inSection[block.key]++; inSection[block.key] > 1 {
				block.key = fmt.Sprintf("%s-%d", block.key, inSection[block.key])
			}
			block.text = strings.ReplaceAll("\n"+pages[page][match[6]:match[7]], "\n"+indent, "\n")[1:]
			found = append(found, block)
		}
	}
	return found
}

func textListing(t *testing.T, language, key string) string {
	t.Helper()
	blocks := listingsOf(t, language)
	i := slices.IndexFunc(blocks, func(block pageListing) bool { return block.key == key })
	if i < 0 {
		t.Fatalf("there is no listing %s", key)
	}
	return strings.TrimSpace(blocks[i].text)
}

// exampleTexts maps texts of files of examples to names.
func exampleTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for name, text := range files(t, filepath.Join("..", "..", "examples")) {
		texts[strings.TrimSpace(text)] = name
	}
	return texts
}

func requireTest(t *testing.T, name string) {
	t.Helper()
	for _, folder := range []string{".", "../views/metrics", "../testing/e2e"} {
		tests, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range tests {
			if strings.Contains(readFile(t, file), "\nfunc "+name+"(t *testing.T) {") {
				return
			}
		}
	}
	t.Errorf("there is no test %s", name)
}
