package render_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/kubetest"
)

func TestAKubernetesAPITakesTheObjectsOfSecretServices(t *testing.T) {
	server := kubetest.Start(t, kubetest.Options{Secrets: true})
	files, err := filepath.Glob(filepath.Join("testdata", "builtin", "*", "platform-secrets.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	server.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: dev-drone-hello-dev}}")
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(file)
		server.Apply(t, string(content)) // server-side apply refuses fields that the kind does not have
	}
}
