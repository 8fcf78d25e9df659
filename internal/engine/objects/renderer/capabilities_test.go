package renderer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/diskcache"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/objectstest"
)

func TestAChartSeesTheAPIsOfItsAgent(t *testing.T) {
	t.Parallel()
	const template = `apiVersion: v1
kind: ConfigMap
metadata: {name: seen}
data:
  a: '{{ range list "apps/v1/Deployment" "batch/v1beta1" "batch/v1beta1/CronJob" "example.com/v1"
    "example.com/v1/Till" "named.example.com/v1/Name" -}}
    {{ if $.Capabilities.APIVersions.Has . }}{{ . }} {{ end }}{{ end }}{{ .Capabilities.KubeVersion.Version }}'
`
	archives := objectstest.NewArchives(t)
	shipped := archives.Add(shop, chart(map[string]string{"templates/all.yaml": template}))
	clusters := objects.Request{Artifact: shipped, Path: "chart", KubernetesVersion: "v1.24.3", APIVersions: []string{"example.com/v1/Till"}}
	for name, test := range map[string]struct {
		helm          objects.Helm
		want, missing string
	}{
		"Helm on the cluster": {
			objects.Helm{OnCluster: true},
			"apps/v1/Deployment batch/v1beta1 batch/v1beta1/CronJob example.com/v1 example.com/v1/Till v1.24.3", "named.example.com/v1/Name",
		},
		"helm template": {
			objects.Helm{KubernetesVersion: "1.24.3"},
			"apps/v1/Deployment batch/v1beta1 batch/v1beta1/CronJob example.com/v1 example.com/v1/Till v1.24.3", "named.example.com/v1/Name",
		},
		"another version with the APIs of the clusters": {
			objects.Helm{OnCluster: true, KubernetesVersion: "1.30"},
			"apps/v1/Deployment batch/v1beta1 batch/v1beta1/CronJob example.com/v1 example.com/v1/Till v1.30", "named.example.com/v1/Name",
		},
		"the APIs of the object": {
			objects.Helm{APIVersions: []string{"named.example.com/v1/Name"}},
			"batch/v1beta1 named.example.com/v1/Name v1.24.3", "",
		},
	} {
		request := clusters
		request.Helm = &test.helm
		result, err := renderer.InProcess(archives).Render(t.Context(), &request)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := strings.Join(strings.Fields(string(result.Objects[0].YAML)), " "); !strings.Contains(got, " a: "+test.want+" kind") {
			t.Errorf("%s: got object %s, want %s", name, got, test.want)
		}
		if got := strings.Join(result.MissingAPIs, " "); got != test.missing {
			t.Errorf("%s: got missing APIs %q, want %q", name, got, test.missing)
		}
	}
}

// The missing APIs are in the cache, with replaced variables and for another process.
func TestMissingAPIsAreCached(t *testing.T) {
	t.Parallel()
	archives := objectstest.NewArchives(t)
	template := settings + `{{ $.Capabilities.APIVersions.Has "example.com/v1" | ternary "" "" }}`
	request := objects.Request{
		Artifact: archives.Add(shop, chart(map[string]string{"templates/all.yaml": template})),
		Path:     "chart", Substitute: map[string]string{"A": "b"}, Helm: &objects.Helm{ReleaseName: "eu"},
	}
	folder := t.TempDir()
	for _, name := range []string{"the first", "the second"} {
		p := pool(t, archives, renderer.PoolOptions{Cache: diskcache.New(folder, diskcache.DefaultMaxSize), Workers: renderer.NewWorkers(1)})
		result, err := p.Render(t.Context(), &request)
		if err != nil || !slices.Equal(result.MissingAPIs, []string{"example.com/v1"}) {
			t.Errorf("%s process: %+v, %v", name, result, err)
		}
	}
}
