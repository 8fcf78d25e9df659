package provider_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// workloadSecretsConfig reads its config containers from a file, because Terraform prints lines of a configuration with errors. It
// has every reader of a fleet: page, metrics, snapshots and differences.
func workloadSecretsConfig(repository string) string {
	return requiredProviders + `
locals {
  fleet = provider::flotilla::fleet({
    environment       = "dev"
    workspaces        = [{ name = "shop" }]
    cluster_types     = [{ name = "edge", reconciler = "flux", secret_service = "external-secrets", secret_stores = { vault = {} }, decryption = { secret = "sops-age" } }]
    workloads         = [{ name = "web", workspace = "shop", deployment_targets = { live = { environment = "dev", namespace = "shop", manifests = { repo = "https://git.example.com/web", tag = "v1", path = "./deploy" } } } }]
    target_policies   = [{ name = "all", deployment_target_selector = {}, cluster_type_selector = {} }]
    config_containers = jsondecode(file("${path.module}/containers.json"))
    config_schemas    = fileexists("${path.module}/schema.json") ? [{ name = "schema", schema = file("${path.module}/schema.json") }] : []
  })
  repo = { url = "` + filepath.ToSlash(repository) + `", branch = "dev" }
}
resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.repo
}
data "flotilla_diff" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.repo
}
data "flotilla_compliance" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.repo
  feedback    = {}
}
data "flotilla_config_snapshots" "dev" {
  fleet = local.fleet
}
data "flotilla_overview" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.repo
  evidence    = data.flotilla_compliance.dev.evidence
  show_values = true
}
output "all" {
  value = [data.flotilla_diff.dev.diff, data.flotilla_overview.dev.html, data.flotilla_overview.dev.markdown, data.flotilla_compliance.dev.metrics, data.flotilla_config_snapshots.dev.snapshots]
}
`
}

// TestSecretsOfWorkloadsAppearNowhere sets secrets in each refused form, and in an encrypted file.
func TestSecretsOfWorkloadsAppearNowhere(t *testing.T) {
	requireAcceptance(t)
	sops := readFile(t, filepath.Join("testdata", "canary.sops.yaml")) // the canary below, encrypted for a lost key
	type object = map[string]any
	reference := object{"store": "vault", "key": "prod/db", "property": "password", "version": "3"}
	canaries := map[string]string{"encrypted": "cAn4ry-encrypted-7f3a91"}
	canary := func(name string) string {
		canaries[name] = "cAn4ry-" + strings.ReplaceAll(name, " ", "-") + "-7f3a91"
		return canaries[name]
	}
	refused := map[string]struct {
		containers []any
		schema     string
		want       string
	}{
		"a literal": {
			[]any{object{"name": "db", "data": object{"DB_PASSWORD": canary("a literal")}}},
			"",
			`config_containers["db"].data.DB_PASSWORD: looks like a credential (rule password)`,
		},
		"a nested literal": {
			[]any{object{"name": "db", "data": object{"db": object{"users": []any{object{"token": canary("nested")}}}}}},
			"",
			`config_containers["db"].data.db.users[0].token: looks like a credential`,
		},
		"a text": {
			[]any{object{"name": "db", "data": object{"app.yaml": "db:\n  password: " + canary("text") + "\n"}}},
			"",
			`config_containers["db"].data.app.yaml: looks like a credential in line 2`,
		},
		"an address": {
			[]any{object{"name": "db", "data": object{"URL": "postgres://shop:" + canary("address") + "@db.example.com/shop"}}},
			"",
			`config_containers["db"].data.URL: looks like a credential (rule password-in-url)`,
		},
		"a value instead of a reference": {
			[]any{object{"name": "db", "data": object{}, "secrets": object{"DB_PASSWORD": canary("no reference")}}},
			"",
			`config_containers["db"].secrets["DB_PASSWORD"]: must be a reference`,
		},
		"a value beside a reference": {
			[]any{object{"name": "db", "secrets": object{"DB_PASSWORD": object{"store": "vault", "key": "db", "value": canary("beside")}}}},
			"",
			`config_containers["db"].secrets["DB_PASSWORD"].value: unknown attribute`,
		},
		"a plain file": {
			[]any{
				object{
					"name": "db",
					"encrypted": []any{
						"apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\nstringData:\n  PASSWORD: " + canary("plain file") + "\n",
					},
				},
			},
			"",
			`config_containers["db"].encrypted[0]: `,
		},
		"a plain leaf": {
			[]any{
				object{"name": "db", "encrypted": []any{strings.Replace(sops, "stringData:\n", "stringData:\n    LEFT: "+canary("leaf")+"\n", 1)}},
			},
			"",
			`config_containers["db"].encrypted[0]: `,
		},
		"invalid YAML": {
			[]any{object{"name": "db", "encrypted": []any{"a: [" + canary("no YAML") + "\nb: " + canary("no YAML either") + ": {"}}},
			"",
			`config_containers["db"].encrypted[0]: `,
		},
		"one key in data and secrets": {
			[]any{
				object{"name": "db", "data": object{"NOTE": canary("both")}},
				object{"name": "vault", "secrets": object{"NOTE": reference}},
			}, "", `NOTE`,
		},
		"a value for a secret of a schema": {
			[]any{object{"name": "db", "data": object{"NOTE": canary("schema")}}}, `{"properties": {"NOTE": {"format": "secret"}}}`, `NOTE`,
		},
	}
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			repository := filepath.Join(t.TempDir(), "gitops.git")
			w := newWorkdir(t, tool, map[string]string{"main.tf": workloadSecretsConfig(repository)})
			writeInput := func(containers []any, schema string) {
				text, err := json.Marshal(containers)
				if err != nil {
					t.Fatal(err)
				}
				writeFile(t, filepath.Join(w.path, "containers.json"), string(text))
				writeFile(t, filepath.Join(w.path, "schema.json"), cmp.Or(schema, "{}"))
			}
			for i, name := range slices.Sorted(maps.Keys(refused)) {
				writeInput(refused[name].containers, refused[name].schema)
				printed, err := w.runTraced(t, fmt.Sprint("refused-", i), "plan", "-input=false", "-no-color", "-out=refused.out")
				if plain := strings.Join(strings.Fields(strings.ReplaceAll(printed, "│", "")), " "); err == nil ||
					!strings.Contains(plain, refused[name].want) {
					t.Errorf("%s: %v\n%s", name, err, printed)
				}
			}
			resource := filepath.Join(w.path, "resource.tf")
			writeFile(
				t,
				resource,
				"resource \"flotilla_config_container\" \"db\" {\n  name = \"db\"\n  data = jsondecode(file(\"${path.module}/resource.json\"))\n}\n",
			)
			writeFile(t, filepath.Join(w.path, "resource.json"), `{"DB_PASSWORD": "`+canary("resource")+`"}`)
			writeInput(nil, "")
			printed, err := w.runTraced(t, "refused-resource", "plan", "-input=false", "-no-color", "-out=refused.out")
			if err == nil || !strings.Contains(printed, "data.DB_PASSWORD") && !strings.Contains(printed, "DB_PASSWORD: looks like a credential") {
				t.Errorf("flotilla_config_container with a secret: %v\n%s", err, printed)
			}
			if err := os.Remove(resource); err != nil {
				t.Fatal(err)
			}
			writeInput([]any{
				object{"name": "db", "data": object{"HOST": "db.example.com", "DB_PASSWORD": "all0wed-7f3a91"}, "allow_plain": []any{"DB_PASSWORD"}},
				object{"name": "vault", "labels": object{"workload": "web"}, "secrets": object{"DB_TOKEN": reference}, "encrypted": []any{sops}},
			}, `{"required": ["DB_TOKEN"], "properties": {"DB_TOKEN": {"format": "secret"}}}`)
			for i, arguments := range [][]string{
				{"plan", "-input=false", "-out=plan.out"}, {"apply", "-input=false", "plan.out"}, {"plan", "-input=false", "-out=after.out"}, {"show", "-json", "after.out"}, {"output", "-json"},
			} {
				if printed, err := w.runTraced(t, fmt.Sprint("good-", i), arguments...); err != nil {
					t.Fatalf("%s: %v\n%s", arguments[0], err, printed)
				}
			}
			writeFile(t, filepath.Join(w.path, "commits.txt"), git(t, repository, "log", "-p", "--format=fuller", "dev"))
			checkNoSecrets(t, w.path, canaries)
			committed := readFile(t, filepath.Join(w.path, "commits.txt"))
			for _, want := range []string{"platform-secrets.yaml", "kind: ExternalSecret", "prod/db", "encrypted-db.yaml", "ENC[AES256_GCM", "DB_PASSWORD: all0wed-7f3a91"} {
				if !strings.Contains(committed, want) {
					t.Errorf("the commits do not contain %q", want)
				}
			}
		})
	}
}

// Terraform prints values of variables in errors, and no provider can prevent that. It hides values of sensitive variables, but saves
// them in plans.
func TestTerraformPrintsNoSensitiveVariableThatLooksLikeACredential(t *testing.T) {
	requireAcceptance(t)
	for name, tool := range acceptanceTools(t) {
		for _, isSensitive := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%t", name, isSensitive), func(t *testing.T) {
				const canary = "cAn4ry-variable-7f3a91"
				w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders + fmt.Sprintf(`
variable "password" {
  type      = string
  sensitive = %t
}
locals {
  fleet = provider::flotilla::fleet({
    environment       = "dev"
    config_containers = [{ name = "db", data = { DB_PASSWORD = var.password } }]
  })
}
output "format" {
  value     = local.fleet.format
  sensitive = true
}
`, isSensitive)})
				w.environment = append(w.environment, "TF_VAR_password="+canary)
				printed, err := w.runTraced(t, "refused", "plan", "-input=false", "-no-color")
				if err == nil || !strings.Contains(printed, "DB_PASSWORD: looks like a credential") ||
					strings.Contains(printed, canary) == isSensitive {
					t.Errorf("%v\n%s", err, printed)
				}
				if isSensitive {
					checkNoSecrets(t, w.path, map[string]string{"a variable": canary})
				}
			})
		}
	}
}
