package artifact_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

func TestKeyIsUniqueToAnArtifact(t *testing.T) {
	t.Parallel()
	chartAt := func(repo string) artifact.Artifact {
		return artifact.Artifact{Storage: "helm", Repo: repo, Chart: "till", Pin: folder.Pin{Version: "1.2.1", Digest: "sha256:aa"}}
	}
	same := chartAt("https://charts.example.com/team/a")
	for _, spelling := range []string{
		"https://Charts.Example.com/team/a", "HTTPS://charts.example.com/team/a", "https://charts.example.com:443/team/a", "https://charts.example.com/team/a/",
	} {
		if chartAt(spelling).Key() != same.Key() {
			t.Errorf("%s has another key: %s", spelling, chartAt(spelling).Key())
		}
	}
	retagged := same
	retagged.Pin.Version = "1.2.2"
	if retagged.Key() != same.Key() {
		t.Error("another version of the same digest has another key")
	}
	others := []artifact.Artifact{
		chartAt("http://charts.example.com/team/a"), chartAt("https://charts.example.com:8443/team/a"), chartAt("https://charts.example.com/team/b"),
		chartAt("https://charts.example.com/Team/a"), chartAt("https://evil.example.com/team/a"), chartAt("https://me@charts.example.com/team/a"),
		chartAt(
			"https://charts.example.com/team/a?to=b",
		), chartAt("https://charts.example.com/team%2Fa"), chartAt("git@charts.example.com:team/a"), chartAt("/team/a"), chartAt("://"),
	}
	for _, change := range []func(*artifact.Artifact){
		func(a *artifact.Artifact) { a.Storage = "oci" },
		func(a *artifact.Artifact) { a.Chart = "shop" },
		func(a *artifact.Artifact) { a.Pin.Digest = "sha256:bb" },
		func(a *artifact.Artifact) { a.Pin = folder.Pin{Commit: "aa"} },
		func(a *artifact.Artifact) { a.Repo, a.Chart = a.Repo+`" "till`, "" }, // parts of a key are delimited
	} {
		other := same
		change(&other)
		others = append(others, other)
	}
	seen := map[string]artifact.Artifact{same.Key(): same}
	for _, other := range others {
		if earlier, isTaken := seen[other.Key()]; isTaken {
			t.Errorf("%+v has the key of %+v", other, earlier)
		}
		seen[other.Key()] = other
	}
}
