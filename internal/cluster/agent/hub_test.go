package agent_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
)

func TestClustersOfATypeShareObjectsOnAHub(t *testing.T) {
	for name, credentials := range map[string]agent.Credentials{
		"with a token": {Token: "secret"}, "without credentials": {}, "with a CA": {Token: "secret", CACertificates: certificate},
	} {
		settings := smallSettings("argocd-hub")
		settings.Environment, settings.Credentials = "dev", credentials
		settings.Registration = &agent.Registration{Server: "https://store-17.example.com", Token: "secret"}
		shared := map[string]bool{
			"ApplicationSet argocd/flotilla-dev-store": true, "Application argocd/flotilla-dev-store-hub": true, "AppProject argocd/flotilla": true, "Secret argocd/flotilla-repository": true,
			"Application argocd/flotilla-dev-clusters-store-17": false, "Application argocd/flotilla-dev-clusters-store-17-hub": false, "Secret argocd/flotilla-dev-clusters-store-17": false,
		}
		if credentials.Token == "" {
			delete(shared, "Secret argocd/flotilla-repository")
		}
		for _, object := range renderObjects(t, settings) {
			id := strings.TrimSuffix(object.ID().String(), " on the hub")
			if want, isListed := shared[id]; isListed && object.Shared != want {
				t.Errorf("%s: got %s shared: %v, want %v", name, id, object.Shared, want)
			}
			delete(shared, id)
		}
		if len(shared) > 0 {
			t.Errorf("%s: %v are missing", name, shared)
		}
	}
}

// An existing Secret gets the labels that ApplicationSets select the cluster by. No second Secret registers the cluster.
func TestAnExistingSecretRegistersTheCluster(t *testing.T) {
	settings := smallSettings("argocd-hub")
	settings.Environment, settings.Registration = "dev", &agent.Registration{Secret: "cluster-17"}
	var secrets []string
	for _, object := range renderObjects(t, settings) {
		if object.GetKind() != "Secret" {
			continue
		}
		secrets = append(secrets, object.ID().String())
		want := map[string]string{
			"flotilla.dev/agent": "flotilla", "flotilla.dev/cluster": "store-17", "flotilla.dev/cluster-type": "store",
			"flotilla.dev/environment": "dev",
		}
		if !object.Partial || !maps.Equal(object.GetLabels(), want) || len(object.Object) != 3 {
			t.Errorf("the Secret is partial: %v; it has %v", object.Partial, object.Object)
		}
	}
	if want := []string{"Secret argocd/cluster-17 on the hub"}; !slices.Equal(secrets, want) {
		t.Errorf("got the Secrets %q, want %q", secrets, want)
	}
}
