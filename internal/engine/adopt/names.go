package adopt

import (
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/naming"
)

// longestName is the limit of a DNS label.
const longestName = 63

// labelName converts a text to a DNS label, with a hash if necessary.
func labelName(text string) string {
	if fleet.CheckLabelName(text) == "" {
		return text
	}
	made := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(text))
	if made = strings.Trim(made, "-"); made == "" || len(made) > longestName {
		made = naming.AddHash(made, text, longestName)
	}
	return made
}

// uniqueName marks and returns the first unused name.
func uniqueName(used map[string]bool, names ...string) string {
	for _, name := range names {
		if name = labelName(name); !used[name] {
			used[name] = true
			return name
		}
	}
	name := naming.AddHash(labelName(names[0]), strings.Join(names, "\x00"), longestName)
	used[name] = true
	return name
}
