package provider_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"text/template"
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
		parsed, err := template.New(filepath.Base(guide)).Funcs(template.FuncMap{"tffile": shown, "codefile": func(_, name string) (string, error) { return shown(name) }}).Parse(string(text))
		if err == nil {
			err = parsed.Execute(io.Discard, nil)
		}
		if err != nil {
			t.Error(err)
		}
	}
}
