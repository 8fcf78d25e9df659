package provider_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// Values that errors must not repeat.
const (
	longCanary  = "cAn4ry-value/7f3a91"
	shortCanary = "hun2er"
)

var canaryValues = map[string]any{
	"greeting": longCanary, "pin": shortCanary, "nested": map[string]any{"list": []any{map[string]any{"deep": longCanary + "-deep"}}},
	"address": "postgres://me:" + shortCanary + "@db.example.com/shop", "text": "a line\n" + longCanary + " with\tmore\n",
}

// expectNoCanary refuses canaries and requires the wanted texts.
func expectNoCanary(t *testing.T, name, messages string, want ...string) {
	t.Helper()
	plain := strings.Join(strings.Fields(messages), " ")
	encoded := base64.StdEncoding.EncodeToString([]byte(longCanary))
	for _, part := range []string{longCanary, longCanary[:7], "CAN4RY", shortCanary, "7f3a91", encoded, encoded[:10]} {
		if strings.Contains(plain, part) {
			t.Errorf("%s: a message has %q: %s", name, part, messages)
		}
	}
	for _, part := range want {
		if !strings.Contains(plain, part) {
			t.Errorf("%s: got %s, want %q", name, messages, part)
		}
	}
	if len(messages) > 4<<10 {
		t.Errorf("%s: the messages have %d bytes", name, len(messages))
	}
}

func TestErrorsOfChartsRepeatNoValue(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	configMap := func(data string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: " + data + "\n"
	}
	const schema = `{"properties": {"greeting": %s}}`
	for i, test := range []struct {
		name     string
		files    map[string]string
		template string
		want     []string
	}{
		{name: "fail with all values", template: "{{ fail (toYaml .Values) }}", want: []string{"till/templates/all.yaml:1", "greeting: ***", "the chart's own literal"}},
		{name: "fail with JSON", template: "{{ fail (toJson .Values) }}", want: []string{`"greeting":"***"`}},
		{name: "fail with base64", template: "{{ fail (printf \"no %s\" (b64enc .Values.greeting)) }}", want: []string{"no ***"}},
		{name: "fail with all values in base64", template: "{{ fail (toYaml .Values | b64enc) }}", want: []string{"till/templates/all.yaml:1"}},
		{name: "fail with a part", template: `{{ fail (printf "no %s" (substr 2 16 .Values.greeting)) }}`, want: []string{"no ***"}},
		{name: "fail with the password of an address", template: `{{ fail (printf "of %s" (get (urlParse .Values.address) "userinfo")) }}`, want: []string{"of ***"}},
		{name: "fail with a short value", template: `{{ fail (printf "pin %s is not right" .Values.pin) }}`, want: []string{"pin *** is not right"}},
		{name: "fail with upper case", template: `{{ fail (upper .Values.greeting) }}`},
		{name: "fail with very much", template: `{{ fail (repeat 20000 (printf "%s\n" .Values.greeting)) }}`},
		{name: "required", template: `{{ required (printf "%v" .Values) .Values.missing }}`, want: []string{"till/templates/all.yaml:1"}},
		{name: "the wrong type", template: `{{ .Values.greeting.name }}`, want: []string{"at <.Values.greeting.name>"}},
		{name: "no number", template: `{{ mustToDate "2006" .Values.greeting }}`},
		{name: "no version", template: `{{ semver .Values.greeting }}`},
		{name: "no YAML", template: "a: {{ .Values.greeting }}: [b\n", want: []string{"templates/all.yaml"}},
		{name: "a value for a map", template: "{{ .Values.greeting }}\n", want: []string{"templates/all.yaml"}},
		{name: "data that is a list", template: configMap("{{ .Values.greeting }}") + "---\n" + "apiVersion: v1\nkind: [{{ .Values.greeting }}]\n"},
		{name: "a value as labels", template: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {{ .Values.greeting }}}\n"},
		{name: "a value as a template", template: `{{ tpl "{{ fail .Values.greeting }}" . }}`},
		{name: "schema: enum", files: map[string]string{"values.schema.json": fmt.Sprintf(schema, `{"enum": ["wanted"]}`)}, want: []string{"values.schema.json", "wanted", "/greeting"}},
		{name: "schema: pattern", files: map[string]string{"values.schema.json": fmt.Sprintf(schema, `{"pattern": "^wanted$"}`)}, want: []string{"^wanted$"}},
		{name: "schema: format", files: map[string]string{"values.schema.json": fmt.Sprintf(schema, `{"type": "number"}`)}, want: []string{"number"}},
		{name: "schema: const", files: map[string]string{"values.schema.json": fmt.Sprintf(schema, `{"const": "wanted"}`)}, want: []string{"wanted"}},
		{name: "schema: length", files: map[string]string{"values.schema.json": fmt.Sprintf(schema, `{"maxLength": 3}`)}},
	} {
		files := map[string]string{"templates/all.yaml": test.template + "\n"}
		if test.name == "fail with all values" {
			files["values.yaml"] = "own: the chart's own literal\n"
		}
		maps.Copy(files, test.files)
		pin := charts.publish(t, fmt.Sprintf("1.0.%d", i), files)
		for reconciler, attributes := range map[string]map[string]any{"flux": nil, "argocd": nil} {
			if i > 0 && reconciler == "argocd" {
				continue
			}
			fleet := renderedFleet(
				pin,
				tillManifests(charts),
				map[string]any{"config_as": []any{"values"}},
				mergeMaps(map[string]any{"render": "preview", "reconciler": reconciler}, attributes),
			)
			fleet["config_containers"] = []any{map[string]any{"name": "all", "data": canaryValues, "allow_plain": []any{"address"}}}
			objects, _, messages := readFinalObjects(t, fleet)
			if messages == "" || messages == "[]" {
				t.Errorf("%s: got no error, and the objects %q", test.name, slices.Sorted(maps.Keys(objects)))
			}
			expectNoCanary(t, test.name, messages, append(test.want, fmt.Sprintf("chart till 1.0.%d of %s", i, charts.url))...)
			_, refused := providertest.New(startProvider).Apply(t.Context(), assigned(bare(t), fleetOf(fleet), nil))
			expectNoCanary(t, test.name, fmt.Sprint(refused), test.want...)
		}
	}
}

// Parameters of reconciler objects count as values. Secrets in the artifact must not be read.
func TestErrorsOfKustomizationsRepeatNoValue(t *testing.T) {
	t.Parallel()
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: " + longCanary + "}\n"
	repo, commit := serveRepository(t, map[string]string{
		"patch/kustomization.yaml":     "resources: [all.yaml]\n",
		"patch/all.yaml":               "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting}\n",
		"broken/all.yaml":              secret + " more: [\n",
		"misread/all.yaml":             strings.ReplaceAll(secret, "{password: ", "{password: *"),
		"generator/kustomization.yaml": "secretGenerator: [{name: db, literals: [\"" + longCanary + "\"]}]\n",
		"inline/kustomization.yaml":    "resources: [../patch]\npatches:\n- patch: |-\n    kind: Secret\n    data: [" + longCanary + "\n",
		"variable/all.yaml":            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"${GREETING}\"}\ndata: {a: \"${GREETING\"}\n",
	})
	patch := func(text string) map[string]any {
		return map[string]any{
			"kustomization": map[string]any{"patches": []any{map[string]any{"patch": text, "target": map[string]any{"kind": "ConfigMap"}}}},
		}
	}
	for name, test := range map[string]struct {
		path       string
		parameters map[string]any
		want       []string
	}{
		"a patch that is not YAML":  {"patch", patch("data: [" + longCanary), []string{`folder "patch"`}},
		"an invalid patch":          {"patch", patch("- op: " + longCanary + "\n  path: /data\n  value: " + longCanary), nil},
		"a patch of another object": {"patch", patch("- op: replace\n  path: /data/a/b\n  value: " + longCanary), []string{"/data/a/b"}},
		"a broken Secret":           {"broken", nil, []string{"all.yaml"}},
		"an alias":                  {"misread", nil, nil},
		"a generator":               {"generator", nil, nil},
		"an inline patch":           {"inline", nil, nil},
		"a variable":                {"variable", nil, nil},
	} {
		manifests := map[string]any{"repo": repo, "commit": commit, "path": test.path}
		fleet := renderedFleet(
			folder.Pin{},
			manifests,
			map[string]any{"render": "preview", "config_as": []any{"substitute"}},
			map[string]any{"reconciler": "flux", "parameters": test.parameters},
		)
		if test.parameters == nil {
			delete(fleet["cluster_types"].([]any)[0].(map[string]any), "parameters")
		}
		fleet["config_containers"] = []any{map[string]any{"name": "all", "data": map[string]any{"GREETING": longCanary}}}
		objects, _, messages := readFinalObjects(t, fleet)
		if len(objects) > 0 {
			t.Errorf("%s: the objects are %q", name, objects)
		}
		expectNoCanary(t, name, messages, test.want...)
	}
}

func TestErrorsOfTemplatesRepeatNoValue(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		manifest string
		want     string
	}{
		"fail":      {"{{ fail (toYaml .ConfigData) }}", "greeting: ***"},
		"fail text": {`{{ fail (printf "no %s" .ConfigData.greeting) }}`, "no ***"},
		"a version": {`{{ semver .ConfigData.greeting }}`, ""},
		"YAML":      {"apiVersion: v1\nkind: {{ .ConfigData.greeting }}: [\n", ""},
		"fromYaml":  {`{{ fromYaml (printf "a: [%s" .ConfigData.greeting) }}`, "fromYaml"},
		"fromJson":  {`{{ fromJson (printf "{%s" .ConfigData.greeting) }}`, "fromJson"},
		"tpl":       {`{{ tpl "{{ fail .ConfigData.pin }}" . }}`, "***"},
		"parameter": {`{{ fail .Manifests.parameters.note }}`, "***"},
		"name":      {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .ConfigData.greeting }}\"}\n", ""},
	} {
		fleet := renderedFleet(
			folder.Pin{},
			map[string]any{"repo": "https://git.example.com/app", "tag": "v1", "parameters": map[string]any{"note": longCanary}},
			nil,
			map[string]any{"reconciler": "own"},
		)
		fleet["config_containers"] = []any{map[string]any{"name": "all", "data": canaryValues, "allow_plain": []any{"address"}}}
		fleet["templates"] = []any{map[string]any{"name": "own", "type": "reconciler", "manifests": []any{test.manifest}}}
		read, diags := providertest.New(startProvider).
			ReadData(t.Context(), providertest.Configuration{}, "flotilla_manifests", map[string]any{"fleet": fleetOf(fleet)})
		if diags.Err() == nil {
			t.Errorf("%s: got no error: %v", name, read)
		}
		expectNoCanary(t, name, fmt.Sprint(diags), test.want, "own")
	}
}
