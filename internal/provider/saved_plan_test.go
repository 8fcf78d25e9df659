package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// latePushes change the branch between a plan and its apply.
func latePushes() map[string]struct {
	byHand func(t *testing.T, folder string)
	folder string // folder that the error of the apply must name, with the commit; "" for success
} {
	writeByHand := func(name string) func(t *testing.T, folder string) {
		return func(t *testing.T, folder string) {
			writeFile(t, filepath.Join(folder, filepath.FromSlash(name)), "by hand\n")
		}
	}
	remove := func(name string) func(t *testing.T, folder string) {
		return func(t *testing.T, folder string) { removeAll(t, filepath.Join(folder, filepath.FromSlash(name))) }
	}
	return map[string]struct {
		byHand func(t *testing.T, folder string)
		folder string
	}{
		"the folder that changes":           {writeByHand("large/app-core/namespace.yaml"), "large/app-core"},
		"a new file in it":                  {writeByHand("large/app-core/more.yaml"), "large/app-core"},
		"the folder that changes is gone":   {remove("large/app-core"), "large/app-core"},
		"another folder of the owner":       {writeByHand("drone/app-edge/namespace.yaml"), ""},
		"another folder of it is gone":      {remove("drone/app-edge"), ""},
		"a folder without an owner":         {writeByHand("elsewhere/app/namespace.yaml"), ""},
		"a folder beside, on the same host": {writeByHand("large/other/namespace.yaml"), ""},
	}
}

func atRoot(repo repository) map[string]any {
	return map[string]any{"gitops_repo": map[string]any{"url": repo.url, "branch": "dev"}}
}

func TestASavedPlanIsAppliedAfterPushesElsewhere(t *testing.T) {
	t.Parallel()
	for name, push := range latePushes() {
		t.Run(name, func(t *testing.T) {
			playAlways(t, name,
				"the folder that changes",
				"the folder that changes is gone",
				"another folder of the owner",
				"a folder beside, on the same host",
			)
			t.Parallel()
			repo := bareRepository(t)
			w := providertest.New(startProvider)
			apply(t, w, assigned(repo.url, fleetOf(nil), atRoot(repo)))
			changed := fleetOf(map[string]any{"config_containers": []any{
				map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": "info"}},
				map[string]any{
					"name":   "large",
					"labels": map[string]any{"cluster-type": "large"},
					"data":   map[string]any{"DATABASE_URL": "mysql://two"},
				},
			}})
			plan, diags := w.Plan(t.Context(), assigned(repo.url, changed, atRoot(repo)))
			if diags.Err() != nil {
				t.Fatal(diags.Err())
			}
			repo.change(t, "dev", func(folder string) { push.byHand(t, folder) })
			checkLateApply(t, repo, push.folder, func() string { return w.ApplyPlan(t.Context(), plan).String() }, func() string {
				next, diags := w.Plan(t.Context(), assigned(repo.url, changed, atRoot(repo)))
				return strings.Join(linesOf(next), "\n") + diags.String()
			}, name)
		})
	}
}

func TestTerraformAppliesASavedPlanAfterPushesElsewhere(t *testing.T) {
	t.Parallel()
	for tool, path := range acceptanceTools(t) {
		for name, push := range latePushes() {
			t.Run(tool+"/"+name, func(t *testing.T) {
				t.Parallel()
				repo := bareRepository(t)
				w := newWorkdir(t, path, map[string]string{"main.tf": requiredProviders + small{}.config(repo)})
				w.run("apply", "-input=false", "-auto-approve")
				writeFile(t, filepath.Join(w.path, "main.tf"), requiredProviders+small{database: `"mysql://two"`}.config(repo))
				w.plan()
				repo.change(t, "dev", func(folder string) { push.byHand(t, folder) })
				checkLateApply(t, repo, push.folder, func() string {
					out, stderr, err := w.try("apply", "-input=false", "-no-color", "plan.out")
					if err == nil {
						return ""
					}
					return out + stderr
				}, func() string { return w.run("plan", "-input=false", "-no-color") }, name)
			})
		}
	}
}

// checkLateApply applies a plan after a push. The apply must fail, name the folder and the commit, and write nothing. Without a folder,
// it must change large/app-core and keep the pushed files.
func checkLateApply(t *testing.T, repo repository, folder string, apply, plan func() string, name string) {
	t.Helper()
	pushed := git(t, repo.url, "rev-parse", "dev")
	messages := apply()
	for _, bug := range []string{"inconsistent", "bug in the provider"} {
		if strings.Contains(messages, bug) {
			t.Fatalf("Terraform reports a bug: %s", messages)
		}
	}
	if folder != "" {
		flat := strings.Join(strings.Fields(strings.ReplaceAll(messages, "│", " ")), " ")
		for _, want := range []string{"Repository has changed since the plan", `Folder "` + folder + `" has changed since the plan, by commit ` + pushed, "Nothing was written"} {
			if !strings.Contains(flat, want) {
				t.Errorf("%q is not in\n%s", want, messages)
			}
		}
		if now := git(t, repo.url, "rev-parse", "dev"); now != pushed {
			t.Errorf("commit %s was written", now)
		}
		return
	}
	if messages != "" {
		t.Fatalf("got %s", messages)
	}
	if changed := git(t, repo.url, "diff", "--name-only", pushed, "dev"); changed != ".flotilla/dev/large.json\nlarge/app-core/platform-config.yaml" {
		t.Errorf("the apply changed\n%s", changed)
	}
	next := plan()
	if drifted := strings.Contains(name, "folder of the owner") || strings.Contains(name, "another folder of it"); drifted != strings.Contains(
		next,
		"by hand",
	) &&
		drifted != strings.Contains(next, "drone/app-edge") {
		t.Errorf("the next plan says\n%s", next)
	}
}

// A link, submodule or file in place of a folder is a change of that folder.
func TestAReplacedFolderIsAChangeSinceThePlan(t *testing.T) {
	t.Parallel()
	for kind, replaceFolder := range map[string]func(t *testing.T, at string){
		"link": replaceByLink, "submodule": replaceBySubmodule, "file": func(t *testing.T, at string) {
			t.Helper()
			if err := os.RemoveAll(at); err != nil {
				t.Fatal(err)
			}
			writeFile(t, at, "by hand\n")
		},
	} {
		for name, test := range map[string]struct {
			after   map[string]any // attributes of the fleet
			destroy bool
			folder  string
		}{
			"of a folder that changes": {map[string]any{"config_containers": []any{
				map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": "debug"}},
			}}, false, "large/app-core"},
			"of a folder that goes": {map[string]any{"target_policies": []any{
				policy("core", map[string]any{"expression": "!edge"}, map[string]any{"expression": "size=large"}),
			}}, false, "drone/app-edge"},
			"of a folder that a destroy removes": {nil, true, "drone/app-edge"},
		} {
			t.Run(kind+" in the place "+name, func(t *testing.T) {
				playAlways(t, kind+" "+name,
					"link of a folder that changes",
					"submodule of a folder that goes",
					"file of a folder that a destroy removes",
				)
				t.Parallel()
				repo := bareRepository(t)
				w := providertest.New(startProvider)
				apply(t, w, assigned(repo.url, fleetOf(nil), atRoot(repo)))
				var options []providertest.Option
				if test.destroy {
					options = append(options, providertest.Destroy())
				}
				plan, diags := w.Plan(t.Context(), assigned(repo.url, fleetOf(test.after), atRoot(repo)), options...)
				if diags.Err() != nil {
					t.Fatal(diags.Err())
				}
				repo.changeByGit(t, "dev", func(folder string) { replaceFolder(t, filepath.Join(folder, filepath.FromSlash(test.folder))) })
				checkLateApply(t, repo, test.folder, func() string { return w.ApplyPlan(t.Context(), plan).String() }, nil, name)
			})
		}
	}
}

// Terraform must not report a bug, for any kind of plan.
func TestAPushBetweenPlanAndApplyIsNoBug(t *testing.T) {
	t.Parallel()
	pushElsewhere := func(t *testing.T, repo repository) {
		repo.change(t, "dev", func(folder string) { writeFile(t, filepath.Join(folder, "elsewhere/app/namespace.yaml"), "by hand\n") })
	}
	pushToOwnFolder := func(t *testing.T, repo repository) {
		repo.change(t, "dev", func(folder string) {
			writeFile(t, filepath.Join(folder, "clusters/all/large/app-core/namespace.yaml"), "by hand\n")
		})
	}
	allowRemovals := map[string]any{"protection": map[string]any{"max_removed": 100}}
	for name, test := range map[string]struct {
		before, after map[string]any // further attributes; nil before for no first apply
		isStateLost   bool
		byHand        func(*testing.T, repository)
	}{
		"a create beside another assignment":      {nil, map[string]any{}, false, nil},
		"a lost state":                            {map[string]any{}, map[string]any{}, true, pushElsewhere},
		"a lost state and a folder of it":         {map[string]any{}, map[string]any{}, true, pushToOwnFolder},
		"another name":                            {map[string]any{}, map[string]any{"name": "next"}, false, pushElsewhere},
		"another name and a folder of it":         {map[string]any{}, map[string]any{"name": "next"}, false, pushToOwnFolder},
		"another path":                            {allowRemovals, map[string]any{"gitops_repo": "path"}, false, pushElsewhere},
		"another branch":                          {allowRemovals, map[string]any{"gitops_repo": "branch"}, false, pushElsewhere},
		"a hold":                                  {map[string]any{}, map[string]any{"holds": []any{map[string]any{"hosts": []any{"drone"}}}}, false, pushElsewhere},
		"a hold of a lost state":                  {map[string]any{}, map[string]any{"holds": []any{map[string]any{"hosts": []any{"drone"}}}}, true, pushToOwnFolder},
		"only another protection, and its folder": {map[string]any{}, allowRemovals, false, pushToOwnFolder},
	} {
		t.Run(name, func(t *testing.T) {
			playAlways(t, name,
				"a create beside another assignment",
				"a lost state and a folder of it",
				"another name and a folder of it",
				"another branch",
			)
			t.Parallel()
			repo := bareRepository(t)
			w := providertest.New(startProvider)
			if test.before != nil {
				apply(t, w, assigned(repo.url, fleetOf(nil), test.before))
			} else {
				apply(t, providertest.New(startProvider), assigned(repo.url, fleetOf(nil), map[string]any{
					"name": "beside", "gitops_repo": map[string]any{"url": repo.url, "branch": "dev", "path": "beside"},
				}))
			}
			if test.isStateLost {
				w.Lose(assignment)
			}
			further := map[string]any{"protection": map[string]any{"max_removed": 100}}
			for key, value := range test.after {
				switch value {
				case "path":
					value = map[string]any{"url": repo.url, "branch": "dev", "path": "clusters/next"}
				case "branch":
					value = map[string]any{"url": repo.url, "branch": "next", "path": "clusters/all"}
				}
				further[key] = value
			}
			configuration := assigned(repo.url, fleetOf(nil), further)
			plan, diags := w.Plan(t.Context(), configuration)
			if diags.Err() != nil {
				t.Fatal(diags.Err())
			}
			if test.byHand != nil {
				test.byHand(t, repo)
			} else {
				apply(t, providertest.New(startProvider), assigned(repo.url, fleetOf(nil), map[string]any{
					"name": "third", "gitops_repo": map[string]any{"url": repo.url, "branch": "dev", "path": "third"},
				}))
			}
			diags = w.ApplyPlan(t.Context(), plan)
			if diags.Bugs() != nil || diags.Err() != nil {
				t.Fatalf("got %s", diags)
			}
			// One more apply repairs the pushed change.
			apply(t, w, configuration)
			if next, diags := w.Plan(t.Context(), configuration); diags.Err() != nil || !next.Empty() {
				t.Errorf("the next plan has %v %s", linesOf(next), diags)
			}
		})
	}
}

func TestAPushWhileARolloutIsUnderWayIsNoBug(t *testing.T) {
	t.Parallel()
	for name, push := range map[string]struct{ file, folder string }{
		"elsewhere":                    {"elsewhere/app/x.yaml", ""},
		"to a written folder":          {"clusters/all/canary/app-core/x.yaml", ""},
		"to a folder of a later stage": {"clusters/all/rest/app-core/x.yaml", ""},
		"to a folder of this stage":    {"clusters/all/region/app-core/x.yaml", "clusters/all/region/app-core"},
	} {
		t.Run(name, func(t *testing.T) {
			playAlways(t, name, "to a folder of a later stage", "to a folder of this stage")
			t.Parallel()
			r := newRings(t)
			r.applyVersion("2", "2 1 1")
			r.report("canary", verdict.Ready)
			plan, diags := r.w.Plan(t.Context(), r.configuration("2"))
			if diags.Err() != nil {
				t.Fatal(diags.Err())
			}
			repository{url: r.url, cloneURL: r.url}.change(t, "dev", func(folder string) {
				writeFile(t, filepath.Join(folder, filepath.FromSlash(push.file)), "kind: Hand\n")
			})
			diags = r.w.ApplyPlan(t.Context(), plan)
			switch {
			case diags.Bugs() != nil:
				t.Fatalf("Terraform reports a bug: %s", diags)
			case push.folder != "":
				if !strings.Contains(diags.String(), `older "`+push.folder+`" has changed since the plan, by commit `) || r.versions() != "2 1 1" {
					t.Errorf("the apply says %s, and the hosts have %s", diags, r.versions())
				}
			case diags.Err() != nil || r.versions() != "2 2 1":
				t.Errorf("the apply says %s, and the hosts have %s", diags, r.versions())
			}
		})
	}
}

// Commits of others are no drift of the assignment.
func TestARefreshAloneFindsNothingWhileARolloutIsUnderWay(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	expectNoDrift := func(when string) {
		t.Helper()
		if plan, diags := r.w.Plan(t.Context(), r.configuration("2"), providertest.RefreshOnly()); diags.Err() != nil || plan.ExitCode != 0 {
			t.Errorf("%s: the drift is %v, and the plan says %s", when, plan.Drifted, diags)
		}
	}
	expectNoDrift("before")
	r.applyVersion("2", "2 1 1")
	expectNoDrift("at the first stage")
	repository{
		url:      r.url,
		cloneURL: r.url,
	}.change(
		t,
		"dev",
		func(folder string) { writeFile(t, filepath.Join(folder, "elsewhere/x.yaml"), "kind: Other\n") },
	)
	expectNoDrift("after a commit of others")
	r.report("canary", verdict.Ready)
	r.applyVersion("2", "2 2 1")
	expectNoDrift("at the second stage")
	r.report("canary", verdict.Ready)
	r.report("region", verdict.Ready)
	r.applyVersion("2", "2 2 2")
	expectNoDrift("at the last stage")
}
