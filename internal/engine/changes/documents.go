package changes

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

type yamlDocument struct {
	value any
	objects.Identity
}

// compareDocuments pairs the documents of two versions by kind, namespace and name, then by kind and name, then by kind.
func (c *collector) compareDocuments(old, wanted []yamlDocument) {
	partner, added := matched(old, wanted,
		func(d *yamlDocument) objects.Identity { return d.Identity },
		func(d *yamlDocument) objects.Identity { return objects.Identity{Kind: d.Kind, Name: d.Name} },
		func(d *yamlDocument) objects.Identity { return objects.Identity{Kind: d.Kind} },
	)
	several := len(old) > 1 || len(wanted) > 1
	for i, other := range partner {
		if other < 0 {
			c.kind, c.object = c.shownKind(&old[i], several), old[i].Kind
			c.addDifference(Removed)
			continue
		}
		c.kind, c.object = c.shownKind(&wanted[other], several), wanted[other].Kind
		c.compareValues(old[i].value, wanted[other].value)
	}
	for _, i := range added {
		c.kind, c.object = c.shownKind(&wanted[i], several), wanted[i].Kind
		c.addDifference(New)
	}
}

// shownKind returns the kind of one of several documents. In configuration, a kind may be a value.
func (c *collector) shownKind(of *yamlDocument, several bool) string {
	switch {
	case c.config || !several:
		return ""
	case of.Kind == "":
		return "object"
	}
	return of.Kind
}

// maxDocuments bounds documents, which take some kilobytes each.
const maxDocuments = 200

// readFile parses a file by its extension. ok is false if it is invalid or has no keys.
func readFile(name, text string) (documents []yamlDocument, ok bool) {
	var value any
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml":
		return readYAML(text)
	case ".json":
		parsed, err := fleet.ParseJSON(text)
		value, ok = parsed, err == nil
	case ".env":
		value, ok = readPairs(text, envLine)
	case ".properties":
		value, ok = readPairs(text, propertyLine)
	}
	return []yamlDocument{{value: value}}, ok
}

func readYAML(text string) ([]yamlDocument, bool) {
	count := 0
	values, err := fleet.ReadYAMLDocuments(text, func(string) bool { count++; return count > maxDocuments })
	if err != nil || count > maxDocuments {
		return nil, false
	}
	documents := make([]yamlDocument, 0, len(values))
	for _, value := range values {
		if value == nil {
			continue
		}
		read := yamlDocument{value: value}
		if object, ok := value.(map[string]any); ok {
			read.Kind, _ = object["kind"].(string)
			if version, _ := object["apiVersion"].(string); version == "" || !kindOfObject.MatchString(read.Kind) {
				read.Kind = ""
			}
			metadata, _ := object["metadata"].(map[string]any)
			read.Namespace, _ = metadata["namespace"].(string)
			read.Name, _ = metadata["name"].(string)
		}
		documents = append(documents, read)
	}
	return documents, true
}

var kindOfObject = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// matched pairs elements by first key, then the others by second key, and so on. It returns the partner of each
// element before, or -1, and the unpaired ones after.
func matched[T any, K comparable](before, after []T, keys ...func(*T) K) (partner, added []int) {
	partner, taken := slices.Repeat([]int{-1}, len(before)), make([]bool, len(after))
	for _, key := range keys {
		free := map[K][]int{}
		for j := range after {
			if of := key(&after[j]); !taken[j] {
				free[of] = append(free[of], j)
			}
		}
		for i := range before {
			of := key(&before[i])
			if left := free[of]; partner[i] < 0 && len(left) > 0 {
				partner[i], taken[left[0]], free[of] = left[0], true, left[1:]
			}
		}
	}
	for j := range after {
		if !taken[j] {
			added = append(added, j)
		}
	}
	return partner, added
}

// Lines of key=value, as toEnv and toProperties write them. toEnv continues values over several lines in single
// quotes.
var (
	envLine      = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)=((?:[A-Za-z0-9_./:@%+,=-]|'[^']*'|\\')*)(?:\n|$)`)
	propertyLine = regexp.MustCompile(`^((?:[^\\=:#!\s]|\\.)+)=((?:[^\\\n]|\\.)*)(?:\n|$)`)
	emptyLine    = regexp.MustCompile(`^[ \t]*(?:#[^\n]*)?(?:\n|$)`)
)

// readPairs returns false if any line differs in form: part of a value must never pass for a key.
func readPairs(text string, line *regexp.Regexp) (map[string]any, bool) {
	pairs := map[string]any{}
	for text != "" {
		if empty := emptyLine.FindString(text); empty != "" {
			text = text[len(empty):]
			continue
		}
		match := line.FindStringSubmatch(text)
		if match == nil {
			return nil, false
		}
		if _, twice := pairs[match[1]]; twice {
			return nil, false
		}
		pairs[match[1]], text = match[2], text[len(match[0]):]
	}
	return pairs, true
}

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
	key := cmp.Or(pathText(r.at), "all of it")
	if other, twice := r.values[key]; twice { // displayed alike
		text = other + "\n" + text
	}
	r.values[key] = text
}
