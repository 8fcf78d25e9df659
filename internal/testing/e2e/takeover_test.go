package e2e_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// root is what follows the folder of a cluster before it is taken over, and the fleet that is there.
type root struct {
	apiVersion, kind, namespace, name string

	files   map[string]string // of the repository that it follows
	applied string            // what the agent's installer has applied
	adopted []string          // the names of what it brings and Flotilla takes, of its own kind
	removed []string          // the files with them
	owner   []string          // the field that says what brings an object, of "web"
	from    string            // its value before, and after
	to      string
}

// newRoot is what follows the folder of a cluster type afterwards.
const newRoot = "flotilla-cluster-type"

// children are the objects of the test's own, by agent: %[1]s is the name and the namespace, %[2]s the folder, %[3]s the repository.
var children = map[string]string{
	"flux": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %[1]s, namespace: flux-system}
spec: {interval: 1h, prune: true, wait: true, targetNamespace: %[1]s, path: ./%[2]s, sourceRef: {kind: GitRepository, name: flux-system}}
`,
	"argocd": `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: %[1]s, namespace: argocd, finalizers: [resources-finalizer.argocd.argoproj.io]}
spec:
  project: default
  destination: {server: "https://kubernetes.default.svc", namespace: %[1]s}
  source: {repoURL: %[3]q, targetRevision: main, path: %[2]s}
  syncPolicy: {automated: {prune: true, selfHeal: true}}
`,
}

func child(agent, name, folder, url string) string {
	return fmt.Sprintf(children[agent], name, folder, url)
}

// brings is what a child brings: its namespace, and a workload.
func brings(name, version string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---", name) + fmt.Sprintf(workload, version, 0)
}

// synced is what `flux bootstrap` writes.
func synced(url string, prune bool) string {
	return fmt.Sprintf(`apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m0s, ref: {branch: main}, url: %q}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec:
  interval: 10m0s
  path: ./clusters/production
  prune: %t
  sourceRef: {kind: GitRepository, name: flux-system}
`, url, prune)
}

// components stands for Flux itself, which its root brings, too.
const components = `apiVersion: apps/v1
kind: Deployment
metadata: {name: kustomize-controller, namespace: flux-system}
spec:
  replicas: 0
  selector: {matchLabels: {app: kustomize-controller}}
  template:
    metadata: {labels: {app: kustomize-controller}}
    spec: {containers: [{name: manager, image: example.com/kustomize-controller, args: [--log-level=info]}]}
`

// fluxFleet is Flux' own example of a fleet, as installed on production, with one workload more, whose objects need no other controller.
func fluxFleet(t *testing.T, url string) root {
	t.Helper()
	example := filepath.Join("..", "..", "..", "..", "shared", "charts", "kustomize", "fleet-example")
	files := map[string]string{}
	err := filepath.WalkDir(example, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		relative, _ := filepath.Rel(example, path)
		files[filepath.ToSlash(relative)] = string(text)
		return err
	})
	if os.IsNotExist(err) {
		t.Skip("shared/charts is absent")
	} else if err != nil {
		t.Fatal(err)
	}
	files["clusters/production/flux-system/gotk-sync.yaml"] = synced(url, true)
	files["clusters/production/flux-system/gotk-components.yaml"] = components
	files["clusters/production/web.yaml"] = child("flux", "web", "web/v1", url)
	files["web/v1/all.yaml"], files["web/v2/all.yaml"] = brings("web", "v1"), brings("web", "v2")
	return root{
		apiVersion: "kustomize.toolkit.fluxcd.io/v1", kind: "Kustomization", namespace: "flux-system", name: "flux-system",
		files: files, applied: synced(url, true),
		adopted: []string{"apps", "infra-configs", "infra-controllers", "web"},
		removed: []string{"clusters/production/apps.yaml", "clusters/production/infrastructure.yaml", "clusters/production/web.yaml"},
		owner:   []string{"metadata", "labels", "kustomize.toolkit.fluxcd.io/name"}, from: "flux-system", to: newRoot,
	}
}

// argoFleet is an Application of Applications.
func argoFleet(url string) root {
	applied := fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: root, namespace: argocd, finalizers: [resources-finalizer.argocd.argoproj.io]}
spec:
  project: default
  destination: {server: "https://kubernetes.default.svc", namespace: argocd}
  source: {repoURL: %q, targetRevision: main, path: clusters/production}
  syncPolicy: {automated: {prune: true, selfHeal: true}}
`, url)
	const tracked = ":argoproj.io/Application:argocd/argocd-web"
	return root{
		apiVersion: "argoproj.io/v1alpha1", kind: "Application", namespace: "argocd", name: "root",
		files: map[string]string{
			"bootstrap/production.yaml": applied,
			"clusters/production/web.yaml": child(
				"argocd",
				"argocd-web",
				"web/v1",
				url,
			), "clusters/production/api.yaml": child("argocd", "argocd-api", "api", url),
			"web/v1/all.yaml": brings("argocd-web", "v1"), "web/v2/all.yaml": brings("argocd-web", "v2"), "api/all.yaml": brings("argocd-api", "v1"),
		},
		applied: applied, adopted: []string{"argocd-api", "argocd-web"},
		removed: []string{"clusters/production/api.yaml", "clusters/production/web.yaml"},
		owner:   []string{"metadata", "annotations", "argocd.argoproj.io/tracking-id"}, from: "root" + tracked, to: newRoot + tracked,
	}
}

// takeover goes the way of the guide on adopting: what a cluster follows becomes a folder of Flotilla, and nothing is deleted.
func (w *world) takeover(t *testing.T, agent agent) {
	user := w.git.User(t)
	fleet, gitops := newRepository(t, w.git, user, "fleet"), newRepository(t, w.git, user, "gitops")
	isFlux := agent.reconciler() == "flux"
	old, web := argoFleet(fleet.url), "argocd-web"
	if isFlux {
		old, web = fluxFleet(t, fleet.url), "web"
		w.define(t, "source.extensions.fluxcd.io/v1beta1 ArtifactGenerator", "cert-manager.io/v1 ClusterIssuer",
			"gateway.networking.k8s.io/v1 GatewayClass", "gateway.networking.k8s.io/v1 Gateway")
	}
	follower := func(name string) *unstructured.Unstructured {
		return w.cluster.Get(t, old.apiVersion, old.kind, old.namespace, name)
	}
	step := func(what string, do func()) {
		t.Helper()
		w.step(t, agent.reconciler(), what, do)
	}
	until := func(check func() error) {
		t.Helper()
		eventually(t, func() error {
			if err := check(); err != nil {
				return fmt.Errorf("%w\n%s", err, agent.says(t, append([]string{old.name}, old.adopted...)...))
			}
			return nil
		})
	}
	owners := watch(t, w.cluster, map[bool]schema.GroupVersionResource{true: kustomizations, false: applications}[isFlux], web, old.owner...)

	step("the fleet is there", func() {
		fleet.push(old.files)
		w.cluster.Apply(t, old.applied)
		until(func() error {
			for _, name := range append([]string{old.name}, old.adopted...) {
				if one := follower(name); one == nil || !settled(one) {
					return fmt.Errorf("%s has not settled", name)
				}
			}
			return nil
		})
	})
	had := w.brought(t, follower(old.name))
	t.Logf("%d objects are there", len(had))
	unchanged := func() {
		t.Helper()
		for _, object := range slices.SortedFunc(maps.Keys(had), reference.compare) {
			is := w.cluster.Get(t, object.apiVersion, object.kind, object.namespace, object.name)
			switch {
			case is == nil:
				t.Errorf("%v is gone", object)
			case string(is.GetUID()) != had[object] || is.GetDeletionTimestamp() != nil:
				t.Errorf("%v has been deleted", object)
			}
		}
	}
	rootSays := func(want any, path ...string) {
		t.Helper()
		agent.nudge(t, old.name)
		until(func() error {
			if got := field(follower(old.name), path...); got != want {
				return fmt.Errorf("%s has %v, and is to have %v", strings.Join(path, "."), got, want)
			}
			return nil
		})
	}
	step("the root does not prune any more", func() {
		fleet.git("push", "--quiet", fleet.write, "main:adopted")
		if isFlux {
			fleet.push(map[string]string{"clusters/production/flux-system/gotk-sync.yaml": synced(fleet.url, false)})
			rootSays(false, "spec", "prune")
		} else {
			w.guided(t, `kubectl -n argocd patch application root --type merge -p '{"spec":{"syncPolicy":{"automated":{"prune":false}}}}'`)
		}
	})
	step("the root lets its objects go", func() {
		fleet.git(append([]string{"rm", "--quiet"}, old.removed...)...)
		if isFlux {
			fleet.push(nil)
			rootSays("main@sha1:"+fleet.head(), "status", "lastAppliedRevision")
		} else { // else the folder would vanish
			fleet.push(map[string]string{"clusters/production/README.md": "Flotilla writes what is for this cluster.\n"})
			rootSays(fleet.head(), "status", "sync", "revision")
		}
		unchanged()
	})
	tf := newTerraform(t, user)
	step("the agent follows the new folder", func() {
		tf.write("production-1.kubeconfig", w.cluster.Kubeconfig())
		for _, name := range []string{"main.tf", "takeover.tf"} {
			text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "adopting", name))
			if err != nil {
				t.Fatal(err)
			}
			tf.write(name, strings.NewReplacer(
				"https://git.example.com/platform/fleet.git", fleet.url, "https://git.example.com/platform/gitops.git", gitops.url,
				`ref     = "main"`, `ref     = "adopted"`, `"flux"`, `"`+agent.reconciler()+`"`,
			).Replace(string(text)))
		}
		tf.write("required.tf", required)
		tf.write("override.tf", "resource \"flotilla_agent\" \"production_1\" {\n  interval = \"5s\"\n}\n")
		if _, err := tf.try("apply", "-auto-approve", "-no-color"); err != nil {
			t.Fatalf("%v\n%s", err, agent.says(t, append([]string{newRoot}, old.adopted...)...))
		}
		unchanged()
		for _, name := range old.adopted { // nothing is waited for: the apply has
			if got, _ := field(follower(name), old.owner...).(string); !strings.HasPrefix(got, newRoot) {
				t.Errorf("%s belongs to %q", name, got)
			}
		}
		if err := tf.plansNothing(); err != nil {
			t.Error(err)
		}
	})
	step("the root prunes again", func() {
		if isFlux {
			fleet.push(map[string]string{"clusters/production/flux-system/gotk-sync.yaml": synced(fleet.url, true)})
			rootSays(true, "spec", "prune")
			rootSays("main@sha1:"+fleet.head(), "status", "lastAppliedRevision")
		} else {
			rootSays("Synced", "status", "sync", "status")
			w.guided(t, `kubectl -n argocd patch application root --type merge -p '{"spec":{"syncPolicy":{"automated":{"prune":true}}}}'`)
		}
		unchanged()
	})
	step("the root is removed", func() {
		if isFlux {
			fleet.push(map[string]string{"clusters/production/flux-system/gotk-sync.yaml": synced(fleet.url, false)})
			rootSays(false, "spec", "prune")
			w.guided(t, `kubectl -n flux-system delete kustomization flux-system`)
		} else {
			w.guided(t, `kubectl -n argocd patch application root --type merge -p '{"metadata":{"finalizers":null}}'`)
			w.guided(t, `kubectl -n argocd delete application root`)
		}
		until(func() error {
			if follower(old.name) != nil {
				return fmt.Errorf("it is still there")
			}
			return nil
		})
		maps.DeleteFunc(had, func(object reference, _ string) bool { return object.kind == old.kind && object.name == old.name })
		unchanged()
	})
	fleet.git("fetch", "--quiet", fleet.write, "adopted")
	fleet.git("checkout", "--quiet", "-B", "adopted", "FETCH_HEAD")
	step("a change arrives", func() {
		fleet.pushTo("adopted", map[string]string{"clusters/production/web.yaml": child(agent.reconciler(), web, "web/v2", fleet.url)})
		tf.run("apply", "-auto-approve", "-no-color")
		agent.nudge(t, newRoot)
		until(func() error { return configMapSays(t, w.cluster, web, "greeting", "hello", "v2") })
		unchanged()
	})
	step("what is removed is pruned", func() {
		fleet.git("rm", "--quiet", "clusters/production/web.yaml")
		fleet.pushTo("adopted", nil)
		tf.run("apply", "-auto-approve", "-no-color")
		agent.nudge(t, newRoot)
		until(func() error { return gone(t, w.cluster, web) })
		maps.DeleteFunc(had, func(object reference, _ string) bool { return object.name == web || object.namespace == web })
		unchanged()
	})
	if got, want := owners.in(old.namespace), []string{old.from, old.to}; !slices.Equal(got, want) {
		t.Errorf("%s belonged to %v, and not to %v", web, got, want)
	}
}

// define has the API know these kinds, with whatever is in their objects.
func (w *world) define(t *testing.T, kinds ...string) {
	t.Helper()
	for _, one := range kinds {
		apiVersion, kind, _ := strings.Cut(one, " ")
		group, version, _ := strings.Cut(apiVersion, "/")
		scope := "Namespaced"
		if kind == "ClusterIssuer" || kind == "GatewayClass" {
			scope = "Cluster"
		}
		singular := strings.ToLower(kind)
		plural := strings.Replace(singular+"s", "sss", "sses", 1)
		w.cluster.Apply(t, fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: %[2]s
  names: {kind: %[3]s, plural: %[1]s, singular: %[4]s}
  scope: %[5]s
  versions: [{name: %[6]s, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, plural, group, kind, singular, scope, version))
		eventually(t, func() error {
			_, err := w.cluster.Client().
				Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: plural}).
				List(t.Context(), metav1.ListOptions{})
			return err
		})
	}
}

// reference names an object of a cluster.
type reference struct{ apiVersion, kind, namespace, name string }

func (r reference) String() string { return r.kind + " " + r.namespace + "/" + r.name }

func (r reference) compare(other reference) int { return strings.Compare(r.String(), other.String()) }

// brought are the objects that a Kustomization or an Application has brought, and those that they have brought in turn, with their UIDs.
func (w *world) brought(t *testing.T, root *unstructured.Unstructured) map[reference]string {
	t.Helper()
	found := map[reference]string{}
	var walk func(follower *unstructured.Unstructured)
	walk = func(follower *unstructured.Unstructured) {
		var objects []reference
		entries, _ := field(follower, "status", "inventory", "entries").([]any)
		for _, entry := range entries {
			entry := entry.(map[string]any)
			id := strings.SplitN(entry["id"].(string), "_", 4)
			objects = append(objects, reference{strings.TrimPrefix(id[2]+"/"+entry["v"].(string), "/"), id[3], id[0], id[1]})
		}
		resources, _ := field(follower, "status", "resources").([]any)
		for _, resource := range resources {
			text := func(key string) string { value, _ := resource.(map[string]any)[key].(string); return value }
			objects = append(
				objects,
				reference{strings.TrimPrefix(text("group")+"/"+text("version"), "/"), text("kind"), text("namespace"), text("name")},
			)
		}
		for _, object := range objects {
			is := w.cluster.Get(t, object.apiVersion, object.kind, object.namespace, object.name)
			if is == nil || found[object] != "" {
				continue
			}
			found[object] = string(is.GetUID())
			if object.kind == root.GetKind() {
				walk(is)
			}
		}
	}
	walk(root)
	return found
}

// guided runs a command that the guide on adopting has.
func (w *world) guided(t *testing.T, command string) {
	t.Helper()
	inGuide(t, "adopting.md.tmpl", command)
	w.kubectl(t, command)
}

func inGuide(t *testing.T, name, command string) {
	t.Helper()
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "templates", "guides", name))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(guide), "\n"+command+"\n") {
		t.Fatalf("the guide does not have the command %q", command)
	}
}
