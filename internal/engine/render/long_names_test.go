package render_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
)

// TestLongNamesStayDifferent renders two deployment targets for every reconciler. Their long names differ only in the last
// characters. Values derived from the names must be different and within the limits of their readers.
func TestLongNamesStayDifferent(t *testing.T) {
	const workload = "order-processing-background-workers"
	longest := map[string]int{"releaseName": 53, "components.charts.name": 40, "components.manifests.name": 40}
	for _, reconciler := range []string{"flux", "argocd", "argocd-hub", "config-sync", "fleet", "zarf"} {
		for form, manifests := range map[string]fleet.Manifests{"git": fromGit(), "helm": helmChart, "oci-chart": ociChart} {
			if reconciler == "config-sync" && form != "git" {
				continue // it deploys no charts
			}
			for _, namespace := range []string{"", "orders"} {
				t.Run(fmt.Sprintf("%s, %s, namespace %q", reconciler, form, namespace), func(t *testing.T) {
					var names [2]map[string]string
					for i, target := range []string{"partition-europe-one", "partition-europe-two"} {
						d := deployment{
							reconciler: reconciler, manifests: manifests, namespace: namespace, secretService: "external-secrets",
							stores: stores, secrets: vaultSecrets,
						}
						names[i] = d.namesFrom(t, workload, target)
					}
					if len(names[0]) == 0 {
						t.Fatal("no value is derived from the name")
					}
					for path, value := range names[0] {
						if value == names[1][path] {
							t.Errorf("both have %s: %q", path, value)
						}
						limit := 63
						for end, most := range longest {
							if strings.HasSuffix(path, end) {
								limit = most
							}
						}
						if len(value) > limit {
							t.Errorf("%s: %q has %d characters, want at most %d", path, value, len(value), limit)
						}
					}
				})
			}
		}
	}
}

// namesFrom renders the deployment for a workload and target with these names. It returns all values with the beginning of the
// workload's name, by path, except for fields that accept any text.
func (d deployment) namesFrom(t *testing.T, workload, target string) map[string]string {
	t.Helper()
	f := d.fleet()
	f.Workloads[0].Name, f.Workloads[0].DeploymentTargets[0].Name = workload, target
	templates, findings := render.Compile(f)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	files, err := templates.Render(d.subject(f))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, below := range value {
				walk(path+"."+key, below)
			}
		case []any:
			for _, below := range value {
				walk(path, below)
			}
		case string:
			isOfWorkload := strings.HasSuffix(path, "workload") || strings.HasSuffix(path, "components.name")
			if !isOfWorkload && strings.Contains(value, "order-processing") && !strings.ContainsAny(value, "/ {") {
				names[path] = value
			}
		}
	}
	for _, file := range files {
		for i, text := range strings.Split(string(file.Content), "\n---\n") {
			var document any
			if err := yaml.Unmarshal([]byte(text), &document); err != nil {
				t.Fatal(err)
			}
			walk(fmt.Sprintf("%s#%d", file.Name, i), document)
		}
	}
	return names
}
