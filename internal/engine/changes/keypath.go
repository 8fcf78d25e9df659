package changes

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The segments of a path are keys, and indexes of lists. An index begins with a NUL, which no key of YAML can.
const indexMark = "\x00"

func index(i int) string { return indexMark + strconv.Itoa(i) }

// plainKey is a key that is shown without quotes.
var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

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
		case !plainKey.MatchString(segment):
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

func unionOfKeys[V any](one, other map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(one)), maps.Keys(other))
	slices.Sort(keys)
	return slices.Compact(keys)
}
