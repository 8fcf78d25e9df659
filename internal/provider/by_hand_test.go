package provider_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// checkRepaired checks the reason that a plan gives for writing folders again.
func checkRepaired(t *testing.T, name string, plan *providertest.Plan, want string) {
	t.Helper()
	lines := strings.Join(linesOf(plan), "\n")
	if !strings.Contains(lines, want) || strings.Contains(lines, "by hand") && !strings.Contains(want, "by hand") {
		t.Errorf("%s: got a plan\n%s\nwant %q", name, lines, want)
	}
}

// A deleted, renamed or reset branch is not a change by hand.
func TestOnlyACommitOfAPersonIsByHand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do    func(t *testing.T, url string)
		says  func(url string) string
		warns string
	}{
		"the branch is deleted": {
			func(t *testing.T, url string) { git(t, url, "update-ref", "-d", "refs/heads/dev") },
			func(string) string { return "the branch is gone" }, "Branch does not exist any more",
		},
		"the branch is renamed": {
			func(t *testing.T, url string) { git(t, url, "branch", "-m", "dev", "trunk") },
			func(string) string { return "the branch is gone" }, "Branch does not exist any more",
		},
		"the branch is reset": {
			func(t *testing.T, url string) { git(t, url, "update-ref", "refs/heads/dev", "dev~1") },
			func(string) string { return "the branch was rewritten, without commit " }, "",
		},
		"the branch is recreated": {
			func(t *testing.T, url string) {
				empty := git(t, url, "hash-object", "-t", "tree", "-w", "/dev/null")
				git(t, url, "update-ref", "refs/heads/dev", git(t, url, "commit-tree", "-m", "Begin", empty))
			},
			func(string) string { return "the branch was rewritten, without commit " }, "",
		},
		"a person changes a folder": {
			func(t *testing.T, url string) {
				commitByHand(t, url, "dev", func(folder string) {
					writeFile(t, filepath.Join(folder, "clusters", "all", "large", "app-core", "platform-config.yaml"), "by: hand\n")
				})
			},
			func(url string) string { return "by hand, since commit " + git(t, url, "rev-parse", "dev")[:8] }, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			playAlways(t, name, "the branch is deleted", "the branch is reset", "a person changes a folder")
			t.Parallel()
			url, w := bare(t), providertest.New(startProvider)
			apply(t, w, assigned(url, databaseFleet("mysql://one"), nil))
			apply(t, w, assigned(url, databaseFleet("mysql://two"), nil))
			test.do(t, url)
			want := test.says(url)
			for range 2 { // a second refresh finds the same
				plan, diags := mustPlan(t, w, assigned(url, databaseFleet("mysql://two"), nil))
				checkRepaired(t, "a plan", plan, want)
				if test.warns != "" && !diags.Has(test.warns) {
					t.Errorf("the plan says %s", diags)
				}
				if _, diags := w.Apply(t.Context(), assigned(url, databaseFleet("mysql://two"), nil), providertest.RefreshOnly()); diags.Err() != nil {
					t.Fatal(diags)
				}
			}
			plan, _ := mustPlan(t, w, assigned(url, databaseFleet("mysql://three"), nil))
			checkRepaired(t, "a plan with another value", plan, want)
			apply(t, w, assigned(url, databaseFleet("mysql://two"), nil))
			if plan, _ := mustPlan(t, w, assigned(url, databaseFleet("mysql://two"), nil)); !plan.Empty() {
				t.Errorf("one more plan has %q", linesOf(plan))
			}
		})
	}
}

// TestAPersonIsNamedBesideTheConfiguration changes one folder by hand and in the configuration. The plan must list both.
func TestAPersonIsNamedBesideTheConfiguration(t *testing.T) {
	t.Parallel()
	const byConfig = `, on large: app-core, by config container "large"`
	path := func(name string) string { return filepath.Join("clusters", "all", "large", "app-core", name) }
	for name, test := range map[string]struct {
		do   func(t *testing.T, folder string)
		want []string // beginnings of lines; "HAND" stands for the commit
	}{
		"a new file": {
			func(t *testing.T, folder string) {
				writeFile(t, filepath.Join(folder, path("by-hand.yaml")), "by: hand\n")
			},
			[]string{"by-hand.yaml: file removed, on large: app-core, HAND", "platform-config.yaml: data.DATABASE_URL" + byConfig},
		},
		"a file removed": {
			func(t *testing.T, folder string) { removeFile(t, filepath.Join(folder, path("namespace.yaml"))) },
			[]string{"namespace.yaml: new file, on large: app-core, HAND", "platform-config.yaml: data.DATABASE_URL" + byConfig},
		},
		"another key of the file": {
			func(t *testing.T, folder string) {
				file := filepath.Join(folder, path("platform-config.yaml"))
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				writeFile(t, file, strings.Replace(string(text), "LOG_LEVEL: info", "LOG_LEVEL: loud", 1))
			},
			[]string{"data.LOG_LEVEL, on large: app-core, HAND", "data.DATABASE_URL" + byConfig},
		},
		"the whole folder": {
			func(t *testing.T, folder string) {
				if err := os.RemoveAll(filepath.Join(folder, path(""))); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"+ large/app-core, HAND"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			playAlways(t, name, "another key of the file", "the whole folder")
			t.Parallel()
			url, w := bare(t), providertest.New(startProvider)
			apply(t, w, assigned(url, databaseFleet("mysql://one"), nil))
			commitByHand(t, url, "dev", func(folder string) { test.do(t, folder) })
			since := "by hand, since commit " + git(t, url, "rev-parse", "dev")[:8]
			plan, _ := mustPlan(t, w, assigned(url, databaseFleet("mysql://two"), nil))
			lines := strings.Join(linesOf(plan), "\n")
			for _, want := range test.want {
				if want = strings.Replace(want, "HAND", since, 1); !strings.Contains(lines, want) {
					t.Errorf("%q is not in\n%s", want, lines)
				}
			}
			apply(t, w, assigned(url, databaseFleet("mysql://two"), nil))
			if plan, _ := mustPlan(t, w, assigned(url, databaseFleet("mysql://two"), nil)); !plan.Empty() {
				t.Errorf("one more plan has %q", linesOf(plan))
			}
		})
	}
}

// Commits by hand keep the former records, and git omits known objects from its answers.
func TestAPersonIsNamedAfterManyCommits(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	location := map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "dev"}}
	for _, address := range []string{"mysql://1", "mysql://2", "mysql://3", "mysql://4", "mysql://5"} {
		apply(t, w, assigned(url, databaseFleet(address), location))
		commitByHand(t, url, "dev", func(folder string) {
			for _, name := range []string{"large/app-core", "drone/app-edge"} {
				writeFile(t, filepath.Join(folder, filepath.FromSlash(name), "platform-config.yaml"), "by: hand\n")
			}
		})
		since := git(t, url, "rev-parse", "dev")[:8]
		commitByHand(t, url, "dev", func(folder string) { writeFile(t, filepath.Join(folder, "NOTES.md"), address) })
		plan, _ := mustPlan(t, w, assigned(url, databaseFleet(address), location))
		checkRepaired(t, "a plan", plan, "by hand, since commit "+since)
	}
}

// TestARequestThatIsNotMergedIsNotByHand closes a request, or fails to complete it. The state must keep an open request.
func TestARequestThatIsNotMergedIsNotByHand(t *testing.T) {
	t.Parallel()
	l := newBranchLife(t)
	request := func() string { return fmt.Sprint(l.w.State.Values(assignment)["pull_request"]) }
	apply(t, l.w, l.configuration("dev", "one", nil))
	apply(t, l.w, l.configuration("dev", "two", requestDelivery()))
	first := request()
	if !strings.HasSuffix(first, "/pulls/1") {
		t.Fatalf("the state has request %s", first)
	}

	for name, delivery := range map[string]map[string]any{
		"an unknown reviewer": requestDelivery("reviewers", []any{"nobody-of-that-name"}),
		"a missing approval":  requestDelivery("merge", "now"),
	} {
		l.host.callAPI(http.MethodPost, "/branch_protections", map[string]any{"rule_name": "dev", "required_approvals": 1}, nil)
		if _, diags := l.w.Apply(t.Context(), l.configuration("dev", "three", delivery)); diags.Err() == nil {
			t.Fatalf("%s: the apply succeeds", name)
		}
		if request() != first {
			t.Errorf("%s: the state has request %s, not %s", name, request(), first)
		}
		plan, diags := mustPlan(t, l.w, l.configuration("dev", "two", requestDelivery()))
		checkRepaired(t, name, plan, "the pull request is not merged")
		if diags.Err() != nil {
			t.Errorf("%s: the plan says %s", name, diags)
		}
		l.host.callAPI(http.MethodDelete, "/branch_protections/dev", nil, nil)
		apply(t, l.w, l.configuration("dev", "two", requestDelivery()))
		if plan, diags := mustPlan(t, l.w, l.configuration("dev", "two", requestDelivery())); !plan.Empty() || request() != first {
			t.Errorf("%s: one more plan has %q %s, and the state has request %s", name, linesOf(plan), diags, request())
		}
	}

	l.host.callAPI(http.MethodPatch, "/pulls/1", map[string]any{"state": "closed"}, nil)
	plan, _ := mustPlan(t, l.w, l.configuration("dev", "two", requestDelivery()))
	checkRepaired(t, "a closed request", plan, "the pull request was closed and not merged")
}

// The next plan creates the assignment again and finds the request.
func TestTheRequestOfAFailedCreateIsUsedAgain(t *testing.T) {
	t.Parallel()
	l := newBranchLife(t)
	if _, diags := l.w.Apply(t.Context(), l.configuration("dev", "one", requestDelivery("reviewers", []any{"nobody-of-that-name"}))); diags.Err() == nil {
		t.Fatal("the apply succeeds")
	}
	apply(t, l.w, l.configuration("dev", "one", requestDelivery()))
	if open := l.openRequests(); len(open) != 1 {
		t.Errorf("the open requests are %+v", open)
	}
	if plan, _ := mustPlan(t, l.w, l.configuration("dev", "one", requestDelivery())); !plan.Empty() {
		t.Errorf("one more plan has %q", linesOf(plan))
	}
}

func TestPlanAndApplyNameTheNewBaseOfARequest(t *testing.T) {
	t.Parallel()
	for _, isLate := range []bool{false, true} {
		t.Run(fmt.Sprintf("late=%t", isLate), func(t *testing.T) {
			playAlways(t, fmt.Sprintf("late=%t", isLate), "late=true")
			t.Parallel()
			l := newBranchLife(t)
			apply(t, l.w, l.configuration("dev", "one", nil))
			apply(t, l.w, l.configuration("dev", "two", requestDelivery()))
			diags := l.planAndApply(l.configuration("dev", "three", requestDelivery()), func(l *branchLife) { l.rename("dev", "trunk") }, isLate)
			want := fmt.Sprintf(`There is no branch "dev" at %s, and a pull request needs a branch to go into. `+
				`The open pull request goes into branch "trunk" now: set branch = "trunk" in gitops_repo.`, l.repo.url)
			if !diags.Has("Branch does not exist") || !strings.Contains(diags.String(), want) || !strings.Contains(diags.String(), "gitops_repo") {
				t.Errorf("got %s\nwant %s", diags, want)
			}
			apply(t, l.w, l.configuration("trunk", "three", requestDelivery()))
			if open := l.openRequests(); len(open) != 1 || open[0].Head.Ref != "flotilla/trunk/dev" {
				t.Errorf("the open requests are %+v", open)
			}
			if plan, diags := mustPlan(t, l.w, l.configuration("trunk", "three", requestDelivery())); !plan.Empty() {
				t.Errorf("one more plan has %q %s", linesOf(plan), diags)
			}

			// Gitea moves the request to the default branch if its base is deleted.
			l.recreate("trunk")
			plan := apply(t, l.w, l.configuration("trunk", "three", requestDelivery()))
			checkRepaired(
				t,
				"a request with another base",
				plan,
				`goes into branch "main" now: it is closed, and another one is opened into branch "trunk"`,
			)
			if open := l.openRequests(); len(open) != 1 {
				t.Errorf("the open requests are %+v", open)
			}
		})
	}
}
