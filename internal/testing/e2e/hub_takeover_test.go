package e2e_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// clusterSecret registers a cluster with Argo CD.
const clusterSecret = `apiVersion: v1
kind: Secret
metadata: {name: cluster-%[1]s, namespace: argocd, labels: {argocd.argoproj.io/secret-type: cluster, env: prod}}
stringData:
  name: %[1]s
  server: %[2]q
  config: '{"bearerToken": %[3]q, "tlsClientConfig": {"caData": %[4]q}}'
`

// The ApplicationSet web deploys to the labelled clusters by server; metrics deploys by name to all clusters, including the hub.
const (
	webApplicationSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: web, namespace: argocd}
spec:
  generators: [{clusters: {selector: {matchLabels: {env: prod}}}}]
  template:
    metadata: {name: "{{name}}-web"}
    spec:
      project: default
      source: {repoURL: %[1]q, path: web/%[2]s, targetRevision: main}
      destination: {server: "{{server}}", namespace: web}
      syncPolicy: {automated: {prune: true, selfHeal: true}}
`
	metricsApplicationSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: metrics, namespace: argocd}
spec:
  goTemplate: true
  goTemplateOptions: [missingkey=error]
  generators: [{clusters: {}}]
  template:
    metadata: {name: "metrics-{{.name}}"}
    spec:
      project: default
      source: {repoURL: %[1]q, path: metrics, targetRevision: main}
      destination: {name: "{{.name}}", namespace: metrics}
      syncPolicy: {automated: {prune: true, selfHeal: true}}
`
)

// hubCompliance reads the verdicts of all clusters, as in the guide.
const hubCompliance = `
data "flotilla_compliance" "prod" {
  name        = flotilla_assignment.prod.name
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback    = { clusters = {}, hub = "central" }
  depends_on  = [flotilla_agent.central, flotilla_agent.store]
}

output "clusters" {
  value = data.flotilla_compliance.prod.clusters
}
`

// hubFleet is a hub with two further clusters and the repository with its Applications.
type hubFleet struct {
	*testbed
	central       argoCD
	clusters      map[string]*kubetest.Server // by name, including the hub
	fleet, gitops *repository
	tf            *terraform
}

func newHubFleet(t *testing.T) *hubFleet {
	t.Helper()
	h := &hubFleet{testbed: &testbed{scenario: "adoption", git: giteatest.Start(t)}, clusters: map[string]*kubetest.Server{}}
	h.step(t, "hub", "three Kubernetes APIs started", func() {
		for _, name := range []string{"central", "store-1", "store-2"} {
			h.clusters[name] = kubetest.StartAnother(t, kubetest.Options{Controllers: true, Agents: name == "central"})
		}
	})
	h.cluster = h.clusters["central"]
	h.central = argoCD{h.cluster}
	h.cluster.Apply(t, h.central.settings())
	for _, name := range []string{"store-1", "store-2"} {
		server := h.clusters[name]
		h.cluster.Apply(t, fmt.Sprintf(clusterSecret, name, server.Host, server.Token, base64.StdEncoding.EncodeToString([]byte(server.CA))))
	}
	h.central.start(t)
	startApplicationSetController(t, h.cluster)
	user := h.git.User(t)
	h.fleet, h.gitops = newRepository(t, h.git, user, "fleet"), newRepository(t, h.git, user, "gitops")
	h.fleet.push(map[string]string{
		"bootstrap/central.yaml":        strings.ReplaceAll(argoFleet(h.fleet.url).installed, "clusters/production", "clusters/central"),
		"clusters/central/web.yaml":     fmt.Sprintf(webApplicationSet, h.fleet.url, "v1"),
		"clusters/central/metrics.yaml": fmt.Sprintf(metricsApplicationSet, h.fleet.url),
		"web/v1/all.yaml":               newWorkload("web", "v1"), "web/v2/all.yaml": newWorkload("web", "v2"),
		"metrics/all.yaml": newWorkload("metrics", "v1"),
	})
	h.tf = newTerraform(t, user)
	return h
}

// waitFor is eventually with the status of the Applications in the error.
func (h *hubFleet) waitFor(t *testing.T, check func() error) {
	t.Helper()
	eventually(t, func() error {
		if err := check(); err != nil {
			return fmt.Errorf("%w\n%s", err, h.describeApplications(t))
		}
		return nil
	})
}

func (h *hubFleet) describeApplications(t *testing.T) string {
	t.Helper()
	return h.central.describeStatus(t, listNames(t, h.cluster, applications, "argocd")...)
}

// listUIDs returns the UIDs of workloads, namespaces and Secrets on all clusters, and of the hub's Applications.
func (h *hubFleet) listUIDs(t *testing.T) map[string]string {
	t.Helper()
	uids := map[string]string{}
	addUIDs := func(cluster string, resource schema.GroupVersionResource) {
		listed, err := h.clusters[cluster].Client().Resource(resource).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range listed.Items {
			key := fmt.Sprintf("%s: %s %s/%s", cluster, object.GetKind(), object.GetNamespace(), object.GetName())
			if uids[key] = string(object.GetUID()); object.GetDeletionTimestamp() != nil {
				uids[key] = "being deleted"
			}
		}
	}
	for cluster := range h.clusters {
		for _, resource := range []schema.GroupVersionResource{
			configMaps, deployments, {Version: "v1", Resource: "namespaces"}, {Version: "v1", Resource: "secrets"},
		} {
			addUIDs(cluster, resource)
		}
	}
	addUIDs("central", applications)
	return uids
}

// runGuideCommandInFolder runs a command of the guide in the folder of the configuration.
func (h *hubFleet) runGuideCommandInFolder(t *testing.T, command string) {
	t.Helper()
	requireInGuide(t, "adopting.md.tmpl", command)
	h.runCommand(t, "cd '"+h.tf.folder+"' && "+command)
}

// writeExample writes files of the guide's example for the test's repositories.
func (h *hubFleet) writeExample(t *testing.T, ref string, files ...string) {
	t.Helper()
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "adopting", "hub", name))
		if err != nil {
			t.Fatal(err)
		}
		h.tf.writeFile(name, strings.NewReplacer(
			"https://git.example.com/platform/fleet.git", h.fleet.url, "https://git.example.com/platform/gitops.git", h.gitops.url,
			`ref     = "main"`, fmt.Sprintf("ref     = %q", ref),
		).Replace(string(text)))
	}
}

func (h *hubFleet) apply(t *testing.T) {
	t.Helper()
	if _, err := h.tf.tryRun("apply", "-auto-approve", "-no-color"); err != nil {
		t.Fatalf("%v\n%s", err, h.describeApplications(t))
	}
}

// refreshRoots makes the roots of Flotilla's folders read the branch.
func (h *hubFleet) refreshRoots(t *testing.T) {
	t.Helper()
	for _, name := range listNames(t, h.cluster, applications, "argocd") {
		if strings.HasPrefix(name, "flotilla-prod-") || strings.HasPrefix(name, "central-cluster-type") {
			h.central.triggerReconcile(t, name)
		}
	}
}

// TestAHubIsTakenOver follows the guide on adopting for an Argo CD that deploys to its own cluster and two others.
func TestAHubIsTakenOver(t *testing.T) {
	if os.Getenv("FLOTILLA_E2E") == "" {
		t.Skip("starts real agents: `make e2e` builds them and runs it")
	}
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("needs jq, as the guide does")
	}
	t.Parallel()
	h := newHubFleet(t)
	step := func(title string, do func()) {
		t.Helper()
		h.step(t, "hub", title, do)
	}
	webClusters := []string{"store-1", "store-2"}
	adoptedApplications := []string{"metrics-in-cluster", "metrics-store-1", "metrics-store-2", "store-1-web", "store-2-web"}
	step("the fleet is deployed", func() {
		h.cluster.Apply(t, strings.ReplaceAll(argoFleet(h.fleet.url).installed, "clusters/production", "clusters/central"))
		h.waitFor(t, func() error {
			for _, name := range adoptedApplications {
				application := h.cluster.Get(t, "argoproj.io/v1alpha1", "Application", "argocd", name)
				if application == nil || !isSettled(application) {
					return fmt.Errorf("%s has not settled", name)
				}
			}
			return nil
		})
	})
	wantUIDs := h.listUIDs(t)
	t.Logf("the clusters have %d objects", len(wantUIDs))
	checkUnchanged := func() {
		t.Helper()
		got := h.listUIDs(t)
		for _, object := range slices.Sorted(maps.Keys(wantUIDs)) {
			if got[object] != wantUIDs[object] {
				t.Errorf("the UID of %s is %q, want %s", object, got[object], wantUIDs[object])
			}
		}
	}
	step("the folders are written", func() {
		h.runGuideCommandInFolder(t, `kubectl -n argocd get secrets -l argocd.argoproj.io/secret-type=cluster -o json | jq '.items |= map({apiVersion, kind, metadata: (.metadata | {name, namespace, labels}), data: (.data | {name, server})})' > clusters.json`)
		h.writeExample(t, "main", "main.tf")
		h.tf.writeFile("required.tf", requiredProviders)
		h.apply(t)
		for host, want := range map[string]int{"central": 1, "store-1": 2, "store-2": 2} {
			h.gitops.git("fetch", "--quiet", h.gitops.pushURL, "prod")
			files := h.gitops.git("ls-tree", "-r", "--name-only", "FETCH_HEAD", host+"/")
			if got := strings.Count(files, "/reconciler.yaml\n"); got != want {
				t.Errorf("%s has %d folders, want %d:\n%s", host, got, want, files)
			}
		}
		checkUnchanged()
	})
	step("the root releases the ApplicationSets", func() {
		h.fleet.git("push", "--quiet", h.fleet.pushURL, "main:adopted")
		h.runGuideCommand(t, `kubectl -n argocd patch application root --type merge -p '{"spec":{"syncPolicy":{"automated":{"prune":false}}}}'`)
		h.fleet.git("rm", "--quiet", "clusters/central/web.yaml", "clusters/central/metrics.yaml")
		h.fleet.push(map[string]string{"clusters/central/README.md": "Flotilla writes what is for this cluster.\n"})
		h.central.triggerReconcile(t, "root")
		h.waitFor(t, func() error {
			root := h.cluster.Get(t, "argoproj.io/v1alpha1", "Application", "argocd", "root")
			if got := field(root, "status", "sync", "revision"); got != h.fleet.head() {
				return fmt.Errorf("the root has synced %v, want %s", got, h.fleet.head())
			}
			return nil
		})
		h.runGuideCommand(t, "kubectl -n argocd delete applicationset web --cascade=orphan")
		h.runGuideCommand(t, "kubectl -n argocd delete applicationset metrics --cascade=orphan")
		h.waitFor(t, func() error {
			if remaining := listNames(t, h.cluster, applicationSets, "argocd"); len(remaining) > 0 {
				return fmt.Errorf("the hub has the ApplicationSets %v", remaining)
			}
			return nil
		})
		checkUnchanged()
	})
	step("the hub follows the new folders", func() {
		h.tf.writeFile("central.kubeconfig", h.cluster.Kubeconfig())
		h.writeExample(t, "adopted", "main.tf", "takeover.tf")
		h.apply(t)
		checkUnchanged()
		for _, name := range adoptedApplications { // no polling: the apply waits
			application := h.cluster.Get(t, "argoproj.io/v1alpha1", "Application", "argocd", name)
			trackingID, _ := field(application, "metadata", "annotations", "argocd.argoproj.io/tracking-id").(string)
			want := map[string]string{
				"metrics-in-cluster": "central-cluster-type:", "metrics-store-1": "flotilla-prod-store-1-hub:", "store-1-web": "flotilla-prod-store-1-hub:",
			}[name]
			if strings.Contains(name, "store-2") {
				want = "flotilla-prod-store-2-hub:"
			}
			if !strings.HasPrefix(trackingID, want) || len(application.GetOwnerReferences()) > 0 {
				t.Errorf("%s belongs to %q and %v, want %s", name, trackingID, application.GetOwnerReferences(), want)
			}
		}
		if err := h.tf.checkEmptyPlan(); err != nil {
			t.Error(err)
		}
	})
	step("each cluster is ready", func() {
		h.tf.writeFile("checks.tf", hubCompliance)
		h.waitFor(t, func() error {
			h.apply(t)
			var clusters map[string]struct{ Verdict, Message string }
			h.tf.readOutputs(map[string]any{"clusters": &clusters})
			for name := range h.clusters {
				if got := clusters[name]; got.Verdict != "ready" {
					return fmt.Errorf("%s is %s: %s", name, got.Verdict, got.Message)
				}
			}
			return nil
		})
	})
	step("the root is removed", func() {
		h.runGuideCommand(t, `kubectl -n argocd patch application root --type merge -p '{"metadata":{"finalizers":null}}'`)
		h.runGuideCommand(t, `kubectl -n argocd delete application root`)
		h.waitFor(t, func() error {
			if h.cluster.Get(t, "argoproj.io/v1alpha1", "Application", "argocd", "root") != nil {
				return fmt.Errorf("the root still exists")
			}
			return nil
		})
		delete(wantUIDs, "central: Application argocd/root")
		checkUnchanged()
	})
	h.fleet.git("fetch", "--quiet", h.fleet.pushURL, "adopted")
	h.fleet.git("checkout", "--quiet", "-B", "adopted", "FETCH_HEAD")
	step("a change reaches each cluster", func() {
		h.fleet.pushTo("adopted", map[string]string{"clusters/central/web.yaml": fmt.Sprintf(webApplicationSet, h.fleet.url, "v2")})
		h.apply(t)
		h.refreshRoots(t)
		h.waitFor(t, func() error {
			var problems []error
			for _, name := range webClusters {
				problems = append(problems, checkConfigMap(t, h.clusters[name], "web", "greeting", "hello", "v2"))
			}
			return joinErrors(problems...)
		})
		checkUnchanged()
	})
	step("a removed workload is pruned on each cluster", func() {
		h.fleet.git("rm", "--quiet", "clusters/central/web.yaml")
		h.fleet.pushTo("adopted", nil)
		h.apply(t)
		h.refreshRoots(t)
		h.waitFor(t, func() error {
			var remaining []error
			for _, name := range webClusters {
				remaining = append(remaining, checkNamespaceGone(t, h.clusters[name], "web"))
			}
			return joinErrors(remaining...)
		})
		maps.DeleteFunc(wantUIDs, func(object, _ string) bool { return strings.Contains(object, "web") })
		checkUnchanged()
	})
	flotillaLabels := func(name string) map[string]string {
		labels := h.cluster.Get(t, "v1", "Secret", "argocd", "cluster-"+name).GetLabels()
		maps.DeleteFunc(labels, func(key, _ string) bool { return !strings.HasPrefix(key, "flotilla.dev/") })
		return labels
	}
	step("a destroy of the agents leaves every object", func() {
		h.tf.run("destroy", "-auto-approve", "-no-color", "-target=flotilla_agent.store", "-target=flotilla_agent.central")
		time.Sleep(5 * time.Second)
		checkUnchanged()
		for _, name := range webClusters {
			want := map[string]string{"flotilla.dev/cluster": name, "flotilla.dev/cluster-type": name, "flotilla.dev/environment": "prod"}
			if got := flotillaLabels(name); !maps.Equal(got, want) {
				t.Errorf("the Secret of %s has the labels %v, want %v", name, got, want)
			}
		}
	})
	step("a destroy with on_destroy = \"delete\" removes the workloads", func() {
		h.tf.writeFile("override.tf", "resource \"flotilla_agent\" \"store\" {\n  on_destroy = \"delete\"\n}\n")
		h.apply(t)
		checkUnchanged()
		h.tf.run("destroy", "-auto-approve", "-no-color", "-target=flotilla_agent.store")
		h.waitFor(t, func() error {
			return joinErrors(checkNamespaceGone(t, h.clusters["store-1"], "metrics"), checkNamespaceGone(t, h.clusters["store-2"], "metrics"))
		})
		maps.DeleteFunc(wantUIDs, func(object, _ string) bool {
			return strings.HasPrefix(object, "store-") && strings.Contains(object, "metrics") || strings.Contains(object, "metrics-store-")
		})
		checkUnchanged()
		for _, name := range webClusters {
			if got := flotillaLabels(name); len(got) > 0 {
				t.Errorf("the Secret of %s has the labels %v", name, got)
			}
		}
	})
}
