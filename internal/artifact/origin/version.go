package origin

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
)

func orAny(version string) string { return cmp.Or(version, "*") }

// parseVersion reads a whole version, as reconcilers do: "v" may be before it, and "_" stands for "+" in tags. A tag such
// as 2024 is none, although it would be the greatest.
func parseVersion(text string) (*semver.Version, bool) {
	version, err := semver.StrictNewVersion(strings.ReplaceAll(strings.TrimPrefix(text, "v"), "_", "+"))
	return version, err == nil
}

func isExact(version string) bool {
	_, exact := parseVersion(version)
	return exact
}

// greatest is the text of the greatest version in a range ("" is any), "" for none; that which equals the range comes
// first. Of equal versions the text that is sorted last is taken.
func greatest(texts []string, within string) (string, error) {
	constraint, err := semver.NewConstraint(orAny(within))
	if err != nil {
		return "", fmt.Errorf("version %q is neither a version nor a range of them, such as \"3.2.1\" or \">=3.2 <4\"", within)
	}
	var best *semver.Version
	found := ""
	for _, text := range texts {
		version, ok := parseVersion(text)
		if !ok || !constraint.Check(version) {
			continue
		}
		order := 1
		if best != nil {
			order = cmp.Or(version.Compare(best), strings.Compare(text, found))
		}
		if order > 0 {
			best, found = version, text
		}
	}
	return found, nil
}
