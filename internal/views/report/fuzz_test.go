package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	markup "golang.org/x/net/html"

	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// hostile lists texts that have an effect unless they are escaped.
var hostile = []string{
	`<script>alert(1)</script>`, `</script><script>alert(1)</script>`, `</noscript><img src=x onerror=alert(1)>`, `<!--`, `-->`, `]]>`,
	`" onmouseover="alert(1)`, `' onfocus='alert(1)' autofocus='`, `javascript:alert(1)`, `{{.}}`, `${1}`, `&lt;b&gt;&#x202e;`, `</style><style>*{display:none}`,
	`](https://example.com)`, `[a](javascript:alert(1))`, `![a](https://example.com/a.png)`, `https://example.com`, `www.example.com`, `a@example.com`,
	`@team`, `#1`, `GH-1`, "`", "``", "`code`", "```\n```", `a|b`, `a\|b`, `\`, `|---|`, `**b**`, `~~s~~`, `<https://example.com>`, "a\n\n# b", "a\n---\nb", `$x$`, `:smile:`,
	"\x1b[31mred\x1b[0m", "\x1b]8;;https://example.com\a", "\x00", "\x7f", "\u0085", "\u202eabc\u202c", "\u2066a\u2069", "\u200b", "\ufeff", "\u2028", "\u2029", "\xff\xfe", "é", " a ",
	"\U000e0041", strings.Repeat("long ", 400),
}

// harmless returns the structure of a page with harmless texts.
var harmless = sync.OnceValue(func() (structure struct{ scripted, unscripted, markdown []string }) {
	p := pageOf("harmless")
	page, err := report.HTML(p)
	if err != nil {
		panic(err)
	}
	structure.scripted, _ = elements(page, true)
	structure.unscripted, _ = elements(page, false)
	structure.markdown, _ = nodes(bothMarkdowns(p))
	return structure
})

// bothMarkdowns returns the Markdown of a page and of its comparison.
func bothMarkdowns(p *report.Page) string {
	return report.Markdown(p, 0) + "\n" + report.ComparisonMarkdown(p.Comparisons[0].Result, 0)
}

func FuzzHostileTexts(f *testing.F) {
	for _, value := range hostile {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) { checkHostile(t, value) })
}

// checkHostile puts a text into every field of a page. The output must have the same structure as with harmless texts.
func checkHostile(t *testing.T, value string) {
	t.Helper()
	page := pageOf("x" + value)
	text := renderHTML(t, page)
	for scripting, want := range map[bool][]string{true: harmless().scripted, false: harmless().unscripted} {
		got, err := elements(text, scripting)
		if err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		if index := firstDifference(got, want); index >= 0 {
			t.Fatalf("%q changes the HTML (scripts: %v) at element %d:\n%s\nwant\n%s", value, scripting, index, line(got, index), line(want, index))
		}
	}
	if r, ok := findControl(string(text)); ok {
		t.Fatalf("%q leaves %q in the HTML", value, r)
	}
	markdown := bothMarkdowns(page)
	got, err := nodes(markdown)
	if err != nil {
		t.Fatalf("%q: %v", value, err)
	}
	if index := firstDifference(got, harmless().markdown); index >= 0 {
		t.Fatalf("%q changes the Markdown at node %d: %s, want %s\n%s", value, index, line(got, index), line(harmless().markdown, index), markdown)
	}
	if r, ok := findControl(markdown); ok {
		t.Fatalf("%q leaves %q in the Markdown", value, r)
	}
	for _, limit := range []int{1, 100, 700, 2000} {
		if cut := report.Markdown(page, limit); len(cut) > limit {
			t.Fatalf("%q: %d bytes of Markdown, want at most %d", value, len(cut), limit)
		}
	}
}

// pageOf returns a page with the same text in every field.
func pageOf(value string) *report.Page {
	p := smallPage()
	fillFields(reflect.ValueOf(p).Elem(), value)
	p.Rules[1].Error = "" // its violations are shown
	return p
}

func fillFields(v reflect.Value, value string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(value)
	case reflect.Pointer:
		if !v.IsNil() {
			fillFields(v.Elem(), value)
		}
	case reflect.Slice:
		for i := range v.Len() {
			fillFields(v.Index(i), value)
		}
	case reflect.Map:
		if v.Len() > 0 {
			v.Set(reflect.ValueOf(map[string]string{value: value}))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() { // unexported fields are on no page
				fillFields(field, value)
			}
		}
	}
}

// elements returns the elements of a page with their attributes. Attributes with texts of users have no values.
func elements(page []byte, scripting bool) ([]string, error) {
	root, err := markup.ParseWithOptions(bytes.NewReader(page), markup.ParseOptionEnableScripting(scripting))
	if err != nil {
		return nil, err
	}
	var found []string
	for node := range root.Descendants() {
		if node.Type != markup.ElementNode {
			if node.Type != markup.TextNode {
				found = append(found, fmt.Sprintf("node %d", node.Type))
			}
			continue
		}
		element := "<" + node.Data
		for _, attribute := range node.Attr {
			element += " " + attribute.Namespace + ":" + attribute.Key
			if attribute.Key != "data-host" && attribute.Key != "data-region" {
				element += "=" + attribute.Val
			}
		}
		switch node.Data {
		case "script":
			if slices.ContainsFunc(node.Attr, func(a markup.Attribute) bool { return a.Val == "application/json" }) {
				if err := checkData(node.FirstChild.Data); err != nil {
					return nil, err
				}
				break
			}
			element += node.FirstChild.Data
		case "style":
			element += node.FirstChild.Data
		}
		found = append(found, element)
	}
	return found, nil
}

// checkData refuses control characters in the data, because the script shows its texts unchanged.
func checkData(text string) error {
	var data struct {
		Strings, Trees []string
	}
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		return err
	}
	for _, element := range append(data.Strings, data.Trees...) {
		if r, ok := findControl(element); ok {
			return fmt.Errorf("%q in the data", r)
		}
	}
	return nil
}

// findControl returns a character that controls a terminal or the direction of text.
func findControl(text string) (rune, bool) {
	for _, r := range text {
		switch {
		case r == '\n':
		case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c, r == 0x2028, r == 0x2029:
			return r, true
		}
	}
	return 0, false
}

// nodes returns the kinds of the nodes of Markdown, as a Git host parses it.
func nodes(markdown string) ([]string, error) {
	root := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader([]byte(markdown)))
	var found []string
	err := ast.Walk(root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		found = append(found, node.Kind().String())
		switch node.Kind() {
		case ast.KindLink, ast.KindImage, ast.KindAutoLink, ast.KindRawHTML, ast.KindHTMLBlock:
			return ast.WalkStop, fmt.Errorf("a %s in Markdown", node.Kind())
		case ast.KindCodeSpan:
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	return found, err
}

func firstDifference(a, b []string) int {
	for i := range max(len(a), len(b)) {
		if line(a, i) != line(b, i) {
			return i
		}
	}
	return -1
}

func line(lines []string, index int) string {
	if index >= len(lines) {
		return "nothing"
	}
	return lines[index]
}
