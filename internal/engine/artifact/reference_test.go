package artifact_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

func FuzzParseRepository(f *testing.F) {
	for _, repo := range []string{"oci://registry.example.com/till", "oci://localhost:5000/a/b/", "oci://registry.example.com/till:v1", "oci://r.example.com/t@sha256:" + strings.Repeat("d1", 32), "oci://", "oci:///a"} {
		f.Add(repo, "", "1.0.0")
		f.Add(repo, "chart", "1.x")
	}
	f.Fuzz(func(t *testing.T, repo, chart, version string) {
		m := folder.Manifests{Storage: "oci", Repo: repo, Chart: chart, Version: version}
		reference, err := artifact.ParseRepository(m)
		image := artifact.Image(m)
		switch {
		case err == nil && (reference.Reference != "" || reference.Repository == "" || reference.Registry == ""):
			t.Errorf("%q has %+v", repo, reference)
		case err != nil && image != "":
			t.Errorf("%q cannot be parsed, and its image is %q", repo, image)
		case image != "" && (strings.Count(image, "@") > 1 || !strings.HasPrefix(image, reference.Registry+"/"+reference.Repository)):
			t.Errorf("the image of %q is %q", repo, image)
		}
	})
}
