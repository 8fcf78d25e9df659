package provider_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// fleetOfTypes returns a fleet with these cluster types, a cluster of the first, and three deployment targets: one requires another, and
// one is on the cluster. further replaces attributes of the fleet.
func fleetOfTypes(level any, further map[string]any, types ...any) providertest.Call {
	target := func(on string) map[string]any {
		return map[string]any{
			"environment": "dev",
			"labels":      map[string]any{"on": on},
			"manifests":   map[string]any{"repo": "https://git.example.com/app", "branch": "main", "path": on},
		}
	}
	first := types[0].(map[string]any)["name"]
	argument := map[string]any{
		"workloads": []any{
			map[string]any{
				"name":               "app",
				"workspace":          "team",
				"requires":           []any{"base"},
				"deployment_targets": map[string]any{"web": target("type"), "edge": target("cluster")},
			},
			map[string]any{"name": "base", "workspace": "team", "deployment_targets": map[string]any{"all": target("type")}},
		},
		"cluster_types": types,
		"clusters":      []any{map[string]any{"name": "one", "cluster_type": first}},
		"target_policies": []any{
			map[string]any{
				"name":                       "types",
				"deployment_target_selector": map[string]any{"match_labels": map[string]any{"on": "type"}},
				"cluster_type_selector":      map[string]any{},
			},
			map[string]any{
				"name":                       "clusters",
				"deployment_target_selector": map[string]any{"match_labels": map[string]any{"on": "cluster"}},
				"cluster_selector":           map[string]any{},
			},
		},
		"config_containers": []any{map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": level}}},
	}
	maps.Copy(argument, further)
	return fleetOf(argument)
}

// namedType returns a cluster type with its former names.
func namedType(name string, formerly ...any) map[string]any {
	clusterType := map[string]any{"name": name}
	if len(formerly) > 0 {
		clusterType["formerly"] = formerly
	}
	return clusterType
}

// noRemovals is a protection that refuses every removal.
var noRemovals = map[string]any{"protection": map[string]any{"max_removed": 0}}

// filesBelow lists the files of the branch below a folder, with their ids.
func filesBelow(t *testing.T, url, folder string) string {
	t.Helper()
	var files []string
	for _, line := range strings.Split(git(t, url, "ls-tree", "-r", "dev", "clusters/all/"+folder+"/"), "\n") {
		if _, file, found := strings.Cut(line, " blob "); found {
			files = append(files, strings.Replace(file, "clusters/all/"+folder+"/", "", 1))
		}
	}
	return strings.Join(files, "\n")
}

func TestACommitMovesTheFoldersOfARenamedClusterType(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOfTypes("info", nil, namedType("old"), namedType("other")), noRemovals))
	before, other, own := filesBelow(t, url, "old"), filesBelow(t, url, "other"), filesBelow(t, url, "clusters/one")
	commits := git(t, url, "rev-list", "--count", "dev")

	for _, step := range []struct {
		name, former string
		formerly     []any
	}{{"new", "old", []any{"old"}}, {"newest", "new", []any{"old", "new"}}} {
		renamed := assigned(url, fleetOfTypes("info", nil, namedType(step.name, step.formerly...), namedType("other")), noRemovals)
		plan := apply(t, w, renamed)
		want := fmt.Sprintf(
			`[%s cluster type %q is now %q: 2 folders move]`,
			countLine(changes.Counts{Total: 5}),
			step.former,
			step.name,
		)
		if got := fmt.Sprint(assignmentAfter(plan)["changes"]); got != want {
			t.Errorf("the plan says %s, want %s", got, want)
		}
		if got := filesBelow(t, url, step.name); got != before {
			t.Errorf("%s has\n%s\nwant\n%s", step.name, got, before)
		}
		if left := filesBelow(t, url, step.former) + git(t, url, "ls-tree", "dev", "clusters/all/.flotilla/dev/"+step.former+".json"); left != "" {
			t.Errorf("the branch still has %s", left)
		}
		if filesBelow(t, url, "other") != other || filesBelow(t, url, "clusters/one") != own {
			t.Error("another host has changed")
		}
		if plan := apply(t, w, renamed); !plan.Empty() {
			t.Errorf("the second plan says %s", rolloutText(plan))
		}
	}
	if now := git(t, url, "rev-list", "--count", "dev"); now != "3" || commits != "1" {
		t.Errorf("the branch has %s commits, want 3", now)
	}
	record := git(t, url, "show", "dev:clusters/all/.flotilla/dev/newest.json")
	if strings.Contains(record, "tree_before") || !strings.Contains(record, `"namespace": "flux-system", "name": "dev-old-app-web"`) {
		t.Errorf("the record says %s", record)
	}
}

func TestARenameThatRemovesMoreIsHeld(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOfTypes("info", nil, namedType("old"), namedType("other")), noRemovals))
	for name, fleet := range map[string]providertest.Call{
		"without formerly":       fleetOfTypes("info", nil, namedType("new"), namedType("other")),
		"a removed cluster type": fleetOfTypes("info", nil, namedType("new", "old")),
	} {
		if _, diags := w.Plan(t.Context(), assigned(url, fleet, noRemovals)); diags.Err() == nil || !diags.Has("Mass deletion") {
			t.Errorf("%s: the plan says %s", name, diags)
		}
	}
	if _, diags := w.Plan(t.Context(), assigned(url, fleetOfTypes("info", nil, namedType("other", "old")), noRemovals)); !diags.Has(
		"Cluster types cannot become one",
	) {
		t.Errorf("the plan says %s", diags)
	}
}

func TestARenameOfALostStateAndALatePlan(t *testing.T) {
	t.Parallel()
	old, renamed := fleetOfTypes("info", nil, namedType("old"), namedType("other")), fleetOfTypes("info", nil, namedType("new", "old"), namedType("other"))
	checkMoved := func(t *testing.T, url string) {
		t.Helper()
		if filesBelow(t, url, "old") != "" || filesBelow(t, url, "new") == "" {
			t.Errorf("old has %q, new has %q", filesBelow(t, url, "old"), filesBelow(t, url, "new"))
		}
	}
	t.Run("imported", func(t *testing.T) {
		t.Parallel()
		url, w := bare(t), providertest.New(startProvider)
		apply(t, providertest.New(startProvider), assigned(url, old, noRemovals))
		if diags := w.Import(t.Context(), assigned(url, renamed, noRemovals), assignment, url+"#dev:clusters/all:dev"); diags.Err() != nil {
			t.Fatal(diags.Err())
		}
		if plan := apply(t, w, assigned(url, renamed, noRemovals)); !strings.Contains(rolloutText(plan), `cluster type "old" is now "new": 2 folders move`) {
			t.Errorf("the plan says %s", rolloutText(plan))
		}
		checkMoved(t, url)
	})
	t.Run("adopted", func(t *testing.T) {
		t.Parallel()
		url := bare(t)
		apply(t, providertest.New(startProvider), assigned(url, old, noRemovals))
		further := maps.Clone(noRemovals)
		further["adopt"] = true
		apply(t, providertest.New(startProvider), assigned(url, renamed, further))
		checkMoved(t, url)
	})
	t.Run("destroyed", func(t *testing.T) {
		t.Parallel()
		url, w := bare(t), providertest.New(startProvider)
		apply(t, w, assigned(url, old, nil))
		apply(t, w, assigned(url, renamed, map[string]any{"protection": map[string]any{"allow_empty": true, "max_removed_percent": 100}}))
		apply(t, w, providertest.Configuration{})
		if left := filesBelow(t, url, "new"); !strings.HasSuffix(left, "\tdev.md") || strings.Contains(left, "\n") {
			t.Errorf("new has %s", left)
		}
	})
	t.Run("applied late", func(t *testing.T) {
		t.Parallel()
		url, w := bare(t), providertest.New(startProvider)
		apply(t, w, assigned(url, old, noRemovals))
		late, _ := mustPlan(t, w, assigned(url, renamed, noRemovals))
		others := map[string]any{"name": "others", "gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/others"}}
		apply(t, providertest.New(startProvider), assigned(url, old, others))
		if diags := w.ApplyPlan(t.Context(), late); diags.Err() != nil {
			t.Fatal(diags)
		}
		checkMoved(t, url)
	})
	t.Run("applied late, after a change by hand", func(t *testing.T) {
		t.Parallel()
		url, w := bare(t), providertest.New(startProvider)
		apply(t, w, assigned(url, old, noRemovals))
		late, _ := mustPlan(t, w, assigned(url, renamed, noRemovals))
		commitByHand(t, url, "dev", func(folder string) {
			if err := os.WriteFile(filepath.Join(folder, "clusters", "all", "old", "app-web", "platform-config.yaml"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		})
		tip := git(t, url, "rev-parse", "dev")
		if diags := w.ApplyPlan(t.Context(), late); !diags.Has("Repository has changed since the plan") || git(t, url, "rev-parse", "dev") != tip {
			t.Errorf("the apply says %s, and the branch is at %s", diags, git(t, url, "rev-parse", "dev"))
		}
		apply(t, w, assigned(url, renamed, noRemovals))
		checkMoved(t, url)
	})
	t.Run("refreshed, and destroyed by a plan", func(t *testing.T) {
		t.Parallel()
		url, w := bare(t), providertest.New(startProvider)
		apply(t, w, assigned(url, old, nil))
		before := filesBelow(t, url, "old")
		if _, diags := w.Plan(t.Context(), assigned(url, renamed, nil), providertest.RefreshOnly()); diags.Err() != nil ||
			filesBelow(t, url, "old") != before {
			t.Errorf("the refresh says %s, and old has %s", diags, filesBelow(t, url, "old"))
		}
		apply(t, w, assigned(url, renamed, map[string]any{"protection": map[string]any{"allow_empty": true, "max_removed_percent": 100}}))
		apply(t, w, assigned(url, renamed, nil), providertest.Destroy())
		if left := filesBelow(t, url, "old") + filesBelow(t, url, "new"); strings.Contains(left, "app-web") {
			t.Errorf("the destroy has left %s", left)
		}
	})
	t.Run("rolled back", func(t *testing.T) {
		t.Parallel()
		url, w := bare(t), providertest.New(startProvider)
		apply(t, w, assigned(url, old, noRemovals))
		before, first := filesBelow(t, url, "old"), git(t, url, "rev-parse", "dev")
		apply(t, w, assigned(url, renamed, noRemovals))
		apply(t, w, assigned(url, fleetOfTypes("debug", nil, namedType("new", "old"), namedType("other")), noRemovals))
		further := maps.Clone(noRemovals)
		further["rollback_to"] = first
		apply(t, w, assigned(url, renamed, further))
		if filesBelow(t, url, "new") != before {
			t.Errorf("new has\n%s\nwant\n%s", filesBelow(t, url, "new"), before)
		}
	})
	t.Run("with a new name of the owner", func(t *testing.T) {
		t.Parallel()
		url, w := bare(t), providertest.New(startProvider)
		apply(t, w, assigned(url, old, noRemovals))
		further := maps.Clone(noRemovals)
		further["name"] = "stage"
		apply(t, w, assigned(url, renamed, further))
		checkMoved(t, url)
	})
}

// Names on clusters contain the first name of the cluster type. They change if that name is dropped or its position changes.
func TestAPlanWarnsOfNamesThatChangeOnClusters(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOfTypes("info", nil, namedType("old")), noRemovals))
	const summary = "Names on clusters change"
	if _, diags := mustPlan(t, w, assigned(url, fleetOfTypes("info", nil, namedType("new", "old")), noRemovals)); diags.Has(summary) {
		t.Errorf("the plan of the rename says %s", diags)
	}
	apply(t, w, assigned(url, fleetOfTypes("info", nil, namedType("new", "old")), noRemovals))
	for name, change := range map[string]struct {
		to    map[string]any
		after string
	}{"no former name": {namedType("new"), "new"}, "another order": {namedType("newest", "new", "old"), "new"}} {
		want := fmt.Sprintf(`of cluster type %q were called after "old", and will be called after %q.`, change.to["name"], change.after)
		if _, diags := mustPlan(t, w, assigned(url, fleetOfTypes("info", nil, change.to), noRemovals)); !diags.Has(summary) ||
			!strings.Contains(diags.String(), want) {
			t.Errorf("%s: the plan says %s", name, diags)
		}
	}
	if _, diags := mustPlan(t, w, assigned(url, fleetOfTypes("info", nil, namedType("newest", "old", "new")), noRemovals)); diags.Has(summary) {
		t.Errorf("the plan of a second rename says %s", diags)
	}
}

// Agents prune what leaves a folder, so a folder moves only as a whole.
func TestARenameOfASharedFolderIsRefused(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOfTypes("info", nil, namedType("old")), noRemovals))
	stage := assigned(url, fleetOfTypes("info", map[string]any{"target_policies": []any{}}, namedType("old")), map[string]any{"name": "others"})
	apply(t, providertest.New(startProvider), stage)
	_, diags := w.Plan(t.Context(), assigned(url, fleetOfTypes("info", nil, namedType("new", "old")), noRemovals))
	if diags.Err() == nil || !diags.Has("Folder of a cluster type cannot move") ||
		!strings.Contains(diags.String(), `"clusters/all/old/others.md"`) {
		t.Errorf("the plan says %s", diags)
	}
}

func TestARenameIsNoNewContentOfARollout(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	configuration := func(version string) providertest.Configuration {
		argument := ringFleet(version, nil)
		for _, one := range argument["cluster_types"].([]any) {
			if one := one.(map[string]any); one["name"] == "rest" {
				one["name"], one["formerly"] = "remainder", []any{"rest"}
			}
		}
		for _, one := range argument["clusters"].([]any) {
			if one := one.(map[string]any); one["cluster_type"] == "rest" {
				one["cluster_type"] = "remainder"
			}
		}
		return assigned(
			r.url,
			providertest.Call{Function: "fleet", Arguments: []any{argument}},
			map[string]any{"rollout": r.rollout, "evidence": r.evidence()},
		)
	}
	r.applyVersion("1", "1 1 1")
	before := r.tree("dev", "rest")
	plan := apply(t, r.w, configuration("2"))
	for _, want := range []string{`cluster type "rest" is now "remainder": 1 folder moves`, `stage 1 of 3 "canary", 1 of 3 hosts`, countLine(changes.Counts{Changed: 1})} {
		if !strings.Contains(rolloutText(plan), want) {
			t.Errorf("the plan does not say %q: %s", want, rolloutText(plan))
		}
	}
	if r.tree("dev", "remainder") != before || r.tree("dev", "rest") != "" {
		t.Errorf("remainder has %q, and rest still has %q", r.tree("dev", "remainder"), r.tree("dev", "rest"))
	}
	if plan := apply(t, r.w, configuration("2")); !plan.Empty() {
		t.Errorf("the plan of a waiting rollout says %s", rolloutText(plan))
	}
	r.report("canary", verdict.Ready)
	apply(t, r.w, configuration("2"))
	r.report("region", verdict.Ready)
	if plan := apply(t, r.w, configuration("2")); r.tree("dev", "remainder") == before ||
		!strings.Contains(rolloutText(plan), "on remainder: app-core") {
		t.Errorf("the last stage says %s", rolloutText(plan))
	}
}

func TestMistakesInFormerNamesAreFoundAtPlan(t *testing.T) {
	t.Parallel()
	renamedTypeWith := func(further map[string]any) map[string]any {
		clusterType := namedType("new", "old")
		maps.Copy(clusterType, further)
		return clusterType
	}
	for name, test := range map[string]struct {
		fleet providertest.Call
		wants []string
	}{
		"two types with one former name": {fleetOfTypes("info", nil, namedType("new", "old"), namedType("other", "old")), []string{`cluster_types["other"].formerly[0]: cluster type "new" was called "old", too`}},
		"the name of an existing type":   {fleetOfTypes("info", nil, namedType("new", "other"), namedType("other")), []string{`cluster_types["new"].formerly[0]: a cluster type of the fleet is called "other"`}},
		"its own name":                   {fleetOfTypes("info", nil, namedType("new", "new")), []string{`cluster_types["new"].formerly[0]: is the present name of the cluster type`}},
		"a duplicate":                    {fleetOfTypes("info", nil, namedType("new", "old", "old")), []string{`cluster_types["new"].formerly[1]: is there twice`}},
		"an invalid name":                {fleetOfTypes("info", nil, namedType("new", "Not a name")), []string{`cluster_types["new"].formerly[0]: `}},
		"clusters with the former name":  {fleetOfTypes("info", map[string]any{"clusters": []any{map[string]any{"name": "one", "cluster_type": "old"}}}, namedType("new", "old")), []string{`clusters["one"].cluster_type: cluster type "old" is called "new" now`}},
		"on a hub":                       {fleetOfTypes("info", nil, renamedTypeWith(map[string]any{"reconciler": "argocd-hub"})), []string{`cluster_types["new"].formerly: cannot be set: an Argo CD on a hub`}},
		"Rancher Fleet":                  {fleetOfTypes("info", nil, renamedTypeWith(map[string]any{"reconciler": "fleet"})), []string{`cluster_types["new"].formerly: cannot be set: Rancher Fleet`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), test.fleet, nil))
			for _, want := range test.wants {
				if diags.Err() == nil || !strings.Contains(diags.String(), want) {
					t.Errorf("the plan does not say %q: %s", want, diags)
				}
			}
		})
	}
}

// Until the merge, the branch has the former folder. A later proposal moves that folder as well.
func TestAPullRequestProposesARename(t *testing.T) {
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	w := providertest.New(startProvider)
	configuration := func(types, level, delivery string) providertest.Configuration {
		return moduleOf(t, repo.provider+fmt.Sprintf(`
resource "flotilla_assignment" "test" {
  name = "dev"
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "team" }]
    cluster_types = %s
    workloads = [{
      name = "app", workspace = "team"
      deployment_targets = { web = { environment = "dev", manifests = { repo = "https://git.example.com/app", branch = "main" } } }
    }]
    target_policies   = [{ name = "all", deployment_target_selector = {}, cluster_type_selector = {} }]
    config_containers = [{ name = "all", data = { LOG_LEVEL = %q } }]
  })
  gitops_repo = { url = %q, branch = "dev" }
  delivery    = %s
  protection  = { max_removed = 0 }
}
`, types, level, repo.url, delivery)).Configuration
	}
	apply(t, w, configuration(`[{ name = "old" }]`, "info", `{ mode = "push" }`))
	const request = `{ mode = "pull_request", forge = "gitea" }`
	const renamed = `[{ name = "new", formerly = ["old"] }]`
	apply(t, w, configuration(renamed, "info", request))
	apply(t, w, configuration(renamed, "debug", request))
	if plan := apply(t, w, configuration(renamed, "debug", request)); !plan.Empty() {
		t.Errorf("the next plan has %q", linesOf(plan))
	}
	proposed := listPullRequests(t, server, user)
	mergeRequest(t, server, user, proposed[len(proposed)-1].Number, proposed[len(proposed)-1].Head.SHA)
	if plan := apply(t, w, configuration(renamed, "debug", request)); !plan.Empty() {
		t.Errorf("after the merge, the plan has %q", linesOf(plan))
	}
	branchFiles := repo.read(t, "dev")
	for _, file := range slices.Sorted(maps.Keys(branchFiles)) {
		if strings.HasPrefix(file, "old/") {
			t.Errorf("the branch still has %s", file)
		}
	}
	if !strings.Contains(branchFiles["new/app-web/platform-config.yaml"], "debug") ||
		!strings.Contains(branchFiles["new/app-web/reconciler.yaml"], "dev-old-app-web") {
		t.Errorf("new has %q", branchFiles)
	}
}
