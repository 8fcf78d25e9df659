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

// What is rendered of settings is read as the same settings, with the name of the Secret in place of the credentials.
func TestSettingsAreReadOfWhatIsRenderedOfThem(t *testing.T) {
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
		if name != "fleet" { // its namespace is where the cluster itself is
			second.Namespace = "elsewhere"
		}
		var live []*unstructured.Unstructured
		for _, settings := range []agent.Settings{plain, second} {
			live = append(live, objectsOf(t, settings)...)
		}
		if got := readAll("edge-1", live); len(got) != 2 || !reflect.DeepEqual(got[0], plain) && !reflect.DeepEqual(got[1], plain) ||
			!reflect.DeepEqual(got[0], second) && !reflect.DeepEqual(got[1], second) {
			t.Errorf("%s: read is\n%+v\nwant\n%+v\n%+v", name, got, plain, second)
		}
		if got := readAll("edge-2", live); len(got) > 0 {
			t.Errorf("%s: of the cluster edge-2 it is read %+v", name, got)
		}
		if got := readAll("edge-1", objectsOf(t, deep)); len(got) != 1 || got[0].Repository != deep.Repository ||
			!reflect.DeepEqual(got[0].Decryption, deep.Decryption) {
			t.Errorf("%s: read is %+v, want %+v", name, got, deep)
		} else if secret := got[0].CredentialsSecret; secret != deep.CredentialsSecret && name != "argocd" { // which finds its Secret by a label
			t.Errorf("%s: the Secret that is read is %q", name, secret)
		}
		for _, field := range []func(*agent.Settings){
			func(s *agent.Settings) { s.Interval = 30 * time.Second }, func(s *agent.Settings) { s.Timeout = 20 * time.Minute },
		} {
			changed := plain
			field(&changed)
			got := readAll("edge-1", objectsOf(t, changed))
			if len(got) != 1 {
				t.Fatalf("%s: read is %+v", name, got)
			}
			again, before := objectsOf(t, got[0]), objectsOf(t, changed)
			if !reflect.DeepEqual(again, before) {
				t.Errorf("%s: of what is read it is rendered\n%v\nwant\n%v", name, again, before)
			}
		}
	}
}

// objectsOf are the rendered objects.
func objectsOf(t *testing.T, settings agent.Settings) []*unstructured.Unstructured {
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

func TestWhatIsNoAgentIsNotRead(t *testing.T) {
	t.Parallel()
	settings := agent.Settings{
		Cluster:     "edge-1",
		ClusterType: "drone",
		Reconciler:  "flux",
		Repository:  folder.Location{URL: "https://git.example.com/platform/gitops", Branch: "dev"},
	}
	for name, change := range map[string]func(*unstructured.Unstructured){
		"another manager":      func(o *unstructured.Unstructured) { o.SetLabels(nil) },
		"another cluster type": func(o *unstructured.Unstructured) { o.SetLabels(with(o.GetLabels(), reconciler.TypeLabel, "x")) },
		"another name":         func(o *unstructured.Unstructured) { o.SetName("mine") },
		"no path":              func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "spec", "path") },
		"no source":            func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "spec", "url") },
		"no spec":              func(o *unstructured.Unstructured) { o.Object["spec"] = "text" },
	} {
		live := objectsOf(t, settings)
		for _, one := range live {
			change(one)
		}
		if got := readAll("edge-1", live); len(got) > 0 {
			t.Errorf("%s: read is %+v", name, got)
		}
	}
}

// FuzzRead reads any objects. Render accepts all settings that it returns.
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
			for _, problem := range refusedBy(found) {
				t.Errorf("of %s it is read %+v: %s", text, found, problem)
			}
			// HCL reads "${" and "%{" in a text as the beginning of a template.
			if values := fmt.Sprintf("%+v", found); strings.Contains(values, "${") || strings.Contains(values, "%{") || !wording.IsLine(values) {
				t.Errorf("of %s it is read %q", text, values)
			}
			if found.Cluster != "edge-1" || found.ClusterType == "" || found.Repository.URL == "" || found.Repository.Branch == "" {
				t.Errorf("of %s it is read %+v", text, found)
			}
		}
	})
}

func with(labels map[string]string, key, value string) map[string]string {
	changed := map[string]string{}
	for name, text := range labels {
		changed[name] = text
	}
	changed[key] = value
	return changed
}

// refusedBy are the problems of settings, other than credentials that the objects do not show.
func refusedBy(settings agent.Settings) (texts []string) {
	_, problems := agent.Render(settings)
	for _, problem := range problems {
		if !problem.Warning && !strings.HasPrefix(problem.Path, "credentials.") {
			texts = append(texts, problem.String())
		}
	}
	return texts
}

// readAll reads the agents, of which none is refused.
func readAll(cluster string, live []*unstructured.Unstructured) []agent.Settings {
	found, refused := agent.Read(cluster, live)
	if len(refused) > 0 {
		panic(refused[0].String())
	}
	return found
}
