package changes

import (
	"cmp"
	"maps"
	"path"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// IsConfig reports whether a file belongs to an assignment's configuration.
func IsConfig(file string) bool { return roleOf(file) == configRole }

// ConfigValues returns the values in configuration files by displayed key: "DATABASE.URL". Non-strings are JSON. It
// returns nil without such a file, or if one is invalid or too large.
func ConfigValues(files []folder.File) map[string]string {
	var found configReader
	for _, file := range files {
		if !IsConfig(file.Name) {
			continue
		}
		if found.values == nil {
			found.values = map[string]string{}
		}
		if len(file.Content) > maxParsed || !found.addFile(file.Name, string(file.Content)) {
			return nil
		}
	}
	return found.values
}

type configReader struct {
	values map[string]string
	at     []string
}

func (r *configReader) addFile(name, text string) bool {
	documents, ok := readFile(name, text)
	for i := range documents {
		ok = ok && r.addDocument(&documents[i])
	}
	return ok
}

// addDocument reads a YAML document: the data of a ConfigMap, or the file in its only key.
func (r *configReader) addDocument(of *yamlDocument) bool {
	object, ok := of.value.(map[string]any)
	if !ok || of.Kind == "" {
		r.addValue(of.value)
		return true
	}
	if of.Kind != "ConfigMap" {
		object = maps.Clone(object)
		for _, name := range []string{"apiVersion", "kind", "metadata"} {
			delete(object, name)
		}
		r.addValue(object)
		return true
	}
	data, _ := object["data"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, isText := data[key].(string)
		if extension := path.Ext(key); isText && IsConfig(key) && extension != ".yaml" && extension != ".yml" && extension != "" {
			if r.at = nil; !r.addFile(key, text) {
				return false
			}
			continue
		}
		r.at = []string{key}
		r.addValue(data[key])
	}
	r.at = nil
	return true
}

func (r *configReader) addValue(value any) {
	if object, ok := value.(map[string]any); ok && (len(object) > 0 || len(r.at) == 0) && len(r.at) < maxPath {
		for _, key := range slices.Sorted(maps.Keys(object)) {
			r.at = append(r.at, key)
			r.addValue(object[key])
			r.at = r.at[:len(r.at)-1]
		}
		return
	}
	text, ok := value.(string)
	if !ok {
		text, _ = fleet.CanonicalJSON(value) // it was parsed
	}
	r.add(pathText(r.at), text)
}

// add adds a value, to others that are displayed alike.
func (r *configReader) add(key, text string) {
	key = cmp.Or(key, "all of it")
	if other, twice := r.values[key]; twice {
		text = other + "\n" + text
	}
	r.values[key] = text
}
