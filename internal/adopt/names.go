package adopt

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// labelName makes a DNS label of a text. A text that is none gets a name that other texts hardly get.
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
	const longest = 63
	if made = strings.Trim(made, "-"); made == "" || len(made) > longest {
		sum := sha256.Sum256([]byte(text))
		made = strings.Trim(made[:min(len(made), longest-9)]+"-"+hex.EncodeToString(sum[:4]), "-")
	}
	return made
}

// unique returns the first of some names that is not used yet, and notes it.
func unique(used map[string]bool, names ...string) string {
	for _, name := range names {
		if name = labelName(name); !used[name] {
			used[name] = true
			return name
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	name := labelName(names[0] + "-" + hex.EncodeToString(sum[:4]))
	used[name] = true
	return name
}
