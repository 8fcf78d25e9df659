//go:build unix

package provider_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reliabilitytest"
)

// stateConfiguration has one owner, a number of cluster types and as many deployment targets on each as requested.
const stateConfiguration = `
locals {
  state = %q
  tag   = "v1"
  fleet = provider::flotilla::fleet({
    environment   = "prod"
    workspaces    = [{ name = "team" }]
    cluster_types = [for i in range(%d) : { name = "${local.state}-${i}" }]
    workloads = [for i in range(%d) : {
      name               = "app-${i}"
      workspace          = "team"
      deployment_targets = { live = { environment = "prod", manifests = { repo = "https://git.example.com/app-${i}", tag = i == 0 ? local.tag : "v1" } } }
    }]
    target_policies = [{ name = "everywhere", deployment_target_selector = {}, cluster_type_selector = {} }]
  })
}

resource "flotilla_assignment" "this" {
  name        = local.state
  fleet       = local.fleet
  gitops_repo = { url = %q, branch = %q }
}

output "commit" {
  value = flotilla_assignment.this.commit
}
`

// TestReliabilityStates applies independent states to one branch at the same time: first all content, then a changed tag.
func TestReliabilityStates(t *testing.T) {
	if reliabilitytest.Count(0, 1) == 0 {
		t.Parallel()
	}
	acceptancetest.Only(t)
	tool := allTools(t)["terraform"]
	if tool == "" {
		t.Skip("terraform is not on this machine")
	}
	states, hosts, targets := reliabilitytest.Count(3, 10), reliabilitytest.Count(5, 500), reliabilitytest.Count(4, 20)
	p, pushes := newCountingPlace(t)
	checkObjects(t, p.bareFolder)
	var workdirs []workdir
	for i := range states {
		workdirs = append(workdirs, newWorkdir(t, tool, map[string]string{
			"main.tf": requiredProviders + fmt.Sprintf(stateConfiguration, fmt.Sprintf("state-%d", i), hosts, targets, p.repository.url, branch),
		}))
	}
	applyAll := func() (took time.Duration, pushed int64) {
		before, start := pushes.Load(), time.Now()
		runConcurrently(workdirs, func(w workdir) {
			if stdout, stderr, err := w.try("apply", "-input=false", "-auto-approve", "-no-color"); err != nil {
				t.Errorf("apply: %v\n%s%s", err, stdout[max(0, len(stdout)-2000):], stderr)
			}
		})
		return time.Since(start), pushes.Load() - before
	}
	first, firstPushes := applyAll()
	checkStates(t, p.bareFolder, workdirs, 1, hosts*targets)
	for _, w := range workdirs {
		mainFile := filepath.Join(w.path, "main.tf")
		writeFile(t, mainFile, strings.Replace(readFile(t, mainFile), `tag   = "v1"`, `tag   = "v2"`, 1))
	}
	second, secondPushes := applyAll()
	checkStates(t, p.bareFolder, workdirs, 2, hosts*targets)
	if tagged := strings.Count(git(t, p.bareFolder, "grep", "-h", "v2", branch, "--", "*.yaml"), "v2"); tagged < states*hosts {
		t.Errorf("%d folders have the new tag, want %d at least", tagged, states*hosts)
	}
	// The commits of the other states cause no change.
	runConcurrently(workdirs[:reliabilitytest.Count(states, 2)], func(w workdir) {
		if stdout, _, err := w.try("plan", "-input=false", "-detailed-exitcode", "-no-color"); err != nil {
			t.Errorf("the plan afterwards: %v\n%s", err, stdout[max(0, len(stdout)-2000):])
		}
	})
	reliabilitytest.Report(
		t,
		"16-states",
		"states are applied by a Terraform each, at the same moment, to one branch",
		"git http-backend",
		fmt.Sprintf("%d × %d assignments", states, hosts*targets),
		fmt.Sprintf(
			"0 lost; %.0f s, %d pushes, of which %d came too late; then one tag of each, on %d hosts: %.0f s, %d pushes, of which %d came too late",
			first.Seconds(),
			firstPushes,
			firstPushes-int64(states),
			hosts,
			second.Seconds(),
			secondPushes,
			secondPushes-int64(states),
		),
	)
}

// runConcurrently calls run for all folders at once, and waits.
func runConcurrently(workdirs []workdir, run func(workdir)) {
	var all sync.WaitGroup
	for _, w := range workdirs {
		all.Go(func() { run(w) })
	}
	all.Wait()
}

// newCountingPlace counts the pushes to a repository behind git's http-backend, which has files of others.
func newCountingPlace(t *testing.T) (p *killRepository, pushes *atomic.Int64) {
	t.Helper()
	pushes = new(atomic.Int64)
	return newForeignBackendRepository(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
				pushes.Add(1)
			}
			next.ServeHTTP(w, r)
		})
	}), pushes
}

// checkStates expects that many commits of each state on the branch, among them the commit in its output, and all folders of all states.
func checkStates(t *testing.T, repository string, workdirs []workdir, commits int, folders int) {
	t.Helper()
	history := strings.Fields(git(t, repository, "rev-list", "--grep=^Flotilla-", branch))
	if len(history) != commits*len(workdirs) {
		t.Errorf("the branch has %d commits, want %d of each of %d states", len(history), commits, len(workdirs))
	}
	foldersByState := map[string]int{}
	for folder := range strings.Lines(git(t, repository, "ls-tree", "-r", "-d", "--name-only", branch)) {
		if host, target, ok := strings.Cut(strings.TrimSpace(folder), "/"); ok && !strings.Contains(target, "/") &&
			strings.HasPrefix(host, "state-") {
			foldersByState[host[:strings.LastIndex(host, "-")]]++
		}
	}
	for i, w := range workdirs {
		if id := strings.Trim(strings.TrimSpace(w.run("output", "-raw", "commit")), `"`); !strings.Contains(strings.Join(history, " "), id) ||
			id == "" {
			t.Errorf("state %d names the commit %q, which is not in the history", i, id)
		}
		if name := fmt.Sprintf("state-%d", i); foldersByState[name] != folders {
			t.Errorf("%s has %d folders on the branch, want %d", name, foldersByState[name], folders)
		}
	}
}
