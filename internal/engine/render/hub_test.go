package render_test

import (
	"reflect"
	"strings"
	"testing"
	"text/template"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// expandTemplate expands the template of an ApplicationSet for a cluster, as Argo CD does. Every text is a template, including keys.
func expandTemplate(t *testing.T, value any, cluster map[string]any) any {
	t.Helper()
	switch value := value.(type) {
	case string:
		parsed, err := template.New("").Option("missingkey=error").Parse(value)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := parsed.Execute(&text, cluster); err != nil {
			t.Fatal(err)
		}
		return text.String()
	case map[string]any:
		object := map[string]any{}
		for key, element := range value {
			object[expandTemplate(t, key, cluster).(string)] = expandTemplate(t, element, cluster)
		}
		return object
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = expandTemplate(t, element, cluster)
		}
		return list
	}
	return value
}

func TestHubsDoNotExpandUserValues(t *testing.T) {
	cluster := map[string]any{"name": "drone_1", "nameNormalized": "drone-1"}
	for _, value := range hostile {
		config := map[string]any{"a": value, "{{.name}}": []any{value, "{{ not a template", "}}"}}
		manifests := helmChart
		manifests.Parameters = map[string]any{
			"values":      map[string]any{"b": value},
			"application": map[string]any{"info": []any{map[string]any{"name": "x", "value": value}}},
		}
		single := deployment{reconciler: "argocd", manifests: manifests, config: config, configAs: fleet.ConfigAs{"values"}}
		hub := single
		hub.reconciler = "argocd-hub"
		want := documentsOf(t, []byte(single.render(t)["reconciler.yaml"]))[0]
		set := documentsOf(t, []byte(hub.render(t)["reconciler.yaml"]))[0]
		got := expandTemplate(t, valueAt(set, "spec.template"), cluster)
		for _, path := range []string{"spec.source", "spec.syncPolicy.automated", "spec.project", "spec.info", "metadata.labels"} {
			if !reflect.DeepEqual(valueAt(got, path), valueAt(want, path)) {
				t.Errorf("%q: %s is\n%v\nwant\n%v", value, path, valueAt(got, path), valueAt(want, path))
			}
		}
		if got := valueAt(got, "spec.destination"); !reflect.DeepEqual(got, map[string]any{"name": "drone_1", "namespace": "dev-drone-hello-dev"}) {
			t.Errorf("got destination %v", got)
		}
		if got := textAt(got, "metadata.name"); got != "dev-drone-hello-dev-drone-1" {
			t.Errorf("got name %q", got)
		}
	}
}
