package render_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// Every file in a folder of Flux, Argo CD or Rancher Fleet is a manifest. A ConfigMap contains configuration of other formats.
func TestConfigurationOfEveryTypeArrivesOnTheCluster(t *testing.T) {
	for _, reconciler := range []string{"flux", "argocd", "fleet"} {
		for _, configType := range []string{"configmap", "json", "env", "properties", "symphony"} {
			files := deployment{reconciler: reconciler, configType: configType, config: awkward}.render(t)
			for name, content := range files {
				if path.Ext(name) != ".yaml" {
					t.Errorf("%s, %s: %s is not a manifest", reconciler, configType, name)
				}
				for _, document := range documentsOf(t, []byte(content)) {
					if textAt(document, "apiVersion") == "" || textAt(document, "metadata.name") == "" {
						t.Errorf("%s, %s: %s has a document that is not a manifest:\n%s", reconciler, configType, name, content)
					}
				}
			}
			if configType == "configmap" || configType == "symphony" {
				continue
			}
			raw := deployment{reconciler: "zarf", configType: configType, config: awkward}.render(t)["platform-config."+configType]
			data := valueAt(documentsOf(t, []byte(files["platform-config.yaml"]))[0], "data").(map[string]any)
			if len(data) != 1 || data["platform-config."+configType] != raw || raw == "" {
				t.Errorf("%s, %s: got data\n%v\nwant\n%s", reconciler, configType, data, raw)
			}
		}
	}
}

func TestUnsuitableFormsOfConfigurationAreErrors(t *testing.T) {
	prefix := `workloads["hello"].deployment_targets["dev"].config_as: `
	substitute := func(config map[string]any) deployment {
		return deployment{configAs: fleet.ConfigAs{"substitute"}, config: config}
	}
	for name, test := range map[string]struct {
		deployment deployment
		want       string
	}{
		"values without a chart":    {deployment{configAs: fleet.ConfigAs{"values"}}, prefix + `"values" is for charts, which these manifests are not`},
		"values for Zarf":           {deployment{reconciler: "zarf", manifests: helmChart, configAs: fleet.ConfigAs{"values"}}, prefix + `"values" is not possible with reconciler "zarf" of cluster type "drone"`},
		"variables of a chart":      {deployment{manifests: helmChart, configAs: fleet.ConfigAs{"substitute"}}, prefix + `"substitute" is for manifests other than charts`},
		"variables for Argo CD":     {deployment{reconciler: "argocd", configAs: fleet.ConfigAs{"substitute"}}, prefix + `"substitute" is not possible with reconciler "argocd" of cluster type "drone"`},
		"variables for Config Sync": {deployment{reconciler: "config-sync", configAs: fleet.ConfigAs{"substitute"}}, prefix + `"substitute" is not possible with reconciler "config-sync" of cluster type "drone"`},
		"a chart for Config Sync": {deployment{reconciler: "config-sync", manifests: helmChart}, `workloads["hello"].deployment_targets["dev"].manifests: ` +
			`reconciler "config-sync" of cluster type "drone" deploys manifests of storage "git" or "oci" that are no charts, and these manifests are something else`},
		"a variable's name": {substitute(map[string]any{"a-b": "x"}), `deployment target "hello-dev": config_as "substitute": key "a-b" cannot be a variable: use letters, digits and _, and no digit at the beginning`},
		"a list":            {substitute(map[string]any{"a": []any{"x"}}), `deployment target "hello-dev": config_as "substitute": the value of key "a" is an object or a list, and Flux substitutes text`},
		"several lines":     {substitute(map[string]any{"a": "x\ny"}), `deployment target "hello-dev": config_as "substitute": the value of key "a" has several lines, which Flux would join`},
		"a custom template": {
			deployment{reconciler: "own", configAs: fleet.ConfigAs{"substitute"}, templates: []fleet.Template{{Type: "reconciler", Name: "own", Manifests: []string{""}}}}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			templates, subject := test.deployment.compile(t)
			for range 3 { // with and without remembered shapes
				if _, err := templates.Render(subject); err != nil && err.Error() != test.want || err == nil && test.want != "" {
					t.Errorf("got %v, want %q", err, test.want)
				}
			}
		})
	}
}

func TestInvalidConfigMapKeysAreReportedAtTheirContainer(t *testing.T) {
	for name, test := range map[string]struct {
		deployment deployment
		want       string
	}{
		"a key": {
			deployment{config: map[string]any{"my key": "x", "fine": "y"}},
			`config_containers["of my key"].data["my key"]: key "my key" cannot be one of a ConfigMap: letters, digits, "-", "_" and "." can, up to 253 of them, and it does not start with ".."`,
		},
		"a file's keys": {deployment{configType: "json", config: map[string]any{"my key": "x"}}, ""},
		"no ConfigMap":  {deployment{manifests: helmChart, configAs: fleet.ConfigAs{"values"}, config: map[string]any{"my key": "x"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			templates, subject := test.deployment.compile(t)
			subject.Origin = func(key string) string { return "of " + key }
			for range 3 {
				files, err := templates.Render(subject)
				if err != nil {
					t.Fatal(err)
				}
				if got := templates.Check(subject, files).Error(); got != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
			}
		})
	}
}

func TestConfigurationTooLargeForAConfigMapIsReportedAtItsContainer(t *testing.T) {
	for _, configType := range []string{"configmap", "json"} {
		templates, subject := deployment{
			configType: configType, config: map[string]any{"a": strings.Repeat("x", 600_000), "b": strings.Repeat("y", 600_001)},
		}.compile(t)
		want := `the configuration of deployment target "hello-dev" is larger than 1 MiB, which is the limit of Kubernetes; its largest key is "b"`
		if _, err := templates.Render(subject); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		subject.Origin = func(key string) string { return "of " + key }
		if _, err := templates.Render(subject); err == nil || err.Error() != `config_containers["of b"].data["b"]: `+want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestKubernetesReconcilersRequireManifests(t *testing.T) {
	for name, test := range map[string]struct {
		reconciler, contentType, manifest, want string
	}{
		"YAML for Flux":        {"flux", "yaml", "a: 1\n", "has no apiVersion"},
		"YAML for Argo CD":     {"argocd", "yaml", "a: 1\n", "has no apiVersion"},
		"YAML for Zarf":        {"zarf", "yaml", "a: 1\n", ""},
		"JSON for Flux":        {"flux", "json", `{"a": 1}`, ""},
		"JSON for Argo CD":     {"argocd", "json", `{"a": 1}`, "is not a Kubernetes document, but Argo CD reads every file that ends in .json as one"},
		"a ConfigMap":          {"argocd", "json", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`, ""},
		"something else":       {"argocd", "env", "A=1", ""},
		"a list for Argo CD":   {"argocd", "json", `[1]`, "is not a Kubernetes document"},
		"nothing but comments": {"flux", "yaml", "# nothing\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := withTemplate(test.contentType, test.manifest)
			deployment.reconciler = test.reconciler
			templates, subject := deployment.compile(t)
			files, err := templates.Render(subject)
			if err != nil {
				t.Fatal(err)
			}
			findings := templates.Check(subject, files)
			if test.want == "" && findings != nil || !strings.Contains(findings.Error(), test.want) {
				t.Errorf("findings %v, want %q", findings, test.want)
			}
		})
	}
}

func TestConfigurationOverridesTheValuesOfAChart(t *testing.T) {
	manifests := withParameters(helmChart, parseObject(t, `{"values": {"a": 1, "deep": {"b": 2, "c": 3}}, "helm_release": {"values": {"a": 4}}}`))
	for forms, want := range map[string]string{
		"values":         `map[a:4 deep:map[b:5 c:3] new:6]`,
		"values:deep":    `map[a:4 deep:map[a:0 b:2 c:3 deep:map[b:5] new:6]]`,
		"values:other.x": `map[a:4 deep:map[b:2 c:3] other:map[x:map[a:0 deep:map[b:5] new:6]]]`,
	} {
		files := deployment{
			manifests: manifests,
			configAs:  fleet.ConfigAs{forms},
			config:    parseObject(t, `{"a": 0, "deep": {"b": 5}, "new": 6}`),
		}.render(
			t,
		)
		documents := documentsOf(t, []byte(files["reconciler.yaml"]))
		if got := fmt.Sprint(valueAt(documents[1], "spec.values")); got != want {
			t.Errorf("%s: got %s, want %s", forms, got, want)
		}
		if _, written := files["platform-config.yaml"]; written {
			t.Errorf("%s: platform-config.yaml exists", forms)
		}
	}
}

func TestAChangeOfConfigurationChangesTheReconcilerObjects(t *testing.T) {
	for _, deployment := range []deployment{
		{configAs: fleet.ConfigAs{"substitute"}},
		{manifests: helmChart, configAs: fleet.ConfigAs{"values"}},
		{reconciler: "argocd", manifests: helmChart, configAs: fleet.ConfigAs{"configmap", "values:a"}},
	} {
		templates, subject := deployment.compile(t)
		var seen []string
		for i := range 6 {
			subject.Config, subject.ConfigVersion = map[string]any{"a": fmt.Sprint(i % 2)}, fmt.Sprint(i%2)
			files, err := templates.Render(subject)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if file.Name == "reconciler.yaml" && !slices.Contains(seen, string(file.Content)) {
					seen = append(seen, string(file.Content))
				}
			}
		}
		if len(seen) != 2 {
			t.Errorf("got %d different reconciler.yaml of 2 configurations", len(seen))
		}
	}
}
