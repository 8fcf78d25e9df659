package provider_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The commits of the team and of the control plane succeed once all clusters run them. A new version starts with its own
// commit.
func TestACommitSaysWhetherItRuns(t *testing.T) {
	t.Parallel()
	for _, tool := range acceptanceTools(t) {
		host := &standInStatuses{}
		url := bare(t)
		const next = "89e6c98d92887913cadf06b2adb97f26cde4849b"
		text := strings.NewReplacer("https://git.example.com", host.start(t), `"gitops.git"`, fmt.Sprintf("%q", url)).
			Replace(readFile(t, filepath.Join("..", "..", "examples", "observing", "commit-status", "main.tf")))
		app := regexp.MustCompile(`app = \{.*commit = "([0-9a-f]{40})"`).FindStringSubmatch(text)[1]
		w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders})
		run := func(text, commit string) {
			t.Helper()
			reports := "reports = []"
			if commit != "" {
				reports = fmt.Sprintf(
					`reports = [for cluster in ["drone-1", "drone-2", "large-1"] : { cluster = cluster, commit = %q, ready = true, since = "2026-01-01T00:00:00Z" }]`,
					commit,
				)
			}
			writeFile(
				t,
				filepath.Join(w.path, "main.tf"),
				requiredProviders+strings.Replace(text, "feedback    = { clusters = true }", "feedback    = { "+reports+" }", 1),
			)
			w.run("apply", "-input=false", "-auto-approve")
		}
		tip := func() string { return git(t, url, "rev-parse", "prod") }
		last := func(context string) string {
			all := host.history(context)
			return all[len(all)-1]
		}
		run(text, "")
		if got := host.history("flotilla/prod/app-main"); len(got) != 1 || !strings.HasPrefix(got[0], "pending Not on all clusters yet") {
			t.Errorf("the first statuses are %q", got)
		}
		for round := 0; round < 5 && !strings.HasPrefix(last("flotilla/prod/app-main"), "success"); round++ {
			run(text, tip())
		}
		run(text, tip())
		if got := host.history("flotilla/prod/app-main"); len(got) != 2 || !strings.HasPrefix(got[1], "success It runs on all clusters") {
			t.Errorf("the next statuses are %q", got)
		}
		if got := last("flotilla/prod"); got != "success Rolled out" {
			t.Errorf("the status of the control plane is %q", host.history("flotilla/prod"))
		}
		// The commit of a new version waits, and the former commit keeps its status.
		run(strings.Replace(text, app, next, 1), tip())
		if got := last("flotilla/prod/app-main"); !strings.HasPrefix(got, "pending") || host.received[len(host.received)-1].Commit == app {
			t.Errorf("after a new version, the statuses are %v", host.received)
		}
		for _, one := range host.received[2:] {
			if one.Commit == app && one.Status != "success" {
				t.Errorf("the statuses of the former commit are %v", host.received)
			}
		}
	}
}
