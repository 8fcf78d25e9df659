package provider_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
)

const secretsGuide = "secrets.md.tmpl"

// TestTheGuideToSecretsOfWorkloadsHolds checks the files of the Vault example, the absence of secrets in its state, and errors at plan.
func TestTheGuideToSecretsOfWorkloadsHolds(t *testing.T) {
	t.Parallel()
	requireAcceptance(t)
	url := bare(t)
	vault := strings.ReplaceAll(guideExample(t, secretsGuide, "examples/secrets/vault/main.tf"), `"gitops.git"`, strconv.Quote(url))
	requireText := func(path string, words ...string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			text := git(t, url, "show", "prod:"+path)
			for _, word := range words {
				if part, isAbsent := strings.CutPrefix(word, "!"); strings.Contains(text, part) == isAbsent {
					t.Errorf("%s contains %q: got %t, want %t:\n%s", path, part, isAbsent, !isAbsent, text)
				}
			}
			return nil
		}
	}
	const version = `property = "password", version = "3"`
	steps := []resource.TestStep{{
		Config: vault,
		Check: resource.ComposeTestCheckFunc(
			requireText(
				"east/till-live/platform-secrets.yaml",
				"kind: ExternalSecret",
				`name: "platform-secrets"`,
				`kind: "ClusterSecretStore"`,
				`name: "vault-east"`,
				`key: "prod/db"`,
				`version: "3"`,
			),
			requireText("west/till-live/platform-secrets.yaml", `kind: "SecretStore"`, `name: "vault"`, `key: "west/db"`, `version: "1"`, "!prod/db"),
			requireText("east/search-live/platform-secrets.yaml", `name: "search-credentials"`, "values.yaml"),
			requireText("west/search-live/platform-secrets.yaml", `name: "search-credentials"`, "!values.yaml"),
			requireText("east/till-live/platform-config.yaml", "PARTNER_TOKEN: test-only-7f3a91", "!DB_PASSWORD"),
			func(state *terraform.State) error {
				for address, resource := range state.RootModule().Resources {
					for attribute, value := range resource.Primary.Attributes {
						if strings.Contains(value, "prod/db") || strings.Contains(value, "test-only") {
							t.Errorf("%s.%s has %s", address, attribute, value)
						}
					}
				}
				return nil
			},
		),
	}, {
		Config: strings.Replace(vault, version, `property = "password", version = "4"`, 1),
		Check: resource.ComposeTestCheckFunc(
			requireText("east/till-live/platform-secrets.yaml", `version: "4"`),
			requireText("west/till-live/platform-secrets.yaml", `version: "1"`),
		),
	}}
	for _, test := range []struct{ old, new, want string }{
		{`data    = { DB_HOST = "db.example.com" }`, `data = { DB_HOST = "db.example.com", DB_PASSWORD = "see vault" }
        allow_plain = ["DB_PASSWORD"]`, `DB_PASSWORD`},
		{`secrets = { DB_PASSWORD = { store = "vault", key = "west/db", property = "password", version = "1" } }`, `data = { DB_PASSWORD = "$${LATER}" }`, `DB_PASSWORD`},
		{`store = "vault", key = "prod/db"`, `store = "vaults", key = "prod/db"`, `config_containers["database"].secrets["DB_PASSWORD"].store: cluster type "east" has no store "vaults" among its secret_stores; did you mean "vault"?`},
		{`        secret_service = "external-secrets"
        secret_stores  = { vault = { name = "vault-east" } } # "vault" in references, and "vault-east" on these clusters
`, "", `cluster_types["east"].secret_service: is not set, and config container "database" has references to secrets for assignments there`},
		{`"values", "secret:search-credentials"`, `"values"`, `config_as: "values" cannot have the references to secrets on cluster type "west": Argo CD renders charts before they are on a cluster, and reads no Secrets there. Add "secret", and let the chart use the existing Secret "platform-secrets"`},
		{`"values", "secret:search-credentials"`, `"substitute"`, `config_as`},
		{`allow_plain = ["PARTNER_TOKEN"] # a token for their public test server`, "", `config_containers["partners"].data.PARTNER_TOKEN: looks like a credential (rule password), and plain values are committed as they are: give a reference to it in secrets of a config container, or an encrypted file; if it is none, add allow_plain = ["PARTNER_TOKEN"]`},
	} {
		if !strings.Contains(vault, test.old) {
			t.Fatalf("the example has no %q", test.old)
		}
		steps = append(
			steps,
			resource.TestStep{Config: strings.Replace(vault, test.old, test.new, 1), PlanOnly: true, ExpectError: words(test.want)},
		)
	}
	steps = append(steps, resource.TestStep{Config: vault})
	testSteps(t, resource.TestCase{ProtoV6ProviderFactories: factories(), Steps: steps})
}

// TestTheGuideToSecretsOfWorkloadsHoldsForStoresOfClouds checks that several stores fill one Secret, and that each cluster type reads
// the same reference from its own provider.
func TestTheGuideToSecretsOfWorkloadsHoldsForStoresOfClouds(t *testing.T) {
	t.Parallel()
	requireAcceptance(t)
	for name, test := range map[string]struct {
		want       map[string][]string // by folder
		old, wrong string
		message    string
	}{
		"external-secrets": {
			map[string][]string{
				"edge":  {"kind: ExternalSecret", `name: "vault"`, `name: "key-vault-eu"`},
				"store": {"kind: ExternalSecret", `name: "vault-of-store"`, `name: "key-vault-us"`},
			},
			`store = "cloud"`, `store = "clouds"`, `config_containers["all"].secrets["API_TOKEN"].store: cluster type "edge" has no store "clouds" among its secret_stores; did you mean "cloud"?`,
		},
		"csi": {
			map[string][]string{
				"edge":  {"kind: SecretProviderClass", "keyvaultName: shop-eu"},
				"store": {"kind: SecretProviderClass", "projects/shop-us/secrets/db-password/versions/latest"},
			},
			`key = "db-password"`, `key = "db-password", property = "password"`,
			`config_containers["all"].secrets["DB_PASSWORD"].property: is not possible with the provider azure, which reads whole secrets; cluster type "edge" has it for store "shop"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := bare(t)
			config := strings.ReplaceAll(guideExample(t, secretsGuide, "examples/secrets/"+name+"/main.tf"), `"gitops.git"`, strconv.Quote(url))
			testSteps(t, resource.TestCase{ProtoV6ProviderFactories: factories(), Steps: []resource.TestStep{{
				Config: strings.Replace(config, test.old, test.wrong, 1), PlanOnly: true, ExpectError: words(test.message),
			}, {
				Config: config,
				Check: func(*terraform.State) error {
					for host, words := range test.want {
						text := git(t, url, "show", "prod:"+host+"/till-live/platform-secrets.yaml")
						for _, word := range words {
							if !strings.Contains(text, word) {
								t.Errorf("%s: no %q in\n%s", host, word, text)
							}
						}
					}
					return nil
				},
			}}})
		})
	}
}
