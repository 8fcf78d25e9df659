package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/credential"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

// PlainTexts returns the allowed texts of an assignment that look like credentials.
func (t *Templates) PlainTexts(subject Subject) []string {
	return credential.Texts([]any{subject.Config, t.parametersOf(subject.Assignment)})
}

// reportCredentials checks a file of a user's template.
func (c *folderCheck) reportCredentials(u *uncheckedFile) {
	if u.isShapeValid && u.file.shape.isUnexposed && c.areNamesUnexposed {
		return // each name is a whole value
	}
	text, template, file := u.content(), u.template, u.file.Name
	if !credential.MayHave(text) {
		return
	}
	known := c.templates.PlainTexts(c.subject)
	for _, part := range exposureParts(template.contentType, text, file) {
		for _, found := range credential.Find(part.value, known...) {
			name := strings.TrimSuffix(part.name+"."+found.Path, ".")
			if slices.Contains(c.subject.Assignment.Target.Target.Manifests.AllowPlain, name) {
				continue
			}
			where := ""
			if found.Line > 0 {
				where = fmt.Sprintf(", line %d,", found.Line)
			}
			c.findings.Report(fleet.PathOf("templates", template.name),
				"%s template: %s: %s%s looks like a credential (rule %s), and files are committed "+
					"as they are: refer to a Secret instead; if it is none, add allow_plain = [%q] to deployment target %q",
				template.kind, file, name, where, found.Rule, name, c.subject.Assignment.Target.Name)
		}
	}
}

type exposurePart struct {
	name  string
	value any
}

// exposureParts returns the documents without encrypted ones, or the file as one text.
func exposureParts(contentType, text, file string) (parts []exposurePart) {
	if contentType != "yaml" && contentType != "json" {
		return []exposurePart{{file, text}}
	}
	for _, document := range fleet.SplitYAML(text) {
		value, err := fleet.ParseLooseYAML(document.Text)
		if err != nil {
			return []exposurePart{{file, text}}
		}
		object, _ := value.(map[string]any)
		kind, _ := object["kind"].(string)
		switch {
		case kind == objects.SealedSecret, object["sops"] != nil && secret.IsSecret(object):
		case kind != "":
			parts = append(parts, exposurePart{kind, value})
		default:
			parts = append(parts, exposurePart{file, value})
		}
	}
	return parts
}
