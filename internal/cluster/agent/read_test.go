package agent_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Read returns the settings that objects were rendered from, with the name of the Secret in place of the credentials.
func TestSettingsAreReadFromTheirObjects(t *testing.T) {
	t.Parallel()
	for _, name := range reconciler.Agents() {
		if reconciler.Named(name).OnHub() {
			continue
		}
		decryption := &fleet.Decryption{Secret: "sops-age", ServiceAccount: "decrypting"}
		if reconciler.Named(name).NoSOPS != "" {
			decryption = nil
		}
		plain := agent.Settings{
			Cluster:     "edge-1",
			ClusterType: "drone",
			Reconciler:  name,
			Repository:  folder.Location{URL: "https://git.example.com/platform/gitops", Branch: "dev"},
		}
		deep, second := plain, plain
		deep.Repository.Path, deep.CredentialsSecret, deep.Decryption = "clusters/all", "read-only", decryption
		second.Name, second.Repository.Branch = "second", "stage"
		if name != "fleet" { // Fleet's namespace contains the cluster's own object
			second.Namespace = "elsewhere"
		}
		var live []*unstructured.Unstructured
		for _, settings := range []agent.Settings{plain, second} {
			live = append(live, unstructuredObjects(t, settings)...)
		}
		if got := readAgents("edge-1", live); len(got) != 2 || !reflect.DeepEqual(got[0], plain) && !reflect.DeepEqual(got[1], plain) ||
			!reflect.DeepEqual(got[0], second) && !reflect.DeepEqual(got[1], second) {
			t.Errorf("%s: got\n%+v\nwant\n%+v\n%+v", name, got, plain, second)
		}
		if got := readAgents("edge-2", live); len(got) > 0 {
			t.Errorf("%s: got %+v for cluster edge-2, want none", name, got)
		}
		if got := readAgents("edge-1", unstructuredObjects(t, deep)); len(got) != 1 || got[0].Repository != deep.Repository ||
			!reflect.DeepEqual(got[0].Decryption, deep.Decryption) {
			t.Errorf("%s: got %+v, want %+v", name, got, deep)
		} else if secret := got[0].CredentialsSecret; secret != deep.CredentialsSecret && name != "argocd" { // Argo CD uses a label
			t.Errorf("%s: got the Secret %q", name, secret)
		}
		for _, field := range []func(*agent.Settings){
			func(s *agent.Settings) { s.Interval = 30 * time.Second }, func(s *agent.Settings) { s.Timeout = 20 * time.Minute },
		} {
			changed := plain
			field(&changed)
			got := readAgents("edge-1", unstructuredObjects(t, changed))
			if len(got) != 1 {
				t.Fatalf("%s: got %+v", name, got)
			}
			again, before := unstructuredObjects(t, got[0]), unstructuredObjects(t, changed)
			if !reflect.DeepEqual(again, before) {
				t.Errorf("%s: the settings render as\n%v\nwant\n%v", name, again, before)
			}
		}
	}
}

// unstructuredObjects renders settings, and ignores warnings.
func unstructuredObjects(t *testing.T, settings agent.Settings) []*unstructured.Unstructured {
	t.Helper()
	objects, problems := agent.Render(settings)
	if agent.Failed(problems) {
		t.Fatalf("%+v: %v", settings, problems)
	}
	var all []*unstructured.Unstructured
	for i := range objects {
		all = append(all, objects[i].Unstructured)
	}
	return all
}

func TestOtherObjectsAreNoAgents(t *testing.T) {
	t.Parallel()
	settings := agent.Settings{
		Cluster:     "edge-1",
		ClusterType: "drone",
		Reconciler:  "flux",
		Repository:  folder.Location{URL: "https://git.example.com/platform/gitops", Branch: "dev"},
	}
	for name, change := range map[string]func(*unstructured.Unstructured){
		"another manager":      func(o *unstructured.Unstructured) { o.SetLabels(nil) },
		"another cluster type": func(o *unstructured.Unstructured) { o.SetLabels(withLabel(o.GetLabels(), reconciler.TypeLabel, "x")) },
		"another name":         func(o *unstructured.Unstructured) { o.SetName("mine") },
		"no path":              func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "spec", "path") },
		"no source":            func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "spec", "url") },
		"no spec":              func(o *unstructured.Unstructured) { o.Object["spec"] = "text" },
	} {
		live := unstructuredObjects(t, settings)
		for _, one := range live {
			change(one)
		}
		if got := readAgents("edge-1", live); len(got) > 0 {
			t.Errorf("%s: got %+v, want none", name, got)
		}
	}
}

// FuzzRead reads random objects. Render accepts all settings that Read returns.
func FuzzRead(f *testing.F) {
	for _, name := range reconciler.Agents() {
		if !reconciler.Named(name).OnHub() {
			settings := agent.Settings{
				Cluster:     "edge-1",
				ClusterType: "drone",
				Reconciler:  name,
				Repository:  folder.Location{URL: "https://git.example.com/gitops", Branch: "dev", Path: "all"},
			}
			objects, _ := agent.Render(settings)
			text, err := json.Marshal(objects)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		var objects []map[string]any
		if json.Unmarshal([]byte(text), &objects) != nil {
			return
		}
		live := make([]*unstructured.Unstructured, len(objects))
		for i, object := range objects {
			live[i] = &unstructured.Unstructured{Object: object}
		}
		agents, _ := agent.Read("edge-1", live)
		for _, found := range agents {
			for _, problem := range findErrors(found) {
				t.Errorf("%s: got %+v with the problem %s", text, found, problem)
			}
			// In HCL, "${" and "%{" begin a template.
			if values := fmt.Sprintf("%+v", found); strings.Contains(values, "${") || strings.Contains(values, "%{") || !wording.IsLine(values) {
				t.Errorf("%s: got %q", text, values)
			}
			if found.Cluster != "edge-1" || found.ClusterType == "" || found.Repository.URL == "" || found.Repository.Branch == "" {
				t.Errorf("%s: got %+v", text, found)
			}
		}
	})
}

func withLabel(labels map[string]string, key, value string) map[string]string {
	changed := map[string]string{}
	for name, text := range labels {
		changed[name] = text
	}
	changed[key] = value
	return changed
}

// findErrors returns the errors of settings, except those on credentials, which objects do not show.
func findErrors(settings agent.Settings) (texts []string) {
	_, problems := agent.Render(settings)
	for _, problem := range problems {
		if !problem.Warning && !strings.HasPrefix(problem.Path, "credentials.") {
			texts = append(texts, problem.String())
		}
	}
	return texts
}

// readAgents returns the agents of a cluster, and panics if Read refuses one.
func readAgents(cluster string, live []*unstructured.Unstructured) []agent.Settings {
	found, refused := agent.Read(cluster, live)
	if len(refused) > 0 {
		panic(refused[0].String())
	}
	return found
}
