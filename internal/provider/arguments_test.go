package provider_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func TestPlacementIsApplied(t *testing.T) {
	t.Parallel()
	const policy = "flotilla_target_policy.some"
	w := providertest.New(startProvider)
	configuration := providertest.Configuration{Resources: map[string]providertest.Resource{policy: {Attributes: map[string]any{
		"name": "some", "environment": "dev", "cluster_type_selector": map[string]any{},
		"placement": map[string]any{
			"number_of_hosts": 2,
			"prefer":          []any{map[string]any{"selector": map[string]any{"match_labels": map[string]any{"region": "west"}}, "weight": -7}},
			"spread":          []any{map[string]any{"key": "region", "max_skew": 2}},
		},
	}}}}
	apply(t, w, configuration)
	plan, _ := mustPlan(t, w, configuration)
	clusterType := func(name, region string) any {
		return map[string]any{"name": name, "labels": map[string]any{"region": region}}
	}
	fleet := providertest.Call{Function: "fleet", Arguments: []any{map[string]any{
		"environment": "dev", "workspaces": []any{map[string]any{"name": "team"}},
		"cluster_types": []any{clusterType("a", "west"), clusterType("b", "east"), clusterType("c", "east")},
		"workloads": []any{map[string]any{"name": "app", "workspace": "team", "deployment_targets": map[string]any{
			"live": map[string]any{"environment": "dev", "manifests": map[string]any{"repo": "https://git.example.com/app"}},
		}}},
		"target_policies": []any{plan.Change(policy).After},
	}}}
	values, diags := w.ReadData(t.Context(), providertest.Configuration{}, "flotilla_scheduling", map[string]any{"fleet": fleet})
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	assignments, _ := values["assignments"].(map[string]any)
	if names := slices.Sorted(maps.Keys(assignments)); !slices.Equal(names, []string{"b/app-live", "c/app-live"}) {
		t.Errorf("assignments are %q", names)
	}
}

// rareArguments has the arguments that no example needs.
const rareArguments = `
provider "flotilla" {
  cache = { path = "%[1]s-cache", max_mib = 512 }

  custom_resource_definitions = <<-EOT
    apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    metadata: {name: widgets.example.com}
    spec:
      group: example.com
      scope: Namespaced
      names: {kind: Widget, plural: widgets}
      versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
  EOT
}

resource "flotilla_template" "files" {
  name         = "files"
  type         = "config"
  content_type = "text"
  manifests    = ["{{ toJson .ConfigData }}"]
}

resource "flotilla_cluster_type" "edge" {
  name              = "edge"
  environment       = "dev"
  reconciler        = "zarf"
  config_type       = "files"
  namespace_service = "default"
  description       = "password: example-1"
  allow_plain       = ["description"]
}

resource "flotilla_workload" "app" {
  name      = "app"
  workspace = "team"
  requires  = ["db"]
  deployment_targets = {
    live = { environment = "dev", labels = { tier = "web" }, manifests = { repo = "https://git.example.com/app" }, allow_plain = ["ConfigMap.data.password"] }
  }
}

resource "flotilla_target_policy" "clusters" {
  name              = "clusters"
  environment       = "dev"
  workload_selector = {}
  cluster_selector  = { match_labels = { site = "harbour" } }
}

resource "flotilla_promotion" "dev" {
  candidate = "1.2.3"
  open      = true
  approval  = true
  approvals = ["1.2.3"]
}

locals {
  clusters = [{ name = "edge-1", cluster_type = "edge", labels = { site = "harbour" } }]
  pool     = provider::flotilla::fleet({ environment = "dev", cluster_types = [{ name = "edge" }], clusters = local.clusters })
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "team", limit_range = [{ min = { cpu = "10m" }, max_limit_request_ratio = { cpu = "4" } }] }]
    templates     = [flotilla_template.files]
    cluster_types = [flotilla_cluster_type.edge]
    clusters      = local.clusters
    workloads = [flotilla_workload.app, {
      name               = "db"
      workspace          = "team"
      deployment_targets = { live = { environment = "dev", manifests = { repo = "https://git.example.com/db" } } }
    }]
    target_policies   = [flotilla_target_policy.clusters]
    config_containers = [{ name = "a", data = { A = "x" } }, { name = "b", data = { A = "y" } }]
    hydration         = { precedence = "name", on_conflict = "override" }
  })
  manifests = provider::flotilla::agent_manifests({
    cluster      = "edge-1"
    cluster_type = "edge"
    environment  = "dev"
    reconciler   = "argocd-hub"
    gitops_repo  = { url = "https://github.com/example/gitops", branch = "dev" }
    credentials  = { github_app = { id = "1", installation_id = "2", private_key = "-----BEGIN RSA PRIVATE KEY-----\n-----END RSA PRIVATE KEY-----\n" } }
    registration = { server = "https://10.0.0.1", insecure = true, aws = { cluster_name = "edge-1", role_arn = "arn:aws:iam::1:role/edge" } }
  })
  gitops_repo = { url = %[1]q, branch = "dev" }
}

resource "flotilla_cluster_claim" "one" {
  name           = "one"
  number         = 1
  pool           = {}
  fleet          = local.pool
  adopt          = true
  commit_message = "Take one"
  gitops_repo    = { url = %[1]q, branch = "claims" }
}

data "flotilla_compliance" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback    = {}
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  evidence    = data.flotilla_compliance.dev.evidence
  holds       = [{ deployment_targets = ["db-live"], reason = "audit", until = "2099-01-01T00:00:00Z" }]
  rollout = {
    stages     = [{ name = "all", cluster_selector = {}, max_failed = 1 }]
    expedite   = ["app-live"]
    failed_for = "10m"
  }
}

data "flotilla_diff" "dev" {
  name              = "dev"
  fleet             = local.fleet
  gitops_repo       = local.gitops_repo
  cluster           = "edge-1"
  deployment_target = "app-live"
  timeouts          = { read = "1m" }
}

data "flotilla_overview" "dev" {
  name         = "dev"
  fleet        = local.fleet
  gitops_repo  = local.gitops_repo
  region_label = "site"
  promotions   = { dev = { candidate = "2", promoted = "1", waiting_for = "", promoted_at = "2026-01-01T00:00:00Z" } }
}

data "flotilla_comparison" "dev" {
  left           = { gitops_repo = local.gitops_repo, name = "dev" }
  right          = { gitops_repo = merge(local.gitops_repo, { branch = "next" }), name = "next", commit = null }
  pairs          = { deployment_targets = { "app-live" = "app-next" }, hosts = { edge = "next" } }
  show_values    = true
  limit          = 10
  markdown_limit = 2048
  timeouts       = { read = "1m" }
}

output "manifests" {
  value     = local.manifests
  sensitive = true
}
`

func TestRareArgumentsAreApplied(t *testing.T) {
	t.Parallel()
	for _, tool := range acceptanceTools(t) {
		url := filepath.ToSlash(filepath.Join(t.TempDir(), "gitops.git"))
		w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders + fmt.Sprintf(rareArguments, url)})
		w.run("apply", "-input=false", "-auto-approve")
	}
}

func TestAnAgentIsAppliedWithForce(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	_, diags := providertest.New(startProvider).Apply(t.Context(), onCluster(connectionTo(server), agentAttributes("rare-arguments", map[string]any{
		"force": true, "timeout": "3m",
	})))
	if diags.Err() != nil {
		t.Fatal(diags)
	}
}

// An argument that no example or test sets could fail on every use.
func TestEveryArgumentIsApplied(t *testing.T) {
	t.Parallel()
	texts := configurationTexts(t)
	constants := map[string][]string{} // by type of resource: constants with an address
	for _, text := range texts {
		for _, match := range addressConstant.FindAllStringSubmatch(text, -1) {
			constants[match[2]] = append(constants[match[2]], match[1])
		}
	}
	isApplied := func(name, where string) bool {
		pattern := regexp.MustCompile(`(^|[^\w.])"?` + regexp.QuoteMeta(name) + `"?\]?\s*[=:][^=]`)
		return slices.ContainsFunc(texts, func(text string) bool {
			isIn := func(part string) bool { return strings.Contains(text, part) }
			return (isIn(where) || slices.ContainsFunc(constants[where], isIn)) && isIn(name) && pattern.MatchString(text)
		})
	}
	checked := 0
	check := func(name, where string) {
		checked++
		if !isApplied(name, where) {
			t.Errorf("no configuration that a test applies has %q of %s", name, where)
		}
	}
	server := providerserver.NewProtocol6(provider.ForTest())()
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []map[string]*tfprotov6.Schema{
		schemas.ResourceSchemas, schemas.DataSourceSchemas, {`provider "flotilla"`: schemas.Provider},
	} {
		for _, name := range slices.Sorted(maps.Keys(kind)) {
			for _, argument := range argumentNames(kind[name].Block.Attributes) {
				check(argument, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(schemas.Functions)) {
		if checked++; !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "flotilla::"+name+"(") }) {
			t.Errorf("no configuration that a test applies calls %s", name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keysOfReaders(t))) {
		check(key, "")
	}
	if checked < 250 {
		t.Errorf("%d arguments and keys found", checked)
	}
}

// argumentNames returns the arguments of a schema and its nested objects.
func argumentNames(attributes []*tfprotov6.SchemaAttribute) []string {
	var names []string
	for _, attribute := range attributes {
		if !attribute.Required && !attribute.Optional {
			continue
		}
		names = append(names, attribute.Name)
		if attribute.NestedType != nil && attribute.Name != "fleet" { // the return value of the function fleet
			names = append(names, argumentNames(attribute.NestedType.Attributes)...)
		}
	}
	return names
}

// addressConstant matches a constant such as assignment = "flotilla_assignment.test".
var addressConstant = regexp.MustCompile(`(\w+)\s*=\s*"(flotilla_\w+)\.\w+"`)

var goComment = regexp.MustCompile(`(?m)(^|\s)//.*$`)

// configurationTexts returns the texts of the examples and the tests, without comments of Go.
func configurationTexts(t *testing.T) []string {
	t.Helper()
	var texts []string
	for name, text := range files(t, filepath.Join("..", "..", "examples")) {
		if strings.HasSuffix(name, ".tf") {
			texts = append(texts, text)
		}
	}
	tests, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	clusters, err := filepath.Glob(filepath.Join("..", "testing", "e2e", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range append(tests, clusters...) {
		texts = append(texts, goComment.ReplaceAllString(readFile(t, test), ""))
	}
	return texts
}

// readersOf returns the methods and functions of package fleet, in lower case, whose first parameter after the object is the
// name of an attribute.
func readersOf(t *testing.T) map[string]bool {
	t.Helper()
	readers := map[string]bool{}
	isObject := func(kind ast.Expr) bool {
		pointer, _ := kind.(*ast.StarExpr)
		return pointer != nil && fmt.Sprint(pointer.X) == "ObjectReader"
	}
	eachDeclaration(t, []string{"../engine/fleet"}, func(_ string, node ast.Node) {
		function, isFunction := node.(*ast.FuncDecl)
		if !isFunction {
			return
		}
		parameters := function.Type.Params.List
		switch {
		case function.Recv != nil && isObject(function.Recv.List[0].Type):
		case function.Recv == nil && len(parameters) > 0 && isObject(parameters[0].Type):
			parameters = parameters[1:]
		default:
			return
		}
		if len(parameters) == 0 || fmt.Sprint(parameters[0].Type) != "string" {
			return
		}
		if name := parameters[0].Names[0].Name; name == "attribute" || name == "name" {
			readers[strings.ToLower(function.Name.Name)] = true
		}
	})
	if len(readers) < 30 {
		t.Errorf("%d readers found", len(readers))
	}
	return readers
}

// eachDeclaration visits every node of the packages' files, without tests.
func eachDeclaration(t *testing.T, folders []string, visit func(file string, node ast.Node)) {
	t.Helper()
	set := token.NewFileSet()
	for _, folder := range folders {
		matches, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range matches {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(node ast.Node) bool {
				visit(filepath.Base(path), node)
				return true
			})
		}
	}
}

// keysOfReaders returns the attributes of a fleet's tables and the keys that readers of other objects ask for.
func keysOfReaders(t *testing.T) map[string]bool {
	t.Helper()
	keys, readers := map[string]bool{}, readersOf(t)
	addKeys(keys, fleet.RootTable(), map[*fleet.Table]bool{})
	folders, err := filepath.Glob("*") // one folder for each resource and data source
	if err != nil {
		t.Fatal(err)
	}
	eachDeclaration(
		t,
		append(folders, ".", "../engine/fleet", "../cluster/agent", "../rollout", "../rollout/gate", "../engine/constraint"),
		func(file string, node ast.Node) {
			if key := keyOf(node, readers); key != "" && !otherForms[file] {
				keys[key] = true
			}
		},
	)
	return keys
}

// otherForms are files that do not read configurations, but YAML documents or the provider's own files.
var otherForms = map[string]bool{
	"controlplane.go": true, "kalypso.go": true, "models.go": true, "registrations.go": true, "documents.go": true, "base.go": true,
	"configmap.go": true, "classes.go": true,
}

// addKeys adds the keys of a table and its nested tables.
func addKeys(keys map[string]bool, table *fleet.Table, seen map[*fleet.Table]bool) {
	if table == nil || seen[table] {
		return
	}
	seen[table] = true
	for _, attribute := range table.Attributes {
		if !attribute.Computed {
			keys[attribute.Name] = true
		}
		addKeys(keys, attribute.Of, seen)
	}
}

var keyPattern = regexp.MustCompile(`^[a-z][a-z_]*$`)

// keyOf returns the key that a call of a reader asks for, or "".
func keyOf(node ast.Node, readers map[string]bool) string {
	call, isCall := node.(*ast.CallExpr)
	if !isCall {
		return ""
	}
	var name string
	switch function := call.Fun.(type) {
	case *ast.Ident:
		name = function.Name
	case *ast.SelectorExpr:
		if on, isName := function.X.(*ast.Ident); isName && (on.Name == "path" || on.Name == "table") {
			return "" // belongs to the framework or to a returned object
		}
		name = function.Sel.Name
	}
	if !readers[strings.ToLower(name)] {
		return ""
	}
	for _, argument := range call.Args[:min(len(call.Args), 2)] {
		if literal, isLiteral := argument.(*ast.BasicLit); isLiteral && literal.Kind == token.STRING {
			if key, err := strconv.Unquote(literal.Value); err == nil && keyPattern.MatchString(key) {
				return key
			}
			return ""
		}
	}
	return ""
}
