package changes

import (
	"bytes"
	"cmp"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"path"
	"slices"
	"strings"
)

// keyChange is a key of a file that is added, removed, or has another value. Without text it is a whole file whose
// keys are not known.
type keyChange struct {
	text     string   // "data.DATABASE_URL", as it is shown
	segments []string // its path
	kind     string   // of the object that has it; "" where that is none of Kubernetes, or not known
}

// fileDiff is the difference between two versions of a file.
type fileDiff struct {
	file  string
	keys  []keyChange // at least one
	more  int         // keys beyond maxKeys
	lines int         // how many lines differ, where the keys are not known
}

// Bounds of what is parsed. A ConfigMap has at most 1 MiB, and hardly any file of a folder has more than some
// kilobytes. In larger files only the lines that differ are counted.
const (
	maxParsed = 512 << 10 // of both versions of a file together
	maxKeys   = 200       // of one file
)

// diffOf compares two versions of a file, which differ; nil is no file. Where both are nil, the tree of the folder differs, but
// no content of a file.
func diffOf(name string, before, after *folder.File) *fileDiff {
	switch {
	case before == nil && after == nil:
		return &fileDiff{file: name, keys: []keyChange{{text: "file modes or links"}}}
	case before == nil:
		return &fileDiff{file: name, keys: []keyChange{{text: "new file"}}}
	case after == nil:
		return &fileDiff{file: name, keys: []keyChange{{text: "file removed"}}}
	}
	if len(before.Content)+len(after.Content) <= maxParsed {
		found := &collector{config: roleOf(name) == configRole}
		if roleOf(name) == secretRole {
			found.keyOf = secretKey
		}
		if found.texts(name, string(before.Content), string(after.Content)) && len(found.keys) > 0 {
			return &fileDiff{file: name, keys: found.keys, more: found.more}
		}
	}
	return &fileDiff{file: name, keys: make([]keyChange, 1), lines: differentLines(before.Content, after.Content)}
}

// differentLines counts the lines of each text that the other one does not have, and returns the larger number, at
// least 1.
func differentLines(before, after []byte) int {
	surplus := map[string]int{}
	for line := range bytes.Lines(before) {
		surplus[string(line)]++
	}
	for line := range bytes.Lines(after) {
		surplus[string(line)]--
	}
	removed, added := 0, 0
	for _, count := range surplus {
		removed, added = removed+max(0, count), added+max(0, -count)
	}
	return max(1, removed, added)
}

// collector gathers the keys at which two texts differ.
type collector struct {
	keys   []keyChange
	more   int
	at     []string // the path that is being compared
	kind   string   // of the document that is being compared, where the file has several: it is shown
	object string   // the kind of the document that is being compared
	config bool     // whether the file is one of configuration, so that ConfigMaps in it have a file as value
	// keyOf is what elements of lists are compared by, "" where one has no such key; nil: by their places.
	keyOf func(element map[string]any) string
}

// texts compares two versions of a file by their keys. It returns false where one of them cannot be read,
// or the format has no keys.
func (c *collector) texts(name, before, after string) bool {
	old, ok := readFile(name, before)
	wanted, wantedOK := readFile(name, after)
	if ok && wantedOK {
		c.documents(old, wanted)
	}
	return ok && wantedOK
}

// What a keyChange says of a key that is not in both versions.
const (
	isNew     = "new"
	isRemoved = "removed"
)

// differs adds the path that is being compared to the keys that differ.
func (c *collector) differs(what string) {
	if len(c.keys) == maxKeys {
		c.more++
		return
	}
	text := pathText(c.at)
	text = cmp.Or(strings.TrimSpace(c.kind+" "+text), "all of it")
	if what != "" {
		text += " (" + what + ")"
	}
	c.keys = append(c.keys, keyChange{text: text, segments: slices.Clone(c.at), kind: c.object})
}

// atSegment calls do with the path one segment longer.
func (c *collector) atSegment(segment string, do func()) {
	c.at = append(c.at, segment)
	do()
	c.at = c.at[:len(c.at)-1]
}

// values compares two JSON values.
func (c *collector) values(before, after any) {
	switch before := before.(type) {
	case map[string]any:
		if after, ok := after.(map[string]any); ok {
			for _, key := range differentKeys(before, after) {
				one, had := before[key]
				other, has := after[key]
				c.atSegment(key, func() { c.member(one, other, had, has) })
			}
			return
		}
	case []any:
		if after, ok := after.([]any); ok {
			one, other := c.byKey(before), c.byKey(after)
			if one != nil && other != nil && c.finds(func() bool { c.values(one, other); return true }) {
				return
			}
			if len(before) == len(after) {
				for i := range before {
					c.atSegment(index(i), func() { c.values(before[i], after[i]) })
				}
				return
			}
		}
	case string:
		if after, ok := after.(string); ok && (before == after || c.configFile(before, after) || c.configValue(before, after)) {
			return
		}
	default:
		if sameScalar(before, after) {
			return
		}
	}
	c.differs("")
}

// secretKey is the key of a Secret that an element of a list names, in ExternalSecrets and in SecretProviderClasses; "" where it names
// none.
func secretKey(element map[string]any) string {
	first, _ := element["secretKey"].(string)
	second, _ := element["key"].(string)
	return cmp.Or(first, second)
}

// byKey returns the elements of a list by their keys; nil where lists have none, or one has none or one of another.
func (c *collector) byKey(list []any) map[string]any {
	if c.keyOf == nil {
		return nil
	}
	elements := make(map[string]any, len(list))
	for _, element := range list {
		object, _ := element.(map[string]any)
		key := c.keyOf(object)
		if _, twice := elements[key]; twice || key == "" {
			return nil
		}
		elements[key] = element
	}
	return elements
}

// differentKeys returns the keys, sorted, whose values may differ: scalars that are equal are left out.
func differentKeys(before, after map[string]any) []string {
	var keys []string
	for key, one := range before {
		if other, has := after[key]; !has || !sameScalar(one, other) {
			keys = append(keys, key)
		}
	}
	for key := range after {
		if _, had := before[key]; !had {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// sameScalar says whether two values are equal, and neither map nor list.
func sameScalar(one, other any) bool {
	for _, value := range []any{one, other} {
		switch value.(type) {
		case map[string]any, []any:
			return false
		}
	}
	return one == other
}

// member compares the values of a key that one of the objects may not have.
func (c *collector) member(before, after any, had, has bool) {
	switch {
	case !has:
		c.differs(isRemoved)
	case !had:
		c.differs(isNew)
	default:
		c.values(before, after)
	}
}

// configFile compares the file in the one key of a ConfigMap of configuration. It returns false where there is none.
func (c *collector) configFile(before, after string) bool {
	if !c.config || len(c.at) != 2 || c.at[0] != "data" || roleOf(c.at[1]) != configRole {
		return false
	}
	extension := strings.ToLower(path.Ext(c.at[1]))
	if extension == ".yaml" || extension == ".yml" {
		return false
	}
	return c.finds(func() bool { return c.texts(c.at[1], before, after) })
}

// finds says whether a comparison is possible, and finds keys that differ.
func (c *collector) finds(compare func() bool) bool {
	count, more := len(c.keys), c.more
	return compare() && (len(c.keys) > count || c.more > more)
}

// configValue compares the object or list that a key of a ConfigMap of configuration has as text. It returns false where one of the
// texts is none: of any other text nothing is shown.
func (c *collector) configValue(before, after string) bool {
	if !c.config || len(c.at) != 2 || c.at[0] != "data" {
		return false
	}
	one, other := structured(before), structured(after)
	return one != nil && other != nil && c.finds(func() bool { c.values(one, other); return true })
}

// structured is the object or list that a text has in YAML or JSON; nil for any other text. One line of plain text may look like
// a key with its value.
func structured(text string) any {
	if !strings.HasSuffix(text, "\n") && !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return nil
	}
	documents, ok := readYAML(text)
	if !ok || len(documents) != 1 {
		return nil
	}
	switch documents[0].value.(type) {
	case map[string]any, []any:
		return documents[0].value
	}
	return nil
}
