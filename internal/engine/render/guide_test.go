package render_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
)

// The guide lists every parameter and has an example of each. The provider's tests apply the examples.
func TestTheGuideShowsEveryParameter(t *testing.T) {
	var guide []byte
	for _, name := range []string{"reference-rendering.md.tmpl", "rendering.md.tmpl"} {
		page, err := os.ReadFile(filepath.Join("..", "..", "..", "templates", "guides", name))
		if err != nil {
			t.Fatal(err)
		}
		guide = append(guide, page...)
	}
	examples := ""
	for _, match := range regexp.MustCompile(`tffile "(.*)/main.tf"|/tree/main/(examples/.*?)\)`).FindAllStringSubmatch(string(guide), -1) {
		example, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(match[1]+match[2]), "main.tf"))
		if err != nil {
			t.Fatal(err)
		}
		examples += string(example)
	}
	for _, name := range render.ParameterNames {
		if !strings.Contains(string(guide), "\n| `"+name+"` |") {
			t.Errorf("the guide does not list %s", name)
		}
		if !regexp.MustCompile(`\b` + name + `\s+= `).MatchString(examples) {
			t.Errorf("no example has %s", name)
		}
		row := string(guide)[max(strings.Index(string(guide), "\n| `"+name+"` |"), 0)+1:]
		row, _, _ = strings.Cut(row, "\n")
		kind := reconciler.KindOfParameter(name)
		if kind == nil {
			continue
		}
		for field := range kind.DecidedFields() {
			steps := strings.Split(field, ".")
			if last := steps[len(steps)-1]; !strings.Contains(row, last+"`") {
				t.Errorf("the guide does not say that %s of %s is decided", field, name)
			}
		}
	}
	for _, form := range []string{"configmap:", "values:", `["substitute"]`, `["values"]`} {
		if !strings.Contains(examples, form) {
			t.Errorf("no example has config_as %s", form)
		}
	}
}

func TestParametersAreSorted(t *testing.T) {
	if !slices.IsSorted(render.ParameterNames) {
		t.Errorf("%v", render.ParameterNames)
	}
}

// TestTheGuideHasEveryFieldOfTemplates reads the fields from the Go files that set them.
func TestTheGuideHasEveryFieldOfTemplates(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "templates", "guides", "reference-rendering.md.tmpl"))
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range regexp.MustCompile(`\broot\["(\w+)"\]`).FindAllStringSubmatch(string(text), -1) {
			if found++; !regexp.MustCompile("(?m)^\\|[^|]*`\\." + field[1] + "`[^|]*\\|").Match(guide) {
				t.Errorf("the guide has no row for .%s", field[1])
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d fields were found", found)
	}
}
