package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
)

// words returns a pattern of a message that Terraform may wrap anywhere.
func words(message string) *regexp.Regexp {
	parts := strings.Fields(message)
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return regexp.MustCompile(`(?i)` + strings.Join(parts, `[\s│|]+`))
}

func TestBadFleetIsRefusedAtPlan(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ fleet, want string }{
		"misspelt key":        {`cluster_type = []`, `cluster_type: unknown attribute; did you mean "cluster_types"?`},
		"misspelt labels":     {`cluster_types = [{ name = "drone", lables = {} }]`, `cluster_types["drone"].lables: unknown attribute; did you mean "labels"?`},
		"misspelt in a map":   {`cluster_types = { a = { name = "drone", lables = {} } }`, `cluster_types["a"].lables: unknown attribute; did you mean "labels"?`},
		"invalid label":       {`cluster_types = [{ name = "drone", labels = { "a b" = "c" } }]`, `"a b" is not the key of a label`},
		"unknown type":        {`clusters = [{ name = "c", cluster_type = "dorne" }], cluster_types = [{ name = "drone" }]`, `no cluster type of environment "dev" is called "dorne"; did you mean "drone"?`},
		"unknown template":    {`cluster_types = [{ name = "drone", reconciler = "flex" }]`, `no template of type reconciler is called "flex"; did you mean "flux"?`},
		"unknown workspace":   {`workloads = [{ name = "app", workspace = "nobody", deployment_targets = { t = { environment = "dev", manifests = { repo = "https://r" } } } }]`, `no workspace of environment "dev" is called "nobody"`},
		"unknown environment": {`environments = ["dev", "stage"], cluster_types = [{ name = "drone", environment = "sage" }]`, `no environment is called "sage"; did you mean "stage"?`},
		"no host selector":    {`target_policies = [{ name = "p" }]`, `a target policy without a host selector selects no host`},
		"bad expression":      {`target_policies = [{ name = "p", cluster_type_selector = { expression = "a=b, region in" } }]`, `at character 6, "region in"`},
		"two mistakes":        {`clusters = [{ nam = "c" }], workloads = [{ name = "B" }]`, `clusters[0].cluster_type: is required clusters[0].nam: unknown attribute; did you mean "name"? clusters[0].name: is required`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testSteps(t, resource.TestCase{
				Steps: []resource.TestStep{{
					Config:      fmt.Sprintf("output \"fleet\" {\n  value = provider::flotilla::fleet({ environment = \"dev\", %s })\n}\n", test.fleet),
					PlanOnly:    true,
					ExpectError: words(test.want),
				}},
			})
		})
	}
}

func TestMisspeltKeyInsideAResourceIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ config, want string }{
		"deployment target": {
			`resource "flotilla_workload" "x" {
  name      = "app"
  workspace = "team"
  deployment_targets = { t = { environment = "dev", lables = { a = "b" }, manifests = { repo = "https://r" } } }
}`, `deployment_targets["t"].lables: unknown attribute; did you mean "labels"?`,
		},
		"selector": {
			`resource "flotilla_target_policy" "x" {
  name                  = "p"
  environment           = "dev"
  cluster_type_selector = { match_lables = { a = "b" } }
}`, `cluster_type_selector.match_lables: unknown attribute; did you mean "match_labels"?`,
		},
		"repository": {
			`resource "flotilla_environment" "x" {
  name        = "dev"
  gitops_repo = { url = "x.git", branch = "dev", pth = "clusters" }
}`, `gitops_repo.pth: unknown attribute; did you mean "path"?`,
		},
		"taint": {
			`resource "flotilla_cluster_type" "x" {
  name        = "drone"
  environment = "dev"
  taints      = [{ key = "a", vlaue = "b" }]
}`, `taints[0].vlaue: unknown attribute; did you mean "value"?`,
		},
		"credentials in the URL": {
			`resource "flotilla_environment" "x" {
  name        = "dev"
  gitops_repo = { url = "https://me:hunter2@git.example.com/x.git", branch = "dev" }
}`, `credentials`,
		},
		"invalid schema": {
			`resource "flotilla_config_schema" "x" {
  name   = "s"
  schema = jsonencode({ type = "nonsense" })
}`, `Schema is not a JSON Schema: at /type:`,
		},
		"schema that is not JSON": {
			`resource "flotilla_config_schema" "x" {
  name   = "s"
  schema = "{no"
}`, `Schema is not JSON: invalid character`,
		},
		"template that does not parse": {
			`resource "flotilla_template" "x" {
  name      = "mine"
  type      = "config"
  manifests = ["a: {{ .Namespace"]
}`, `Invalid template`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testSteps(t, resource.TestCase{
				Steps: []resource.TestStep{{Config: test.config, PlanOnly: true, ExpectError: words(test.want)}},
			})
		})
	}
}

func TestBadControlPlaneNamesDocumentAndLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"invalid YAML":  {"kind: A\n---\nkind: [\n", `documents["x.yaml"]: document 2, line`},
		"refused kind":  {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n", `kind Deployment of apps/v1 is not allowed in a control plane`},
		"misspelt spec": {"apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ClusterType\nmetadata: {name: x}\nspec: {reconcilr: flux}\n", `unknown attribute; did you mean "reconciler"?`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testSteps(t, resource.TestCase{
				Steps: []resource.TestStep{{
					Config: fmt.Sprintf(
						"output \"fleet\" {\n  value = provider::flotilla::control_plane(\"dev\", { \"x.yaml\" = %q })\n}\n",
						test.text,
					),
					PlanOnly:    true,
					ExpectError: words(test.want),
				}},
			})
		})
	}
}

func TestBadDeploymentIsRefusedAtPlanAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fleet small
		want  string
	}{
		"schema": {
			small{fleet: `config_schemas = [{ name = "types", labels = { workload = "app" }, schema = jsonencode({ properties = { DATABASE_URL = { type = "integer" } } }) }]`},
			`config container "large": /DATABASE_URL`,
		},
		"template that does not parse": {
			small{fleet: `templates = [{ name = "default", type = "namespace", manifests = ["a:\n  {{ if }}"] }]`},
			`templates["default"].manifests[0]: namespace template, line 2`,
		},
		"template that does not run": {
			small{fleet: `templates = [{ name = "default", type = "namespace", manifests = ["a:\n  {{ fail \"no\" }}"] }]`},
			`template "default"`,
		},
		"rendering that is not YAML": {
			small{fleet: `templates = [{ name = "default", type = "namespace", manifests = ["a: [\n"] }]`},
			`namespace.yaml`,
		},
		"missing value": {
			small{fleet: `templates = [{ name = "default", type = "namespace", manifests = ["a: {{ .ConfigData.NOTHING }}\n"] }]`},
			`NOTHING`,
		},
		"protection":        {small{extra: `protection = { max_remvoed = 3 }`}, `max_remvoed: unknown attribute; did you mean "max_removed"?`},
		"delivery":          {small{extra: `delivery = { mode = "mail" }`}, `mode: must be one of push, pull_request, not "mail"`},
		"misspelt delivery": {small{extra: `delivery = { mode = "pull_request", lables = [] }`}, `lables: unknown attribute; did you mean "labels"?`},
		"delivery by push":  {small{extra: `delivery = { mode = "push", merge = "now" }`}, `has no other settings`},
		"path":              {small{path: "../up"}, `Invalid GitOps repository`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := bareRepository(t)
			testSteps(t, resource.TestCase{
				Steps: []resource.TestStep{{Config: test.fleet.config(repo), ExpectError: words(test.want)}},
			})
			if _, err := os.Stat(repo.url); err == nil {
				t.Error("a repository was created")
			}
		})
	}
}

func TestWrongTokenIsAnErrorAtPlanThatDoesNotShowIt(t *testing.T) {
	t.Parallel()
	repo := giteaRepository(t)
	const canary = "canary-5d0c-token"
	repo.provider = fmt.Sprintf("provider \"flotilla\" {\n  git = { token = %q }\n}\n", canary)
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{{
			Config: small{}.config(repo), PlanOnly: true, ExpectError: words("Repository refuses the credentials"),
		}},
		ErrorCheck: func(err error) error {
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Error("the error shows the token")
			}
			return err
		},
	})
}

func TestUnreachableRepositoryIsAWarningOnlyWhileItMayBeCreated(t *testing.T) {
	t.Parallel()
	requireAcceptance(t)
	const address = "http://127.0.0.1:1/gitops.git"
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: small{}.config(repository{url: address}), PlanOnly: true, ExpectNonEmptyPlan: true},
			{Config: small{}.config(repository{url: address}), ExpectError: words("Repository cannot be reached")},
		},
	})
}

func TestFolderOfAnotherOwnerIsAnErrorAtPlan(t *testing.T) {
	t.Parallel()
	onEveryServer(t, func(t *testing.T, repo repository) {
		second := strings.NewReplacer(
			`"flotilla_assignment" "test"`,
			`"flotilla_assignment" "second"`,
			`name        = "dev"`,
			`name        = "other"`,
		)
		testSteps(t, resource.TestCase{
			Steps: []resource.TestStep{
				{Config: small{}.config(repo)},
				{
					Config: small{}.config(repo) + second.Replace(
						regexp.MustCompile(`(?s)resource "flotilla_assignment".*`).FindString(small{}.config(repo))),
					ExpectError: words(`Folder does not belong to this assignment`),
				},
				{
					Config: small{}.config(repo),
					Check: func(*terraform.State) error {
						if commits := repo.commits(t, "dev"); commits != 1 {
							t.Errorf("%d commits, want one", commits)
						}
						if _, err := os.Stat(filepath.Join(repo.clone(t, "dev"), ".flotilla", "other")); err == nil {
							t.Error("the other owner has records")
						}
						return nil
					},
				},
			},
		})
	})
}

// "${...}" with a single number is a number, despite its quotes.
func TestAnInterpolatedNumberAndAMisspeltKindAreReported(t *testing.T) {
	t.Parallel()
	const config = `
locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    cluster_types = [{ name = "edge", labels = { ring = %s } }]
    constraints   = [{ name = "rule", expression = "object.kind != ''", match = { kinds = ["apps/Deploymnt"] } }]
  })
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "main" }
}
`
	for _, tool := range acceptanceTools(t) {
		w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders + fmt.Sprintf(config, `"${length([1])}"`)})
		if _, message, err := w.try("plan", "-input=false", "-no-color"); err == nil ||
			!words(
				"must be a string, not a number: put it in quotes, since 1.10 would become 1.1; where it is a variable, write tostring(...)",
			).MatchString(message) {
			t.Errorf("got %s", message)
		}
		writeFile(t, filepath.Join(w.path, "main.tf"), requiredProviders+fmt.Sprintf(config, `tostring(length([1]))`))
		want := words(
			`Constraint["rule"].match.kinds: "apps/Deploymnt" is no kind that Flotilla knows, so that the rule may hold for nothing; did you mean "Deployment"?`,
		)
		if message := w.run("plan", "-input=false", "-no-color"); !want.MatchString(strings.ReplaceAll(message, "constraints[", "Constraint[")) {
			t.Errorf("got %s", message)
		}
	}
}
