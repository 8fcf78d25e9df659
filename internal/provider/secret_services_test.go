package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
)

// checkManifests passes the files of flotilla_manifests for the fleet of an example to check.
func checkManifests(t *testing.T, example string, check func(files map[string]string)) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "secrets", example, "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	config, _, _ := strings.Cut(string(text), "\nresource ")
	testSteps(t, resource.TestCase{ProtoV6ProviderFactories: factories(), Steps: []resource.TestStep{{
		Config: config + "\ndata \"flotilla_manifests\" \"all\" {\n  fleet = local.fleet\n  name = \"prod\"\n}\n",
		Check: func(state *terraform.State) error {
			files := map[string]string{}
			for name, content := range state.RootModule().Resources["data.flotilla_manifests.all"].Primary.Attributes {
				if path, ok := strings.CutPrefix(name, "files."); ok {
					files[path] = content
				}
			}
			check(files)
			return nil
		},
	}}})
}

func TestManifestsShowTheObjectsOfSecretServices(t *testing.T) {
	t.Parallel()
	expectParts := func(files map[string]string, path string, wanted ...string) {
		for _, want := range wanted {
			if !strings.Contains(files[path], want) {
				t.Errorf("%s has no %q:\n%s", path, want, files[path])
			}
		}
	}
	checkManifests(t, "external-secrets", func(files map[string]string) {
		expectParts(
			files,
			"edge/till-live/platform-secrets.yaml",
			"kind: ExternalSecret",
			`name: "platform-secrets"`,
			`name: "vault"`,
			`name: "key-vault-eu"`,
			`version: "3"`,
		)
		expectParts(files, "store/till-live/platform-secrets.yaml", `name: "vault-of-store"`, `name: "key-vault-us"`)
		expectParts(
			files,
			"edge/cache-live/platform-secrets.yaml",
			`name: "redis"`,
			"namespace: \"flux-system\"",
			`"DB_PASSWORD": {{ index . "DB_PASSWORD" | toJson }}`,
		)
		expectParts(files, "edge/cache-live/reconciler.yaml", "valuesFrom:", `name: "prod-edge-cache-live-platform-values"`)
	})
	checkManifests(t, "csi", func(files map[string]string) {
		expectParts(
			files,
			"edge/till-live/platform-secrets.yaml",
			"kind: SecretProviderClass",
			`provider: "azure"`,
			"keyvaultName: shop-eu",
			`objectName: "db-password"`,
		)
		expectParts(files, "store/till-live/platform-secrets.yaml", `provider: "gcp"`, `"projects/shop-us/secrets/db-password/versions/latest"`)
	})
}

func TestReferencesThatCannotBeDeliveredFailThePlan(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "secrets", "external-secrets", "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	config, _, _ := strings.Cut(string(text), "\nresource ")
	wrong := strings.NewReplacer(
		`{ name = "store", secret_service = "external-secrets",`, `{ name = "store", reconciler = "argocd", secret_service = "external-secrets",`,
		`"values:auth", "secret:redis"`, `"values:auth"`, `store = "vault", key`, `store = "valut", key`,
	).Replace(config) + "\ndata \"flotilla_manifests\" \"all\" {\n  fleet = local.fleet\n  name = \"prod\"\n}\n"
	for _, want := range []string{
		`config_containers["all"].secrets["DB_PASSWORD"].store: cluster type "edge" has no store "valut" among its secret_stores; did you mean "vault"?`,
		`config_containers["all"].secrets["DB_PASSWORD"].store: cluster type "store" has no store "valut" among its secret_stores; did you mean "vault"?`,
		`workloads["cache"].deployment_targets["live"].config_as: "values" cannot have the references to secrets on cluster type "store": Argo CD renders charts before`,
	} {
		testSteps(
			t,
			resource.TestCase{
				ProtoV6ProviderFactories: factories(),
				Steps:                    []resource.TestStep{{Config: wrong, PlanOnly: true, ExpectError: words(want)}},
			},
		)
	}
}
