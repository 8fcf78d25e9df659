package secret_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

func TestReferencesAndEmptySecretsAreNotPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"{apiVersion: v1, kind: Secret, metadata: {name: a}, type: kubernetes.io/service-account-token}": false,
		"{apiVersion: v1, kind: Secret, metadata: {name: a, creationTimestamp: null}, data: {}}":         false,
		"{kind: Secret, metadata: {name: a, annotations: {kubernetes.io/service-account.name: b}}}":      false,
		"{kind: Secret, metadata: {name: a}, immutable: true, data: null}":                               false,
		"{kind: Secret, data: {a: YQ==}}":                                            true,
		"{kind: Secret, metadata: {annotations: {a: '{\"data\": {\"a\": \"b\"}}'}}}": true,
		"{kind: Secret, metadata: {annotations: {a: H4sIAAAA}}}":                     true,
		"{kind: Secret, metadata: {labels: {a: [b]}}}":                               true,
	} {
		if got := secret.HasPlain(objectOf(t, text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
	for text, want := range map[string]bool{
		"{kind: HelmRelease, spec: {valuesFrom: [{kind: Secret, name: a}]}}":                                       false,
		"{kind: SealedSecret, spec: {template: {metadata: {name: a}}, encryptedData: {a: b}}}":                     false,
		"{kind: ExternalSecret, spec: {target: {template: {data: {a: '{{ .a }}'}}}}}":                              false,
		"{kind: Rule, spec: {generate: {kind: Secret, name: a, clone: {name: b}}}}":                                false,
		"{kind: Rule, spec: {generate: {kind: Secret, name: a, data: {a: b}}}}":                                    true,
		"{kind: Template, objects: [{apiVersion: v1, kind: Secret, stringData: {a: b}}]}":                          true,
		"{kind: Template, objects: [{apiVersion: v1, kind: Secret, stringData: {a: b}, sops: {mac: c}}]}":          false,
		"{kind: Template, objects: [{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {}}]}":               false,
		"{kind: CustomResourceDefinition, spec: {names: {kind: Secret, plural: secrets}, validation: {data: {}}}}": false,
	} {
		if got := secret.EmbedsPlain(objectOf(t, text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

func TestManifestsOfSecretsAreFoundInText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"kind: Secret\ndata:\n  a: b\n":                       true,
		`{"kind":"Secret","stringData":{"a":"b"}}`:            true,
		"- kind: 'Secret' # of the app\n  data: {{ .x }}\n":   true,
		"kind: Secret\nmetadata: {name: a}\n":                 false,
		"kind: SecretStore\ndata: x\n":                        false,
		"kind: Deployment\nvolumes: [{secret: x}]\ndata: x\n": false,
		"a mankind: secret\nof data: here":                    false,
	} {
		if got := secret.IsManifest(text); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

func objectOf(t testing.TB, text string) (object map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// Masked text has no character of a value.
func FuzzMasked(f *testing.F) {
	f.Add("{kind: Secret, data: {a: canary}, metadata: {name: b, annotations: {c: canary}}}")
	f.Add("{kind: Secret, Data: canary, metadata: [canary], 'canary ': 1, type: [canary]}")
	f.Fuzz(func(t *testing.T, text string) {
		var object map[string]any
		if yaml.Unmarshal([]byte(text), &object) != nil || object == nil {
			return
		}
		masked := secret.Masked(object, func(any, ...string) any { return nil })
		for _, data := range []string{"data", "stringData"} {
			if members, isMap := masked[data].(map[string]any); isMap {
				for key, value := range members {
					if value != nil {
						t.Errorf("%s: %s of %v", text, key, masked)
					}
				}
			} else if masked[data] != nil {
				t.Errorf("%s: %v", text, masked)
			}
		}
		if strings.Contains(fmt.Sprint(masked["unknown field"]), "canary") {
			t.Errorf("%s: %v", text, masked)
		}
	})
}
