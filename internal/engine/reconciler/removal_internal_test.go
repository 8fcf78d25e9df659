package reconciler

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func parseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if err := json.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestPruningIsTurnedOffAndOn(t *testing.T) {
	const finalizer = `"resources-finalizer.argocd.argoproj.io"`
	for name, c := range map[string]struct{ object, off, on string }{
		"a Kustomization with pruning":             {`{"kind":"Kustomization","spec":{"prune":true}}`, `{"spec":{"prune":false}}`, `null`},
		"a Kustomization without pruning":          {`{"kind":"Kustomization","spec":{}}`, `null`, `{"spec":{"prune":true}}`},
		"a Kustomization with policy Delete":       {`{"kind":"Kustomization","spec":{"prune":false,"deletionPolicy":"Delete"}}`, `{"spec":{"deletionPolicy":"Orphan"}}`, `{"spec":{"prune":true}}`},
		"a Kustomization with policy Orphan":       {`{"kind":"Kustomization","spec":{"prune":true,"deletionPolicy":"Orphan"}}`, `{"spec":{"prune":false}}`, `{"spec":{"deletionPolicy":"Delete"}}`},
		"a suspended Kustomization":                {`{"kind":"Kustomization","spec":{"prune":true,"suspend":true}}`, `{"spec":{"prune":false}}`, `{"spec":{"suspend":false}}`},
		"an Application":                           {`{"kind":"Application","metadata":{"finalizers":["x",` + finalizer + `]},"spec":{"syncPolicy":{"automated":{"prune":true}}}}`, `{"metadata":{"finalizers":["x"]},"spec":{"syncPolicy":{"automated":{"prune":false}}}}`, `null`},
		"an Application with background deletion":  {`{"kind":"Application","metadata":{"finalizers":["resources-finalizer.argocd.argoproj.io/background"]},"spec":{}}`, `{"metadata":{"finalizers":[]}}`, `null`},
		"an Application without a finalizer":       {`{"kind":"Application","metadata":{},"spec":{}}`, `null`, `{"metadata":{"finalizers":[` + finalizer + `]}}`},
		"an ApplicationSet":                        {`{"kind":"ApplicationSet","spec":{"template":{"metadata":{"finalizers":[` + finalizer + `]}}}}`, `{"spec":{"syncPolicy":{"preserveResourcesOnDeletion":true},"template":{"metadata":{"finalizers":[]}}}}`, `null`},
		"an ApplicationSet with pruning":           {`{"kind":"ApplicationSet","spec":{"syncPolicy":{"preserveResourcesOnDeletion":true},"template":{"spec":{"syncPolicy":{"automated":{"prune":true,"selfHeal":true}}}}}}`, `{"spec":{"template":{"spec":{"syncPolicy":{"automated":{"prune":false}}}}}}`, `{"spec":{"syncPolicy":{"preserveResourcesOnDeletion":false},"template":{"metadata":{"finalizers":[` + finalizer + `]}}}}`},
		"an ApplicationSet that preserves objects": {`{"kind":"ApplicationSet","spec":{"syncPolicy":{"preserveResourcesOnDeletion":true}}}`, `null`, `{"spec":{"syncPolicy":{"preserveResourcesOnDeletion":false},"template":{"metadata":{"finalizers":[` + finalizer + `]}}}}`},
		"a GitRepo":                    {`{"kind":"GitRepo","spec":{}}`, `{"spec":{"keepResources":true}}`, `null`},
		"a GitRepo that keeps objects": {`{"kind":"GitRepo","spec":{"keepResources":true}}`, `null`, `{"spec":{"keepResources":false}}`},
		"a RootSync":                   {`{"kind":"RootSync","metadata":{}}`, `null`, `{"metadata":{"annotations":{"configsync.gke.io/deletion-propagation-policy":"Foreground"},"finalizers":["configsync.gke.io/reconciler"]}}`},
		"a RootSync that propagates deletion": {`{"kind":"RootSync","metadata":{"annotations":{"configsync.gke.io/deletion-propagation-policy":"Foreground"},"finalizers":["x","configsync.gke.io/reconciler"]}}`,
			`{"metadata":{"annotations":{"configsync.gke.io/deletion-propagation-policy":"Orphan"},"finalizers":["x"]}}`, `null`},
		"a RepoSync without the finalizer": {`{"kind":"RepoSync","metadata":{"annotations":{"configsync.gke.io/deletion-propagation-policy":"Foreground"}}}`,
			`{"metadata":{"annotations":{"configsync.gke.io/deletion-propagation-policy":"Orphan"},"finalizers":[]}}`, `{"metadata":{"annotations":{"configsync.gke.io/deletion-propagation-policy":"Foreground"},"finalizers":["configsync.gke.io/reconciler"]}}`},
		"anything else": {`{"kind":"ConfigMap"}`, `null`, `null`},
	} {
		object := parseObject(t, c.object)
		off, _ := json.Marshal(KeepPatch(object))
		on, _ := json.Marshal(PrunePatch(object))
		if string(off) != c.off || string(on) != c.on {
			t.Errorf("%s: off is %s, want %s; on is %s, want %s", name, off, c.off, on, c.on)
		}
	}
}

func TestInventoryNamesTheAppliedObjects(t *testing.T) {
	live := parseObject(t, `{"kind":"Kustomization","status":{"inventory":{"entries":[
		{"id":"team_web_apps_Deployment","v":"v1"},{"id":"_team__Namespace","v":"v1"},
		{"id":"_system__auth-reader_rbac.authorization.k8s.io_ClusterRole","v":"v1"},
		{"id":"","v":"v1"},{"id":"a_b","v":"v1"},{"id":"a_b_c_","v":"v1"},{"id":"a_b_c_D"},7]}}}`)
	var got []string
	for _, object := range RemovalOf(live.GetKind()).Inventory(live) {
		got = append(got, strings.Join([]string{object.Group, object.Version, object.Kind, object.Namespace, object.Name}, "|"))
	}
	want := "apps|v1|Deployment|team|web\n|v1|Namespace||team\nrbac.authorization.k8s.io|v1|ClusterRole||system:auth-reader"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

func FuzzFluxInventory(f *testing.F) {
	f.Add("team_web_apps_Deployment", "v1")
	f.Add("_team__Namespace", "v1")
	f.Fuzz(func(t *testing.T, id, version string) {
		entries := []any{map[string]any{"id": id, "v": version}}
		live := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"inventory": map[string]any{"entries": entries}}}}
		for _, object := range fluxInventory(live) {
			if object.Name == "" || object.Kind == "" || object.Version == "" {
				t.Errorf("%q gives %+v", id, object)
			}
		}
	})
}

func TestRemovesDependsOnPruning(t *testing.T) {
	const finalizers = `"metadata":{"finalizers":["resources-finalizer.argocd.argoproj.io"]}`
	for object, want := range map[string]bool{
		`{"kind":"Kustomization","spec":{"prune":true}}`:                                                               true,
		`{"kind":"Kustomization","spec":{"prune":false}}`:                                                              false,
		`{"kind":"Kustomization","spec":{"prune":true,"suspend":true}}`:                                                false,
		`{"kind":"Kustomization","spec":{"prune":true,"deletionPolicy":"Orphan"}}`:                                     false,
		`{"kind":"Kustomization","spec":{"prune":false,"deletionPolicy":"WaitForTermination"}}`:                        true,
		`{"kind":"Application",` + finalizers + `,"spec":{"destination":{"server":"https://kubernetes.default.svc"}}}`: true,
		`{"kind":"Application",` + finalizers + `,"spec":{"destination":{"name":"in-cluster"}}}`:                       true,
		`{"kind":"Application",` + finalizers + `,"spec":{"destination":{"server":"https://store-17.example.com"}}}`:   false,
		`{"kind":"Application","metadata":{},"spec":{"destination":{"server":"https://kubernetes.default.svc"}}}`:      false,
	} {
		live := parseObject(t, object)
		if got := RemovalOf(live.GetKind()).Removes(live); got != want {
			t.Errorf("%s: got %v, want %v", object, got, want)
		}
	}
}

func TestRetainPatchKeepsOtherSyncOptions(t *testing.T) {
	for annotations, want := range map[string]string{
		`{}`: "Prune=false,Delete=false",
		`{"argocd.argoproj.io/sync-options":"ServerSideApply=true, Delete=false"}`: "ServerSideApply=true,Delete=false,Prune=false",
	} {
		live := parseObject(t, `{"kind":"Namespace","metadata":{"annotations":`+annotations+`}}`)
		if keptByFlux(live) {
			t.Errorf("%s retains the object for Flux", annotations)
		}
		patch := &unstructured.Unstructured{Object: RetainPatch(live)}
		if got := patch.GetAnnotations()["argocd.argoproj.io/sync-options"]; got != want || !keptByFlux(patch) || !keptByArgo(patch) {
			t.Errorf("%s becomes %v, want %s", annotations, patch.GetAnnotations(), want)
		}
	}
}
