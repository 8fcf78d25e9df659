package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// smallSettings returns the settings of a cluster that reads a repository without credentials.
func smallSettings(reconciler string) agent.Settings {
	return agent.Settings{
		Cluster: "store-17", ClusterType: "store", Reconciler: reconciler,
		Repository: folder.Location{URL: "https://git.example.com/platform/gitops", Branch: "dev", Path: "fleet"},
	}
}

// renderObjects returns the objects of settings, and reports problems as errors.
func renderObjects(t *testing.T, settings agent.Settings) []agent.StagedObject {
	t.Helper()
	objects, problems := agent.Render(settings)
	for _, problem := range problems {
		t.Error(problem)
	}
	return objects
}

// listNames returns stage, part and identity of the objects, one object per line.
func listNames(objects []agent.StagedObject) string {
	var lines []string
	for i := range objects {
		lines = append(lines, objects[i].Stage.String()+" "+string(objects[i].Part)+" "+objects[i].ID().String())
	}
	return strings.Join(lines, "\n")
}

func TestFluxFollowsTheFoldersOfTheTypeAndOfTheCluster(t *testing.T) {
	objects := renderObjects(t, smallSettings("flux"))
	want := strings.Join([]string{
		"namespaces source Namespace flux-system",
		"rest source GitRepository flux-system/flotilla",
		"rest root Kustomization flux-system/flotilla-cluster-type",
		"rest root Kustomization flux-system/flotilla-cluster",
	}, "\n")
	if got := listNames(objects); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFluxDecryptsTheFolders(t *testing.T) {
	for want, decryption := range map[string]*fleet.Decryption{
		"map[]":              nil,
		"map[provider:sops]": {},
		"map[provider:sops secretRef:map[name:sops-age]]":                         {Secret: "sops-age"},
		"map[provider:sops secretRef:map[name:sops-age] serviceAccountName:sops]": {Secret: "sops-age", ServiceAccount: "sops"},
	} {
		settings := smallSettings("flux")
		settings.Decryption = decryption
		for _, object := range renderObjects(t, settings) {
			if object.GetKind() != "Kustomization" {
				continue
			}
			if got, found, _ := unstructured.NestedMap(object.Object, "spec", "decryption"); fmt.Sprint(got) != want ||
				found != (decryption != nil) {
				t.Errorf("%s has %v, want %s", object.ID(), got, want)
			}
		}
	}
}
