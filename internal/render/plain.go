package render

import (
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// isPlainlyRight says whether a file is plain YAML in which [check.content] would certainly find nothing. False means
// that it has to look, which takes twenty times as long: it knows all of YAML, and the lines.
func (c *check) isPlainlyRight(template *compiled, file *File) bool {
	if template.contentType != "yaml" {
		return template.contentType != "json"
	}
	documents, ok := fleet.ReadPlainYAML(string(file.Content))
	if !ok {
		return false
	}
	for _, document := range documents {
		object, isObject := document.(map[string]any)
		_, hasVersion := object["apiVersion"]
		_, hasKind := object["kind"]
		isData := isObject && !hasVersion && !hasKind && c.mayWriteData(template)
		if !isData && !c.isRightObject(object) {
			return false
		}
	}
	if !template.isBuiltin {
		file.objects, file.isRead = objectsIn(documents), true
	}
	return true
}

func (c *check) isRightObject(object map[string]any) bool {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	group := groupOf(apiVersion)
	if apiVersion == "" || kind == "" || kind == "List" || name == "" || nameProblem(group, kind, name) != "" {
		return false
	}
	if _, given := metadata["namespace"]; given && (namespace == "" || fleet.CheckLabelName(namespace) != "") {
		return false
	}
	areTexts := haveTexts(metadata, "annotations", func(string, string) bool { return true }) &&
		haveTexts(metadata, "labels", func(key, value string) bool {
			return fleet.CheckLabelKey(key) == "" && fleet.CheckLabelValue(value) == ""
		})
	if group == "" && kind == "ConfigMap" {
		size := 0
		isEntry := func(key, value string) bool {
			size += len(value)
			return isLabelValue(key) || len(validation.IsConfigMapKey(key)) == 0
		}
		areTexts = areTexts && haveTexts(object, "data", isEntry) && haveTexts(object, "binaryData", isEntry) && size <= maxConfigMap
	}
	identity := identity{group, kind, namespace, name}
	if _, twice := c.objects[identity]; twice || !areTexts {
		return false
	}
	c.objects[identity] = position{}
	return true
}

// haveTexts says whether a map below an object has only texts, and each is as it must be. There may be no such map.
func haveTexts(object map[string]any, name string, isRight func(key, value string) bool) bool {
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
