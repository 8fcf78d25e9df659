package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// The lines of a plan name committed objects, and never a value.
func TestAPlanListsObjectsForEachCauseOfAChange(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", chartWithoutSecret)
	for _, reconciler := range []string{"flux", "argocd"} {
		url, w := bare(t), providertest.New(startProvider)
		configuration := func(replicas int, further map[string]any) providertest.Configuration {
			return assigned(url, fleetOf(objectsFleet(charts, pin, replicas, "objects", reconciler)), further)
		}
		expectPlan := func(configuration providertest.Configuration, want ...string) {
			t.Helper()
			plan, diags := w.Plan(t.Context(), configuration)
			lines := linesOf(plan)
			if diags.Err() != nil || len(lines) == 0 || !slices.Equal(lines[1:], want) {
				t.Errorf("%s: messages: %s; changes:\n%s\nwant\n%s", reconciler, diags, strings.Join(lines, "\n"), strings.Join(want, "\n"))
			}
			if strings.Contains(fmt.Sprint(lines, diags), "canary") {
				t.Errorf("%s: the plan has a value: %s %s", reconciler, lines, diags)
			}
			if diags := w.ApplyPlan(t.Context(), plan); diags.Err() != nil { // in another process
				t.Error(diags)
			}
		}
		editByHand := func(old, by string) (since string) {
			commitByHand(t, url, "dev", func(folder string) {
				name := filepath.Join(folder, filepath.FromSlash(tillFolder+objectsFiles[reconciler]))
				text, err := os.ReadFile(name)
				if err != nil || !strings.Contains(string(text), old) {
					t.Fatalf("%v: %q is not in %s", err, old, text)
				}
				if err := os.WriteFile(name, []byte(strings.Replace(string(text), old, by, 1)), 0o600); err != nil {
					t.Fatal(err)
				}
			})
			return git(t, url, "rev-parse", "--short=8", "dev")
		}
		follower := map[string]string{"flux": "spec.values.objects", "argocd": "spec.source.kustomize.images[0]"}[reconciler]
		apply(t, w, configuration(3, nil))
		first := git(t, url, "rev-parse", "dev")

		since := editByHand("replicas: 3", "replicas: 9")
		expectPlan(configuration(3, nil), objectLine("Deployment till", "spec.replicas", "store/till-live", causeByDrift(since)))
		since = editByHand("kind: Job", "kind: [canary")
		expectPlan(
			configuration(3, nil),
			formerUnknownLine("objects.yaml cannot be read", "store/till-live", causeByDrift(since)),
			fileLine(objectsFiles[reconciler], "1 line", "store/till-live", causeByDrift(since)),
		)
		expectPlan(
			configuration(4, nil),
			objectLine("Deployment till", "spec.replicas", "store/till-live", causeBy(changes.ByContainer, "all")),
			fileLine("reconciler.yaml", follower, "store/till-live", causeBy(changes.ByContainer, "all")),
		)
		expectPlan(
			configuration(4, map[string]any{"rollback_to": first}),
			objectLine("Deployment till", "spec.replicas", "store/till-live", causeBy(changes.ByRollback, first)),
			fileLine("reconciler.yaml", follower, "store/till-live", causeBy(changes.ByRollback, first)),
		)
	}
}

func TestAPlanListsRolledBackAndProposedObjects(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", chartWithoutSecret)
	t.Run("a rollout that goes back", func(t *testing.T) {
		t.Parallel()
		url, w := bare(t), providertest.New(startProvider)
		configuration := func(replicas int, verdict string) providertest.Configuration {
			argument := objectsFleet(charts, pin, replicas, "objects", "argocd")
			argument["clusters"] = []any{map[string]any{"name": "store-a", "cluster_type": "store"}}
			var reports []any
			if verdict != "" {
				reports = []any{
					map[string]any{"cluster": "store-a", "assignment": "store/till-live", "commit": git(t, url, "rev-parse", "dev"), "verdict": verdict},
				}
			}
			return assigned(url, fleetOf(argument), map[string]any{
				"rollout": map[string]any{"stages": []any{map[string]any{"name": "all"}}, "on_failure": "roll_back", "failed_for": "0s"},
				"evidence": providertest.Reading{DataSource: "flotilla_compliance", Attribute: "evidence", Attributes: map[string]any{
					"name": "dev", "fleet": fleetOf(argument), "gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"}, "feedback": map[string]any{"reports": reports},
				}},
			})
		}
		apply(t, w, configuration(3, ""))
		apply(t, w, configuration(3, "ready"))
		apply(t, w, configuration(4, "ready"))
		text := strings.Join(linesOf(apply(t, w, configuration(4, "failed"))), "\n")
		if !strings.Contains(text, objectLine("Deployment till", "spec.replicas", "store/till-live", causeBy(changes.ByRollback, ""))) ||
			strings.Contains(text, "objects.yaml") {
			t.Errorf("changes are\n%s", text)
		}
	})
	t.Run("a pull request", func(t *testing.T) {
		t.Parallel()
		repo, _, user := giteaWithUser(t)
		w := providertest.New(startProvider)
		configuration := func(replicas int, delivery map[string]any) providertest.Configuration {
			c := assigned(
				repo.url,
				fleetOf(objectsFleet(charts, pin, replicas, "objects", "argocd")),
				mergeMaps(atRoot(repo), map[string]any{"delivery": delivery}),
			)
			c.Provider = map[string]any{"git": map[string]any{"token": user.Token}}
			return c
		}
		proposal := map[string]any{"mode": "pull_request", "forge": "gitea"}
		apply(t, w, configuration(3, map[string]any{"mode": "push"}))
		apply(t, w, configuration(4, proposal))
		text := strings.Join(linesOf(apply(t, w, configuration(5, proposal))), "\n")
		if !strings.Contains(text, objectLine("Deployment till", "spec.replicas", "store/till-live", causeBy(changes.ByContainer, "all"))) ||
			strings.Contains(text, "objects.yaml") {
			t.Errorf("changes are\n%s", text)
		}
	})
}
