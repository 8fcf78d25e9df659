package render_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/kubetest"
)

func TestAKubernetesAPITakesTheObjectsOfSecretServices(t *testing.T) {
	server := kubetest.Start(t, kubetest.Options{Agents: true, Secrets: true})
	files, err := filepath.Glob(filepath.Join("testdata", "builtin", "*", "platform-secrets.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, namespace := range []string{"dev-drone-hello-dev", "flux-system", "fleet-local", "argocd"} {
		server.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")
	}
	for _, file := range files {
		for _, name := range []string{file, filepath.Join(filepath.Dir(file), "reconciler.yaml")} {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(name)
			server.Apply(t, string(content)) // server-side apply refuses fields that the kind does not have
		}
	}
}
