package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// Folders of objects are planned, repaired, rolled back, imported, handed over, moved and removed like folders of pointers.
func TestCommittedObjectsThroughEachOperation(t *testing.T) {
	useNewCache(t)
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", chartWithoutSecret)
	setDown := func(isDown bool) {
		charts.mutex.Lock()
		defer charts.mutex.Unlock()
		charts.isDown = isDown
	}
	for _, reconciler := range []string{"flux", "argocd"}[:acceptancetest.Count(1, 2)] {
		setDown(false)
		url, w := bare(t), providertest.New(startProvider)
		configure := func(replicas int, further map[string]any) providertest.Configuration {
			fleet := fleetOf(objectsFleet(charts, pin, replicas, "objects", reconciler))
			configuration := assigned(url, fleet, further)
			configuration.Resources["flotilla_assignment.other"] = assigned(url, fleet, map[string]any{
				"name": "other", "gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/other"},
			}).Resources[assignment]
			return configuration
		}
		commits := func() string { return git(t, url, "rev-list", "--count", "dev") }
		objects := func() string { return fileOnBranch(t, url, tillFolder+objectsFiles[reconciler]) }
		apply(t, w, configure(3, nil))
		first, text := git(t, url, "rev-parse", "dev"), objects()
		if follower := fileOnBranch(t, url, "clusters/other/store/till-live/reconciler.yaml"); !strings.Contains(
			follower,
			"clusters/other/store/till-live/objects",
		) {
			t.Errorf("%s: the second assignment follows %s", reconciler, follower)
		}

		commitByHand(t, url, "dev", func(folder string) {
			name := filepath.Join(folder, filepath.FromSlash(tillFolder+objectsFiles[reconciler]))
			if err := os.WriteFile(name, []byte(strings.ReplaceAll(text, "replicas: 3", "replicas: 9")), 0o600); err != nil {
				t.Fatal(err)
			}
		})
		if plan, diags := w.Plan(t.Context(), configure(3, nil), providertest.RefreshOnly()); diags.Err() != nil {
			t.Errorf("%s: a refresh says %s, %v", reconciler, diags, plan)
		}
		plan := apply(t, w, configure(3, nil))
		if lines := strings.Join(linesOf(plan), "\n"); !strings.Contains(
			lines,
			objectLine("Deployment till", "spec.replicas", "store/till-live", causeByDrift("")),
		) ||
			strings.Contains(lines, "objects.yaml") ||
			objects() != text {
			t.Errorf("%s: after a change by hand, the plan has %s, and the objects are %s", reconciler, lines, objects())
		}

		apply(t, w, configure(4, nil))
		changed := objects()
		if plan := apply(t, w, configure(4, map[string]any{"rollback_to": first})); objects() != text ||
			!strings.Contains(strings.Join(linesOf(plan), "\n"), objectLine("Deployment till", "spec.replicas", "store/till-live", causeBy(changes.ByRollback, ""))) {
			t.Errorf("%s: the rollback plans %v, and the objects are %s", reconciler, linesOf(plan), objects())
		}
		if diff := git(t, url, "diff", "--stat", first, "dev", "--", "clusters/all/store"); diff != "" {
			t.Errorf("%s: after the rollback, the folder differs: %s", reconciler, diff)
		}
		if apply(t, w, configure(4, nil)); objects() != changed {
			t.Errorf("%s: without rollback_to, the objects are %s", reconciler, objects())
		}

		late, diags := w.Plan(t.Context(), configure(5, nil))
		if diags.Err() != nil {
			t.Fatal(diags)
		}
		before := commits()
		useNewCache(t) // another machine
		setDown(true)
		if messages := fmt.Sprint(w.ApplyPlan(t.Context(), late)); !strings.Contains(messages, "Manifests cannot be rendered") ||
			!strings.Contains(messages, charts.url) ||
			commits() != before {
			t.Errorf("%s: a late apply says %s, and makes %s commits of %s", reconciler, messages, commits(), before)
		}
		for verb, options := range map[string][]providertest.Option{"a refresh": {providertest.RefreshOnly()}, "a destroy": {providertest.Destroy()}} {
			if _, diags := w.Plan(t.Context(), configure(4, nil), options...); diags.Err() != nil {
				t.Errorf("%s: the plan of %s says %s", reconciler, verb, diags)
			}
		}
		setDown(false)

		lost := providertest.New(startProvider)
		for address, at := range map[string]string{assignment: "#dev:clusters/all:dev", "flotilla_assignment.other": "#dev:clusters/other:other"} {
			if diags := lost.Import(t.Context(), configure(4, nil), address, url+at); diags.Err() != nil {
				t.Fatal(diags)
			}
		}
		if plan, diags := lost.Plan(t.Context(), configure(4, nil)); diags.Err() != nil || !plan.Empty() {
			t.Errorf("%s: after an import the plan is not empty: %s %v", reconciler, diags, plan.Change(assignment).After)
		}
		tree := git(t, url, "rev-parse", "dev:clusters/all/store/till-live/objects")
		if apply(t, w, configure(4, map[string]any{"name": "next"})); git(t, url, "rev-parse", "dev:clusters/all/store/till-live/objects") != tree {
			t.Errorf("%s: after a handover the objects are %s", reconciler, objects())
		}
		moved := map[string]any{"name": "next", "gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/moved"}}
		apply(t, w, configure(4, moved))
		if follower := fileOnBranch(t, url, "clusters/moved/store/till-live/reconciler.yaml"); !strings.Contains(
			follower,
			"clusters/moved/store/till-live/objects",
		) ||
			objects() != "" {
			t.Errorf("%s: after the move, the reconciler object is %s", reconciler, follower)
		}

		empty := objectsFleet(charts, pin, 4, "objects", reconciler)
		empty["target_policies"] = []any{}
		protected := map[string]any{"name": "next", "gitops_repo": moved["gitops_repo"], "fleet": fleetOf(empty)}
		if _, diags := w.Plan(t.Context(), configure(4, protected)); !diags.Has("Nothing would be left") {
			t.Errorf("%s: without assignments the plan says %s", reconciler, diags)
		}
		setDown(true)
		apply(t, w, configure(4, moved), providertest.Destroy())
		if left := git(t, url, "ls-tree", "-r", "--name-only", "dev"); strings.Contains(left, "till-live") {
			t.Errorf("%s: the destroy left %s", reconciler, left)
		}
	}
}

// Hosts of a later stage keep their objects and their reconciler object.
func TestObjectsGoThroughStages(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", chartWithoutSecret)
	for _, reconciler := range []string{"flux", "argocd"} {
		url, w := bare(t), providertest.New(startProvider)
		configuration := func(replicas int, reports ...any) providertest.Configuration {
			argument := objectsFleet(charts, pin, replicas, "objects", reconciler)
			var types, clusters []any
			for _, host := range []string{"canary", "region"} {
				types = append(
					types,
					map[string]any{"name": host, "labels": map[string]any{"ring": host}, "render": "objects", "reconciler": reconciler},
				)
				clusters = append(clusters, map[string]any{"name": host + "-a", "cluster_type": host})
			}
			argument["cluster_types"], argument["clusters"] = types, clusters
			fleet := fleetOf(argument)
			location := map[string]any{"url": url, "branch": "dev", "path": "clusters/all"}
			return assigned(url, fleet, map[string]any{
				"rollout": map[string]any{"stages": []any{ringStage("canary"), ringStage("region")}},
				"evidence": providertest.Reading{DataSource: "flotilla_compliance", Attribute: "evidence", Attributes: map[string]any{
					"name": "dev", "fleet": fleet, "gitops_repo": location, "feedback": map[string]any{"reports": reports},
				}},
			})
		}
		replicas := func() string {
			var all []string
			for _, host := range []string{"canary", "region"} {
				text := fileOnBranch(t, url, "clusters/all/"+host+"/till-live/"+objectsFiles[reconciler])
				_, after, _ := strings.Cut(text, "replicas: ")
				all = append(all, after[:1])
			}
			return strings.Join(all, " ")
		}
		reports := func() (all []any) {
			for _, host := range []string{"canary", "region"} {
				all = append(
					all,
					map[string]any{"cluster": host + "-a", "commit": git(t, url, "rev-parse", "dev"), "ready": true, "since": "2026-01-01T00:00:00Z"},
				)
			}
			return all
		}
		apply(
			t,
			w,
			configuration(3, map[string]any{"cluster": "canary-a", "commit": strings.Repeat("0", 40), "ready": true, "since": "2026-01-01T00:00:00Z"}),
		)
		for range 2 {
			if _, err := os.Stat(filepath.FromSlash(url)); err == nil {
				apply(t, w, configuration(3, reports()...))
			}
		}
		if got := replicas(); got != "3 3" {
			t.Fatalf("%s: at first the replicas are %s", reconciler, got)
		}
		before := fileOnBranch(t, url, "clusters/all/region/till-live/reconciler.yaml")
		apply(t, w, configuration(4, reports()...))
		if got := replicas(); got != "4 3" || fileOnBranch(t, url, "clusters/all/region/till-live/reconciler.yaml") != before {
			t.Errorf("%s: in the first stage the replicas are %s", reconciler, got)
		}
		apply(t, w, configuration(4, reports()...))
		if got := replicas(); got != "4 4" {
			t.Errorf("%s: in the second stage the replicas are %s", reconciler, got)
		}
	}
}
