package changes

import (
	"bytes"
	"hash/maphash"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// keyChange is a key of a file that is added, removed, or has another value. Without text it is a whole file whose
// keys are not known.
type keyChange struct {
	text     string   // "data.DATABASE_URL", as it is shown
	segments []string // its path
}

// fileDiff is the difference between two versions of a file.
type fileDiff struct {
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
func diffOf(name string, before, after *File) *fileDiff {
	switch {
	case before == nil && after == nil:
		return &fileDiff{keys: []keyChange{{text: "file modes or links"}}}
	case before == nil:
		return &fileDiff{keys: []keyChange{{text: "new file"}}}
	case after == nil:
		return &fileDiff{keys: []keyChange{{text: "file removed"}}}
	}
	if len(before.Content)+len(after.Content) <= maxParsed {
		found := newCollector(roleOf(name) == configRole)
		if found.texts(extensionOf(name), string(before.Content), string(after.Content)) && len(found.keys) > 0 {
			return &fileDiff{keys: found.keys, more: found.more}
		}
	}
	return &fileDiff{keys: make([]keyChange, 1), lines: differentLines(before.Content, after.Content)}
}

// extensionOf returns ".yaml" of "reconciler.yaml".
func extensionOf(name string) string { return strings.ToLower(path.Ext(name)) }

// differentLines counts the lines of each text that the other one does not have, and returns the larger number, at
// least 1.
func differentLines(before, after []byte) int {
	seed := maphash.MakeSeed()
	old, wanted := lineHashes(seed, before), lineHashes(seed, after)
	removed, added := 0, 0
	for len(old) > 0 && len(wanted) > 0 {
		switch {
		case old[0] == wanted[0]:
			old, wanted = old[1:], wanted[1:]
		case old[0] < wanted[0]:
			old = old[1:]
			removed++
		default:
			wanted = wanted[1:]
			added++
		}
	}
	return max(1, removed+len(old), added+len(wanted))
}

func lineHashes(seed maphash.Seed, text []byte) []uint64 {
	hashes := make([]uint64, 0, bytes.Count(text, []byte{'\n'})+1)
	for line := range bytes.Lines(text) {
		hashes = append(hashes, maphash.Bytes(seed, line))
	}
	slices.Sort(hashes)
	return hashes
}

// collector gathers the keys at which two texts differ.
type collector struct {
	keys   []keyChange
	more   int
	at     []string // the path that is being compared
	object sibling  // the document that is being compared, where the file has several
	config bool     // whether the file is one of configuration, so that ConfigMaps in it have a file as value
}

func newCollector(config bool) *collector { return &collector{config: config} }

// texts compares two texts of a format by their keys. It returns false where one of them cannot be read,
// or the format has no keys.
func (c *collector) texts(extension string, before, after string) bool {
	switch extension {
	case ".yaml", ".yml":
		return c.yaml(before, after)
	case ".json":
		one, err := fleet.ParseJSON(before)
		other, otherErr := fleet.ParseJSON(after)
		if err != nil || otherErr != nil {
			return false
		}
		c.values(one, other)
		return true
	case ".env":
		return c.pairs(before, after, parseEnv)
	case ".properties":
		return c.pairs(before, after, parseProperties)
	}
	return false
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
	if kind := c.object.kind; kind != "" && (len(c.at) == 0 || c.object.hasOther(c.at)) {
		text = strings.TrimSuffix(kind+" "+text, " ")
	}
	if text == "" {
		text = "all of it"
	}
	if what != "" {
		text += " (" + what + ")"
	}
	c.keys = append(c.keys, keyChange{text: text, segments: slices.Clone(c.at)})
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
		if after, ok := after.([]any); ok && len(before) == len(after) {
			for i := range before {
				c.atSegment(index(i), func() { c.values(before[i], after[i]) })
			}
			return
		}
	case string:
		if after, ok := after.(string); ok && (before == after || c.configFile(before, after)) {
			return
		}
	default:
		switch after.(type) {
		case map[string]any, []any:
		default:
			if before == after {
				return
			}
		}
	}
	c.differs("")
}

// differentKeys returns the keys, sorted, whose values may differ: scalars that are equal are left out.
func differentKeys(before, after map[string]any) []string {
	var keys []string
	for key, one := range before {
		switch one.(type) {
		case map[string]any, []any:
		default:
			switch other, has := after[key]; other.(type) {
			case map[string]any, []any:
			default:
				if has && one == other {
					continue
				}
			}
		}
		keys = append(keys, key)
	}
	for key := range after {
		if _, had := before[key]; !had {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
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
	extension := extensionOf(c.at[1])
	if extension == ".yaml" || extension == ".yml" {
		return false
	}
	count, more := len(c.keys), c.more
	return c.texts(extension, before, after) && (len(c.keys) > count || c.more > more)
}

// pairs compares texts of "key=value" lines.
func (c *collector) pairs(before, after string, parse func(string) (map[string]string, bool)) bool {
	one, ok := parse(before)
	other, otherOK := parse(after)
	if !ok || !otherOK {
		return false
	}
	for _, key := range unionOfKeys(one, other) {
		old, had := one[key]
		value, has := other[key]
		if had != has || old != value {
			c.atSegment(key, func() { c.member(false, true, had, has) })
		}
	}
	return true
}
