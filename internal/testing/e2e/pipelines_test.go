package e2e_test

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/webtest"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

// pipelineConfiguration has a rollout in two stages with a soak time as the only condition. Jobs share only the folder of the
// state.
const pipelineConfiguration = `
terraform {
  required_providers {
    flotilla = { source = "flotilla/flotilla" }
  }
  backend "local" {
    path = "%[1]s"
  }
}

locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "shop" }]
    cluster_types = [{ name = "canary" }, { name = "region" }]
    workloads = [{
      name = "web", workspace = "shop"
      deployment_targets = { live = { environment = "dev", manifests = { repo = "https://git.example.com/shop/web", tag = "v1" } } }
    }]
    target_policies = [{ name = "everywhere", cluster_type_selector = {} }]
  })
  gitops_repo = { url = "%[2]s", branch = "dev" }
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
  rollout     = { stages = [{ name = "canary", hosts = ["canary"], soak = "1s" }] }
}

data "flotilla_overview" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}
`

// pipelinePlatforms are the platforms of lock.sh.
var pipelinePlatforms = []string{"linux_amd64", "linux_arm64", "darwin_arm64", "windows_amd64"}

// pipelineMachine is a machine that runs pipelines. It has Terraform, and a mirror with the provider for several platforms.
type pipelineMachine struct {
	t           *testing.T
	server      *giteatest.Gitea
	user        giteatest.User
	folder      string
	environment []string
	gitops      *repository
	platform    *repository
}

func requirePipelinePrograms(t *testing.T) (tool, provider string) {
	t.Helper()
	tool, provider = os.Getenv("FLOTILLA_TERRAFORM"), os.Getenv("FLOTILLA_PROVIDER")
	if tool == "" || provider == "" {
		t.Skip("needs Terraform and the provider's binary, which `make e2e` names")
	}
	for _, program := range []string{"jq", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("jobs need %s: %v", program, err)
		}
	}
	return tool, provider
}

func newPipelineMachine(t *testing.T) *pipelineMachine {
	t.Helper()
	tool, provider := requirePipelinePrograms(t)
	server := giteatest.Start(t)
	user := server.User(t)
	m := &pipelineMachine{
		t: t, server: server, user: user, folder: t.TempDir(),
		gitops: newPrivateRepository(t, server, user, "gitops"), platform: newPrivateRepository(t, server, user, "fleet"),
	}
	programs := mkdir(t, m.folder, "bin")
	for _, name := range []string{"terraform", filepath.Base(tool)} {
		if err := os.Symlink(tool, filepath.Join(programs, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	mirror := filepath.Join(m.folder, "mirror")
	for _, host := range []string{"registry.terraform.io", "registry.opentofu.org"} {
		mirrorProvider(t, mkdir(t, mirror, host, "flotilla", "flotilla"), provider)
	}
	cli := filepath.Join(m.folder, "cli.tfrc")
	m.writeFile(cli, fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror))
	m.environment = []string{
		"PATH=" + programs + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + mkdir(t, m.folder, "home"),
		"TMPDIR=" + mkdir(t, m.folder, "tmp"), "TF_CLI_CONFIG_FILE=" + cli, "TF_CLI_ARGS_providers_lock=-fs-mirror=" + mirror,
		"CHECKPOINT_DISABLE=1", "GIT_CONFIG_NOSYSTEM=1",
	}
	return m
}

// mirrorProvider puts the provider for this platform into the folder of a mirror, and an empty provider for each other platform.
func mirrorProvider(t *testing.T, folder, provider string) {
	t.Helper()
	own := runtime.GOOS + "_" + runtime.GOARCH
	if err := os.Symlink(provider, filepath.Join(mkdir(t, folder, "0.0.1"), own)); err != nil {
		t.Fatal(err)
	}
	for _, platform := range pipelinePlatforms {
		if platform == own {
			continue
		}
		file, err := os.Create(filepath.Join(folder, "terraform-provider-flotilla_0.0.1_"+platform+".zip"))
		if err != nil {
			t.Fatal(err)
		}
		archive := zip.NewWriter(file)
		_, err = archive.Create("terraform-provider-flotilla_" + platform)
		if err := joinErrors(err, archive.Close(), file.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func (m *pipelineMachine) writeFile(path, text string) {
	m.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *pipelineMachine) writeProgram(name, text string) {
	m.t.Helper()
	path := filepath.Join(m.folder, "bin", name)
	m.writeFile(path, text)
	if err := os.Chmod(path, 0o700); err != nil {
		m.t.Fatal(err)
	}
}

// startProgram starts a program of a pipeline. A failed test logs its output.
func (m *pipelineMachine) startProgram(binary string, environment []string, args ...string) *processtest.Process {
	m.t.Helper()
	process, err := processtest.Start(m.t.Context(), processtest.Command{
		Name: filepath.Base(binary), Binary: programPath(m.t, binary), Args: args, Folder: m.folder,
		Environment: slices.Concat(m.environment, environment),
	})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		process.Stop()
		if m.t.Failed() {
			m.t.Logf("%s printed last:\n%s", binary, process.Log())
		}
	})
	return process
}

// readExample reads a file of examples/pipelines.
func (m *pipelineMachine) readExample(name string) string {
	m.t.Helper()
	root, err := processtest.Repository()
	if err != nil {
		m.t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "examples", "pipelines", name))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(text)
}

func (m *pipelineMachine) configuration() string {
	return fmt.Sprintf(pipelineConfiguration, filepath.ToSlash(filepath.Join(m.folder, "terraform.tfstate")), m.gitops.url)
}

// proposeChange opens a pull request with the configuration, its lock file and these files.
func (m *pipelineMachine) proposeChange(files map[string]string) (number int) {
	m.t.Helper()
	m.platform.push(map[string]string{"README.md": "The fleet\n"})
	m.writeFile(filepath.Join(m.platform.clone, "main.tf"), m.configuration())
	m.writeFile(filepath.Join(m.platform.clone, ".gitignore"), ".terraform\n")
	lock := exec.CommandContext(m.t.Context(), "sh", "-c", m.readExample("lock.sh"))
	lock.Dir, lock.Env = m.platform.clone, m.environment
	if printed, err := lock.CombinedOutput(); err != nil {
		m.t.Fatalf("lock.sh: %v\n%s", err, printed)
	}
	locked, err := os.ReadFile(filepath.Join(m.platform.clone, ".terraform.lock.hcl"))
	if err != nil || strings.Count(string(locked), "h1:") != len(pipelinePlatforms) {
		m.t.Fatalf("the lock file has no checksum of each platform: %v\n%s", err, locked)
	}
	return m.openPullRequest("change", files)
}

// openPullRequest pushes these files to a branch and opens a pull request.
func (m *pipelineMachine) openPullRequest(branch string, files map[string]string) (number int) {
	m.t.Helper()
	m.platform.pushTo(branch, files)
	var request struct{ Number int }
	body := map[string]any{"title": "Change web", "head": branch, "base": "main"}
	m.server.API(m.t, m.user, "POST", m.apiPath("/pulls"), body, &request)
	return request.Number
}

func (m *pipelineMachine) mergePullRequest(number int) {
	m.t.Helper()
	m.server.API(m.t, m.user, "POST", m.apiPath("/pulls/%d/merge", number), map[string]any{"Do": "merge"}, nil)
}

// apiPath returns the path of the platform's repository in Gitea's API, followed by rest.
func (m *pipelineMachine) apiPath(rest string, args ...any) string {
	return "/repos/" + m.user.Name + "/fleet" + fmt.Sprintf(rest, args...)
}

// checkComment checks that one comment on a pull request contains all of these texts.
func (m *pipelineMachine) checkComment(number int, want ...string) error {
	var comments []struct{ Body string }
	m.server.API(m.t, m.user, "GET", m.apiPath("/issues/%d/comments", number), nil, &comments)
	for _, comment := range comments {
		if !slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(comment.Body, text) }) {
			return nil
		}
	}
	return fmt.Errorf("no comment has %q: %v", want, comments)
}

// listAdditions lists, for each commit of the GitOps repository, the cluster types that receive the deployment target.
func (m *pipelineMachine) listAdditions() []string {
	m.t.Helper()
	m.gitops.git("fetch", "--quiet", m.gitops.pushURL, "dev")
	var added []string
	for commit := range strings.FieldsSeq(m.gitops.git("log", "--reverse", "--format=%H", "FETCH_HEAD")) {
		var hosts []string
		for file := range strings.FieldsSeq(m.gitops.git("show", "--format=", "--name-only", "--diff-filter=A", commit, "--", "*/web-live/*")) {
			host, _, _ := strings.Cut(file, "/")
			hosts = append(hosts, host)
		}
		slices.Sort(hosts)
		added = append(added, strings.Join(slices.Compact(hosts), " and "))
	}
	return added
}

// listWrittenHosts lists the cluster types with the deployment target in their folder.
func (m *pipelineMachine) listWrittenHosts() []string {
	output, err := git(m.t.Context(), m.gitops.clone, "ls-remote", m.gitops.pushURL, "dev")
	if err != nil || len(output) == 0 {
		return nil
	}
	var hosts []string
	for _, host := range []string{"canary", "region"} {
		if len(m.gitops.listFiles(host+"/web-live")) > 0 {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// removeByHand removes the deployment target from the folder of a cluster type.
func (m *pipelineMachine) removeByHand(host string) {
	m.t.Helper()
	m.gitops.git("fetch", "--quiet", m.gitops.pushURL, "dev")
	m.gitops.git("checkout", "--quiet", "FETCH_HEAD")
	m.gitops.git("rm", "--quiet", "-r", host+"/web-live")
	m.gitops.git("commit", "--quiet", "-m", "Remove web")
	m.gitops.git("push", "--quiet", m.gitops.pushURL, "HEAD:dev")
}

// ghProgram stands in for GitHub's gh: it comments on a pull request of Gitea.
const ghProgram = `#!/bin/sh
jq -Rs '{body: .}' "$5" | curl --fail --silent --show-error --header "Authorization: token $GH_TOKEN" \
  --header "Content-Type: application/json" --data @- "$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues/$3/comments"
`

// checkoutSteps stand in for actions/checkout.
const checkoutSteps = `
    - shell: sh
      run: |
        git init --quiet
        git -c http.extraHeader="Authorization: Basic $(printf 'x:%s' "${{ github.token }}" | base64)" \
          fetch --quiet --depth 1 "${{ github.server_url }}/${{ github.repository }}" "${{ github.sha }}"
        git checkout --quiet FETCH_HEAD
`

// TestActions delivers a change from a pull request to the clusters' folders with a runner of Actions. The plan is a comment on
// the pull request. The merge writes the first stage. Scheduled runs write the second stage and repair drift.
func TestActions(t *testing.T) {
	t.Parallel()
	requirePipelinePrograms(t)
	t.Run("Gitea", func(t *testing.T) {
		t.Parallel()
		newPipelineMachine(t).runActions("gitea-actions.yml", ".gitea/workflows/fleet.yml")
	})
	// Gitea also runs workflows of GitHub.
	t.Run("GitHub", func(t *testing.T) {
		t.Parallel()
		m := newPipelineMachine(t)
		m.hostAction("actions", "checkout", "v4", checkoutSteps)
		m.hostAction("hashicorp", "setup-terraform", "v3", "\n    - shell: sh\n      run: terraform version\n")
		m.writeProgram("gh", ghProgram)
		m.runActions("github-actions.yml", ".github/workflows/fleet.yml")
	})
}

// hostAction publishes an action on the test's Gitea, because the runner has no internet.
func (m *pipelineMachine) hostAction(owner, name, tag, steps string) {
	m.t.Helper()
	m.server.API(m.t, m.user, "POST", "/orgs", map[string]any{"username": owner}, nil)
	m.server.API(m.t, m.user, "POST", "/orgs/"+owner+"/repos", map[string]any{"name": name, "default_branch": "main"}, nil)
	remote := strings.Replace(m.platform.pushURL, m.user.Name+"/fleet.git", owner+"/"+name+".git", 1)
	action := &repository{t: m.t, pushURL: remote, clone: m.t.TempDir()}
	action.git("init", "--quiet", "-b", "main")
	action.push(map[string]string{
		"action.yml": "name: " + name + "\ninputs:\n  terraform_wrapper:\n    default: ''\nruns:\n  using: composite\n  steps:" + steps,
	})
	action.pushTag(tag)
}

func (m *pipelineMachine) runActions(example, path string) {
	m.t.Helper()
	t, server, user := m.t, m.server, m.user
	bed := &testbed{}
	server.API(t, user, "PATCH", m.apiPath(""), map[string]any{"has_actions": true}, nil)
	server.API(t, user, "PUT", m.apiPath("/actions/secrets/GITOPS_TOKEN"), map[string]any{"data": user.Token}, nil)
	var registration struct{ Token string }
	server.API(t, user, "POST", m.apiPath("/actions/runners/registration-token"), nil, &registration)
	m.startProgram("act-runner", nil, server.URL, registration.Token, mkdir(t, m.folder, "jobs"))

	// Gitea adds a minute to each interval after the first.
	workflow := strings.ReplaceAll(m.readExample(example), "*/10 * * * *", "@every 5s")
	number := m.proposeChange(map[string]string{path: workflow})
	eventually := func(title string, check func() error) {
		t.Helper()
		bed.step(t, "actions", title, func() {
			eventually(t, func() error {
				m.checkRuns()
				return check()
			})
		})
	}
	waitForHost := func(title, host string) {
		t.Helper()
		eventually(title, func() error {
			if got := m.listWrittenHosts(); !slices.Contains(got, host) {
				return fmt.Errorf("hosts with the deployment target: got %v, want %s among them", got, host)
			}
			return nil
		})
	}
	eventually("the plan is a comment", func() error {
		return m.checkComment(number, "## Flotilla", "+ canary/web-live", "Plan: 1 to add")
	})
	if got := m.listWrittenHosts(); got != nil {
		t.Errorf("the plan wrote the folders of %v", got)
	}
	m.mergePullRequest(number)
	waitForHost("the merge writes the first stage", "canary")
	waitForHost("a run on the schedule writes the second", "region")
	if got := m.listAdditions(); !slices.Equal(got, []string{"canary", "region"}) {
		t.Errorf("the commits add the deployment target to %v, want canary, then region", got)
	}
	m.removeByHand("region")
	waitForHost("a run on the schedule repairs drift", "region")
}

// checkRuns fails the test if a run of Actions failed.
func (m *pipelineMachine) checkRuns() {
	m.t.Helper()
	var runs struct {
		WorkflowRuns []struct{ Event, Conclusion string } `json:"workflow_runs"`
	}
	m.server.API(m.t, m.user, "GET", m.apiPath("/actions/runs"), nil, &runs)
	for _, run := range runs.WorkflowRuns {
		if run.Conclusion == "failure" {
			m.t.Fatalf("a run after %s has failed", run.Event)
		}
	}
}

// TestAtlantis delivers a change from a pull request to the clusters' folders with Atlantis. The plan is a comment on the pull
// request. Scheduled calls write the stages and repair drift, even while another pull request has a plan.
func TestAtlantis(t *testing.T) {
	t.Parallel()
	m := newPipelineMachine(t)
	server, user := m.server, m.user
	bed := &testbed{}
	ports, err := processtest.FreePorts(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	distribution := map[bool]string{false: "terraform", true: "opentofu"}[filepath.Base(os.Getenv("FLOTILLA_TERRAFORM")) == "tofu"]
	repos := filepath.Join(m.folder, "repos.yaml")
	m.writeFile(repos, m.readExample("atlantis/repos.yaml"))
	atlantis := m.startProgram("atlantis", []string{
		"ATLANTIS_REPO_CONFIG=" + repos, "ATLANTIS_API_SECRET=secret", "ATLANTIS_ALLOW_COMMANDS=plan,unlock", "FLOTILLA_GIT_TOKEN=" + user.Token,
		"ATLANTIS_GITEA_BASE_URL=" + server.URL, "ATLANTIS_GITEA_USER=" + user.Name, "ATLANTIS_GITEA_TOKEN=" + user.Token,
		"ATLANTIS_GITEA_WEBHOOK_SECRET=secret", "ATLANTIS_REPO_ALLOWLIST=*", fmt.Sprintf("ATLANTIS_PORT=%d", ports[0]),
		"ATLANTIS_ATLANTIS_URL=" + url, "ATLANTIS_DATA_DIR=" + mkdir(t, m.folder, "atlantis"), "ATLANTIS_TF_DOWNLOAD=false",
		"ATLANTIS_DEFAULT_TF_DISTRIBUTION=" + distribution,
	}, "server")
	eventually(t, func() error {
		select {
		case <-atlantis.Exited():
			t.Fatal("Atlantis has ended")
		default:
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/healthz", nil)
		if err != nil {
			return err
		}
		response, err := webtest.Client.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	})
	server.API(t, user, "POST", m.apiPath("/hooks"), map[string]any{
		"type": "gitea", "active": true, "events": []string{"pull_request", "pull_request_sync", "pull_request_comment"},
		"config": map[string]any{"url": url + "/events", "content_type": "json", "secret": "secret"},
	}, nil)

	number := m.proposeChange(map[string]string{"atlantis.yaml": m.readExample("atlantis/atlantis.yaml")})
	waitForComment := func(title string, number int, want ...string) {
		t.Helper()
		bed.step(t, "atlantis", title, func() { eventually(t, func() error { return m.checkComment(number, want...) }) })
	}
	waitForComment("the plan is a comment", number, "+ canary/web-live", "Plan: 1 to add")
	server.API(t, user, "POST", m.apiPath("/issues/%d/comments", number), map[string]any{"body": "atlantis apply"}, nil)
	waitForComment("an apply on the request is refused", number, `unknown command "apply"`)
	if got := m.listWrittenHosts(); got != nil {
		t.Errorf("the plan wrote the folders of %v", got)
	}
	m.mergePullRequest(number)
	callSchedule := func(title, host string) {
		t.Helper()
		bed.step(t, "atlantis", title, func() {
			call := exec.CommandContext(t.Context(), "sh", "-c", m.readExample("atlantis/schedule.sh"))
			call.Env = slices.Concat(m.environment, []string{
				"ATLANTIS_URL=" + url, "ATLANTIS_API_SECRET=secret", "REPOSITORY=" + user.Name + "/fleet", "GIT_HOST=Gitea",
			})
			if printed, err := call.CombinedOutput(); err != nil {
				t.Fatalf("schedule.sh: %v\n%s", err, printed)
			}
			if got := m.listWrittenHosts(); !slices.Contains(got, host) {
				t.Fatalf("hosts with the deployment target: got %v, want %s among them", got, host)
			}
		})
	}
	callSchedule("a call of the schedule writes the first stage", "canary")
	time.Sleep(time.Second) // the soak time
	callSchedule("a call of the schedule writes the second", "region")
	if got := m.listAdditions(); !slices.Equal(got, []string{"canary", "region"}) {
		t.Errorf("the commits add the deployment target to %v, want canary, then region", got)
	}
	number = m.openPullRequest("newer", map[string]string{"main.tf": strings.ReplaceAll(m.configuration(), `"v1"`, `"v2"`)})
	waitForComment("the plan of another request is a comment", number, "Plan: 0 to add, 1 to change")
	m.removeByHand("region")
	callSchedule("a call of the schedule repairs drift", "region")
}
