package artifact

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// ParseVersion parses a complete semantic version as reconcilers do, with an optional "v" and "_" for "+". It refuses a tag
// such as 2024, which would be the greatest.
func ParseVersion(text string) (*semver.Version, bool) {
	version, err := semver.StrictNewVersion(strings.ReplaceAll(strings.TrimPrefix(text, "v"), "_", "+"))
	return version, err == nil
}

// IsVersion reports whether a text is a complete semantic version, which publishers never move.
func IsVersion(text string) bool {
	_, ok := ParseVersion(text)
	return ok
}

// IsMovable reports whether the publisher could publish the pin's version again.
func IsMovable(manifests folder.Manifests) bool {
	if manifests.Storage == "git" {
		return manifests.Pin.Commit != "" && IsVersion(manifests.Tag)
	}
	return manifests.Pin.Digest != "" && IsVersion(manifests.Pin.Version)
}

// DescribeRepublished describes a version whose content differs between two pins, or returns "".
func DescribeRepublished(before, after folder.Manifests) string {
	was, is := before.Pin, after.Pin
	if before.Storage != after.Storage || normalize(before.Repo) != normalize(after.Repo) || before.Chart != after.Chart {
		return ""
	}
	if !IsMovable(before) || !IsMovable(after) {
		return ""
	}
	if after.Storage == "git" {
		if before.Tag != after.Tag || was.Commit == is.Commit {
			return ""
		}
		return fmt.Sprintf("tag %q of repository %q has moved from commit %s to %s", after.Tag, after.Repo, was.Commit, is.Commit)
	}
	if was.Version != is.Version || was.Digest == is.Digest {
		return ""
	}
	what := "version"
	if after.Chart != "" {
		what = fmt.Sprintf("chart %q", after.Chart)
	}
	return fmt.Sprintf("%s %s of repository %q has other content than before: its digest was %s and is %s now",
		what, is.Version, after.Repo, was.Digest, is.Digest)
}
