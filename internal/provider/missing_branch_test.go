package provider_test

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// branchLife is an assignment on Gitea or in a bare repository, whose branches others delete, rename and recreate.
type branchLife struct {
	t    *testing.T
	host *hostedRepository // nil for a bare repository
	repo repository
	w    *providertest.Workspace
}

const proposedHead = "flotilla/dev/dev"

func newBranchLife(t *testing.T) *branchLife {
	t.Helper()
	repo, server, user := requestHost(t)
	return newBranchLifeAt(t, repo, server, user)
}

func newBranchLifeAt(t *testing.T, repo repository, server gitHost, user giteatest.User) *branchLife {
	t.Helper()
	l := &branchLife{t: t, host: &hostedRepository{t, server, user}, repo: repo, w: providertest.New(startProvider)}
	l.host.commitFile("main", "", "README.md") // the default branch, which Gitea does not delete
	l.create("dev")
	return l
}

func newBareBranchLife(t *testing.T) *branchLife {
	t.Helper()
	repo := bareRepository(t)
	git(t, "", "init", "--quiet", "--bare", "--initial-branch", "main", repo.url)
	repo.folder = repo.url
	l := &branchLife{t: t, repo: repo, w: providertest.New(startProvider)}
	l.commitFile("main")
	l.create("dev")
	return l
}

// commitFile adds a file to a branch of a bare repository.
func (l *branchLife) commitFile(branch string) {
	l.t.Helper()
	gittest.Commit(l.t, l.repo.url, "main", branch, func(folder string) { writeFile(l.t, filepath.Join(folder, "by-hand"), branch) })
}

// configuration returns an assignment with a value. A nil delivery pushes.
func (l *branchLife) configuration(branch, value string, delivery map[string]any) providertest.Configuration {
	further := map[string]any{
		"gitops_repo": map[string]any{"url": l.repo.url, "branch": branch},
		"protection":  map[string]any{"max_removed": 100, "allow_empty": true},
	}
	if delivery != nil {
		further["delivery"] = delivery
	}
	containers := []any{map[string]any{"name": "all", "data": map[string]any{"DATABASE_URL": value}}}
	c := assigned(l.repo.url, fleetOf(map[string]any{"config_containers": containers}), further)
	if l.host != nil {
		c.Provider = map[string]any{"git": map[string]any{"token": l.host.user.Token}}
	}
	return c
}

// requestDelivery returns a delivery by pull request, with an optional setting and its value.
func requestDelivery(further ...any) map[string]any {
	delivery := map[string]any{"mode": "pull_request", "forge": "gitea"}
	if len(further) > 0 {
		delivery[further[0].(string)] = further[1]
	}
	return delivery
}

func branchPath(branch string) string { return "/branches/" + url.PathEscape(branch) }

func (l *branchLife) hasBranch(branch string) bool {
	l.t.Helper()
	return strings.Contains(
		"\n"+git(l.t, l.repo.folder, "for-each-ref", "--format=%(refname)", "refs/heads")+"\n",
		"\nrefs/heads/"+branch+"\n",
	)
}

func (l *branchLife) create(branch string) {
	l.t.Helper()
	if l.host == nil {
		git(l.t, l.repo.folder, "branch", branch, "main")
		return
	}
	l.host.callAPI(http.MethodPost, "/branches", map[string]any{"new_branch_name": branch, "old_branch_name": "main"}, nil)
}

func (l *branchLife) remove(branch string) {
	l.t.Helper()
	switch {
	case !l.hasBranch(branch):
	case l.host == nil:
		git(l.t, l.repo.folder, "branch", "--quiet", "-D", branch)
	default:
		l.host.callAPI(http.MethodDelete, branchPath(branch), nil, nil)
	}
}

func (l *branchLife) rename(branch, to string) {
	l.t.Helper()
	switch {
	case !l.hasBranch(branch):
	case l.host == nil:
		git(l.t, l.repo.folder, "branch", "-m", branch, to)
	default:
		l.host.callAPI(http.MethodPatch, branchPath(branch), map[string]any{"name": to}, nil)
	}
}

// recreate replaces a branch by the default branch with a person's commit.
func (l *branchLife) recreate(branch string) {
	l.t.Helper()
	l.remove(branch)
	if l.host == nil {
		l.commitFile(branch)
		return
	}
	l.host.commitFile(branch, "main", "by-hand-"+strings.ReplaceAll(branch, "/", "-"))
}

var disturbances = []struct {
	name string
	do   func(l *branchLife)
}{
	{"base deleted", func(l *branchLife) { l.remove("dev") }},
	{"base renamed", func(l *branchLife) { l.rename("dev", "trunk") }},
	{"base recreated", func(l *branchLife) { l.recreate("dev") }},
	{"base renamed and recreated", func(l *branchLife) { l.rename("dev", "trunk"); l.recreate("dev") }},
	{"head deleted", func(l *branchLife) { l.remove(proposedHead) }},
	{"head renamed", func(l *branchLife) { l.rename(proposedHead, "proposal") }},
	{"head recreated", func(l *branchLife) { l.recreate(proposedHead) }},
	{"head renamed and recreated", func(l *branchLife) { l.rename(proposedHead, "proposal"); l.recreate(proposedHead) }},
	{"both deleted", func(l *branchLife) { l.remove("dev"); l.remove(proposedHead) }},
	{"both renamed", func(l *branchLife) { l.rename("dev", "trunk"); l.rename(proposedHead, "proposal") }},
	{"base deleted and head recreated", func(l *branchLife) { l.remove("dev"); l.recreate(proposedHead) }},
}

// planAndApply disturbs before the plan or, if isLate, between plan and apply.
func (l *branchLife) planAndApply(
	configuration providertest.Configuration,
	disturb func(l *branchLife),
	isLate bool,
	options ...providertest.Option,
) (diags providertest.Diagnostics) {
	l.t.Helper()
	if !isLate {
		disturb(l)
	}
	plan, diags := l.w.Plan(l.t.Context(), configuration, options...)
	if diags.Err() != nil {
		return diags
	}
	if isLate {
		disturb(l)
	}
	return l.w.ApplyPlan(l.t.Context(), plan)
}

// currentBase returns dev or its new name. It creates dev if both are missing.
func (l *branchLife) currentBase() string {
	l.t.Helper()
	switch {
	case l.hasBranch("dev"):
	case l.hasBranch("trunk"):
		return "trunk"
	default:
		l.create("dev")
	}
	return "dev"
}

// openRequests returns the assignment's open requests.
func (l *branchLife) openRequests() (open []giteaPullRequest) {
	l.t.Helper()
	if l.host == nil {
		return nil
	}
	for _, one := range listPullRequests(l.t, l.host.server, l.host.user) {
		if one.State == "open" && strings.Contains(one.Body, "flotilla-assignment: dev ") {
			open = append(open, one)
		}
	}
	return open
}

// branchErrors are the permitted errors of operations on a disturbed branch.
var branchErrors = []string{
	"Branch does not exist", "Repository has changed since the plan", "Pull request goes into another branch",
}

func checkBranchErrors(t *testing.T, what string, diags providertest.Diagnostics) {
	t.Helper()
	if diags.Err() == nil {
		return
	}
	for _, summary := range branchErrors {
		if diags.Has(summary) {
			return
		}
	}
	t.Errorf("%s: %s", what, diags)
}

// Disturbed operations fail only with branchErrors. With an existing branch, the next apply writes the configured content.
func TestAssignmentsRecoverFromDeletedRenamedAndRecreatedBranches(t *testing.T) {
	t.Parallel()
	deliveries := map[string]map[string]any{"push": nil, "request": requestDelivery(), "merge": requestDelivery("merge", "now")}
	operations := map[string]func(t *testing.T, l *branchLife, delivery map[string]any, disturb func(*branchLife), isLate bool){
		"create": func(t *testing.T, l *branchLife, delivery map[string]any, disturb func(*branchLife), isLate bool) {
			checkBranchErrors(t, "the create", l.planAndApply(l.configuration("dev", "three", delivery), disturb, isLate))
		},
		"update": func(t *testing.T, l *branchLife, delivery map[string]any, disturb func(*branchLife), isLate bool) {
			apply(t, l.w, l.configuration("dev", "one", nil))
			apply(t, l.w, l.configuration("dev", "two", delivery))
			checkBranchErrors(t, "the update", l.planAndApply(l.configuration("dev", "three", delivery), disturb, isLate))
		},
		"rollback": func(t *testing.T, l *branchLife, delivery map[string]any, disturb func(*branchLife), isLate bool) {
			apply(t, l.w, l.configuration("dev", "one", nil))
			first := git(t, l.repo.folder, "rev-parse", "dev")
			apply(t, l.w, l.configuration("dev", "two", delivery))
			configuration := l.configuration("dev", "two", delivery)
			configuration.Resources[assignment].Attributes["rollback_to"] = first
			diags := l.planAndApply(configuration, disturb, isLate)
			if !diags.Has("Cannot roll back to this commit") { // the commit is no longer on the branch
				checkBranchErrors(t, "the rollback", diags)
			}
		},
		"shrink": func(t *testing.T, l *branchLife, delivery map[string]any, disturb func(*branchLife), isLate bool) {
			apply(t, l.w, l.configuration("dev", "one", nil))
			apply(t, l.w, l.configuration("dev", "two", delivery))
			configuration := l.configuration("dev", "three", delivery)
			configuration.Resources[assignment].Attributes["fleet"] = coreFleet("three")
			checkBranchErrors(t, "the removal", l.planAndApply(configuration, disturb, isLate))
		},
		"move": func(t *testing.T, l *branchLife, delivery map[string]any, disturb func(*branchLife), isLate bool) {
			apply(t, l.w, l.configuration("dev", "one", nil))
			apply(t, l.w, l.configuration("dev", "two", delivery))
			configuration := l.configuration("main", "three", delivery)
			configuration.Resources[assignment].Attributes["gitops_repo"] = map[string]any{"url": l.repo.url, "branch": "main", "path": "elsewhere"}
			checkBranchErrors(t, "the move", l.planAndApply(configuration, disturb, isLate))
		},
		"destroy": func(t *testing.T, l *branchLife, delivery map[string]any, disturb func(*branchLife), isLate bool) {
			apply(t, l.w, l.configuration("dev", "one", nil))
			apply(t, l.w, l.configuration("dev", "two", delivery))
			diags := l.planAndApply(l.configuration("dev", "two", delivery), disturb, isLate, providertest.Destroy())
			checkBranchErrors(t, "the destroy", diags)
			if open := l.openRequests(); diags.Err() == nil && !l.hasBranch("dev") && len(open) > 0 {
				t.Errorf("got open requests %+v after the destroy, want none", open)
			}
		},
		"import": func(t *testing.T, l *branchLife, delivery map[string]any, disturb func(*branchLife), isLate bool) {
			other := providertest.New(startProvider)
			apply(t, other, l.configuration("dev", "one", nil))
			apply(t, other, l.configuration("dev", "two", delivery))
			if !isLate {
				disturb(l)
			}
			diags := l.w.Import(t.Context(), l.configuration("dev", "two", delivery), assignment, l.repo.url+"#dev::dev")
			if diags.Err() != nil && !diags.Has("Nothing to import") {
				t.Errorf("the import: %s", diags)
			}
			if isLate {
				checkBranchErrors(t, "the apply", l.planAndApply(l.configuration("dev", "three", delivery), disturb, isLate))
			}
		},
	}
	for _, disturbance := range disturbances {
		for mode, delivery := range deliveries {
			if delivery == nil && strings.Contains(disturbance.name, "head") {
				continue
			}
			for name, operation := range operations {
				for _, isLate := range []bool{false, true} {
					if name == "import" && strings.Contains(disturbance.name, "renamed") && delivery != nil {
						continue // without a state, the request is only found by its branches
					}
					if !acceptancetest.All() && !isInMakeTest(disturbance.name, mode, name, isLate) {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/%s/late=%t", name, mode, disturbance.name, isLate), func(t *testing.T) {
						t.Parallel()
						start := newBareBranchLife
						if delivery != nil {
							start = newBranchLife
						}
						life := start(t)
						operation(t, life, delivery, disturbance.do, isLate)
						life.checkRecovery(delivery)
					})
				}
			}
		}
	}
}

// isInMakeTest selects cases for `make test`: one disturbance of the base for each operation, and two operations with a request.
func isInMakeTest(disturbance, mode, operation string, isLate bool) bool {
	switch mode + " " + operation + " " + disturbance {
	case "request update base deleted", "request destroy both renamed",
		"push create base deleted", "push update base renamed and recreated", "push shrink base renamed", "push destroy base recreated":
		return isLate
	case "push rollback base recreated", "push move base renamed", "push import base deleted":
		return !isLate
	}
	return false
}

// checkRecovery applies with an existing branch. It expects the new content on the branch or in the only request, and an empty plan.
func (l *branchLife) checkRecovery(delivery map[string]any) {
	l.t.Helper()
	configuration := l.configuration(l.currentBase(), "four", delivery)
	plan, diags := l.w.Apply(l.t.Context(), configuration)
	if diags.Err() != nil {
		l.t.Fatalf("the apply with an existing branch fails: %s", diags)
	}
	if strings.Contains(strings.Join(linesOf(plan), " "), "by hand)") {
		l.t.Errorf("the plan reports changes by hand, but there are none: %q", linesOf(plan))
	}
	branch, open := l.currentBase(), l.openRequests()
	if delivery != nil && delivery["merge"] == nil {
		if len(open) != 1 {
			l.t.Fatalf("got open requests %+v, want one", open)
		}
		branch = open[0].Head.Ref
	} else if len(open) > 0 {
		l.t.Errorf("got open requests %+v, want none", open)
	}
	if content := l.repo.read(l.t, branch)["large/app-core/platform-config.yaml"]; !strings.Contains(content, "four") {
		l.t.Errorf("branch %s: got\n%s\nwant the value four", branch, content)
	}
	if next, diags := l.w.Plan(l.t.Context(), configuration); diags.Err() != nil || !next.Empty() {
		l.t.Errorf("the next plan is not empty: %s", diags)
		if next != nil {
			l.t.Errorf("its lines: %q", linesOf(next))
		}
	}
	if _, diags := l.w.Apply(l.t.Context(), configuration, providertest.Destroy()); diags.Err() != nil {
		l.t.Errorf("the destroy fails: %s", diags)
	}
}

// On a missing branch, data sources return nothing, and claims of clusters fail only with branchErrors.
func TestClaimsAndDataSourcesOnDeletedBranches(t *testing.T) {
	t.Parallel()
	for _, disturbance := range disturbances[:4] {
		for _, isLate := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/late=%t", disturbance.name, isLate), func(t *testing.T) {
				playsAlways := disturbance.name == "base deleted" || disturbance.name == "base recreated" && isLate
				if !playsAlways {
					acceptancetest.Only(t)
				}
				t.Parallel()
				l := newBareBranchLife(t)
				claim := func(number int) providertest.Configuration {
					attributes := claimOn(l.repo.url, "web", number, poolFleet("pool-1", "pool-2", "pool-3"))
					attributes["gitops_repo"] = map[string]any{"url": l.repo.url, "branch": "dev"}
					return claims(attributes)
				}
				apply(t, l.w, claim(1))
				checkBranchErrors(t, "a larger claim", l.planAndApply(claim(2), disturbance.do, isLate))
				if apply(t, l.w, claim(2)); l.hasBranch("trunk") {
					l.remove("trunk")
				}
				checkBranchErrors(t, "a destroy", l.planAndApply(claim(2), disturbance.do, isLate, providertest.Destroy()))
				l.remove("dev")
				for name, attributes := range map[string]map[string]any{
					"flotilla_history": {}, "flotilla_inventory": {}, "flotilla_compliance": {"name": "dev", "fleet": fleetOf(nil), "feedback": map[string]any{}},
					"flotilla_overview": {"name": "dev", "fleet": fleetOf(nil)}, "flotilla_diff": {"name": "dev", "fleet": fleetOf(nil)},
				} {
					attributes["gitops_repo"] = map[string]any{"url": l.repo.url, "branch": "dev"}
					if _, diags := l.w.ReadData(t.Context(), providertest.Configuration{}, name, attributes); diags.Err() != nil {
						t.Errorf("%s fails: %s", name, diags)
					}
				}
			})
		}
	}
}

func TestPlanWarnsOfTheMissingBaseOfARequest(t *testing.T) {
	t.Parallel()
	l := newBranchLife(t)
	l.remove("dev")
	configuration := l.configuration("dev", "one", requestDelivery())
	plan, diags := mustPlan(t, l.w, configuration)
	if !diags.Has("Branch does not exist yet") {
		t.Errorf("the plan does not warn of the missing branch: %s", diags)
	}
	if diags := l.w.ApplyPlan(t.Context(), plan); !diags.Has("Branch does not exist") ||
		!strings.Contains(diags.String(), "If it was deleted, create it.") {
		t.Errorf("the apply: got %s, want an error with the remedy", diags)
	}
	plan, _ = mustPlan(t, l.w, configuration)
	l.create("dev") // as another resource of the same run does
	if diags := l.w.ApplyPlan(t.Context(), plan); diags.Err() != nil || len(l.openRequests()) != 1 {
		t.Errorf("the apply: got %s and open requests %+v, want no error and one request", diags, l.openRequests())
	}
}

func TestMoveFromADeletedBranchClearsNothing(t *testing.T) {
	t.Parallel()
	l := newBareBranchLife(t)
	apply(t, l.w, l.configuration("dev", "one", nil))
	l.remove("dev")
	configuration := l.configuration("main", "one", nil)
	configuration.Resources[assignment].Attributes["gitops_repo"] = map[string]any{"url": l.repo.url, "branch": "main", "path": "elsewhere"}
	plan, diags := mustPlan(t, l.w, configuration)
	if !diags.Has("Former branch is gone") {
		t.Errorf("the plan does not warn of the former branch: %s", diags)
	}
	if diags := l.w.ApplyPlan(t.Context(), plan); diags.Err() != nil || l.hasBranch("dev") {
		t.Errorf("the apply fails or recreates dev: %s", diags)
	}
	if plan, diags := mustPlan(t, l.w, configuration); !plan.Empty() {
		t.Errorf("the next plan is not empty: %q %s", linesOf(plan), diags)
	}
}

// The plan warns, and the apply recreates the branch with the folders of its assignment only.
func TestEachAssignmentRestoresItsFoldersOnADeletedBranch(t *testing.T) {
	t.Parallel()
	l := newBareBranchLife(t)
	other := providertest.New(startProvider)
	otherConfiguration := func() providertest.Configuration {
		c := l.configuration("dev", "theirs", nil)
		c.Resources[assignment].Attributes["name"] = "other"
		c.Resources[assignment].Attributes["gitops_repo"] = map[string]any{"url": l.repo.url, "branch": "dev", "path": "other"}
		return c
	}
	apply(t, l.w, l.configuration("dev", "ours", nil))
	apply(t, other, otherConfiguration())
	l.remove("dev")

	plan, diags := mustPlan(t, l.w, l.configuration("dev", "ours", nil))
	if !diags.Has("Branch does not exist any more") || !strings.Contains(diags.String(), "It lacks those of other assignments until they are applied") {
		t.Errorf("the plan does not warn of the deleted branch: %s", diags)
	}
	if lines := strings.Join(linesOf(plan), "\n"); !strings.Contains(lines, "the branch is gone") {
		t.Errorf("the plan does not name the cause: %q", lines)
	}
	if diags := l.w.ApplyPlan(t.Context(), plan); diags.Err() != nil {
		t.Fatal(diags)
	}
	const ours, theirs = "large/app-core/platform-config.yaml", "other/large/app-core/platform-config.yaml"
	if branchFiles := l.repo.read(t, "dev"); branchFiles[ours] == "" || branchFiles[theirs] != "" {
		t.Errorf("got files %v, want %s without %s", branchFiles, ours, theirs)
	}

	plan, _ = mustPlan(t, other, otherConfiguration())
	if lines := strings.Join(linesOf(plan), "\n"); !strings.Contains(lines, "the branch was rewritten") {
		t.Errorf("the plan of the other assignment does not name the cause: %q", lines)
	}
	if diags := other.ApplyPlan(t.Context(), plan); diags.Err() != nil {
		t.Fatal(diags)
	}
	if branchFiles := l.repo.read(t, "dev"); branchFiles[ours] == "" || branchFiles[theirs] == "" {
		t.Errorf("got files %v, want %s and %s", branchFiles, ours, theirs)
	}
}
