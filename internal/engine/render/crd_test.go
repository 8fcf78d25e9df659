package render_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// schema is the part of a CRD's OpenAPI schema used by built-in templates.
type schema struct {
	Type                 string             `json:"type"`
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties *schema            `json:"additionalProperties"`
	Items                *schema            `json:"items"`
	Required             []string           `json:"required"`
	Enum                 []any              `json:"enum"`
	Pattern              string             `json:"pattern"`
	MaxLength            *int               `json:"maxLength"`
	MinLength            int                `json:"minLength"`
	Preserve             bool               `json:"x-kubernetes-preserve-unknown-fields"`
	IntOrString          bool               `json:"x-kubernetes-int-or-string"`
}

// violations returns the violations of the schema in a value, each with its place.
func (s *schema) violations(place string, value any) []string {
	var broken []string
	report := func(format string, arguments ...any) {
		broken = append(broken, place+" "+fmt.Sprintf(format, arguments...))
	}
	if s.Type == "" && s.Preserve { // of any type
		return nil
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, value) {
		report("is %v, not one of %v", value, s.Enum)
	}
	switch value := value.(type) {
	case map[string]any:
		if s.Type != "object" {
			report("is an object, not %s", s.Type)
		}
		for _, name := range s.Required {
			if _, ok := value[name]; !ok {
				report("has no %s", name)
			}
		}
		for name, element := range value {
			if place == "" && name == "metadata" {
				continue // the same for all kinds, and not in their schemas
			}
			property := s.Properties[name]
			if property == nil {
				property = s.AdditionalProperties
			}
			switch {
			case property != nil:
				broken = append(broken, property.violations(place+"."+name, element)...)
			case !s.Preserve:
				report("has no such field as %s", name)
			}
		}
	case []any:
		if s.Type != "array" {
			report("is a list, not %s", s.Type)
			break
		}
		for i, element := range value {
			broken = append(broken, s.Items.violations(fmt.Sprintf("%s[%d]", place, i), element)...)
		}
	case string:
		if s.Type != "string" && !s.IntOrString {
			report("is a string, not %s", s.Type)
		}
		if s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(value) {
			report("is %q, which does not match %s", value, s.Pattern)
		}
		if s.MaxLength != nil && len(value) > *s.MaxLength || len(value) < s.MinLength {
			report("is %d characters long", len(value))
		}
	case bool:
		if s.Type != "boolean" {
			report("is a boolean, not %s", s.Type)
		}
	case float64:
		isInteger := value == math.Trunc(value) && (s.Type == "integer" || s.IntOrString)
		if s.Type != "number" && !isInteger {
			report("is a number, not %s", s.Type)
		}
	}
	return broken
}

type definition struct {
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

// publishedSchemas returns the schemas of all kinds by apiVersion and kind.
func publishedSchemas(t *testing.T) map[string]*schema {
	t.Helper()
	if testing.Short() {
		t.Skip("downloads the modules with the definitions of Flux, Argo CD and Rancher Fleet")
	}
	files, err := kubetest.Definitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	schemas := map[string]*schema{}
	for module, texts := range files {
		for _, text := range texts {
			for _, document := range bytes.Split(text, []byte("\n---")) {
				var found definition
				if err := yaml.Unmarshal(document, &found); err != nil {
					t.Fatal(module, err)
				}
				for _, version := range found.Spec.Versions {
					schemas[found.Spec.Group+"/"+version.Name+" "+found.Spec.Names.Kind] = version.Schema.OpenAPIV3Schema
				}
			}
		}
	}
	return schemas
}

func TestBuiltinReconcilersMatchThePublishedDefinitions(t *testing.T) {
	schemas := publishedSchemas(t)
	checked := map[string]bool{}
	files, err := filepath.Glob(filepath.Join("testdata", "builtin", "*", "reconciler.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range documentsOf(t, content) {
			var object map[string]any // with the types of JSON
			if text, err := json.Marshal(document); err != nil || json.Unmarshal(text, &object) != nil {
				t.Fatal(file, err)
			}
			name := fmt.Sprint(object["apiVersion"], " ", object["kind"])
			if schema := schemas[name]; schema != nil {
				checked[name] = true
				for _, violation := range schema.violations("", object) {
					t.Errorf("%s: %s: %s", file, name, violation)
				}
			}
		}
	}
	for _, name := range []string{
		"source.toolkit.fluxcd.io/v1 GitRepository", "source.toolkit.fluxcd.io/v1 OCIRepository",
		"source.toolkit.fluxcd.io/v1 HelmRepository", "kustomize.toolkit.fluxcd.io/v1 Kustomization", "argoproj.io/v1alpha1 Application",
		"argoproj.io/v1alpha1 ApplicationSet",
	} {
		if !checked[name] {
			t.Errorf("nothing of %s was checked", name)
		}
	}
}

func TestKnownFieldsMatchThePublishedDefinitions(t *testing.T) {
	compared := 0
	for name, schema := range publishedSchemas(t) {
		version, kind, _ := strings.Cut(name, " ")
		if known := reconciler.KindNamed(kind); known != nil && known.Settings != nil && !strings.Contains(version, "beta") {
			compared++
			if published := slices.Sorted(maps.Keys(schema.Properties["spec"].Properties)); !slices.Equal(known.FieldNames(), published) {
				t.Errorf("%s: got known fields\n%q, want\n%q", name, known.FieldNames(), published)
			}
		}
	}
	if compared < 5 {
		t.Errorf("only %d kinds were compared", compared)
	}
}
