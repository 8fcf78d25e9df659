package render

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/credential"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

// maxConfigMap is Kubernetes' limit on all values of a ConfigMap, in bytes.
const maxConfigMap = 1 << 20

// Check checks rendered files as a cluster reads them. Findings name the template, the file and the line.
func (t *Templates) Check(subject Subject, files []AssignmentFile) fleet.Findings {
	host := t.hostOf(subject.Assignment)
	check := newFolderCheck(t, host, subject)
	defer check.releaseObjects()
	check.addEncrypted()
	var open []uncheckedFile
	for i := range files {
		for _, template := range host.templates {
			if template.file != files[i].Name {
				continue
			}
			if files[i].isValid && host.isBuiltin {
				continue
			}
			// Built-in templates write different kinds, so their checked shapes cannot collide. Users' templates may.
			if shape := files[i].shape; !host.isBuiltin || shape == nil || !shape.checked.Load() {
				open = append(slices.Grow(open, len(files)-i), uncheckedFile{template: template, file: &files[i]})
			}
		}
	}
	isRight := true
	for i := range open {
		isRight = isRight && (check.isQuicklyValid(&open[i]) || check.checkFile(open[i].template, *open[i].file))
	}
	if !isRight { // again, with lines
		clear(check.objects)
		check.addEncrypted()
		check.findings = nil
	}
	for i := range open {
		u := &open[i]
		isContentRight := isRight || check.checkFile(u.template, *u.file)
		if !u.template.isBuiltin {
			check.reportCredentials(u)
		} else if u.file.shape != nil && isContentRight {
			u.file.shape.checked.Store(true)
		}
	}
	return check.findings
}

type uncheckedFile struct {
	template     *compiledTemplate
	file         *AssignmentFile
	isShapeValid bool // with the names of the folder
	text         string
}

func (u *uncheckedFile) content() string {
	if u.text == "" {
		u.text = string(u.file.Content)
	}
	return u.text
}

type position struct {
	file string
	line int
}

type objectPositions map[objects.Identity]position

type folderCheck struct {
	subject    Subject
	templates  *Templates
	catalog    *kinds.Catalog
	names      slots
	reconciler *reconciler.Reconciler // built-in, or nil
	// areNamesUnexposed is known only for users' templates.
	areNamesUnexposed bool
	objects           objectPositions
	findings          fleet.Findings
}

func newFolderCheck(t *Templates, host *hostTemplates, subject Subject) *folderCheck {
	names := slotsOf(subject)
	return &folderCheck{
		subject: subject, templates: t, catalog: host.catalog, names: names, reconciler: host.reconciler,
		areNamesUnexposed: !host.isBuiltin && !slices.ContainsFunc(names, credential.MayHave),
		objects:           t.objects.Get().(objectPositions),
	}
}

// releaseObjects keeps a small map for other folders. A new one for each takes a twentieth of the memory.
func (c *folderCheck) releaseObjects() {
	const most = 64
	if len(c.objects) <= most {
		clear(c.objects)
		c.templates.objects.Put(c.objects)
	}
}

// mayWriteData reports whether documents may lack apiVersion and kind: no agent must read them as manifests.
func (c *folderCheck) mayWriteData(template *compiledTemplate) bool {
	return template.kind == "config" && !c.reconciler.HasAgent()
}

// isQuicklyValid reports whether a file is plain YAML without mistakes. [folderCheck.checkFile] takes twenty times as long.
func (c *folderCheck) isQuicklyValid(u *uncheckedFile) bool {
	if u.template.contentType != "yaml" {
		return u.template.contentType != "json"
	}
	named := func(text string) string { return text }
	var found []objects.Identity
	if u.isShapeValid = u.file.shape != nil && c.readShape(u); u.isShapeValid {
		found, named = u.file.shape.objects, c.nameOf
	} else {
		var ok bool
		if _, found, ok = c.readPlainObjects(u.template, u.content()); !ok {
			return false
		}
	}
	var reconciled []folder.ObjectRef
	for _, of := range found {
		of = objects.Identity{Group: of.Group, Kind: named(of.Kind), Namespace: named(of.Namespace), Name: named(of.Name)}
		if _, twice := c.objects[of]; twice {
			return false
		}
		c.objects[of] = position{}
		reconciled = appendReconciled(reconciled, of)
	}
	u.file.objects, u.file.isRead = reconciled, true
	return true
}

// nameOf replaces a mark.
func (c *folderCheck) nameOf(text string) string {
	if slot, isMark := slotOf(text); isMark {
		return c.names[slot]
	}
	return text
}

// readShape reports whether the shape and the names are certainly valid. It reads a shape once, with marks for names. If each
// mark is a whole value, a file with plain names is as valid.
func (c *folderCheck) readShape(u *uncheckedFile) bool {
	shape := u.file.shape
	shape.read.Do(func() { c.readMarked(u.template, shape) })
	return shape.isValid && !slices.ContainsFunc(shape.slots, func(slot int) bool {
		return !isPlain(c.names[slot]) || fleet.CheckLabelName(c.names[slot]) != ""
	})
}

// readMarked reads a shape with marks for names. It refuses data documents, which not all hosts allow.
func (c *folderCheck) readMarked(template *compiledTemplate, of *shape) {
	marks := make(slots, len(c.names))
	for slot := range marks {
		marks[slot] = mark(slot)
	}
	text := string(of.fill(marks))
	documents, found, ok := c.readPlainObjects(template, text)
	of.objects = found
	of.isValid = ok && len(found) == len(documents) && !deep.Holds(documents, hasPartOfMark)
	of.isUnexposed = of.isValid && (!credential.MayHave(text) || len(credential.Find(documents)) == 0)
}

// hasPartOfMark reports whether a mark is part of a longer text or a key.
func hasPartOfMark(value any) bool {
	switch value := value.(type) {
	case string:
		_, isMark := slotOf(value)
		return strings.Contains(value, slotMark) && !isMark
	case map[string]any:
		for key := range value {
			if strings.Contains(key, slotMark) {
				return true
			}
		}
	}
	return false
}

// readPlainObjects returns documents and objects. Unless ok, the file is not plain YAML or may have a mistake.
func (c *folderCheck) readPlainObjects(template *compiledTemplate, content string) (documents []any, found []objects.Identity, ok bool) {
	documents, ok = fleet.ReadPlainYAML(content)
	for _, document := range documents {
		object, isObject := document.(map[string]any)
		_, hasVersion := object["apiVersion"]
		_, hasKind := object["kind"]
		if isObject && !hasVersion && !hasKind && c.mayWriteData(template) {
			continue
		}
		of := objects.IdentityOf(object)
		found, ok = append(found, of), ok && isValidObject(of, object) && c.catalog.Accepts(object)
	}
	return documents, found, ok
}

func isValidObject(of objects.Identity, object map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	apiVersion, _ := object["apiVersion"].(string)
	if apiVersion == "" || of.Kind == "" || of.Kind == "List" || of.Name == "" || nameProblem(of.Group, of.Kind, of.Name) != "" {
		return false
	}
	if _, given := metadata["namespace"]; given && (of.Namespace == "" || fleet.CheckLabelName(of.Namespace) != "") {
		return false
	}
	areTexts := hasTexts(metadata, "annotations", func(string, string) bool { return true }) &&
		hasTexts(metadata, "labels", func(key, value string) bool {
			return fleet.CheckLabelKey(key) == "" && fleet.CheckLabelValue(value) == ""
		})
	if of.Group == "" && of.Kind == "ConfigMap" {
		size := 0
		isEntry := func(key, value string) bool {
			size += len(value)
			return fleet.IsPlainLabel(key) || len(validation.IsConfigMapKey(key)) == 0
		}
		areTexts = areTexts && hasTexts(object, "data", isEntry) && hasTexts(object, "binaryData", isEntry) && size <= maxConfigMap
	}
	return areTexts
}

// hasTexts reports whether the map at name, if any, has only valid strings.
func hasTexts(object map[string]any, name string, isRight func(key, value string) bool) bool {
	entries, given := object[name]
	if !given {
		return true
	}
	texts, isObject := entries.(map[string]any)
	for key, value := range texts {
		if text, isText := value.(string); !isText || !isRight(key, text) {
			return false
		}
	}
	return isObject
}

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
