package render

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/credential"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

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
