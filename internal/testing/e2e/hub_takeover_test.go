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

// registered is the Secret by which an Argo CD knows another cluster.
const registered = `apiVersion: v1
kind: Secret
metadata: {name: cluster-%[1]s, namespace: argocd, labels: {argocd.argoproj.io/secret-type: cluster, env: prod}}
stringData:
  name: %[1]s
  server: %[2]q
  config: '{"bearerToken": %[3]q, "tlsClientConfig": {"caData": %[4]q}}'
`

// Two ApplicationSets: web is on the clusters with a label, by their servers; metrics is on all, the hub among them.
const (
	setOfWeb = `apiVersion: argoproj.io/v1alpha1
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
	setOfMetrics = `apiVersion: argoproj.io/v1alpha1
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

// hubChecks reads what all clusters say, as the guide names it.
const hubChecks = `
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

// hubFleet is a hub with two further clusters, and the repository that it follows.
type hubFleet struct {
	*world
	central       argoCD
	clusters      map[string]*kubetest.Server // by name, the hub among them
	fleet, gitops *repository
	tf            *terraform
}

func newHubFleet(t *testing.T) *hubFleet {
	t.Helper()
	h := &hubFleet{world: &world{test: "adoption", git: giteatest.Start(t)}, clusters: map[string]*kubetest.Server{}}
	h.step(t, "hub", "three Kubernetes APIs started", func() {
		for _, name := range []string{"central", "store-1", "store-2"} {
			h.clusters[name] = kubetest.StartAnother(t, kubetest.Options{Controllers: true, Agents: name == "central"})
		}
	})
	h.cluster = h.clusters["central"]
	h.central = argoCD{h.cluster}
	h.cluster.Apply(t, h.central.settings())
	for _, name := range []string{"store-1", "store-2"} {
		of := h.clusters[name]
		h.cluster.Apply(t, fmt.Sprintf(registered, name, of.Host, of.Token, base64.StdEncoding.EncodeToString([]byte(of.CA))))
	}
	h.central.start(t)
	startSets(t, h.cluster)
	user := h.git.User(t)
	h.fleet, h.gitops = newRepository(t, h.git, user, "fleet"), newRepository(t, h.git, user, "gitops")
	h.fleet.push(map[string]string{
		"bootstrap/central.yaml":        strings.ReplaceAll(argoFleet(h.fleet.url).applied, "clusters/production", "clusters/central"),
		"clusters/central/web.yaml":     fmt.Sprintf(setOfWeb, h.fleet.url, "v1"),
		"clusters/central/metrics.yaml": fmt.Sprintf(setOfMetrics, h.fleet.url),
		"web/v1/all.yaml":               brings("web", "v1"), "web/v2/all.yaml": brings("web", "v2"), "metrics/all.yaml": brings("metrics", "v1"),
	})
	h.tf = newTerraform(t, user)
	return h
}

// until waits, and says what Argo CD says when that fails.
func (h *hubFleet) until(t *testing.T, check func() error) {
	t.Helper()
	eventually(t, func() error {
		if err := check(); err != nil {
			return fmt.Errorf("%w\n%s", err, h.says(t))
		}
		return nil
	})
}

func (h *hubFleet) says(t *testing.T) string {
	t.Helper()
	return h.central.says(t, namesOf(t, h.cluster, applications, "argocd")...)
}

// uids are those of all objects that matter, on all clusters.
func (h *hubFleet) uids(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	list := func(cluster string, resource schema.GroupVersionResource) {
		listed, err := h.clusters[cluster].Client().Resource(resource).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range listed.Items {
			key := fmt.Sprintf("%s: %s %s/%s", cluster, object.GetKind(), object.GetNamespace(), object.GetName())
			if found[key] = string(object.GetUID()); object.GetDeletionTimestamp() != nil {
				found[key] = "being deleted"
			}
		}
	}
	for cluster := range h.clusters {
		for _, resource := range []schema.GroupVersionResource{
			configMaps, deployments, {Version: "v1", Resource: "namespaces"}, {Version: "v1", Resource: "secrets"},
		} {
			list(cluster, resource)
		}
	}
	list("central", applications)
	return found
}

// guidedInto runs a command of the guide in the folder of the configuration.
func (h *hubFleet) guidedInto(t *testing.T, command string) {
	t.Helper()
	inGuide(t, "adopting.md.tmpl", command)
	h.kubectl(t, "cd '"+h.tf.folder+"' && "+command)
}

// configure writes files of the guide's example.
func (h *hubFleet) configure(t *testing.T, ref string, files ...string) {
	t.Helper()
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "adopting", "hub", name))
		if err != nil {
			t.Fatal(err)
		}
		h.tf.write(name, strings.NewReplacer(
			"https://git.example.com/platform/fleet.git", h.fleet.url, "https://git.example.com/platform/gitops.git", h.gitops.url,
			`ref     = "main"`, fmt.Sprintf("ref     = %q", ref),
		).Replace(string(text)))
	}
}

func (h *hubFleet) apply(t *testing.T) {
	t.Helper()
	if _, err := h.tf.try("apply", "-auto-approve", "-no-color"); err != nil {
		t.Fatalf("%v\n%s", err, h.says(t))
	}
}

// refreshed has the Applications that follow Flotilla's folders look at the branch.
func (h *hubFleet) refreshed(t *testing.T) {
	t.Helper()
	for _, name := range namesOf(t, h.cluster, applications, "argocd") {
		if strings.HasPrefix(name, "flotilla-prod-") || strings.HasPrefix(name, "central-cluster-type") {
			h.central.nudge(t, name)
		}
	}
}

// TestAHubIsTakenOver goes the way of the guide on adopting with one Argo CD that deploys to its own cluster and two others.
func TestAHubIsTakenOver(t *testing.T) {
	if os.Getenv("FLOTILLA_E2E") == "" {
		t.Skip("starts real agents: `make e2e` builds them and runs it")
	}
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("needs jq, as the guide does")
	}
	t.Parallel()
	h := newHubFleet(t)
	step := func(what string, do func()) {
		t.Helper()
		h.step(t, "hub", what, do)
	}
	web := []string{"store-1", "store-2"}
	adopted := []string{"metrics-in-cluster", "metrics-store-1", "metrics-store-2", "store-1-web", "store-2-web"}
	step("the fleet is there", func() {
		h.cluster.Apply(t, strings.ReplaceAll(argoFleet(h.fleet.url).applied, "clusters/production", "clusters/central"))
		h.until(t, func() error {
			for _, name := range adopted {
				if one := h.cluster.Get(t, "argoproj.io/v1alpha1", "Application", "argocd", name); one == nil || !settled(one) {
					return fmt.Errorf("%s has not settled", name)
				}
			}
			return nil
		})
	})
	had := h.uids(t)
	t.Logf("%d objects are there", len(had))
	unchanged := func() {
		t.Helper()
		is := h.uids(t)
		for _, object := range slices.Sorted(maps.Keys(had)) {
			if is[object] != had[object] {
				t.Errorf("%s had the uid %s, and has %q", object, had[object], is[object])
			}
		}
	}
	step("the folders are written", func() {
		h.guidedInto(t, `kubectl -n argocd get secrets -l argocd.argoproj.io/secret-type=cluster -o json | jq '.items |= map({apiVersion, kind, metadata: (.metadata | {name, namespace, labels}), data: (.data | {name, server})})' > clusters.json`)
		h.configure(t, "main", "main.tf")
		h.tf.write("required.tf", required)
		h.apply(t)
		for host, want := range map[string]int{"central": 1, "store-1": 2, "store-2": 2} {
			h.gitops.git("fetch", "--quiet", h.gitops.write, "prod")
			written := h.gitops.git("ls-tree", "-r", "--name-only", "FETCH_HEAD", host+"/")
			if got := strings.Count(written, "/reconciler.yaml\n"); got != want {
				t.Errorf("%s has %d folders, want %d:\n%s", host, got, want, written)
			}
		}
		unchanged()
	})
	step("the root lets the ApplicationSets go", func() {
		h.fleet.git("push", "--quiet", h.fleet.write, "main:adopted")
		h.guided(t, `kubectl -n argocd patch application root --type merge -p '{"spec":{"syncPolicy":{"automated":{"prune":false}}}}'`)
		h.fleet.git("rm", "--quiet", "clusters/central/web.yaml", "clusters/central/metrics.yaml")
		h.fleet.push(map[string]string{"clusters/central/README.md": "Flotilla writes what is for this cluster.\n"})
		h.central.nudge(t, "root")
		h.until(t, func() error {
			root := h.cluster.Get(t, "argoproj.io/v1alpha1", "Application", "argocd", "root")
			if got := field(root, "status", "sync", "revision"); got != h.fleet.head() {
				return fmt.Errorf("the root has %v", got)
			}
			return nil
		})
		h.guided(t, "kubectl -n argocd delete applicationset web --cascade=orphan")
		h.guided(t, "kubectl -n argocd delete applicationset metrics --cascade=orphan")
		h.until(t, func() error {
			if left := namesOf(t, h.cluster, applicationSets, "argocd"); len(left) > 0 {
				return fmt.Errorf("the hub has the ApplicationSets %v", left)
			}
			return nil
		})
		unchanged()
	})
	step("the hub follows the new folders", func() {
		h.tf.write("central.kubeconfig", h.cluster.Kubeconfig())
		h.configure(t, "adopted", "main.tf", "takeover.tf")
		h.apply(t)
		unchanged()
		for _, name := range adopted { // nothing is waited for: the apply has
			one := h.cluster.Get(t, "argoproj.io/v1alpha1", "Application", "argocd", name)
			by, _ := field(one, "metadata", "annotations", "argocd.argoproj.io/tracking-id").(string)
			want := map[string]string{
				"metrics-in-cluster": "central-cluster-type:", "metrics-store-1": "flotilla-prod-store-1-hub:", "store-1-web": "flotilla-prod-store-1-hub:",
			}[name]
			if strings.Contains(name, "store-2") {
				want = "flotilla-prod-store-2-hub:"
			}
			if !strings.HasPrefix(by, want) || len(one.GetOwnerReferences()) > 0 {
				t.Errorf("%s belongs to %q and %v, want %s", name, by, one.GetOwnerReferences(), want)
			}
		}
		if err := h.tf.plansNothing(); err != nil {
			t.Error(err)
		}
	})
	step("each cluster is ready", func() {
		h.tf.write("checks.tf", hubChecks)
		h.until(t, func() error {
			h.apply(t)
			var clusters map[string]struct{ Verdict, Message string }
			h.tf.outputs(map[string]any{"clusters": &clusters})
			for name := range h.clusters {
				if is := clusters[name]; is.Verdict != "ready" {
					return fmt.Errorf("%s is %s: %s", name, is.Verdict, is.Message)
				}
			}
			return nil
		})
	})
	step("the root is removed", func() {
		h.guided(t, `kubectl -n argocd patch application root --type merge -p '{"metadata":{"finalizers":null}}'`)
		h.guided(t, `kubectl -n argocd delete application root`)
		h.until(t, func() error {
			if h.cluster.Get(t, "argoproj.io/v1alpha1", "Application", "argocd", "root") != nil {
				return fmt.Errorf("the root is still there")
			}
			return nil
		})
		delete(had, "central: Application argocd/root")
		unchanged()
	})
	h.fleet.git("fetch", "--quiet", h.fleet.write, "adopted")
	h.fleet.git("checkout", "--quiet", "-B", "adopted", "FETCH_HEAD")
	step("a change arrives on each cluster", func() {
		h.fleet.pushTo("adopted", map[string]string{"clusters/central/web.yaml": fmt.Sprintf(setOfWeb, h.fleet.url, "v2")})
		h.apply(t)
		h.refreshed(t)
		h.until(t, func() error {
			var wrong []error
			for _, name := range web {
				wrong = append(wrong, configMapSays(t, h.clusters[name], "web", "greeting", "hello", "v2"))
			}
			return all(wrong...)
		})
		unchanged()
	})
	step("what is removed is pruned on each cluster", func() {
		h.fleet.git("rm", "--quiet", "clusters/central/web.yaml")
		h.fleet.pushTo("adopted", nil)
		h.apply(t)
		h.refreshed(t)
		h.until(t, func() error {
			var left []error
			for _, name := range web {
				left = append(left, gone(t, h.clusters[name], "web"))
			}
			return all(left...)
		})
		maps.DeleteFunc(had, func(object, _ string) bool { return strings.Contains(object, "web") })
		unchanged()
	})
	labels := func(name string) map[string]string {
		all := h.cluster.Get(t, "v1", "Secret", "argocd", "cluster-"+name).GetLabels()
		maps.DeleteFunc(all, func(key, _ string) bool { return !strings.HasPrefix(key, "flotilla.dev/") })
		return all
	}
	step("a destroy of the agents leaves everything", func() {
		h.tf.run("destroy", "-auto-approve", "-no-color", "-target=flotilla_agent.store", "-target=flotilla_agent.central")
		time.Sleep(5 * time.Second)
		unchanged()
		for _, name := range web {
			want := map[string]string{"flotilla.dev/cluster": name, "flotilla.dev/cluster-type": name, "flotilla.dev/environment": "prod"}
			if got := labels(name); !maps.Equal(got, want) {
				t.Errorf("the Secret of %s has the labels %v, want %v", name, got, want)
			}
		}
	})
	step("a destroy with on_destroy = \"delete\" removes the workloads", func() {
		h.tf.write("override.tf", "resource \"flotilla_agent\" \"store\" {\n  on_destroy = \"delete\"\n}\n")
		h.apply(t)
		unchanged()
		h.tf.run("destroy", "-auto-approve", "-no-color", "-target=flotilla_agent.store")
		h.until(t, func() error {
			return all(gone(t, h.clusters["store-1"], "metrics"), gone(t, h.clusters["store-2"], "metrics"))
		})
		maps.DeleteFunc(had, func(object, _ string) bool {
			return strings.HasPrefix(object, "store-") && strings.Contains(object, "metrics") || strings.Contains(object, "metrics-store-")
		})
		unchanged()
		for _, name := range web {
			if got := labels(name); len(got) > 0 {
				t.Errorf("the Secret of %s has the labels %v", name, got)
			}
		}
	})
}
