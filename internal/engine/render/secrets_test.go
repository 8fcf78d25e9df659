package render_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kinds "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

func TestAKubernetesAPIAcceptsTheObjectsOfSecretServices(t *testing.T) {
	acceptancetest.Only(t)
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
			server.Apply(t, string(content)) // server-side apply refuses unknown fields
		}
	}
	for resource, wrong := range map[string]*unstructured.Unstructured{
		"external-secrets.io/v1/externalsecrets": {Object: map[string]any{
			"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "metadata": map[string]any{"name": "wrong"}, "spec": map[string]any{"store": "vault"},
		}},
		"secrets-store.csi.x-k8s.io/v1/secretproviderclasses": {Object: map[string]any{
			"apiVersion": "secrets-store.csi.x-k8s.io/v1", "kind": "SecretProviderClass", "metadata": map[string]any{"name": "wrong"}, "spec": map[string]any{"store": "vault"},
		}},
	} {
		parts := strings.Split(resource, "/")
		resources := server.Client().
			Resource(kinds.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}).
			Namespace("flux-system")
		if _, err := resources.Apply(t.Context(), "wrong", wrong, metav1.ApplyOptions{FieldManager: "test"}); err == nil ||
			!strings.Contains(err.Error(), "store") {
			t.Errorf("%s with an unknown field: got error %v", resource, err)
		}
	}
}

// Render writes similar folders from one shape. The key of a shape must contain each difference between folders.
func TestFoldersWithSecretsFitTheirClusterTypeAndName(t *testing.T) {
	d := deployment{secretService: "external-secrets", stores: stores, secrets: vaultSecrets, manifests: helmChart}
	f := d.fleet()
	for i, store := range []fleet.SecretStore{{Name: "second"}, {Kind: "SecretStore"}} {
		f.ClusterTypes = append(f.ClusterTypes, f.ClusterTypes[0])
		f.ClusterTypes[i+1].Name, f.ClusterTypes[i+1].SecretStores = []string{"second", "third"}[i], map[string]fleet.SecretStore{"vault": store}
	}
	shared := compile(t, f)
	targets := make([]fleet.DeploymentTarget, 4)
	for i, forms := range []fleet.ConfigAs{nil, {"configmap", "secret:other"}, {"secret", "values"}, {"values:a"}} {
		targets[i] = f.Workloads[0].DeploymentTargets[0]
		targets[i].Manifests.ConfigAs = forms
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		subject := d.subject(f)
		n := random.IntN(len(targets))
		clusterType, target := &f.ClusterTypes[random.IntN(3)], &targets[n]
		subject.Assignment.Namespace = []string{"n1", "n2"}[random.IntN(2)]
		subject.Assignment.Host = &schedule.Host{Name: clusterType.Name, ClusterType: clusterType}
		subject.Assignment.Target = &schedule.Target{Name: fmt.Sprint("hello-", n), Workload: &f.Workloads[0], Target: target}
		if random.IntN(2) == 0 {
			subject.ConfigVersion, subject.Secrets = "other", map[string]fleet.SecretReference{"A": {Store: "vault", Key: "a"}}
		}
		alone := compile(t, f)
		got, err := shared.Render(subject)
		want, wrong := alone.Render(subject)
		if got, want := contents(got, err), contents(want, wrong); !slices.Equal(got, want) || len(got) == 0 {
			t.Fatalf("%s, %v\ngot  %q\nwant %q", clusterType.Name, target.Manifests.ConfigAs, got, want)
		}
		if found := shared.Check(subject, got); found != nil {
			t.Fatal(found)
		}
	}
}

func TestATemplateOfTypeSecretSeesTheReferences(t *testing.T) {
	own := fleet.Template{Type: "secret", Name: "own", ContentType: "text", Manifests: []string{
		"{{ .SecretName }}: {{ range .Secrets }}{{ .key }} {{ .store }} {{ .storeName }} {{ .storeKind }} {{ .provider }} {{ .parameters.a }} {{ .remoteKey }} {{ .property }} {{ .version }}\n{{ end }}",
	}}
	d := deployment{
		secretService: "own", templates: []fleet.Template{own}, secrets: vaultSecrets,
		stores: map[string]fleet.SecretStore{"vault": {Name: "v", Provider: "p", Parameters: map[string]string{"a": "b"}}},
	}
	const want = "platform-secrets: DB_PASSWORD vault v ClusterSecretStore p b prod/db password 3\ntls.crt vault v ClusterSecretStore p b it's \"quoted\" {{ .Namespace }}  \n"
	if got := d.render(t)["platform-secrets.txt"]; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	d.secrets = nil
	if files := d.render(t); files["platform-secrets.txt"] != "" {
		t.Error(files)
	}
}

// A reference replaces a parameter only if its secret is among the values.
func TestAParameterStaysUnlessASecretReplacesIt(t *testing.T) {
	chart := withParameters(helmChart, parseObject(t, `{"values": {"DB_PASSWORD": "from-parameters"}}`))
	for reconciler, stays := range map[string]bool{"flux": false, "fleet": false, "argocd": true, "argocd-hub": true} {
		d := deployment{
			reconciler: reconciler, secretService: "external-secrets", stores: stores, secrets: vaultSecrets, manifests: chart, configAs: fleet.ConfigAs{"secret", "values"},
		}
		if file := d.render(t)["reconciler.yaml"]; strings.Contains(file, "from-parameters") != stays {
			t.Errorf("%s:\n%s", reconciler, file)
		}
	}
}
