package render

import (
	"maps"
	"strings"
	"text/template"
)

// Texts renders texts of an object that are Go templates each, such as those of an ApplicationSet, with the functions and
// within the limits of the templates of a fleet. A missing value that would be printed is an error.
type TextRenderer struct {
	runner *runner
	spent  int // by the objects before
}

// maxTexts is how much work all objects take together, where an iteration of a loop counts as perIteration bytes.
const (
	maxTexts     = 16 * maxWork
	perIteration = 100
)

// NewTexts returns what renders texts, with functions beside those of a fleet's templates, or in their place.
func NewTextRenderer(functions template.FuncMap) *TextRenderer {
	runner := newRunner()
	runner.more = functions
	return &TextRenderer{runner: runner}
}

// Begin begins with an object, which may take as much work as one file of an assignment. isStrict says that a template fails that
// asks for a key which a map does not have.
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

// Render renders a text. The error has the line and the action, and no value of the data.
func (t *TextRenderer) Render(text string, data map[string]any) (string, error) {
	made, err := t.runner.executeText(text, data)
	if err != nil {
		failure := &TemplateError{Message: err.Error()}
		explain(failure, text, err)
		return "", problemf("%s", strings.TrimLeft(failure.position(), ",: "))
	}
	return made, nil
}

// withMore adds the runner's own functions to others.
func (e *runner) withMore(functions template.FuncMap) template.FuncMap {
	maps.Copy(functions, e.more)
	return functions
}
