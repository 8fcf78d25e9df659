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

// existingFleet is a fleet before Flotilla adopts it, with the root that follows the folder of a cluster.
type existingFleet struct {
	apiVersion, kind, namespace, name string

	files        map[string]string // content of the repository
	installed    string            // manifests applied by the agent's installer
	adoptedNames []string          // names of the adopted objects, of the root's kind
	removedFiles []string          // files with the adopted objects
	ownerPath    []string          // field with the owner of an adopted object
	oldOwner     string            // value before the takeover
	newOwner     string
}

// newRoot is the root that follows the folder of a cluster type after the takeover.
const newRoot = "flotilla-cluster-type"

// childTemplates are adopted objects, by agent: %[1]s is the name and the namespace, %[2]s the folder, %[3]s the repository.
var childTemplates = map[string]string{
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

func newChild(agent, name, folder, url string) string {
	return fmt.Sprintf(childTemplates[agent], name, folder, url)
}

// newWorkload returns the objects of a child: its namespace and a workload.
func newWorkload(name, version string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---", name) + fmt.Sprintf(workload, version, 0)
}

// newFluxSync returns the file gotk-sync.yaml of `flux bootstrap`.
func newFluxSync(url string, prune bool) string {
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

// fluxComponents stands in for Flux itself, which its root also deploys.
const fluxComponents = `apiVersion: apps/v1
kind: Deployment
metadata: {name: kustomize-controller, namespace: flux-system}
spec:
  replicas: 0
  selector: {matchLabels: {app: kustomize-controller}}
  template:
    metadata: {labels: {app: kustomize-controller}}
    spec: {containers: [{name: manager, image: example.com/kustomize-controller, args: [--log-level=info]}]}
`

// fluxFleet is Flux' own example of a fleet on production, with an additional workload that needs no other controller.
func fluxFleet(t *testing.T, url string) existingFleet {
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
	files["clusters/production/flux-system/gotk-sync.yaml"] = newFluxSync(url, true)
	files["clusters/production/flux-system/gotk-components.yaml"] = fluxComponents
	files["clusters/production/web.yaml"] = newChild("flux", "web", "web/v1", url)
	files["web/v1/all.yaml"], files["web/v2/all.yaml"] = newWorkload("web", "v1"), newWorkload("web", "v2")
	return existingFleet{
		apiVersion: "kustomize.toolkit.fluxcd.io/v1", kind: "Kustomization", namespace: "flux-system", name: "flux-system",
		files: files, installed: newFluxSync(url, true),
		adoptedNames: []string{"apps", "infra-configs", "infra-controllers", "web"},
		removedFiles: []string{"clusters/production/apps.yaml", "clusters/production/infrastructure.yaml", "clusters/production/web.yaml"},
		ownerPath:    []string{"metadata", "labels", "kustomize.toolkit.fluxcd.io/name"}, oldOwner: "flux-system", newOwner: newRoot,
	}
}

// argoFleet is an Application of Applications.
func argoFleet(url string) existingFleet {
	installed := fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: root, namespace: argocd, finalizers: [resources-finalizer.argocd.argoproj.io]}
spec:
  project: default
  destination: {server: "https://kubernetes.default.svc", namespace: argocd}
  source: {repoURL: %q, targetRevision: main, path: clusters/production}
  syncPolicy: {automated: {prune: true, selfHeal: true}}
`, url)
	const tracked = ":argoproj.io/Application:argocd/argocd-web"
	return existingFleet{
		apiVersion: "argoproj.io/v1alpha1", kind: "Application", namespace: "argocd", name: "root",
		files: map[string]string{
			"bootstrap/production.yaml": installed,
			"clusters/production/web.yaml": newChild(
				"argocd",
				"argocd-web",
				"web/v1",
				url,
			), "clusters/production/api.yaml": newChild("argocd", "argocd-api", "api", url),
			"web/v1/all.yaml": newWorkload("argocd-web", "v1"), "web/v2/all.yaml": newWorkload("argocd-web",
				"v2"), "api/all.yaml": newWorkload("argocd-api", "v1"),
		},
		installed: installed, adoptedNames: []string{"argocd-api", "argocd-web"},
		removedFiles: []string{"clusters/production/api.yaml", "clusters/production/web.yaml"},
		ownerPath:    []string{"metadata", "annotations", "argocd.argoproj.io/tracking-id"}, oldOwner: "root" + tracked, newOwner: newRoot + tracked,
	}
}

// testTakeover follows the guide on adopting: a folder of Flotilla replaces the folder of an existing cluster, and no object is
// deleted.
func (bed *testbed) testTakeover(t *testing.T, agent agent) {
	user := bed.git.User(t)
	fleet, gitops := newRepository(t, bed.git, user, "fleet"), newRepository(t, bed.git, user, "gitops")
	isFlux := agent.reconciler() == "flux"
	old, web := argoFleet(fleet.url), "argocd-web"
	if isFlux {
		old, web = fluxFleet(t, fleet.url), "web"
		bed.defineKinds(t, "source.extensions.fluxcd.io/v1beta1 ArtifactGenerator", "cert-manager.io/v1 ClusterIssuer",
			"gateway.networking.k8s.io/v1 GatewayClass", "gateway.networking.k8s.io/v1 Gateway")
	}
	getFollower := func(name string) *unstructured.Unstructured {
		return bed.cluster.Get(t, old.apiVersion, old.kind, old.namespace, name)
	}
	step := func(title string, do func()) {
		t.Helper()
		bed.step(t, agent.reconciler(), title, do)
	}
	waitFor := func(check func() error) {
		t.Helper()
		eventually(t, func() error {
			if err := check(); err != nil {
				return fmt.Errorf("%w\n%s", err, agent.describeStatus(t, append([]string{old.name}, old.adoptedNames...)...))
			}
			return nil
		})
	}
	owners := watchField(t, bed.cluster,
		map[bool]schema.GroupVersionResource{true: kustomizations, false: applications}[isFlux], web, old.ownerPath...)

	step("the fleet is deployed", func() {
		fleet.push(old.files)
		bed.cluster.Apply(t, old.installed)
		waitFor(func() error {
			for _, name := range append([]string{old.name}, old.adoptedNames...) {
				if follower := getFollower(name); follower == nil || !isSettled(follower) {
					return fmt.Errorf("%s has not settled", name)
				}
			}
			return nil
		})
	})
	wantUIDs := bed.listApplied(t, getFollower(old.name))
	t.Logf("the fleet has %d objects", len(wantUIDs))
	checkUnchanged := func() {
		t.Helper()
		for _, object := range slices.SortedFunc(maps.Keys(wantUIDs), objectReference.compare) {
			got := bed.cluster.Get(t, object.apiVersion, object.kind, object.namespace, object.name)
			switch {
			case got == nil:
				t.Errorf("%v is gone", object)
			case string(got.GetUID()) != wantUIDs[object] || got.GetDeletionTimestamp() != nil:
				t.Errorf("%v has been deleted", object)
			}
		}
	}
	waitForRootField := func(want any, path ...string) {
		t.Helper()
		agent.triggerReconcile(t, old.name)
		waitFor(func() error {
			if got := field(getFollower(old.name), path...); got != want {
				return fmt.Errorf("%s is %v, want %v", strings.Join(path, "."), got, want)
			}
			return nil
		})
	}
	step("the root no longer prunes", func() {
		fleet.git("push", "--quiet", fleet.pushURL, "main:adopted")
		if isFlux {
			fleet.push(map[string]string{"clusters/production/flux-system/gotk-sync.yaml": newFluxSync(fleet.url, false)})
			waitForRootField(false, "spec", "prune")
		} else {
			bed.runGuideCommand(t, `kubectl -n argocd patch application root --type merge -p '{"spec":{"syncPolicy":{"automated":{"prune":false}}}}'`)
		}
	})
	step("the root releases its objects", func() {
		fleet.git(append([]string{"rm", "--quiet"}, old.removedFiles...)...)
		if isFlux {
			fleet.push(nil)
			waitForRootField("main@sha1:"+fleet.head(), "status", "lastAppliedRevision")
		} else { // keeps the folder
			fleet.push(map[string]string{"clusters/production/README.md": "Flotilla writes what is for this cluster.\n"})
			waitForRootField(fleet.head(), "status", "sync", "revision")
		}
		checkUnchanged()
	})
	tf := newTerraform(t, user)
	step("the agent follows the new folder", func() {
		tf.writeFile("production-1.kubeconfig", bed.cluster.Kubeconfig())
		for _, name := range []string{"main.tf", "takeover.tf"} {
			text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "adopting", name))
			if err != nil {
				t.Fatal(err)
			}
			tf.writeFile(name, strings.NewReplacer(
				"https://git.example.com/platform/fleet.git", fleet.url, "https://git.example.com/platform/gitops.git", gitops.url,
				`ref     = "main"`, `ref     = "adopted"`, `"flux"`, `"`+agent.reconciler()+`"`,
			).Replace(string(text)))
		}
		tf.writeFile("required.tf", requiredProviders)
		tf.writeFile("override.tf", "resource \"flotilla_agent\" \"production_1\" {\n  interval = \"5s\"\n}\n")
		if _, err := tf.tryRun("apply", "-auto-approve", "-no-color"); err != nil {
			t.Fatalf("%v\n%s", err, agent.describeStatus(t, append([]string{newRoot}, old.adoptedNames...)...))
		}
		checkUnchanged()
		for _, name := range old.adoptedNames { // no polling: the apply waits
			if got, _ := field(getFollower(name), old.ownerPath...).(string); !strings.HasPrefix(got, newRoot) {
				t.Errorf("%s belongs to %q", name, got)
			}
		}
		if err := tf.checkEmptyPlan(); err != nil {
			t.Error(err)
		}
	})
	step("the root prunes again", func() {
		if isFlux {
			fleet.push(map[string]string{"clusters/production/flux-system/gotk-sync.yaml": newFluxSync(fleet.url, true)})
			waitForRootField(true, "spec", "prune")
			waitForRootField("main@sha1:"+fleet.head(), "status", "lastAppliedRevision")
		} else {
			waitForRootField("Synced", "status", "sync", "status")
			bed.runGuideCommand(t, `kubectl -n argocd patch application root --type merge -p '{"spec":{"syncPolicy":{"automated":{"prune":true}}}}'`)
		}
		checkUnchanged()
	})
	step("the root is removed", func() {
		if isFlux {
			fleet.push(map[string]string{"clusters/production/flux-system/gotk-sync.yaml": newFluxSync(fleet.url, false)})
			waitForRootField(false, "spec", "prune")
			bed.runGuideCommand(t, `kubectl -n flux-system delete kustomization flux-system`)
		} else {
			bed.runGuideCommand(t, `kubectl -n argocd patch application root --type merge -p '{"metadata":{"finalizers":null}}'`)
			bed.runGuideCommand(t, `kubectl -n argocd delete application root`)
		}
		waitFor(func() error {
			if getFollower(old.name) != nil {
				return fmt.Errorf("the root still exists")
			}
			return nil
		})
		maps.DeleteFunc(wantUIDs, func(object objectReference, _ string) bool { return object.kind == old.kind && object.name == old.name })
		checkUnchanged()
	})
	fleet.git("fetch", "--quiet", fleet.pushURL, "adopted")
	fleet.git("checkout", "--quiet", "-B", "adopted", "FETCH_HEAD")
	step("a change is applied", func() {
		fleet.pushTo("adopted", map[string]string{"clusters/production/web.yaml": newChild(agent.reconciler(), web, "web/v2", fleet.url)})
		tf.run("apply", "-auto-approve", "-no-color")
		agent.triggerReconcile(t, newRoot)
		waitFor(func() error { return checkConfigMap(t, bed.cluster, web, "greeting", "hello", "v2") })
		checkUnchanged()
	})
	step("a removed workload is pruned", func() {
		fleet.git("rm", "--quiet", "clusters/production/web.yaml")
		fleet.pushTo("adopted", nil)
		tf.run("apply", "-auto-approve", "-no-color")
		agent.triggerReconcile(t, newRoot)
		waitFor(func() error { return checkNamespaceGone(t, bed.cluster, web) })
		maps.DeleteFunc(wantUIDs, func(object objectReference, _ string) bool { return object.name == web || object.namespace == web })
		checkUnchanged()
	})
	if got, want := owners.inNamespace(old.namespace), []string{old.oldOwner, old.newOwner}; !slices.Equal(got, want) {
		t.Errorf("owners of %s: got %v, want %v", web, got, want)
	}
}

// defineKinds defines kinds, given as "apiVersion kind", with arbitrary fields.
func (bed *testbed) defineKinds(t *testing.T, kinds ...string) {
	t.Helper()
	for _, entry := range kinds {
		apiVersion, kind, _ := strings.Cut(entry, " ")
		group, version, _ := strings.Cut(apiVersion, "/")
		scope := "Namespaced"
		if kind == "ClusterIssuer" || kind == "GatewayClass" {
			scope = "Cluster"
		}
		singular := strings.ToLower(kind)
		plural := strings.Replace(singular+"s", "sss", "sses", 1)
		bed.cluster.Apply(t, fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: %[2]s
  names: {kind: %[3]s, plural: %[1]s, singular: %[4]s}
  scope: %[5]s
  versions: [{name: %[6]s, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, plural, group, kind, singular, scope, version))
		eventually(t, func() error {
			_, err := bed.cluster.Client().
				Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: plural}).
				List(t.Context(), metav1.ListOptions{})
			return err
		})
	}
}

// objectReference names an object of a cluster.
type objectReference struct{ apiVersion, kind, namespace, name string }

func (r objectReference) String() string { return r.kind + " " + r.namespace + "/" + r.name }

func (r objectReference) compare(other objectReference) int {
	return strings.Compare(r.String(), other.String())
}

// listApplied returns the UIDs of the objects applied by a Kustomization or Application and, recursively, by its children.
func (bed *testbed) listApplied(t *testing.T, root *unstructured.Unstructured) map[objectReference]string {
	t.Helper()
	uids := map[objectReference]string{}
	var walk func(follower *unstructured.Unstructured)
	walk = func(follower *unstructured.Unstructured) {
		var objects []objectReference
		entries, _ := field(follower, "status", "inventory", "entries").([]any)
		for _, entry := range entries {
			entry := entry.(map[string]any)
			id := strings.SplitN(entry["id"].(string), "_", 4)
			objects = append(objects, objectReference{strings.TrimPrefix(id[2]+"/"+entry["v"].(string), "/"), id[3], id[0], id[1]})
		}
		resources, _ := field(follower, "status", "resources").([]any)
		for _, resource := range resources {
			text := func(key string) string { value, _ := resource.(map[string]any)[key].(string); return value }
			objects = append(
				objects,
				objectReference{strings.TrimPrefix(text("group")+"/"+text("version"), "/"), text("kind"), text("namespace"), text("name")},
			)
		}
		for _, object := range objects {
			got := bed.cluster.Get(t, object.apiVersion, object.kind, object.namespace, object.name)
			if got == nil || uids[object] != "" {
				continue
			}
			uids[object] = string(got.GetUID())
			if object.kind == root.GetKind() {
				walk(got)
			}
		}
	}
	walk(root)
	return uids
}

// runGuideCommand runs a command of the guide on adopting.
func (bed *testbed) runGuideCommand(t *testing.T, command string) {
	t.Helper()
	requireInGuide(t, "adopting.md.tmpl", command)
	bed.runCommand(t, command)
}

func requireInGuide(t *testing.T, name, command string) {
	t.Helper()
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "templates", "guides", name))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(guide), "\n"+command+"\n") {
		t.Fatalf("the guide does not have the command %q", command)
	}
}
