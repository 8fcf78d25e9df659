package provider_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/branchlist"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func TestAssignmentsAndClaimsOfABranchAreListed(t *testing.T) {
	t.Parallel()
	url := bare(t)
	apply(
		t,
		providertest.New(startProvider),
		assigned(url, fleetOf(nil), map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "prod", "path": "clusters"}}),
	)
	apply(t, providertest.New(startProvider), claims(claimOn(url, "web", 2, poolFleet("pool-1", "pool-2", "pool-3"))))
	w := providertest.New(startProvider)
	query := func(name string, repo map[string]any) (string, providertest.Diagnostics) {
		identities, resources, diags := w.Query(t.Context(), providertest.Configuration{}, name, map[string]any{"gitops_repo": repo})
		var lines []string
		for i, identity := range identities {
			repo, _ := resources[i]["gitops_repo"].(map[string]any)
			lines = append(
				lines,
				fmt.Sprintf(
					"%v at %v of %v %t, %v at %v of %v %t, %v %v",
					identity["name"],
					identity["path"],
					identity["branch"],
					identity["url"] == url,
					resources[i]["name"],
					repo["path"],
					repo["branch"],
					repo["url"] == url,
					resources[i]["number"],
					resources[i]["fleet"],
				),
			)
		}
		return strings.Join(lines, "; "), diags
	}
	for _, c := range []struct{ name, path, want string }{
		{"flotilla_assignment", "", "dev at clusters of prod true, dev at clusters of prod true, <nil> <nil>"},
		{"flotilla_cluster_claim", "", "web at prod of prod true, web at prod of prod true, 2 <nil>"},
		{"flotilla_assignment", "clusters", "dev at clusters of prod true, dev at clusters of prod true, <nil> <nil>"},
		{"flotilla_cluster_claim", "clusters", ""},
	} {
		if got, diags := query(c.name, map[string]any{"url": url, "branch": "prod", "path": c.path}); got != c.want || len(diags) > 0 {
			t.Errorf("%s at %q: got %q, want %q: %s", c.name, c.path, got, c.want, diags)
		}
	}
	for want, repo := range map[string]map[string]any{
		"Invalid GitOps repository":    {"url": url, "branch": "prod", "path": "../x"},
		"Repository cannot be reached": {"url": "http://127.0.0.1:1/gitops", "branch": "prod"},
	} {
		if _, diags := query("flotilla_assignment", repo); diags.Err() == nil || !diags.Has(want) || diags[0].At != `AttributeName("gitops_repo")` ||
			!strings.Contains(diags.String(), "/troubleshooting.md#") {
			t.Errorf("for %v, got %s, want %s", repo, diags, want)
		}
	}

	// An unreadable record of a claim is a warning beside listed claims, and otherwise an error.
	commitByHand(t, url, "prod", func(folder string) { writeFile(t, claimRecordPath(folder, "api"), "{}") })
	location := map[string]any{"url": url, "branch": "prod"}
	const record = "prod/.flotilla/.claims/api.json"
	if got, diags := query("flotilla_cluster_claim", location); got == "" || diags.Err() != nil || !diags.Has("Records cannot be read") ||
		!strings.Contains(diags.String(), record) {
		t.Errorf("beside an unreadable record, got %q: %s", got, diags)
	}
	if got, diags := query("flotilla_assignment", location); got == "" || len(diags) > 0 {
		t.Errorf("beside an unreadable record of a claim, got %q: %s", got, diags)
	}
	commitByHand(t, url, "prod", func(folder string) { writeFile(t, claimRecordPath(folder, "web"), "{}") })
	if got, diags := query("flotilla_cluster_claim", location); got != "" || diags.Err() == nil || !diags.Has("Records cannot be read") ||
		!strings.Contains(diags.String(), record) {
		t.Errorf("without readable records, got %q: %s", got, diags)
	}
}

// TestQueriesListAssignmentsAndClaims runs the examples. The generated configuration must plan no changes once its write-only
// attributes are set. `make matrix` runs this test.
func TestQueriesListAssignmentsAndClaims(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	tool := allTools(t)["terraform"]
	if !isTerraform(t, tool, 14) {
		t.Skip("Terraform before 1.14, and any other tool, has no queries")
	}
	repo := bareRepository(t)
	main := small{
		path:  "clusters",
		fleet: `clusters = [{ name = "pool-1", cluster_type = "spare", labels = { state = "ready" } }]`,
	}.config(
		repo,
	)
	fleet, _, found := strings.Cut(main, "\nresource \"flotilla_assignment\"")
	if !found {
		t.Fatal("the configuration has no assignment")
	}
	const pool = `{ match_labels = { state = "ready" } }`
	claim := fmt.Sprintf(
		"\nresource \"flotilla_cluster_claim\" \"web\" {\n  name = \"web\"\n  number = 1\n  pool = %s\n  fleet = local.fleet\n"+
			"  gitops_repo = { url = %q, branch = \"dev\", path = \"claims\" }\n}\n",
		pool,
		repo.url,
	)
	newWorkdir(
		t,
		tool,
		map[string]string{"main.tf": main + claim, "required_providers.tf": requiredProviders},
	).run("apply", "-auto-approve", "-input=false")
	commits := repo.commits(t, "dev")

	w := newWorkdir(t, tool, map[string]string{"main.tf": fleet, "required_providers.tf": requiredProviders})
	for _, name := range []string{"flotilla_assignment", "flotilla_cluster_claim"} {
		example := readFile(t, filepath.Join("..", "..", "examples", "list-resources", name, "list-resource.tfquery.hcl"))
		writeFile(t, filepath.Join(w.path, name+".tfquery.hcl"), strings.ReplaceAll(example, "https://git.example.com/platform/gitops", repo.url))
	}
	w.run("query", "-generate-config-out=generated.tf")
	generated := readFile(t, filepath.Join(w.path, "generated.tf"))
	var lines []string
	for line := range strings.Lines(generated) {
		switch name, value, _ := strings.Cut(line, "="); {
		case strings.TrimSpace(value) != "null":
		case strings.TrimSpace(name) == "fleet":
			line = "fleet = local.fleet\n"
		case strings.TrimSpace(name) == "pool":
			line = "pool = " + pool + "\n"
		}
		lines = append(lines, line)
	}
	writeFile(t, filepath.Join(w.path, "generated.tf"), strings.Join(lines, ""))
	imported := 0
	for _, change := range w.plan().ResourceChanges {
		if change.Change.Importing != nil && change.Change.Actions.NoOp() {
			imported++
			continue
		}
		t.Errorf("the plan is to %v %s", change.Change.Actions, change.Address)
	}
	if imported != 2 {
		t.Errorf("%d resources are imported without changes, from\n%s", imported, generated)
	}
	w.run("apply", "-auto-approve", "-input=false")
	if got := repo.commits(t, "dev"); got != commits {
		t.Errorf("%d commits after the import, want %d", got, commits)
	}
}

func TestListPagesMatchTheirSchemas(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"assignment", "cluster_claim"} {
		page := readFile(t, filepath.Join("..", "..", "templates", "list-resources", name+".md"))
		definition := branchlist.Definition(name)
		for _, want := range []string{
			definition.MarkdownDescription, fmt.Sprintf("- `gitops_repo` (Dynamic) %s\n", definition.Attributes["gitops_repo"].GetMarkdownDescription()),
			strings.TrimSpace(readFile(t, filepath.Join("..", "..", "examples", "list-resources", "flotilla_"+name, "list-resource.tfquery.hcl"))),
		} {
			if !strings.Contains(page, want) || len(definition.Attributes) != 1 {
				t.Errorf("the page of %s lacks %s", name, want)
			}
		}
	}
}
