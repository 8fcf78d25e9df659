package reconciler_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// field is a part of a definition's OpenAPI schema.
type field struct {
	Properties map[string]*field
	Items      *field
	Enum       []string
}

// find returns the field at a path. A step with the suffix "[]" is a list.
func (f *field) find(path string) *field {
	for step := range strings.SplitSeq(path, ".") {
		name, isList := strings.CutSuffix(step, "[]")
		if f = f.Properties[name]; f == nil {
			return nil
		}
		if isList {
			f = f.Items
		}
	}
	return f
}

// The kinds, fields and references of the table match the reconcilers' own definitions. The test fails if a newer version can
// reference another kind of source.
func TestTableMatchesTheDefinitions(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("downloads the modules with the definitions of Flux, Argo CD and Rancher Fleet")
	}
	files, err := kubetest.Definitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	suppliers, err := kubetest.SecretDefinitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(files, suppliers)
	seen := map[*reconciler.ObjectKind]bool{}
	for _, texts := range files {
		for document := range strings.SplitSeq(strings.Join(toTexts(texts), "\n---\n"), "\n---") {
			var definition struct {
				Spec struct {
					Group    string
					Names    struct{ Kind, Plural string }
					Versions []struct {
						Name   string
						Schema struct {
							OpenAPIV3Schema *field `json:"openAPIV3Schema"`
						}
					}
				}
			}
			if err := yaml.Unmarshal([]byte(document), &definition); err != nil {
				continue // an enum of numbers, in an unrelated kind
			}
			kind := reconciler.KindOf(definition.Spec.Group, definition.Spec.Names.Kind)
			if kind == nil {
				continue
			}
			if kind.Resource != definition.Spec.Names.Plural {
				t.Errorf("%s is %s in paths, but the table has %s", kind.Kind, definition.Spec.Names.Plural, kind.Resource)
			}
			for _, version := range definition.Spec.Versions {
				if newest, _, _ := strings.Cut(kind.Versions, ","); version.Name == newest {
					checkFields(t, kind, version.Schema.OpenAPIV3Schema)
					seen[kind] = true
				}
			}
		}
	}
	for _, kind := range reconciler.Kinds() {
		if !seen[kind] {
			t.Errorf("nothing defines %s in version %s", kind.Kind, kind.Versions)
		}
	}
}

func toTexts(texts [][]byte) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = string(text)
	}
	return all
}

func checkFields(t *testing.T, kind *reconciler.ObjectKind, schema *field) {
	t.Helper()
	paths := slices.Clone(kind.Has)
	if kind.Gives != "" {
		paths = append(paths, kind.Gives)
	}
	for _, path := range paths {
		if schema.find(path) == nil {
			t.Errorf("%s has no field %s", kind.Kind, path)
		}
	}
	for _, reference := range kind.Sources {
		referenced := schema.find(reference.Field)
		if referenced == nil {
			t.Errorf("%s has no field %s", kind.Kind, reference.Field)
			continue
		}
		if kindField := referenced.Properties["kind"]; kindField != nil &&
			!slices.Equal(slices.Sorted(slices.Values(kindField.Enum)), slices.Sorted(slices.Values(reference.Kinds))) {
			t.Errorf("%s of %s can name %v, but the table has %v", reference.Field, kind.Kind, kindField.Enum, reference.Kinds)
		}
	}
}
