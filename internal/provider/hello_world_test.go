package provider_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

func resourceChange(t *testing.T, plan *tfjson.Plan, address string) *tfjson.Change {
	t.Helper()
	for _, resource := range plan.ResourceChanges {
		if resource.Address == address {
			return resource.Change
		}
	}
	t.Fatalf("the plan has no change of %s", address)
	return nil
}

// TestHelloWorld runs the example up to the first stage of its rollout with one tool and the provider in this process. `make acceptance`
// runs all of it with both tools and the installed provider, and plans after each apply.
func TestHelloWorld(t *testing.T) {
	t.Parallel()
	all := allTools(t)
	for _, name := range []string{"terraform", "tofu"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if all[name] == "" {
				t.Skipf("%s is not on this machine", name)
			}
			if name == "tofu" && all["terraform"] != "" {
				acceptancetest.Only(t)
			}
			testHelloWorld(t, all[name])
		})
	}
}

const changedDatabase = "-var=database_address=mysql://west:8806/mysql3"

func testHelloWorld(t *testing.T, tool string) {
	newFolder := newServedWorkdir
	if acceptancetest.All() {
		newFolder = newWorkdir
	}
	w := newFolder(t, tool, files(t, filepath.Join("..", "..", "examples", "hello-world")))
	if !acceptancetest.All() { // the provider in this process has another working folder
		w.environment = append(w.environment, "TF_VAR_gitops_url="+filepath.ToSlash(filepath.Join(w.path, "gitops.git")))
	}

	plan := w.plan()
	for _, resource := range plan.ResourceChanges {
		if strings.HasPrefix(resource.Address, "data.") {
			t.Errorf("%s is deferred to apply", resource.Address)
		}
	}
	first := resourceChange(t, plan, `flotilla_assignment.all["dev"]`)
	if field(first.AfterUnknown, "content") != true {
		t.Errorf("content is %v at plan, want it known after apply, like a value of large", field(first.After, "content"))
	}
	w.run("apply", "-input=false", "plan.out")

	repo := repository{url: filepath.Join(w.path, "gitops.git"), cloneURL: filepath.Join(w.path, "gitops.git")}
	for _, branch := range []string{"dev", "stage"} {
		if commits := repo.commits(t, branch); commits != 1 {
			t.Errorf("branch %s has %d commits, want one", branch, commits)
		}
	}
	if acceptancetest.All() {
		w.run("plan", "-input=false", "-detailed-exitcode")
	}
	config := repo.read(t, "dev")["large/hello-world-app-performance-test/platform-config.yaml"]
	if !strings.Contains(config, "mysql://west:8806/mysql2") || !strings.Contains(config, `SOME_COMMON_ENVIRONMENT_VARIABLE: "false"`) {
		t.Errorf("the configuration of large is\n%s", config)
	}

	// A changed value changes only its own host.
	before := git(t, repo.url, "rev-parse", "dev")
	if acceptancetest.All() {
		second := resourceChange(t, w.plan(changedDatabase), `flotilla_assignment.all["dev"]`)
		if field(second.AfterUnknown, "content") != true {
			t.Errorf("content is %v at plan, want it known after apply", field(second.After, "content"))
		}
		w.run("apply", "-input=false", "plan.out")
	} else {
		w.run("apply", "-input=false", "-auto-approve", changedDatabase)
	}
	changed := git(t, repo.url, "diff", "--name-only", before, "dev")
	if changed != ".flotilla/dev/large.json\nlarge/hello-world-app-performance-test/platform-config.yaml" {
		t.Errorf("changed files:\n%s", changed)
	}

	if acceptancetest.All() {
		loseHelloWorldState(t, w, repo)
	}
	state, err := os.ReadFile(filepath.Join(w.path, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	for _, rendered := range []string{"kind: Namespace", "kustomize.toolkit.fluxcd.io"} {
		if bytes.Contains(state, []byte(rendered)) {
			t.Errorf("the state holds rendered content: %q", rendered)
		}
	}
	rollOutHelloWorld(t, w, repo)
	w.run("destroy", "-input=false", "-auto-approve", changedDatabase)
	if left := git(t, repo.url, "ls-tree", "-r", "--name-only", "dev"); left != "command-center/dev-team.md\ndrone/dev-team.md\nlarge/dev-team.md\nsmall/dev-team.md" {
		t.Errorf("destroy left %s, want the markers, so that agents prune", left)
	}
}

// loseHelloWorldState applies without a state, which adopts everything. Only the records change: they name the state that holds them.
func loseHelloWorldState(t *testing.T, w workdir, repo repository) {
	t.Helper()
	before := git(t, repo.url, "rev-parse", "dev")
	if err := os.Remove(filepath.Join(w.path, "terraform.tfstate")); err != nil {
		t.Fatal(err)
	}
	w.run("apply", "-input=false", "-auto-approve", changedDatabase)
	for _, name := range strings.Split(git(t, repo.url, "diff", "--name-only", before, "dev"), "\n") {
		if !strings.HasPrefix(name, ".flotilla/dev/") {
			t.Errorf("applying without a state changed %q", name)
		}
	}
}

func rollOutHelloWorld(t *testing.T, w workdir, repo repository) {
	t.Helper()
	for name, content := range files(t, filepath.Join("..", "..", "examples", "hello-world", "rollout")) {
		writeFile(t, filepath.Join(w.path, name), content)
	}
	edit := func(name, old, by string) {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(w.path, name))
		if err != nil || !strings.Contains(string(content), old) {
			t.Fatalf("%s has no %q: %v", name, old, err)
		}
		writeFile(t, filepath.Join(w.path, name), strings.Replace(string(content), old, by, 1))
	}
	edit("main.tf", "name        = each.key", `name        = "${each.key}-team"`)
	w.run("apply", "-input=false", "-auto-approve", changedDatabase)
	edit("platform.tf", `"Stage"`, `"Staging"`)

	var reports []string
	report := func(cluster string) {
		reports = append(reports, fmt.Sprintf(`{"cluster": %q, "commit": %q, "ready": true}`, cluster, git(t, repo.url, "rev-parse", "stage")))
		writeFile(t, filepath.Join(w.path, "reports.json"), "["+strings.Join(reports, ", ")+"]")
	}
	run := func(rolledOut bool, changed string, lines ...string) {
		t.Helper()
		before := git(t, repo.url, "rev-parse", "stage")
		after := resourceChange(t, w.plan(changedDatabase), `flotilla_assignment.all["stage"]`).After
		for _, line := range lines {
			if got := fmt.Sprint(field(after, "changes")); !strings.Contains(got, line) {
				t.Errorf("changes are %s, want %q", got, line)
			}
		}
		if field(after, "rolled_out") != rolledOut {
			t.Errorf("rolled_out is %v, want %v", field(after, "rolled_out"), rolledOut)
		}
		w.run("apply", "-input=false", "plan.out")
		if got := git(t, repo.url, "diff", "--name-only", before, "stage", "--", "drone", "large"); got != changed {
			t.Errorf("changed files:\n%s", got)
		}
		w.run("plan", "-input=false", "-detailed-exitcode", changedDatabase)
	}
	run(
		false,
		"drone/hello-world-app-uat-test/platform-config.yaml",
		fileLine("", "data.ENVIRONMENT", "drone/hello-world-app-uat-test", causeBy(changes.ByContainer, "stage")),
		`at stage 1 of 2 "canary", on 1 of 2 hosts: waits for clusters to be ready`,
	)
	if !acceptancetest.All() { // TestTheGuideOnStagedRolloutsGoesFromStageToStage has the further stages
		return
	}
	report("drone-1")
	run(
		false,
		"large/hello-world-app-uat-test/platform-config.yaml",
		fileLine("", "data.ENVIRONMENT", "large/hello-world-app-uat-test", causeBy(changes.ByContainer, "stage")),
	)
	report("large-1")
	run(true, "")
}
