package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// latePushes are what a person, or another assignment, does to the branch between a plan and its apply.
func latePushes() map[string]struct {
	byHand func(t *testing.T, folder string)
	folder string // that the apply must name, with the commit; "" where it succeeds
} {
	file := func(name string) func(t *testing.T, folder string) {
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
		"the folder that changes":           {file("large/app-core/namespace.yaml"), "large/app-core"},
		"a file more in it":                 {file("large/app-core/more.yaml"), "large/app-core"},
		"the folder that changes is gone":   {remove("large/app-core"), "large/app-core"},
		"another folder of the owner":       {file("drone/app-edge/namespace.yaml"), ""},
		"another folder of it is gone":      {remove("drone/app-edge"), ""},
		"a folder of nobody":                {file("elsewhere/app/namespace.yaml"), ""},
		"a folder beside, on the same host": {file("large/other/namespace.yaml"), ""},
	}
}

func atRoot(repo repository) map[string]any {
	return map[string]any{"gitops_repo": map[string]any{"url": repo.url, "branch": "dev"}}
}

func TestASavedPlanIsAppliedWhateverWasPushedElsewhere(t *testing.T) {
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
			plan, said := w.Plan(t.Context(), assigned(repo.url, changed, atRoot(repo)))
			if said.Err() != nil {
				t.Fatal(said.Err())
			}
			repo.change(t, "dev", func(folder string) { push.byHand(t, folder) })
			checkLateApply(t, repo, push.folder, func() string { return w.ApplyPlan(t.Context(), plan).String() }, func() string {
				next, said := w.Plan(t.Context(), assigned(repo.url, changed, atRoot(repo)))
				return strings.Join(linesOf(next), "\n") + said.String()
			}, name)
		})
	}
}

func TestTerraformAppliesASavedPlanWhateverWasPushedElsewhere(t *testing.T) {
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
					out, said, err := w.try("apply", "-input=false", "-no-color", "plan.out")
					if err == nil {
						return ""
					}
					return out + said
				}, func() string { return w.run("plan", "-input=false", "-no-color") }, name)
			})
		}
	}
}

// checkLateApply applies a plan after a push, which must name the folder and the commit and write nothing, or else change
// large/app-core and nothing that was pushed.
func checkLateApply(t *testing.T, repo repository, folder string, apply, plan func() string, name string) {
	t.Helper()
	pushed := git(t, repo.url, "rev-parse", "dev")
	said := apply()
	for _, bug := range []string{"inconsistent", "bug in the provider"} {
		if strings.Contains(said, bug) {
			t.Fatalf("it is a bug to Terraform: %s", said)
		}
	}
	if folder != "" {
		flat := strings.Join(strings.Fields(strings.ReplaceAll(said, "│", " ")), " ")
		for _, want := range []string{"Repository has changed since the plan", `Folder "` + folder + `" has changed since the plan, by commit ` + pushed, "Nothing was written"} {
			if !strings.Contains(flat, want) {
				t.Errorf("no %q in\n%s", want, said)
			}
		}
		if now := git(t, repo.url, "rev-parse", "dev"); now != pushed {
			t.Errorf("commit %s was written", now)
		}
		return
	}
	if said != "" {
		t.Fatalf("said is %s", said)
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

// What somebody puts in the place of a folder between plan and apply is a change of it.
func TestWhatTookThePlaceOfAFolderSinceThePlanStays(t *testing.T) {
	t.Parallel()
	for what, put := range map[string]func(t *testing.T, at string){
		"link": replaceByLink, "submodule": replaceBySubmodule, "file": func(t *testing.T, at string) {
			t.Helper()
			if err := os.RemoveAll(at); err != nil {
				t.Fatal(err)
			}
			writeFile(t, at, "by hand\n")
		},
	} {
		for name, test := range map[string]struct {
			after   map[string]any // of the fleet
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
			t.Run(what+" in the place "+name, func(t *testing.T) {
				playAlways(t, what+" "+name,
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
				plan, said := w.Plan(t.Context(), assigned(repo.url, fleetOf(test.after), atRoot(repo)), options...)
				if said.Err() != nil {
					t.Fatal(said.Err())
				}
				repo.changeByGit(t, "dev", func(folder string) { put(t, filepath.Join(folder, filepath.FromSlash(test.folder))) })
				checkLateApply(t, repo, test.folder, func() string { return w.ApplyPlan(t.Context(), plan).String() }, nil, name)
			})
		}
	}
}

// Whatever a plan is of, a push between it and the apply is no error to Terraform.
func TestAPushBetweenPlanAndApplyIsNoBug(t *testing.T) {
	t.Parallel()
	other := func(t *testing.T, repo repository) {
		repo.change(t, "dev", func(folder string) { writeFile(t, filepath.Join(folder, "elsewhere/app/namespace.yaml"), "by hand\n") })
	}
	own := func(t *testing.T, repo repository) {
		repo.change(t, "dev", func(folder string) {
			writeFile(t, filepath.Join(folder, "clusters/all/large/app-core/namespace.yaml"), "by hand\n")
		})
	}
	everything := map[string]any{"protection": map[string]any{"max_removed": 100}}
	for name, test := range map[string]struct {
		before, after map[string]any // further attributes; before is nil where nothing is applied before
		lost          bool
		byHand        func(*testing.T, repository)
		refused       bool
	}{
		"a create, beside what others write": {nil, map[string]any{}, false, nil, false},
		"a lost state":                       {map[string]any{}, map[string]any{}, true, other, false},
		"a lost state and a folder of it":    {map[string]any{}, map[string]any{}, true, own, false},
		"another name":                       {map[string]any{}, map[string]any{"name": "next"}, false, other, false},
		"another name and a folder of it":    {map[string]any{}, map[string]any{"name": "next"}, false, own, false},
		"another path":                       {everything, map[string]any{"gitops_repo": "path"}, false, other, false},
		"another branch":                     {everything, map[string]any{"gitops_repo": "branch"}, false, other, false},
		"a hold":                             {map[string]any{}, map[string]any{"holds": []any{map[string]any{"hosts": []any{"drone"}}}}, false, other, false},
		"a hold of a lost state":             {map[string]any{}, map[string]any{"holds": []any{map[string]any{"hosts": []any{"drone"}}}}, true, own, false},
		"nothing but another protection, and its folder": {map[string]any{}, everything, false, own, false},
	} {
		t.Run(name, func(t *testing.T) {
			playAlways(t, name,
				"a create, beside what others write",
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
			if test.lost {
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
			plan, said := w.Plan(t.Context(), configuration)
			if said.Err() != nil {
				t.Fatal(said.Err())
			}
			if test.byHand != nil {
				test.byHand(t, repo)
			} else {
				apply(t, providertest.New(startProvider), assigned(repo.url, fleetOf(nil), map[string]any{
					"name": "third", "gitops_repo": map[string]any{"url": repo.url, "branch": "dev", "path": "third"},
				}))
			}
			said = w.ApplyPlan(t.Context(), plan)
			if said.Bugs() != nil || said.Err() != nil {
				t.Fatalf("said is %s", said)
			}
			// What was pushed is seen by then, and mended by one more apply at most.
			apply(t, w, configuration)
			if next, said := w.Plan(t.Context(), configuration); said.Err() != nil || !next.Empty() {
				t.Errorf("the plan after it has %v %s", linesOf(next), said)
			}
		})
	}
}

func TestAPushWhileARolloutIsUnderWayIsNoBug(t *testing.T) {
	t.Parallel()
	for name, push := range map[string]struct{ file, folder string }{
		"elsewhere":                        {"elsewhere/app/x.yaml", ""},
		"to what the rollout has written":  {"clusters/all/canary/app-core/x.yaml", ""},
		"to what waits for a later stage":  {"clusters/all/rest/app-core/x.yaml", ""},
		"to what this stage is to be next": {"clusters/all/region/app-core/x.yaml", "clusters/all/region/app-core"},
	} {
		t.Run(name, func(t *testing.T) {
			playAlways(t, name, "to what waits for a later stage", "to what this stage is to be next")
			t.Parallel()
			r := newRings(t)
			r.applyVersion("2", "2 1 1")
			r.report("canary", verdict.Ready)
			plan, said := r.w.Plan(t.Context(), r.configuration("2"))
			if said.Err() != nil {
				t.Fatal(said.Err())
			}
			repository{url: r.url, cloneURL: r.url}.change(t, "dev", func(folder string) {
				writeFile(t, filepath.Join(folder, filepath.FromSlash(push.file)), "kind: Hand\n")
			})
			said = r.w.ApplyPlan(t.Context(), plan)
			switch {
			case said.Bugs() != nil:
				t.Fatalf("it is a bug to Terraform: %s", said)
			case push.folder != "":
				if !strings.Contains(said.String(), `older "`+push.folder+`" has changed since the plan, by commit `) || r.versions() != "2 1 1" {
					t.Errorf("said is %s, and the hosts have %s", said, r.versions())
				}
			case said.Err() != nil || r.versions() != "2 2 1":
				t.Errorf("said is %s, and the hosts have %s", said, r.versions())
			}
		})
	}
}

// Others commit to the branch all the time: that is no change of an assignment.
func TestARefreshAloneFindsNothingWhileARolloutIsUnderWay(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	expect := func(when string) {
		t.Helper()
		if plan, said := r.w.Plan(t.Context(), r.configuration("2"), providertest.RefreshOnly()); said.Err() != nil || plan.ExitCode != 0 {
			t.Errorf("%s: %v %s", when, plan.Drifted, said)
		}
	}
	expect("before")
	r.applyVersion("2", "2 1 1")
	expect("at the first stage")
	repository{
		url:      r.url,
		cloneURL: r.url,
	}.change(
		t,
		"dev",
		func(folder string) { writeFile(t, filepath.Join(folder, "elsewhere/x.yaml"), "kind: Other\n") },
	)
	expect("after a commit of others")
	r.report("canary", verdict.Ready)
	r.applyVersion("2", "2 2 1")
	expect("at the second stage")
	r.report("canary", verdict.Ready)
	r.report("region", verdict.Ready)
	r.applyVersion("2", "2 2 2")
	expect("at the last stage")
}
