package renderer_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/objectstest"
)

// occasions renders a chart for an agent with installations and upgrades. It returns "<name> <occasion> <data.a>" of each object.
func occasions(t *testing.T, files map[string]string, values map[string]any) []string {
	t.Helper()
	archives := objectstest.NewArchives(t)
	request := objects.Request{
		Artifact: archives.Add(shop, files),
		Path:     "chart",
		Helm:     &objects.Helm{OnCluster: true, ReleaseName: "eu", Values: values},
	}
	result, err := renderer.InProcess(archives).Render(t.Context(), &request)
	if err != nil {
		return []string{"error: " + err.Error()}
	}
	var all []string
	for _, o := range result.Objects {
		_, value, _ := strings.Cut(string(o.YAML), "\n  a: ")
		value, _, _ = strings.Cut(value, "\n")
		all = append(all, strings.TrimSpace(o.Name+" "+string(o.On)+" "+value))
	}
	return all
}

func TestAChartIsRenderedForInstallationAndUpgrade(t *testing.T) {
	t.Parallel()
	object := func(name, value string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {a: '" + value + "'}\n"
	}
	same, state := object("same", "{{ .Release.Name }}"), "{{ ternary `evil` `good` .Release.IsUpgrade }}"
	for name, test := range map[string]struct {
		template string
		values   map[string]any
		want     []string
	}{
		"the same":               {same, nil, []string{"same  eu"}},
		"another value":          {same + "---\n" + object("other", state), nil, []string{"other install good", "other upgrade evil", "same  eu"}},
		"only on upgrade":        {same + "{{ if .Release.IsUpgrade }}\n---\n" + object("more", "x") + "{{ end }}", nil, []string{"more upgrade x", "same  eu"}},
		"only on install":        {"{{ if .Release.IsInstall }}\n" + object("first", "x") + "{{ end }}", nil, []string{"first install x"}},
		"the revision":           {object("other", "{{ .Release.Revision }}"), nil, []string{`other install "1"`, `other upgrade "2"`}},
		"by a key":               {object("other", "{{ index .Release `IsUpgrade` }}"), nil, []string{`other install "false"`, `other upgrade "true"`}},
		"by a variable":          {"{{ $r := .Release }}" + object("other", "{{ $r.IsUpgrade }}"), nil, []string{`other install "false"`, `other upgrade "true"`}},
		"by a key of the root":   {object("other", "{{ index (index . \"Release\") (printf \"Is%s\" \"Upgrade\") }}"), nil, []string{`other install "false"`, `other upgrade "true"`}},
		"all of the release":     {object("other", "{{ toJson .Release | sha256sum | len }}") + "---\n" + object("more", "{{ toJson .Release | contains `true,\"Name` }}"), nil, []string{`more install "false"`, `more upgrade "true"`, `other  "64"`}},
		"by a file":              {object("other", "{{ tpl (.Files.Get `a.txt`) . }}"), nil, []string{"other install good", "other upgrade evil"}},
		"by a default value":     {object("other", "{{ tpl .Values.text . }}"), nil, []string{"other install good", "other upgrade evil"}},
		"by a value":             {object("other", "{{ tpl .Values.given . }}"), map[string]any{"given": state}, []string{"other install good", "other upgrade evil"}},
		"in a dependency":        {same + "{{ include `below` . }}", nil, []string{"below upgrade x", "same  eu"}},
		"a failure on upgrade":   {"{{ if .Release.IsUpgrade }}{{ fail `no upgrades` }}{{ end }}", nil, []string{"error"}},
		"a random upgrade":       {object("other", "{{ if .Release.IsUpgrade }}{{ randAlpha 5 }}{{ end }}"), nil, []string{"error"}},
		"equal objects":          {"{{ if .Release.IsUpgrade }}\n" + same + "{{ else }}\n" + same + "{{ end }}", nil, []string{"same  eu"}},
		"a duplicate on upgrade": {same + "{{ if .Release.IsUpgrade }}\n---\n" + same + "{{ end }}", nil, []string{"error"}},
	} {
		files := chart(map[string]string{
			"templates/all.yaml": test.template, "values.yaml": "text: same\n", "charts/below/Chart.yaml": "apiVersion: v2\nname: below\nversion: 1.0.0\n",
			"charts/below/templates/_names.tpl": "{{ define `below` }}{{ end }}",
		})
		switch name {
		case "by a file":
			files["chart/a.txt"] = state
		case "by a default value":
			files["chart/values.yaml"] = "text: '" + state + "'\n"
		case "in a dependency":
			files["chart/charts/below/templates/_names.tpl"] = "{{ define `below` }}{{ if .Release.IsUpgrade }}\n---\n" + object(
				"below",
				"x",
			) + "{{ end }}{{ end }}"
		}
		got := occasions(t, files, test.values)
		if len(got) == 1 && len(test.want) == 1 && test.want[0] == "error" && strings.HasPrefix(got[0], "error: ") {
			continue
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got\n%q, want\n%q", name, got, test.want)
		}
	}
}

// Argo CD renders charts as `helm template` does: always for an installation.
func TestATemplatedChartIsRenderedForInstallation(t *testing.T) {
	t.Parallel()
	files := chart(map[string]string{"templates/all.yaml": configMap("{{ ternary `evil` `good` .Release.IsUpgrade }}")})
	got := renderFiles(t, files, objects.Request{Path: "chart", Helm: &objects.Helm{ReleaseName: "eu"}})
	if !strings.Contains(got, "name: good") || strings.Contains(got, "evil") {
		t.Errorf("got\n%s", got)
	}
}

func TestObjectsOfAnUpgradeKeepMetadataAndPostRenderers(t *testing.T) {
	t.Parallel()
	files := chart(map[string]string{"templates/all.yaml": configMap("{{ ternary `new` `old` .Release.IsUpgrade }}")})
	got := renderFiles(t, files, objects.Request{Path: "chart", Helm: &objects.Helm{OnCluster: true, ReleaseName: "eu", After: &objects.Kustomize{
		Labels: map[string]string{
			"team": "kaizen",
		}, Patches: []objects.Patch{{Patch: "- {op: add, path: /data, value: {a: b}}", Target: &objects.PatchTarget{Kind: "ConfigMap"}}},
	}}})
	for text, count := range map[string]int{"name: new": 1, "name: old": 1, "team: kaizen": 2, "a: b": 2} {
		if strings.Count(got, text) != count {
			t.Errorf("got %q %d times, want %d:\n%s", text, strings.Count(got, text), count, got)
		}
	}
}

func TestAnAgentAddsMetadataToTheVersionOfAChart(t *testing.T) {
	t.Parallel()
	label := map[string]string{"templates/all.yaml": configMap("{{ printf `%s-%s` .Chart.Name .Chart.Version | replace `+` `_` | quote }}")}
	for version, want := range map[string]string{"1.0.0": "till-1.0.0_5ca1ab1e", "v1.2": "till-1.2.0_5ca1ab1e", "1.0.0+old": "till-1.0.0_5ca1ab1e"} {
		files := chart(label)
		maps.Copy(files, map[string]string{"chart/Chart.yaml": "apiVersion: v2\nname: till\nversion: " + version + "\n"})
		archives := objectstest.NewArchives(t)
		request := objects.Request{
			Artifact: archives.Add(shop, files),
			Path:     "chart",
			Helm:     &objects.Helm{ReleaseName: "eu", VersionMetadata: "5ca1ab1e"},
		}
		result, err := renderer.InProcess(archives).Render(t.Context(), &request)
		if err != nil || result.Objects[0].Name != want || result.Chart.Version != version {
			t.Errorf("%s: %+v, %v, want %s", version, result, err, want)
		}
	}
}
