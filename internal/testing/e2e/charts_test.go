package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	agents "github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// testCharts deploys a chart from a chart repository and one from a registry. It then assigns a version before its release: the
// former version runs until the new one is released.
func (bed *testbed) testCharts(t *testing.T, agent argoCD) {
	programPath(t, "helm")
	const host = "argocd-charts"
	user := bed.git.User(t)
	gitops := newRepository(t, bed.git, user, "gitops-charts")
	charts := startChartServer(t)
	bed.cluster.Apply(t, fmt.Sprintf(registrySecret, charts.address))

	newChartFleet := func(version string) map[string]any {
		target := func(storage, repository string) map[string]any {
			return map[string]any{"environment": "dev", "manifests": map[string]any{
				"storage": storage, "repo": repository, "chart": "greeter", "version": version,
			}}
		}
		return map[string]any{
			"environment":   "dev",
			"workspaces":    []any{map[string]any{"name": "shop"}},
			"cluster_types": []any{map[string]any{"name": host, "reconciler": agent.reconciler()}},
			"clusters":      []any{map[string]any{"name": host + "-1", "cluster_type": host}},
			"workloads": []any{map[string]any{"name": "web", "workspace": "shop", "deployment_targets": map[string]any{
				"registry":   target("oci", "oci://"+charts.address+"/charts"),
				"repository": target("helm", "http://"+charts.address+"/repository"),
			}}},
			"target_policies": []any{map[string]any{"name": "all", "cluster_type_selector": map[string]any{}}},
		}
	}
	tf := newTerraform(t, user)
	tf.writeFile("main.tf", fmt.Sprintf(fleetConfiguration, fmt.Sprintf(assignmentConfiguration, host, gitops.url)))
	obs := newObserver(t, bed.cluster, user, host+"-1", host, gitops.url)
	targets := []string{"web-registry", "web-repository"}
	namespace := func(target string) string { return "dev-" + host + "-" + target } // also the name of the Application

	// waitForCharts waits until both charts have the verdict and the running version. At no time may the cluster run an older
	// version than reported.
	waitForCharts := func(verdict, wanted, version, app string) {
		t.Helper()
		image := []string{"example.com/server:" + app}
		want := []runningVersion{
			{
				DeploymentTarget: targets[0],
				Wanted:           wanted,
				Version:          version,
				Revision:         charts.digest(version),
				Images:           image,
				Hosts:            []string{host},
			},
			{DeploymentTarget: targets[1], Wanted: wanted, Version: version, Chart: "greeter", Images: image, Hosts: []string{host}},
		}
		bed.step(t, agent.reconciler(), fmt.Sprintf("version %s is %s, version %s is running", wanted, verdict, version), func() {
			eventually(t, func() error {
				got := obs.readCompliance(newChartFleet(wanted))
				for _, entry := range got.Running {
					greeting := bed.cluster.Get(t, "v1", "ConfigMap", namespace(entry.DeploymentTarget), "greeting")
					if deployed, _ := field(greeting, "data", "version").(string); deployed < entry.Version {
						t.Fatalf("the cluster has version %q, but the running version is reported as %+v", deployed, entry)
					}
				}
				var problem error
				for _, target := range targets {
					if targetVerdict := got.verdict(host + "/" + target); targetVerdict != verdict {
						problem = fmt.Errorf("the verdict of %s is %s, want %s: %v", target, targetVerdict, verdict, got.Assignments)
					}
				}
				if problem == nil && !reflect.DeepEqual(got.Running, want) {
					problem = fmt.Errorf("running versions: got %+v, want %+v", got.Running, want)
				}
				if problem != nil {
					problem = fmt.Errorf("%w\n%s", problem, agent.describeStatus(t, namespace(targets[0]), namespace(targets[1])))
				}
				return problem
			})
		})
	}

	charts.publishVersion(t, "1.0.0", "v1")
	tf.apply(newChartFleet("1.0.0"))
	root, _ := applyRoots(t, bed.cluster, agents.Settings{
		Cluster: host + "-1", ClusterType: host, Reconciler: agent.reconciler(), Repository: folder.Location{URL: gitops.url, Branch: "dev"},
	})
	waitForCharts("ready", "1.0.0", "1.0.0", "v1")
	tf.apply(newChartFleet("1.1.0"))
	agent.triggerReconcile(t, root)
	waitForCharts("failed", "1.1.0", "1.0.0", "v1")
	charts.publishVersion(t, "1.1.0", "v2")
	for _, target := range targets {
		agent.triggerReconcile(t, namespace(target))
	}
	waitForCharts("ready", "1.1.0", "1.1.0", "v2")
}

// registrySecret tells Argo CD that the registry has no TLS.
const registrySecret = `
apiVersion: v1
kind: Secret
metadata: {name: charts, namespace: argocd, labels: {argocd.argoproj.io/secret-type: repository}}
stringData: {type: oci, url: "oci://%s/charts/greeter", insecureOCIForceHttp: "true"}
`

// greeterChart has the files of a chart whose readiness depends on one pod.
var greeterChart = map[string]string{
	"greeter/Chart.yaml": "{apiVersion: v2, name: greeter, version: %q, appVersion: %q}\n",
	"greeter/templates/all.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: greeting}
data: {version: {{ .Chart.Version | quote }}}
---` + strings.Replace(serverDeployment("run", "600"), "example.com/server", `"example.com/server:{{ .Chart.AppVersion }}"`, 1),
}

// chartServer serves a chart repository below /repository/, and a registry with the repository charts/greeter for pulls only:
// https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pull.
type chartServer struct {
	address string

	mu       sync.Mutex
	contents map[string]content // by path
	index    string
}

type content struct {
	mediaType string
	data      []byte
}

func (c content) digest() string { return fmt.Sprintf("sha256:%x", sha256.Sum256(c.data)) }

func startChartServer(t *testing.T) *chartServer {
	t.Helper()
	c := &chartServer{contents: map[string]content{}, index: "apiVersion: v1\nentries:\n  greeter:\n"}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.address = server.Listener.Addr().String()
	return c
}

func (c *chartServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	found, ok := c.contents[r.URL.Path]
	c.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", found.mediaType)
	w.Header().Set("Docker-Content-Digest", found.digest())
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(found.data))
}

// publishVersion publishes a version of the chart to the repository and the registry.
func (c *chartServer) publishVersion(t *testing.T, version, app string) {
	t.Helper()
	chart := content{"application/vnd.cncf.helm.chart.content.v1.tar+gzip", packChart(t, greeterChart, version, app)}
	config := content{
		"application/vnd.cncf.helm.config.v1+json",
		fmt.Appendf(nil, `{"name": "greeter", "version": %q, "appVersion": %q}`, version, app),
	}
	descriptor := func(blob content) map[string]any {
		return map[string]any{"mediaType": blob.mediaType, "digest": blob.digest(), "size": len(blob.data)}
	}
	manifest := content{mediaType: "application/vnd.oci.image.manifest.v1+json"}
	var err error
	if manifest.data, err = json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifest.mediaType, "config": descriptor(config), "layers": []any{descriptor(chart)},
	}); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, blob := range []content{chart, config} {
		c.contents["/v2/charts/greeter/blobs/"+blob.digest()] = blob
	}
	for _, reference := range []string{version, manifest.digest()} {
		c.contents["/v2/charts/greeter/manifests/"+reference] = manifest
	}
	c.index += fmt.Sprintf("  - {apiVersion: v2, name: greeter, version: %[1]q, appVersion: %[2]q, urls: [greeter-%[1]s.tgz]}\n", version, app)
	c.contents["/repository/index.yaml"] = content{"application/yaml", []byte(c.index)}
	c.contents["/repository/greeter-"+version+".tgz"] = chart
}

// digest returns the digest of a version's manifest in the registry.
func (c *chartServer) digest(version string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.contents["/v2/charts/greeter/manifests/"+version].digest()
}

// packChart packs the files of a chart as `helm package` does.
func packChart(t *testing.T, files map[string]string, version, app string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	writer := tar.NewWriter(compressed)
	for name, text := range files {
		if strings.HasSuffix(name, "/Chart.yaml") {
			text = fmt.Sprintf(text, version, app)
		}
		if err := writer.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}
