package provider_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// newPlainBranchLife returns a branchLife on a server that sends only tips of branches, each with all files.
func newPlainBranchLife(t *testing.T) *branchLife {
	t.Helper()
	repo, server := newStandInGitea(t)
	for _, setting := range []string{"uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"} {
		git(t, repo.folder, "config", setting, "false")
	}
	return newBranchLifeAt(t, repo, server, server.user)
}

// Flotilla reads files of folders even if no tip has them, or if another branch has them.
func TestFilesOfOtherCommitsAreReadFromAPlainServer(t *testing.T) {
	t.Parallel()
	const (
		file  = "large/app-core/platform-config.yaml"
		inAll = `data.DATABASE_URL, on drone/app-core, drone/app-edge, large/app-core, by config container "all"`
	)
	byHand := func(l *branchLife) {
		commitByHand(l.t, l.repo.folder, "dev", func(folder string) { writeFile(l.t, filepath.Join(folder, filepath.FromSlash(file)), "by: hand\n") })
	}
	for name, test := range map[string]struct {
		prepare func(l *branchLife)
		wanted  func(l *branchLife) providertest.Configuration
		line    string
		between func(l *branchLife) // between plan and apply, or nil
		says    string
	}{
		"a change from a pull request to pushes": {
			prepare: func(l *branchLife) {
				apply(l.t, l.w, l.configuration("dev", "one", nil))
				apply(l.t, l.w, l.configuration("dev", "two", requestDelivery()))
			},
			wanted: func(l *branchLife) providertest.Configuration { return l.configuration("dev", "three", nil) },
			line:   inAll,
		},
		"another value in a pull request": {
			prepare: func(l *branchLife) {
				apply(l.t, l.w, l.configuration("dev", "one", nil))
				apply(l.t, l.w, l.configuration("dev", "two", requestDelivery()))
			},
			wanted: func(l *branchLife) providertest.Configuration {
				return l.configuration("dev", "three", requestDelivery())
			},
			line: inAll,
		},
		"a commit by hand after the plan": {
			prepare: func(l *branchLife) { apply(l.t, l.w, l.configuration("dev", "one", nil)) },
			wanted:  func(l *branchLife) providertest.Configuration { return l.configuration("dev", "two", nil) },
			line:    inAll,
			between: byHand,
			says:    "Repository has changed since the plan",
		},
		"commits by hand before and after the plan": {
			prepare: func(l *branchLife) {
				apply(l.t, l.w, l.configuration("dev", "one", nil))
				commitByHand(l.t, l.repo.folder, "dev", func(folder string) {
					writeFile(l.t, filepath.Join(folder, "large", "app-core", "by-hand.yaml"), "by: hand\n")
				})
			},
			wanted:  func(l *branchLife) providertest.Configuration { return l.configuration("dev", "two", nil) },
			line:    `by-hand.yaml: file removed, on large: app-core, by hand, since commit `,
			between: byHand,
			says:    "Repository has changed since the plan",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newPlainBranchLife(t)
			test.prepare(l)
			configuration := test.wanted(l)
			plan, _ := mustPlan(t, l.w, configuration)
			if lines := strings.Join(linesOf(plan), "\n"); !strings.Contains(lines, test.line) {
				t.Errorf("got lines\n%s\nwant %s", lines, test.line)
			}
			if test.between != nil {
				test.between(l)
				expectError(t, l.w.ApplyPlan(t.Context(), plan), test.says, "gitops_repo", "large/app-core", "Nothing was written")
			} else if diags := l.w.ApplyPlan(t.Context(), plan); diags.Err() != nil {
				t.Fatal(diags)
			}
			apply(t, l.w, configuration)
			if plan, _ := mustPlan(t, l.w, configuration); !plan.Empty() {
				t.Errorf("the next plan is not empty: %q", linesOf(plan))
			}
		})
	}
}
