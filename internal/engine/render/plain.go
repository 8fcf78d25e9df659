package render

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
)

// isQuicklyValid reports whether a file is plain YAML without mistakes. [folderCheck.checkFile] takes twenty times as long,
// because it knows all of YAML and the lines.
func (c *folderCheck) isQuicklyValid(u uncheckedFile) bool {
	if u.template.contentType != "yaml" {
		return u.template.contentType != "json"
	}
	found, ok := c.objectsOfShape(u)
	if !ok {
		_, found, ok = c.readPlainObjects(u.template, string(u.file.Content))
	}
	if !ok {
		return false
	}
	for _, identity := range found {
		if _, twice := c.objects[identity]; twice {
			return false
		}
		c.objects[identity] = position{}
	}
	if !u.template.isBuiltin {
		u.file.objects, u.file.isRead = nil, true
		for _, of := range found {
			u.file.objects = appendReconciled(u.file.objects, of)
		}
	}
	return true
}

// objectsOfShape returns the objects of a shape, which is read once with marks for names. If each mark is a whole value, a
// file with plain names is as valid as the marked one.
func (c *folderCheck) objectsOfShape(u uncheckedFile) (objects []identity, ok bool) {
	if u.shape == nil {
		return nil, false
	}
	u.shape.read.Do(func() { u.shape.objects, u.shape.isValid = c.markedObjects(u) })
	if !u.shape.isValid {
		return nil, false
	}
	for _, slot := range u.shape.slots {
		if !isPlain(c.names[slot]) || fleet.CheckLabelName(c.names[slot]) != "" {
			return nil, false
		}
	}
	named := func(text string) string {
		if slot, isMark := slotOf(text); isMark {
			return c.names[slot]
		}
		return text
	}
	objects = slices.Clone(u.shape.objects)
	for i, of := range objects {
		objects[i] = identity{of.group, named(of.kind), named(of.namespace), named(of.name)}
	}
	return objects, true
}

// markedObjects reads a shape with marks for names. It refuses data documents, which not all hosts allow.
func (c *folderCheck) markedObjects(u uncheckedFile) (objects []identity, ok bool) {
	marks := make(slots, len(c.names))
	for slot := range marks {
		marks[slot] = mark(slot)
	}
	documents, objects, ok := c.readPlainObjects(u.template, string(u.shape.fill(marks)))
	return objects, ok && len(objects) == len(documents) && !deep.Holds(documents, hasPartOfMark)
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
func (c *folderCheck) readPlainObjects(template *compiledTemplate, content string) (documents []any, found []identity, ok bool) {
	documents, ok = fleet.ReadPlainYAML(content)
	for _, document := range documents {
		object, isObject := document.(map[string]any)
		_, hasVersion := object["apiVersion"]
		_, hasKind := object["kind"]
		if isObject && !hasVersion && !hasKind && c.mayWriteData(template) {
			continue
		}
		of := identityOf(object)
		found, ok = append(found, of), ok && isValidObject(of, object) && c.catalog.Accepts(object)
	}
	return documents, found, ok
}

func identityOf(object map[string]any) identity {
	metadata, _ := object["metadata"].(map[string]any)
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	// Clone releases the file's text.
	return identity{strings.Clone(groupOf(apiVersion)), strings.Clone(kind), strings.Clone(namespace), strings.Clone(name)}
}

func isValidObject(of identity, object map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	apiVersion, _ := object["apiVersion"].(string)
	if apiVersion == "" || of.kind == "" || of.kind == "List" || of.name == "" || nameProblem(of.group, of.kind, of.name) != "" {
		return false
	}
	if _, given := metadata["namespace"]; given && (of.namespace == "" || fleet.CheckLabelName(of.namespace) != "") {
		return false
	}
	areTexts := hasTexts(metadata, "annotations", func(string, string) bool { return true }) &&
		hasTexts(metadata, "labels", func(key, value string) bool {
			return fleet.CheckLabelKey(key) == "" && fleet.CheckLabelValue(value) == ""
		})
	if of.group == "" && of.kind == "ConfigMap" {
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
