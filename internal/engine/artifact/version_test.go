package artifact_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

func TestDescribeRepublished(t *testing.T) {
	chart := func(version, digest string) folder.Manifests {
		return folder.Manifests{
			Storage: "helm",
			Repo:    "https://charts.example.com",
			Chart:   "till",
			Version: "1.x",
			Pin:     folder.Pin{Version: version, Digest: digest},
		}
	}
	tag := func(tag, commit string) folder.Manifests {
		return folder.Manifests{Storage: "git", Repo: "https://git.example.com/till", Tag: tag, Pin: folder.Pin{Commit: commit}}
	}
	image := func(tag, digest string) folder.Manifests {
		return folder.Manifests{Storage: "oci", Repo: "oci://registry.example.com/till", Tag: tag, Pin: folder.Pin{Version: tag, Digest: digest}}
	}
	elsewhere := chart("1.2.1", "b")
	elsewhere.Repo = "https://other.example.com"
	for name, test := range map[string]struct {
		before, after folder.Manifests
		want          string // "" if nothing was republished
	}{
		"a chart":                      {chart("1.2.1", "a"), chart("1.2.1", "b"), `chart "till" 1.2.1 of repository "https://charts.example.com" has other content`},
		"a chart of another range":     {chart("1.2.1", "a"), folder.Manifests{Storage: "helm", Repo: "https://charts.example.com/", Chart: "till", Pin: folder.Pin{Version: "1.2.1", Digest: "b"}}, "other content"},
		"the same content":             {chart("1.2.1", "a"), chart("1.2.1", "a"), ""},
		"another version":              {chart("1.2.1", "a"), chart("1.2.2", "b"), ""},
		"another repository":           {chart("1.2.1", "a"), elsewhere, ""},
		"no pin before":                {chart("1.2.1", ""), chart("1.2.1", "b"), ""},
		"a tag of Git":                 {tag("v1.2.1", "a"), tag("v1.2.1", "b"), `tag "v1.2.1" of repository "https://git.example.com/till" has moved from commit a to b`},
		"a tag of Git that may move":   {tag("stable", "a"), tag("stable", "b"), ""},
		"another tag of Git":           {tag("v1.2.1", "a"), tag("v1.2.2", "b"), ""},
		"a tag of a registry":          {image("1.2.1", "a"), image("1.2.1", "b"), `version 1.2.1 of repository "oci://registry.example.com/till"`},
		"latest":                       {image("latest", "a"), image("latest", "b"), ""},
		"a chart in place of a commit": {tag("v1.2.1", "a"), chart("1.2.1", "b"), ""},
	} {
		if got := artifact.DescribeRepublished(test.before, test.after); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
