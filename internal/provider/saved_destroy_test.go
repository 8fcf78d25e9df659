package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// If others changed a folder after the plan, the destroy fails, names the folder, and removes nothing.
func TestASavedDestroyRemovesOnlyPlannedContent(t *testing.T) {
	t.Parallel()
	for name, push := range latePushes() {
		if strings.Contains(name, "gone") {
			push.folder = ""
		} else if name == "another folder of the owner" { // the destroy removes this folder as well
			push.folder = "drone/app-edge"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, w, configuration := applyDestroyable(t)
			plan, diags := w.Plan(t.Context(), configuration, providertest.Destroy())
			if diags.Err() != nil {
				t.Fatal(diags.Err())
			}
			repo.change(t, "dev", func(folder string) { push.byHand(t, folder) })
			checkLateDestroy(t, repo, push.folder, func() string { return w.ApplyPlan(t.Context(), plan).String() })
			if push.folder == "" {
				return
			}
			// The next plan knows the change.
			if plan, diags = w.Plan(t.Context(), configuration, providertest.Destroy()); diags.Err() != nil {
				t.Fatal(diags.Err())
			}
			if diags := w.ApplyPlan(t.Context(), plan); diags.Err() != nil {
				t.Errorf("a destroy with the drift in its plan says %s", diags)
			}
			if left := git(t, repo.url, "ls-tree", "-r", "--name-only", "dev"); strings.Contains(left, push.folder) {
				t.Errorf("the destroy has left\n%s", left)
			}
		})
	}
}

func applyDestroyable(t *testing.T) (repository, *providertest.Workspace, providertest.Configuration) {
	t.Helper()
	repo, w := bareRepository(t), providertest.New(startProvider)
	further := atRoot(repo)
	further["protection"] = map[string]any{"max_removed": 100, "allow_empty": true}
	configuration := assigned(repo.url, fleetOf(nil), further)
	apply(t, w, configuration)
	return repo, w, configuration
}

// checkLateDestroy applies a destroy after a push. Without a folder in conflict, all folders must go.
func checkLateDestroy(t *testing.T, repo repository, folder string, apply func() string) {
	t.Helper()
	if folder != "" {
		checkLateApply(t, repo, folder, apply, nil, "")
		return
	}
	if messages := apply(); messages != "" {
		t.Fatalf("got %s", messages)
	}
	left := git(t, repo.url, "ls-tree", "-r", "--name-only", "dev")
	for _, gone := range []string{"large/app-core", "drone/app-edge"} {
		if strings.Contains("\n"+left, "\n"+gone) {
			t.Errorf("the destroy left %s:\n%s", gone, left)
		}
	}
}

func TestTerraformDestroysOnlyPlannedContent(t *testing.T) {
	t.Parallel()
	for tool, path := range acceptanceTools(t) {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			repo := bareRepository(t)
			w := newWorkdir(
				t,
				path,
				map[string]string{"main.tf": requiredProviders + small{extra: "protection = { max_removed = 100, allow_empty = true }"}.config(repo)},
			)
			w.run("apply", "-input=false", "-auto-approve")
			w.plan("-destroy")
			repo.change(t, "dev", func(folder string) { latePushes()["a new file in it"].byHand(t, folder) })
			checkLateDestroy(t, repo, "large/app-core", func() string {
				out, stderr, err := w.try("apply", "-input=false", "-no-color", "plan.out")
				if err == nil {
					return ""
				}
				return out + stderr
			})
			w.run("destroy", "-input=false", "-auto-approve")
			checkLateDestroy(t, repo, "", func() string { return "" })
		})
	}
}

// It needs neither a refresh nor the repository.
func TestADestroyWithoutRefreshGoesOn(t *testing.T) {
	t.Parallel()
	for _, isLost := range []bool{false, true} {
		repo, w, configuration := applyDestroyable(t)
		if isLost {
			if err := os.Rename(repo.url, repo.url+".gone"); err != nil {
				t.Fatal(err)
			}
		}
		plan, diags := w.Plan(t.Context(), configuration, providertest.Destroy(), providertest.SkipRefresh())
		if diags.Err() != nil {
			t.Fatal(diags.Err())
		}
		if isLost {
			if diags := w.ApplyPlan(t.Context(), plan); diags.Err() != nil {
				t.Errorf("a destroy without the repository says %s", diags)
			}
			continue
		}
		checkLateDestroy(t, repo, "", func() string { return w.ApplyPlan(t.Context(), plan).String() })
	}
}

// If others changed the former location after the plan, the move writes nothing anywhere.
func TestAMoveClearsOnlyPlannedContent(t *testing.T) {
	t.Parallel()
	for _, location := range []map[string]any{{"branch": "dev", "path": "next"}, {"branch": "next"}} {
		repo, w, _ := applyDestroyable(t)
		location["url"] = repo.url
		next := assigned(
			repo.url,
			fleetOf(nil),
			map[string]any{"gitops_repo": location, "protection": map[string]any{"max_removed": 100, "allow_empty": true}},
		)
		plan, diags := w.Plan(t.Context(), next)
		if diags.Err() != nil {
			t.Fatal(diags.Err())
		}
		repo.change(t, "dev", func(folder string) { writeFile(t, filepath.Join(folder, "large/app-core/more.yaml"), "by hand\n") })
		checkLateApply(t, repo, "large/app-core", func() string { return w.ApplyPlan(t.Context(), plan).String() }, nil, "")
		if branches := git(t, repo.url, "branch", "--list", "next"); branches != "" {
			t.Errorf("the new location was written: %s", branches)
		}
		apply(t, w, next) // this plan knows the change
		checkLateDestroy(t, repo, "", func() string { return "" })
	}
}
