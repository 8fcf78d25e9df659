package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// typesFleet has cluster types with the same two deployment targets.
func typesFleet(types ...any) providertest.Call {
	return fleetOf(map[string]any{
		"cluster_types": types,
		"target_policies": []any{
			policy("core", map[string]any{}, map[string]any{}),
		},
	})
}

func TestFoldersOfAnotherAssignmentAreOneError(t *testing.T) {
	t.Parallel()
	for count, want := range map[int]string{
		1:  `Folder "clusters/all/t0/app-core" belongs to the assignment "dev" at path "clusters/all".`,
		60: `120 folders that the fleet wants belong to others:`,
	} {
		var types []any
		for i := range count {
			types = append(types, map[string]any{"name": fmt.Sprint("t", i)})
		}
		url := bare(t)
		apply(t, providertest.New(startProvider), assigned(url, typesFleet(types...), nil))
		_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(url, typesFleet(types...), map[string]any{"name": "other"}))
		errors := 0
		for _, diagnostic := range diags {
			if diagnostic.Error {
				errors++
			}
		}
		if lines := strings.Count(diags.String(), "\n"); errors != 1 || lines > 25 || !strings.Contains(diags.String(), want) ||
			!strings.Contains(diags.String(), "set adopt = true") {
			t.Errorf("%d cluster types: %d errors in %d lines: %s", count, errors, lines, diags)
		}
	}
}

func TestAPlanSuggestsFormerlyForARenamedClusterType(t *testing.T) {
	t.Parallel()
	kept, shop := map[string]any{"name": "kept"}, map[string]any{"name": "shop"}
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, assigned(url, typesFleet(kept, shop), nil))
	const summary = "Cluster type may have another name now"
	for name, test := range map[string]struct {
		types []any
		want  bool
	}{
		"another name":               {[]any{kept, map[string]any{"name": "store"}}, true},
		"another name, and formerly": {[]any{kept, map[string]any{"name": "store", "formerly": []any{"shop"}}}, false},
		"it leaves":                  {[]any{kept}, false},
		"another one joins":          {[]any{kept, shop, map[string]any{"name": "store"}}, false},
	} {
		_, diags := w.Plan(t.Context(), assigned(url, typesFleet(test.types...), nil))
		if diags.Has(summary) != test.want || test.want && !strings.Contains(diags.String(), `"shop" leaves and "store" joins`) ||
			test.want && !strings.Contains(diags.String(), `formerly = ["shop"]`) {
			t.Errorf("%s: the plan says %s", name, diags)
		}
	}
}
