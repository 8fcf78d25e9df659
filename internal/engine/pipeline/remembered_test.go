package pipeline_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
)

func TestARememberedRenderingEqualsTheOriginal(t *testing.T) {
	result, findings := pipeline.Compute(referenceValue(t))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	rendered := result.Render(t.Context(), destination, nil)
	remembered := result.FromTrees(destination, rendered.Wanted())
	if remembered == nil || !reflect.DeepEqual(remembered.Wanted(), rendered.Wanted()) || !slices.Equal(remembered.Trees, rendered.Trees) {
		t.Fatal("the remembered trees differ")
	}
	for i := range rendered.Trees {
		if want, got := rendered.Record(i), remembered.Record(i); !reflect.DeepEqual(got, want) {
			t.Fatalf("record of %d: got %v, want %v", i, got, want)
		}
		want, err := rendered.Files(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := remembered.Files(t.Context(), i); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("files of %d differ, %v", i, err)
		}
	}

	first := rendered.Wanted().Keys()[0]
	for name, change := range map[string]func(folder.Trees){
		"without a host":         func(trees folder.Trees) { delete(trees, first.Host) },
		"without a folder":       func(trees folder.Trees) { delete(trees[first.Host], first.DeploymentTarget) },
		"with an unknown folder": func(trees folder.Trees) { trees[first.Host][first.DeploymentTarget] = "" },
	} {
		trees := rendered.Wanted()
		if change(trees); result.FromTrees(destination, trees) != nil {
			t.Errorf("FromTrees accepts trees %s", name)
		}
	}
}

func TestFingerprintsDependOnAllInputs(t *testing.T) {
	base := referenceValue(t)
	seen := map[string]string{}
	record := func(name string, value fleet.Value, to pipeline.Destination, release string) {
		t.Helper()
		fingerprint := (&pipeline.Computation{Value: value}).Fingerprint(to, release)
		if other, ok := seen[fingerprint]; ok {
			t.Errorf("%s has the fingerprint of %s", name, other)
		}
		if again := (&pipeline.Computation{Value: value}).Fingerprint(to, release); again != fingerprint {
			t.Errorf("%s has two fingerprints", name)
		}
		seen[fingerprint] = name
	}
	record("the fleet", base, destination, "1.0.0")
	record("another release", base, destination, "1.0.1")
	record("another owner", base, pipeline.Destination{Owner: "other", Repo: destination.Repo}, "1.0.0")
	record("no repository", base, pipeline.Destination{Owner: destination.Owner}, "1.0.0")
	for i, repo := range []folder.Location{
		{URL: "https://git.example.com/other.git", Branch: "dev"}, {URL: destination.Repo.URL, Branch: "main"},
		{URL: destination.Repo.URL, Branch: "dev", Path: "a"},
	} {
		record(fmt.Sprintf("repository %d", i), base, pipeline.Destination{Owner: destination.Owner, Repo: &repo}, "1.0.0")
	}
	for name, change := range map[string]func(*fleet.Value){
		"another format":      func(v *fleet.Value) { v.Format += "0" },
		"another environment": func(v *fleet.Value) { v.Environment += "0" },
		"another model":       func(v *fleet.Value) { v.Model += " " },
		"another value":       func(v *fleet.Value) { v.Config["one-more"] = "{}" },
		"other manifests":     func(v *fleet.Value) { v.Manifests["one-more"] = "{}" },
		"an unknown entry":    func(v *fleet.Value) { delete(v.Config, slices.Sorted(maps.Keys(v.Config))[0]) },
		"unknown manifests":   func(v *fleet.Value) { delete(v.Manifests, slices.Sorted(maps.Keys(v.Manifests))[0]) },
	} {
		other := base
		other.Config, other.Manifests = maps.Clone(base.Config), maps.Clone(base.Manifests)
		change(&other)
		record(name, other, destination, "1.0.0")
	}
}
