package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"
)

// environments is a configuration of environments in one GitOps repository, each with a branch of its name.
type environments struct {
	w             workdir
	configuration map[string]string
	url           string
	names         []string
}

func newEnvironments(t *testing.T, tool string, configuration map[string]string, url string, names ...string) *environments {
	t.Helper()
	return &environments{newWorkdir(t, tool, configuration), configuration, url, names}
}

// testEnvironments runs a test with each tool on an example.
func testEnvironments(t *testing.T, tools map[string]string, name string, names []string, test func(t *testing.T, e *environments)) {
	t.Helper()
	for tool, path := range tools {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			url := filepath.ToSlash(filepath.Join(t.TempDir(), "gitops.git"))
			test(t, newEnvironments(t, path, exampleConfiguration(t, name, url), url, names...))
		})
	}
}

func (e *environments) branchTips() map[string]string {
	e.w.t.Helper()
	tips := map[string]string{}
	if _, err := os.Stat(e.url); err != nil && !strings.Contains(e.url, "://") {
		return tips
	}
	for line := range strings.Lines(git(e.w.t, e.w.t.TempDir(), "ls-remote", "--heads", e.url)) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		tips[strings.TrimPrefix(name, "refs/heads/")] = id
	}
	return tips
}

// apply returns the environments with a changed branch.
func (e *environments) apply() []string {
	e.w.t.Helper()
	before := e.branchTips()
	e.w.run("apply", "-input=false", "-auto-approve")
	var changed []string
	for name, tip := range e.branchTips() {
		if slices.Contains(e.names, name) && before[name] != tip {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed
}

// applyUntilSettled applies until a plan is empty, and expects branches to change in this order, one per apply.
func (e *environments) applyUntilSettled(through ...string) {
	e.w.t.Helper()
	var order []string
	for range 4 * len(e.names) {
		changed := e.apply()
		if len(changed) > 1 {
			e.w.t.Fatalf("one apply writes %v", changed)
		}
		order = append(order, changed...)
		if _, _, err := e.w.try("plan", "-input=false", "-detailed-exitcode"); err == nil {
			if !slices.Equal(order, through) {
				e.w.t.Fatalf("got changes of %v, want %v", order, through)
			}
			return
		}
	}
	e.w.t.Fatalf("no plan is empty after changes of %v", order)
}

func (e *environments) replaceText(from, to string) {
	e.w.t.Helper()
	for name, content := range e.configuration {
		if changed := strings.ReplaceAll(content, from, to); changed != content {
			e.configuration[name] = changed
			writeFile(e.w.t, filepath.Join(e.w.path, filepath.FromSlash(name)), changed)
		}
	}
}

// exampleConfiguration returns the files of an example for this GitOps repository.
func exampleConfiguration(t *testing.T, name, url string) map[string]string {
	t.Helper()
	configuration := files(t, filepath.Join("..", "..", "examples", filepath.FromSlash(name)))
	all := ""
	for name, content := range configuration {
		configuration[name] = strings.ReplaceAll(content, `"gitops.git"`, strconv.Quote(url))
		all += content
	}
	if !strings.Contains(all, "required_providers") {
		configuration["required_providers.tf"] = requiredProviders
	}
	return configuration
}

// No apply writes both dev and prod. A plan shows the proven value.
func TestPromotionInOneConfigurationMovesOneStagePerApply(t *testing.T) {
	t.Parallel()
	testEnvironments(t, acceptanceTools(t), "rollouts/promotion", []string{"dev", "prod"}, func(t *testing.T, e *environments) {
		e.w.run("apply", "-input=false", "-auto-approve") // each environment starts with its own versions
		e.applyUntilSettled("prod")                       // prod gets the first versions of dev
		e.replaceText("1.8.0", "1.9.0")

		plan := e.w.plan()
		dev := resourceChange(t, plan, "flotilla_assignment.dev")
		if former, proven := field(dev.Before, "proven"), field(dev.After, "proven"); fmt.Sprint(former) != fmt.Sprint(proven) || former == nil {
			t.Errorf("the plan that writes changes proven from %v to %v", former, proven)
		}
		if changed := e.apply(); !slices.Equal(changed, []string{"dev"}) {
			t.Fatalf("the first apply writes %v", changed)
		}
		plan = e.w.plan()
		dev = resourceChange(t, plan, "flotilla_assignment.dev")
		if proven := fmt.Sprint(field(dev.After, "proven")); !strings.Contains(proven, "1.9.0") ||
			!strings.Contains(fieldText(dev.After, "changes"), "the candidate is proven") {
			t.Errorf("the next plan has changes %v and proven %s", fieldText(dev.After, "changes"), proven)
		}
		if prod := resourceChange(t, plan, "flotilla_promotion.prod"); strings.Contains(fieldText(prod.After, "promoted"), "1.9.0") ||
			!strings.Contains(fieldText(prod.After, "waiting_for"), "the next plan") {
			t.Errorf("a new candidate is promoted at once: %v", prod.After)
		}
		if changed := e.apply(); len(changed) > 0 {
			t.Fatalf("the second apply writes %v", changed)
		}
		plan = e.w.plan()
		if prod := resourceChange(t, plan, "flotilla_promotion.prod"); !strings.Contains(fieldText(prod.After, "promoted"), "1.9.0") {
			t.Errorf("the next plan does not promote the candidate: %v", prod.After)
		}
		e.applyUntilSettled("prod")
	})
}

func TestVersionsOfACompanyMoveOneEnvironmentPerApply(t *testing.T) {
	t.Parallel()
	testEnvironments(t, acceptanceTools(t), "company", []string{"dev", "stage", "prod"}, func(t *testing.T, e *environments) {
		e.apply()
		for name, want := range map[string]bool{"dev": true, "stage": false, "prod": false} { // stage and prod are empty before the first promotion
			if got := strings.Contains(git(t, e.url, "ls-tree", "-r", "--name-only", name), "namespace.yaml"); got != want {
				t.Errorf("the first apply writes workloads to %s: got %v, want %v", name, got, want)
			}
		}
		e.applyUntilSettled("stage", "prod")
		e.replaceText(`"4.2.0"`, `"4.3.0"`)
		e.applyUntilSettled("dev", "stage", "prod") // in prod only the canary, which soaks for an hour
	})
}

const lifeOfAControlPlane = `
apiVersion: scheduler.kalypso.io/v1alpha1
kind: Workload
metadata:
  name: web
  labels:
    type: application
spec:
  deploymentTargets:
    - name: live-dev
      environment: dev
      manifests:
        repo: https://git.example.com/web
        branch: main
        path: .
    - name: live-stage
      environment: stage
      manifests:
        repo: https://git.example.com/web
        branch: main
        path: .
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: SchedulingPolicy
metadata:
  name: everywhere
spec:
  deploymentTargetSelector:
    workspace: web
  clusterTypeSelector:
    labelSelector: {}
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: WorkloadRegistration
metadata:
  name: web
spec:
  workload:
    repo: https://git.example.com/web
    branch: main
    path: .
  workspace: web
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: all
  labels:
    platform-config: "true"
data:
  VERSION: %s
`

func TestControlPlaneCommitMovesOneEnvironmentPerApply(t *testing.T) {
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSources(t)
			url := filepath.ToSlash(filepath.Join(t.TempDir(), "gitops.git"))
			configuration := exampleConfiguration(t, "sources/promotion", url)
			for name, content := range configuration {
				configuration[name] = s.config(content)
			}
			e := newEnvironments(t, tool, configuration, url, "dev", "stage")
			e.w.run("apply", "-input=false", "-auto-approve")
			for _, value := range []string{"one", "two"} {
				s.commit("platform/control-plane.git", "main", map[string]string{"life.yaml": fmt.Sprintf(lifeOfAControlPlane, value)})
				e.applyUntilSettled("dev", "stage")
				for _, environment := range e.names {
					if content := git(t, url, "show", environment+":"+environment+"-large/web-live-"+environment+"/platform-config.yaml"); !strings.Contains(
						content,
						value,
					) {
						t.Errorf("%s has %s", environment, content)
					}
				}
			}
		})
	}
}

// A proposed value is not proven before the merge.
func TestPromotionWaitsForAPullRequestToBeMerged(t *testing.T) {
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, server, user := giteaWithUser(t)
			configuration := exampleConfiguration(t, "rollouts/promotion", repo.url)
			configuration["provider.tf"] = repo.provider
			e := newEnvironments(t, tool, configuration, repo.cloneURL, "dev", "prod")
			e.w.run("apply", "-input=false", "-auto-approve")
			e.applyUntilSettled("prod")
			e.replaceText(`branch = "dev" }`, "branch = \"dev\" }\n  delivery = { mode = \"pull_request\", forge = \"gitea\" }")
			e.replaceText("1.8.0", "1.9.0")
			e.applyUntilSettled() // applies change no branch while the request is open
			if state := e.w.run("show", "-no-color"); !strings.Contains(state, `payments = "1.8.0"`) {
				t.Errorf("no candidate is proven any more:\n%s", state)
			}
			open := listPullRequests(t, server, user)
			if len(open) != 1 {
				t.Fatalf("got requests %v, want one", open)
			}
			mergeRequest(t, server, user, open[0].Number, open[0].Head.SHA)
			e.applyUntilSettled("prod")
			if all := listPullRequests(t, server, user); len(all) != 1 {
				t.Errorf("got requests %v, want one", all)
			}
		})
	}
}

// A workload's gate is closed while its change rolls out, from the plan of the change on.
func TestSingleWorkloadsArePromotedAtTheirOwnPace(t *testing.T) {
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			configuration := func(payments string) string {
				return requiredProviders + guideBlock(t, promotionGuide, "for_each  = local.versions") + fmt.Sprintf(`
locals {
  versions = { payments = %q, reports = "1.0.0" }
  dev = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "team" }]
    cluster_types = [{ name = "large" }]
    workloads = [for name, version in local.versions : {
      name = name, workspace = "team"
      deployment_targets = { live = { environment = "dev", manifests = { repo = "https://git.example.com/${name}", tag = version } } }
    }]
    target_policies = [{ name = "everywhere", deployment_target_selector = {}, cluster_type_selector = {} }]
  })
}

data "flotilla_compliance" "dev" {
  name        = "dev"
  fleet       = local.dev
  gitops_repo = { url = "gitops.git", branch = "dev" }
  feedback    = {}
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.dev
  gitops_repo = { url = "gitops.git", branch = "dev" }
  rollout     = { stages = [] }
  evidence    = data.flotilla_compliance.dev.evidence
}
`, payments)
			}
			w := newWorkdir(t, tool, map[string]string{"main.tf": configuration("1.0.0")})
			promotedVersion := func(workload string, plan *tfjson.Plan) string {
				return fieldText(resourceChange(t, plan, fmt.Sprintf("flotilla_promotion.stage[%q]", workload)).After, "promoted")
			}
			// applyUntil applies until both workloads are promoted, and fails if payments is promoted during its rollout.
			applyUntil := func(payments string) {
				t.Helper()
				for run := range 8 {
					plan := w.plan()
					rollingOutText := fieldText(resourceChange(t, plan, "flotilla_assignment.dev").After, "rolling_out")
					proven := promotedVersion("payments", plan)
					if proven == payments && (run == 0 || strings.Contains(rollingOutText, "payments-live")) {
						t.Fatalf("run %d promotes %s during its rollout: %s", run, proven, rollingOutText)
					}
					w.run("apply", "-input=false", "plan.out")
					if proven == payments && promotedVersion("reports", plan) == "1.0.0" {
						return
					}
				}
				t.Errorf("payments %s is never promoted", payments)
			}
			applyUntil("1.0.0")
			writeFile(t, filepath.Join(w.path, "main.tf"), configuration("1.1.0"))
			plan := w.plan()
			if dev := resourceChange(t, plan, "flotilla_assignment.dev"); !strings.Contains(fieldText(dev.After, "rolling_out"), "payments-live") ||
				promotedVersion("payments", plan) != "1.0.0" {
				t.Errorf("the plan of the change: got %v, which promotes %s", dev.After, promotedVersion("payments", plan))
			}
			if promotedVersion("reports", plan) != "1.0.0" {
				t.Error("reports waits for payments")
			}
			applyUntil("1.1.0")
		})
	}
}
