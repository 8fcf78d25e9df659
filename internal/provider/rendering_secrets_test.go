package provider_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// secretCanary is in each Secret, in plain text or base64.
const secretCanary = "cAn4ry-manifest-7f3a91"

// plainSecrets are correct and malformed Secrets.
var plainSecrets = func() map[string]string {
	encoded := base64.StdEncoding.EncodeToString([]byte(secretCanary))
	const head = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\n"
	return map[string]string{
		"data":                      head + "data: {password: " + encoded + "}\n",
		"data that is text":         head + "data: " + secretCanary + "\n",
		"stringData that is text":   head + "stringData: \"password=" + secretCanary + "\"\n",
		"stringData that is a list": head + "stringData: [{name: password, value: " + secretCanary + "}, " + secretCanary + "]\n",
		"data below data":           head + "data: {password: {value: " + secretCanary + "}}\n",
		"StringData":                head + "StringData: {password: " + secretCanary + "}\n",
		"binaryData":                head + "binaryData: {password: " + encoded + "}\n",
		"a member of another kind":  head + "spec: {password: " + secretCanary + "}\n",
		"a value as a name":         head + secretCanary + ": x\n",
		"a value as a key":          head + "stringData: {\"" + secretCanary + " \": x}\n",
		"a value as metadata":       head[:len(head)-2] + ", password: " + secretCanary + "}\n",
		"immutable":                 head + "immutable: " + secretCanary + "\n",
		"type":                      head + "type: [" + secretCanary + "]\n",
		"kubectl's annotation": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: '{\"stringData\":{\"p\":\"" +
			secretCanary + "\"}}'\n",
		"Rancher's annotation":     "apiVersion: v1\nkind: Secret\nmetadata: {name: db, annotations: {objectset.rio.cattle.io/applied: " + secretCanary + "}}\n",
		"an operator's annotation": "apiVersion: v1\nkind: Secret\nmetadata: {name: db, annotations: {banzaicloud.com/last-applied: " + secretCanary + "}}\n",
		"a list": "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(
			head,
			"\n",
			"\n  ",
		) + "stringData: {password: " + secretCanary + "}\n",
		"a list of Secrets": "apiVersion: v1\nkind: SecretList\nitems:\n- " + strings.ReplaceAll(
			head,
			"\n",
			"\n  ",
		) + "stringData: {password: " + secretCanary + "}\n",
		"a kind in lower case": strings.Replace(head, "Secret", "secret", 1) + "stringData: {password: " + secretCanary + "}\n",
		"a kind with a space":  strings.Replace(head, "Secret", "'Secret '", 1) + "stringData: {password: " + secretCanary + "}\n",
		"Kind":                 strings.Replace(head, "kind", "Kind", 1) + "stringData: {password: " + secretCanary + "}\n",
		"V1":                   strings.Replace(head, "v1", "' V1'", 1) + "stringData: {password: " + secretCanary + "}\n",
		"core/v1":              strings.Replace(head, "v1", "core/v1", 1) + "stringData: {password: " + secretCanary + "}\n",
		"another group":        strings.Replace(head, "v1", "example.com/v1", 1) + "stringData: {password: " + secretCanary + "}\n",
		"a Secret in another object": "apiVersion: work.open-cluster-management.io/v1\nkind: ManifestWork\nmetadata: {name: db}\nspec:\n  workload:\n    manifests:\n    - " +
			strings.ReplaceAll(
				head,
				"\n",
				"\n      ",
			) + "stringData: {x: " + secretCanary + "}\n",
	}
}()

func TestASecretInAnyFormIsNeitherShownNorCommitted(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	for i, name := range slices.Sorted(maps.Keys(plainSecrets)) {
		pin := charts.publish(t, fmt.Sprintf("1.0.%d", i), map[string]string{"templates/all.yaml": plainSecrets[name]})
		expectNoSecret := func(where string, text string) {
			for form, canary := range encodedForms(secretCanary) {
				if strings.Contains(text, canary) {
					t.Errorf("%s: %s shows the secret %s: %s", name, where, form, text)
				}
			}
			if encoded := base64.StdEncoding.EncodeToString([]byte(secretCanary)); strings.Contains(text, encoded) {
				t.Errorf("%s: %s shows the secret in base64: %s", name, where, text)
			}
		}
		preview := renderedFleet(pin, tillManifests(charts), nil, map[string]any{"render": "preview"})
		yaml, _, messages := readFinalObjects(t, preview)
		if expectNoSecret("flotilla_manifests", fmt.Sprint(yaml, messages)); len(yaml) != 1 || !strings.Contains(fmt.Sprint(yaml), "(hidden)") {
			t.Errorf("%s: the objects are %q; messages: %s", name, yaml, messages)
		}
		preview["constraints"] = []any{
			map[string]any{
				"name":               "telling",
				"expression":         "object.kind == ''",
				"message_expression": `"data: " + string(object.?stringData.password.orValue("none"))`,
			},
		}
		_, _, messages = readFinalObjects(t, preview)
		expectNoSecret("a rule", messages)
		url, w := bare(t), providertest.New(startProvider)
		diff, diags := w.ReadData(t.Context(), providertest.Configuration{}, "flotilla_diff", map[string]any{
			"name": "dev", "fleet": fleetOf(renderedFleet(pin, tillManifests(charts), nil, map[string]any{"render": "preview"})),
			"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"},
		})
		if expectNoSecret("flotilla_diff", fmt.Sprint(diff, diags)); !strings.Contains(fmt.Sprint(diff["objects"]), "(hidden)") &&
			!diags.Has("Clusters would refuse final objects") {
			t.Errorf("%s: flotilla_diff has %v; messages: %v", name, diff["objects"], diags)
		}
		plan, refused := w.Apply(
			t.Context(),
			assigned(url, fleetOf(renderedFleet(pin, tillManifests(charts), nil, map[string]any{"render": "objects"})), nil),
		)
		expectNoSecret("a plan", fmt.Sprint(plan, refused))
		if refused.Err() == nil || !strings.Contains(fmt.Sprint(refused), "as plain text") {
			t.Errorf("%s: got %v", name, refused)
		}
		if _, err := os.Stat(filepath.FromSlash(url)); err == nil {
			t.Errorf("%s: something was written", name)
		}
	}
}
