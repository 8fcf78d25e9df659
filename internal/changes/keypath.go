package changes

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The segments of a path are keys, and indexes of lists. An index begins with a NUL, which no key of YAML can.
const indexMark = "\x00"

func index(i int) string { return indexMark + strconv.Itoa(i) }

// indexOf reads a segment that is an index.
func indexOf(segment string) (int, bool) {
	number, is := strings.CutPrefix(segment, indexMark)
	if !is {
		return 0, false
	}
	i, err := strconv.Atoi(number)
	return i, err == nil && i >= 0
}

// maxPath is how many segments of a path are shown.
const maxPath = 12

// pathText writes a path as "spec.rules[0].host", and keys with other characters as
// `metadata.labels["example.com/tier"]`.
func pathText(segments []string) string {
	var b strings.Builder
	for i, segment := range segments {
		if i == maxPath {
			b.WriteString("…")
			break
		}
		switch number, isIndex := strings.CutPrefix(segment, indexMark); {
		case isIndex:
			b.WriteString("[" + word(number) + "]")
		case !isWord(segment):
			b.WriteString("[" + quoted(segment) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(word(segment))
		}
	}
	return b.String()
}

func isWord(key string) bool {
	if key == "" {
		return false
	}
	for i := 0; i < len(key); i++ {
		if c := key[i]; !isKeyByte(c) || c == '.' || c == '/' {
			return false
		}
	}
	return true
}

func isKeyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' || c == '/'
}

func unionOfKeys[V any](one, other map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(one)), maps.Keys(other))
	slices.Sort(keys)
	return slices.Compact(keys)
}
