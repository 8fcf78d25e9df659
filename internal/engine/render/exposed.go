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
func (c *folderCheck) reportCredentials(u uncheckedFile) {
	if c.isShapeUnexposed(u) {
		return
	}
	text, template, file := string(u.file.Content), u.template, u.file.Name
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

// isShapeUnexposed reports that neither the shape nor the names have credentials, if each name is a whole value.
func (c *folderCheck) isShapeUnexposed(u uncheckedFile) bool {
	return u.template.contentType == "yaml" && u.shape != nil && c.readShape(u) && u.shape.isUnexposed && c.areNamesUnexposed
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
