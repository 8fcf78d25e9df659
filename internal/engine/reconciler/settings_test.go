package reconciler_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// schema is the part of a definition's OpenAPI schema that lists fields.
type schema struct {
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties *schema            `json:"additionalProperties"`
	Items                *schema            `json:"items"`
}

// addPaths adds the paths of all fields, without the indexes of lists. The keys of free maps are "*".
func (s *schema) addPaths(prefix string, seen map[string]bool) {
	if s == nil {
		return
	}
	if prefix != "" {
		seen[prefix] = true
	}
	for name, property := range s.Properties {
		property.addPaths(strings.TrimPrefix(prefix+"."+name, "."), seen)
	}
	s.AdditionalProperties.addPaths(prefix+".*", seen)
	s.Items.addPaths(prefix, seen)
}

// publishedFields returns the fields of the specs of kinds with a parameter, from the reconcilers' definitions.
func publishedFields(t *testing.T) map[*reconciler.ObjectKind][]string {
	t.Helper()
	if testing.Short() {
		t.Skip("downloads the modules with the definitions of Flux, Argo CD and Rancher Fleet")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	files, err := kubetest.Definitions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[*reconciler.ObjectKind]map[string]bool{}
	for _, texts := range files {
		for _, text := range texts {
			for document := range strings.SplitSeq(string(text), "\n---") {
				var definition struct {
					Spec struct {
						Group    string
						Names    struct{ Kind string }
						Versions []struct {
							Name   string
							Schema struct {
								OpenAPIV3Schema *schema `json:"openAPIV3Schema"`
							}
						}
					}
				}
				if err := yaml.Unmarshal([]byte(document), &definition); err != nil {
					t.Fatal(err)
				}
				kind := reconciler.KindOf(definition.Spec.Group, definition.Spec.Names.Kind)
				if kind == nil || kind.Parameter == "" {
					continue
				}
				fields[kind] = map[string]bool{}
				for _, version := range definition.Spec.Versions {
					if !strings.Contains(version.Name, "beta") || len(definition.Spec.Versions) == 1 {
						version.Schema.OpenAPIV3Schema.Properties["spec"].addPaths("", fields[kind])
					}
				}
			}
		}
	}
	lists := map[*reconciler.ObjectKind][]string{}
	for kind, paths := range fields {
		lists[kind] = slices.Sorted(maps.Keys(paths))
	}
	if len(lists) < 8 {
		t.Fatalf("found %d kinds, want at least 8", len(lists))
	}
	return lists
}

// Each field that names a Secret, an account, a namespace, a cluster or a source has a reach, of its own or from a field above.
// The test fails for an undecided field of a newer version.
func TestReachOfEveryFieldIsDecided(t *testing.T) {
	t.Parallel()
	checked := 0
	for kind, paths := range publishedFields(t) {
		for _, path := range paths {
			if reach := kind.ReachOf(path); reach == reconciler.Unknown {
				t.Errorf("%s: the reach of %s is not decided", kind.Kind, path)
			}
			if reconciler.IsSuspicious(path) {
				checked++
			}
		}
		for _, field := range kind.Settings {
			if path := strings.TrimSuffix(field.Path, ".*"); !slices.Contains(paths, path) {
				t.Errorf("%s has no field %s", kind.Kind, path)
			}
		}
	}
	if checked < 140 {
		t.Errorf("%d field names are suspicious, want at least 140", checked)
	}
}

// A field of a newer version is refused until its reach is decided.
func TestReachOfAnUnknownFieldIsUnknown(t *testing.T) {
	t.Parallel()
	kind := reconciler.KindOfParameter("kustomization")
	for path, want := range map[string]reconciler.Reach{
		"tokenRef":                        reconciler.Unknown,
		"postBuild.newSecretRef.name":     reconciler.Unknown,
		"postBuild.newRef.inner":          reconciler.Unknown,
		"postBuild.substitute.SECRET_REF": reconciler.Nothing, // a key of the user
		"postBuild.substituteFrom.name":   reconciler.Secrets,
		"kubeConfig.secretRef.name":       reconciler.Clusters,
		"commonMetadata.labels.namespace": reconciler.Nothing,
		"dependsOn.name":                  reconciler.Nothing,
		"dependsOn.namespace":             reconciler.Namespaces,
		"sourceRef.name":                  reconciler.Decided,
		"healthChecks.namespace":          reconciler.Nothing,
		"decryption.secretRef.name":       reconciler.Secrets,
		"decryption.secretRef":            reconciler.Secrets,
		"decryption.provider":             reconciler.Accounts,
		"interval":                        reconciler.Nothing,
		"":                                reconciler.Unknown,
	} {
		if got := kind.ReachOf(path); got != want {
			t.Errorf("%q reaches %s, want %s", path, got, want)
		}
	}
}

func TestNoFieldIsDecidedTwice(t *testing.T) {
	t.Parallel()
	for _, kind := range reconciler.Kinds() {
		seen := map[string]bool{}
		for _, field := range kind.Settings {
			path := strings.TrimSuffix(field.Path, ".*")
			if seen[path] {
				t.Errorf("%s: %s is listed twice", kind.Kind, path)
			}
			seen[path] = true
			if (field.Reach == reconciler.Decided) != (field.By != "") {
				t.Errorf("%s: %s is decided by %q", kind.Kind, path, field.By)
			}
		}
	}
}

func TestEveryReconcilerHasSecretValuesOrAReason(t *testing.T) {
	for _, name := range reconciler.Names() {
		if agent := reconciler.Named(name); (agent.SecretValues == nil) == (agent.NoSecretValues == "") {
			t.Errorf("%s must have either SecretValues or NoSecretValues, got %v, %q", name, agent.SecretValues, agent.NoSecretValues)
		}
	}
}
