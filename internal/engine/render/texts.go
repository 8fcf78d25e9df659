package render

import (
	"strings"
	"text/template"
)

// TextRenderer renders texts of an ApplicationSet with the functions and limits of templates. Printing a missing value is an
// error.
type TextRenderer struct {
	runner *runner
	spent  int
}

// maxTexts bounds the work for all objects, in bytes.
const (
	maxTexts     = 16 * maxWork
	perIteration = 100
)

// NewTextRenderer adds functions to the templates' functions, or replaces them.
func NewTextRenderer(functions template.FuncMap) *TextRenderer {
	runner := newRunner()
	runner.more = functions
	return &TextRenderer{runner: runner}
}

// BeginObject starts an object, with the limits of one file. With isStrict, reading a missing key is an error.
func (t *TextRenderer) BeginObject(isStrict bool) error {
	e := t.runner
	t.spent += e.work + perIteration*e.iterations
	e.reset()
	if e.isStrict != isStrict {
		clear(e.texts)
		e.isStrict = isStrict
	}
	if t.spent > maxTexts {
		return problemf("all templates together take too much work")
	}
	return nil
}

// Render renders a text. Its error has no value of the data.
func (t *TextRenderer) Render(text string, data map[string]any) (string, error) {
	made, err := t.runner.executeText(text, data)
	if err != nil {
		failure := &TemplateError{Message: err.Error()}
		explain(failure, text, err)
		return "", problemf("%s", strings.TrimLeft(failure.position(), ",: "))
	}
	return made, nil
}
