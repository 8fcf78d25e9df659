package origin

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
)

func orAny(version string) string { return cmp.Or(version, "*") }

var errNoVersion = errors.New("no such version")

// describeMiss explains a miss: ranges exclude pre-releases unless they name one.
func describeMiss(what, within string, versions []string) string {
	text := fmt.Sprintf("none of the %d %s is %q, or in that range", len(versions), what, orAny(within))
	constraint, err := semver.NewConstraint(orAny(within))
	if err != nil {
		return text
	}
	constraint.IncludePrerelease = true
	if newest := findGreatest(versions, constraint); newest != "" {
		text += fmt.Sprintf(
			"; a range matches pre-releases only if it names one, and the newest of these is %[1]q: "+
				"set version to it, or to a range such as \">=%[1]s\"", newest)
	}
	return text
}

// findNewest returns the greatest version in a range, or "". Among equals, it prefers the text that sorts last.
func findNewest(texts []string, within string) (string, error) {
	constraint, err := semver.NewConstraint(orAny(within))
	if err != nil {
		return "", fmt.Errorf("version %q is neither a version nor a range of them, such as \"3.2.1\" or \">=3.2 <4\"", within)
	}
	return findGreatest(texts, constraint), nil
}

func findGreatest(texts []string, constraint *semver.Constraints) string {
	var best *semver.Version
	found := ""
	for _, text := range texts {
		version, ok := artifact.ParseVersion(text)
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
	return found
}
