package changes

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

type keyChange struct {
	Key
	segments []string
	kind     string // of the Kubernetes object, or ""
}

type fileDiff struct {
	file  string
	keys  []keyChange // not empty
	more  int         // omitted keys
	lines int         // differing lines, without known keys
}

// Limits of parsing. In larger files only differing lines are counted.
const (
	maxParsed = 512 << 10 // both versions together
	maxKeys   = 200       // one file
)

// diffOf compares two versions of a file; nil is a missing file. Both are nil if only the tree differs.
func diffOf(name string, before, after *folder.File) *fileDiff {
	switch {
	case before == nil && after == nil:
		return &fileDiff{file: name, keys: []keyChange{{Key: Key{How: Attributes}}}}
	case before == nil:
		return &fileDiff{file: name, keys: []keyChange{{Key: Key{How: NewFile}}}}
	case after == nil:
		return &fileDiff{file: name, keys: []keyChange{{Key: Key{How: RemovedFile}}}}
	}
	if len(before.Content)+len(after.Content) <= maxParsed {
		found := &collector{config: roleOf(name) == configRole}
		if roleOf(name) == secretRole {
			found.keyOf = secretKey
		}
		if found.compareTexts(name, string(before.Content), string(after.Content)) && len(found.keys) > 0 {
			return &fileDiff{file: name, keys: found.keys, more: found.more}
		}
	}
	return &fileDiff{file: name, keys: make([]keyChange, 1), lines: differentLines(before.Content, after.Content)}
}

// differentLines returns the larger number of lines without a counterpart, at least 1.
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

type collector struct {
	keys   []keyChange
	more   int
	at     []string // current path
	kind   string   // displayed name of the current document, if one of several
	object string   // kind of the current document
	config bool     // a configuration file, whose ConfigMaps may contain a file
	// keyOf returns the key of a list element, or "". If it is nil, elements are compared by index.
	keyOf func(element map[string]any) string
}

// compareTexts compares keys, and returns false for an invalid version or a format without keys.
func (c *collector) compareTexts(name, before, after string) bool {
	old, ok := readFile(name, before)
	wanted, wantedOK := readFile(name, after)
	if ok && wantedOK {
		c.compareDocuments(old, wanted)
	}
	return ok && wantedOK
}

func (c *collector) addDifference(how How) {
	if len(c.keys) == maxKeys {
		c.more++
		return
	}
	key := Key{strings.TrimSpace(c.kind + " " + pathText(c.at)), how}
	if key == (Key{}) {
		key.How = Whole
	}
	c.keys = append(c.keys, keyChange{Key: key, segments: slices.Clone(c.at), kind: c.object})
}

func (c *collector) atSegment(segment string, do func()) {
	c.at = append(c.at, segment)
	do()
	c.at = c.at[:len(c.at)-1]
}

func (c *collector) compareValues(before, after any) {
	switch before := before.(type) {
	case map[string]any:
		if after, ok := after.(map[string]any); ok {
			for _, key := range differentKeys(before, after) {
				one, had := before[key]
				other, has := after[key]
				c.atSegment(key, func() { c.compareMembers(one, other, had, has) })
			}
			return
		}
	case []any:
		if after, ok := after.([]any); ok {
			one, other := c.byKey(before), c.byKey(after)
			if one != nil && other != nil && c.finds(func() bool { c.compareValues(one, other); return true }) {
				return
			}
			if len(before) == len(after) {
				for i := range before {
					c.atSegment(index(i), func() { c.compareValues(before[i], after[i]) })
				}
				return
			}
		}
	case string:
		if after, ok := after.(string); ok && (before == after || c.compareConfigTexts(before, after)) {
			return
		}
	default:
		if sameScalar(before, after) {
			return
		}
	}
	c.addDifference(Changed)
}

// secretKey returns the key of a list element in an ExternalSecret or SecretProviderClass, or "".
func secretKey(element map[string]any) string {
	first, _ := element["secretKey"].(string)
	second, _ := element["key"].(string)
	return cmp.Or(first, second)
}

// byKey returns list elements by key, or nil unless all have unique keys.
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

func sameScalar(one, other any) bool {
	for _, value := range []any{one, other} {
		switch value.(type) {
		case map[string]any, []any:
			return false
		}
	}
	return one == other
}

func (c *collector) compareMembers(before, after any, had, has bool) {
	switch {
	case !has:
		c.addDifference(Removed)
	case !had:
		c.addDifference(New)
	default:
		c.compareValues(before, after)
	}
}

// compareConfigTexts compares the file in the only key of a configuration ConfigMap, or an object or list in a key. It
// returns false for other texts, which must not be displayed.
func (c *collector) compareConfigTexts(before, after string) bool {
	if !c.config || len(c.at) != 2 || c.at[0] != "data" {
		return false
	}
	key := c.at[1]
	extension := strings.ToLower(path.Ext(key))
	isFile := roleOf(key) == configRole && extension != ".yaml" && extension != ".yml"
	if isFile && c.finds(func() bool { return c.compareTexts(key, before, after) }) {
		return true
	}
	one, other := structured(before), structured(after)
	return one != nil && other != nil && c.finds(func() bool { c.compareValues(one, other); return true })
}

// finds reports whether a comparison is possible and finds differences.
func (c *collector) finds(compare func() bool) bool {
	count, more := len(c.keys), c.more
	return compare() && (len(c.keys) > count || c.more > more)
}

// structured parses an object or list, or returns nil. A single plain line may resemble a key with its value.
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

const contextLines = 3

// Unified returns a unified diff, sorted by path: "a/" or "b/", prefix, host, deployment target and file. It has at
// most limit bytes, and a last line that counts omitted files. It shows values.
func Unified(folders []FolderChange, prefix string, limit int) string {
	folders = sortedFolders(folders)
	var b strings.Builder
	left, waiting := 0, 0
	for i := range folders {
		change := &folders[i]
		if change.WaitsFor != "" && !change.Removed {
			waiting++
			continue
		}
		base := path.Join(prefix, change.Host, change.DeploymentTarget)
		eachDifference(change, func(name string, before, after *folder.File) {
			if name == "" && before == nil && after == nil {
				return
			}
			if left > 0 { // omit all files after the first that does not fit
				left++
				return
			}
			if text := unifiedFile(path.Join(base, name), before, after); b.Len()+len(text) <= limit {
				b.WriteString(text)
			} else {
				left++
			}
		})
	}
	if left > 0 {
		fmt.Fprintf(&b, "# %s left out: the difference is longer than %d bytes.\n", counted(left, "more file"), limit)
	}
	if waiting > 0 {
		fmt.Fprintf(&b, "# %s not known yet.\n", counted(waiting, "folder"))
	}
	return b.String()
}

func unifiedFile(name string, before, after *folder.File) string {
	from, to := label("a/"+name), label("b/"+name)
	var old, wanted []byte
	head := "diff --git " + from + " " + to + "\n"
	if before == nil {
		from, head = "/dev/null", head+"new file mode 100644\n"
	} else {
		old = before.Content
	}
	if after == nil {
		to, head = "/dev/null", head+"deleted file mode 100644\n"
	} else {
		wanted = after.Content
	}
	if !isText(old) || !isText(wanted) {
		return head + "Binary files " + from + " and " + to + " differ\n"
	}
	text, err := udiff.ToUnified(from, to, string(old), udiff.Lines(string(old), string(wanted)), contextLines)
	if err != nil {
		return head + "# " + from + " and " + to + " differ\n" // impossible: the edits belong to this text
	}
	return head + text
}

// isText reports whether a terminal can display a file, which anyone with push access may have written.
func isText(content []byte) bool {
	text := strings.ReplaceAll(string(content), "\r\n", "\n")
	return wording.Visible(text) == text
}

// label quotes a path as Git does.
func label(path string) string {
	if strings.ContainsAny(path, "\"\\\t\n") || wording.Visible(path) != path {
		return strconv.Quote(path)
	}
	return path
}
