package provider_test

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// checkFollowedPaths checks one commit of the branch: its reconciler objects follow only paths in that commit, on that branch.
func checkFollowedPaths(t *testing.T, files map[string]string, url, branch string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Base(name) != "reconciler.yaml" {
			continue
		}
		for _, document := range strings.Split(files[name], "---\n") {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Errorf("%s: %s", name, err)
			}
			for _, one := range followedSources(object) {
				if !strings.HasSuffix(one.path, "/objects") {
					continue
				}
				if !hasFolder(files, one.path) || path.Dir(one.path) != path.Dir(name) {
					t.Errorf("%s follows %q, which does not exist", name, one.path)
				}
				if one.branch != "" && (one.branch != branch || one.url != url) {
					t.Errorf("%s follows branch %q of %s, want %q of %s", name, one.branch, one.url, branch, url)
				}
			}
		}
	}
}

func hasFolder(files map[string]string, folder string) bool {
	for name := range files {
		if strings.HasPrefix(name, folder+"/") {
			return true
		}
	}
	return false
}

// replicasByHost returns the replicas of each host with final objects: "lab 3, store 3".
func replicasByHost(files map[string]string) string {
	var replicas []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		host, _, isObjects := strings.Cut(name, "/till-live/objects/")
		if found := replicasPattern.FindStringSubmatch(files[name]); isObjects && found != nil {
			replicas = append(replicas, path.Base(host)+" "+found[1])
		}
	}
	return strings.Join(replicas, ", ")
}

type followedSource struct{ path, branch, url string }

// followedSources returns each path, with branch and URL, in a reconciler object.
func followedSources(value any) (all []followedSource) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			all = append(all, followedSources(one)...)
		}
	case map[string]any:
		for _, name := range []string{"path", "chart"} {
			if at, isText := value[name].(string); isText {
				branch, _ := value["targetRevision"].(string)
				url, _ := value["repoURL"].(string)
				all = append(all, followedSource{strings.TrimPrefix(at, "./"), branch, url})
			}
		}
		for _, one := range value {
			all = append(all, followedSources(one)...)
		}
	}
	return all
}

func filesOfCommit(t *testing.T, url, commit string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for name := range strings.SplitSeq(git(t, url, "ls-tree", "-r", "--name-only", commit), "\n") {
		files[name] = git(t, url, "show", commit+":"+name)
	}
	return files
}

// stagedObjects is a fleet with final objects on two cluster types: "lab" is the first stage of a rollout, "store" the second.
type stagedObjects struct {
	t          *testing.T
	url        string
	w          *providertest.Workspace
	reconciler string
	charts     *chartServer
	pin        folder.Pin
	lab, store map[string]any
	branch     string
	replicas   int
	reports    []any
	further    map[string]any
	clock      *stoppedClock
}

func newStagedObjects(t *testing.T, reconciler string) *stagedObjects {
	t.Helper()
	s := &stagedObjects{
		t: t, url: bare(t), w: providertest.New(startProvider), reconciler: reconciler, charts: newChartServer(t), branch: "dev", replicas: 3,
		lab: namedType("lab"), store: namedType("store"), reports: []any{}, further: map[string]any{},
		clock: &stoppedClock{now: time.Now().UTC().Truncate(time.Second)},
	}
	s.w.Start = provider.StartAt(s.clock)
	s.pin = s.charts.publish(t, "1.2.1", chartWithoutSecret)
	return s
}

func (s *stagedObjects) configuration() providertest.Configuration {
	argument := renderedFleet(s.pin, tillManifests(s.charts), map[string]any{"config_as": []any{"values"}}, nil)
	types, clusters := []any{}, []any{}
	for cluster, one := range map[string]map[string]any{"c-lab": s.lab, "c-store": s.store} {
		types = append(types, mergeMaps(map[string]any{
			"render": "objects", "reconciler": s.reconciler, "labels": map[string]any{"ring": strings.TrimPrefix(cluster, "c-")},
		}, one))
		clusters = append(clusters, map[string]any{"name": cluster, "cluster_type": one["name"]})
	}
	argument["cluster_types"], argument["clusters"] = types, clusters
	argument["config_containers"] = []any{map[string]any{"name": "all", "data": map[string]any{"replicas": s.replicas}}}
	fleet, at := fleetOf(argument), map[string]any{"url": s.url, "branch": s.branch, "path": "clusters/all"}
	return assigned(s.url, fleet, mergeMaps(map[string]any{
		"gitops_repo": at, "protection": map[string]any{"max_removed": 0},
		"rollout": map[string]any{
			"on_failure": "roll_back", "failed_for": "1s",
			"stages": []any{map[string]any{"name": "first", "cluster_type_selector": map[string]any{"match_labels": map[string]any{"ring": "lab"}}}},
		},
		"evidence": providertest.Reading{DataSource: "flotilla_compliance", Attribute: "evidence", Attributes: map[string]any{
			"name": "dev", "fleet": fleet, "gitops_repo": at, "feedback": map[string]any{"reports": s.reports},
		}},
	}, s.further))
}

// reportReady makes both clusters report, an hour later, that the tip is ready.
func (s *stagedObjects) reportReady() {
	s.clock.now = s.clock.now.Add(time.Hour)
	tip := git(s.t, s.url, "rev-parse", s.branch)
	s.reports = []any{}
	for _, cluster := range []string{"c-lab", "c-store"} {
		s.reports = append(
			s.reports,
			map[string]any{"cluster": cluster, "commit": tip, "ready": true, "since": s.clock.now.Add(-time.Minute).Format(time.RFC3339)},
		)
	}
}

var replicasPattern = regexp.MustCompile(`replicas: (\d+)`)

// applyAndCheck applies and expects the replicas of hosts: "lab 3, store 3". The commit must be consistent, and the next plan empty.
func (s *stagedObjects) applyAndCheck(want string) *providertest.Plan {
	s.t.Helper()
	plan := apply(s.t, s.w, s.configuration())
	files := filesOfCommit(s.t, s.url, s.branch)
	if got := replicasByHost(files); got != want {
		s.t.Errorf("the branch has %s, want %s; the plan says %s", got, want, rolloutText(plan))
	}
	checkFollowedPaths(s.t, files, s.url, s.branch)
	if again, diags := s.w.Plan(s.t.Context(), s.configuration()); again == nil || !again.Empty() {
		s.t.Errorf("the next plan says %v %s", again, diags)
	}
	return plan
}

func runForAgents(t *testing.T, play func(t *testing.T, s *stagedObjects)) {
	t.Helper()
	t.Parallel()
	for _, reconciler := range []string{"flux", "argocd"}[:acceptancetest.Count(1, 2)] {
		t.Run(reconciler, func(t *testing.T) {
			t.Parallel()
			s := newStagedObjects(t, reconciler)
			s.further["rollout"] = nil
			s.applyAndCheck("lab 3, store 3")
			delete(s.further, "rollout")
			s.reportReady()
			s.applyAndCheck("lab 3, store 3")
			play(t, s)
		})
	}
}

func TestFinalObjectsAreFollowedAfterARenameAlone(t *testing.T) {
	runForAgents(t, func(t *testing.T, s *stagedObjects) {
		s.store, s.lab = namedType("shop", "store"), namedType("bench", "lab")
		plan := s.applyAndCheck("bench 3, shop 3")
		for _, want := range []string{countLine(changes.Counts{}), `cluster type "store" is now "shop": 1 folder moves`, "true"} {
			if !strings.Contains(rolloutText(plan), want) || strings.Contains(rolloutText(plan), "stage") {
				t.Errorf("the plan does not say %q: %s", want, rolloutText(plan))
			}
		}
	})
}

func TestFinalObjectsAreFollowedAfterARenameDuringARollout(t *testing.T) {
	runForAgents(t, func(t *testing.T, s *stagedObjects) {
		s.store, s.replicas = namedType("shop", "store"), 4
		s.applyAndCheck("lab 4, shop 3")
		id := rolledOutContent(s.w)
		s.store = namedType("market", "store", "shop") // a second rename during the rollout
		s.applyAndCheck("lab 4, market 3")
		if now := rolledOutContent(s.w); now != id || id == "" {
			t.Errorf("the rollout has content %q, want %q", now, id)
		}
		s.reportReady()
		s.applyAndCheck("lab 4, market 4")
		s.reportReady()
		if plan := s.applyAndCheck("lab 4, market 4"); !strings.Contains(fmt.Sprint(s.w.Now().Values(assignment)["rolled_out"]), "true") {
			t.Errorf("at the end, the plan says %s", rolloutText(plan))
		}
	})
}

var contentPattern = regexp.MustCompile(`till-live@(\w+)`)

// rolledOutContent returns the id of the content under way, from the state.
func rolledOutContent(w *providertest.Workspace) string {
	found := contentPattern.FindStringSubmatch(fmt.Sprint(w.Now().Values(assignment)["rolling_out"], w.Now().Values(assignment)["changes"]))
	if found == nil {
		return ""
	}
	return found[1]
}

func TestFinalObjectsAreFollowedAfterARenameUnderAHold(t *testing.T) {
	runForAgents(t, func(_ *testing.T, s *stagedObjects) {
		s.store, s.replicas = namedType("shop", "store"), 4
		s.further["holds"] = []any{map[string]any{"hosts": []any{"shop"}, "reason": "an audit"}}
		s.applyAndCheck("lab 4, shop 3")
		s.reportReady()
		s.applyAndCheck("lab 4, shop 3")
		delete(s.further, "holds")
		s.applyAndCheck("lab 4, shop 4")
	})
}

func TestFinalObjectsAreFollowedAfterAnAutomaticRollbackOverARename(t *testing.T) {
	runForAgents(t, func(_ *testing.T, s *stagedObjects) {
		s.replicas = 4
		s.applyAndCheck("lab 4, store 3")
		s.lab = namedType("bench", "lab")
		s.applyAndCheck("bench 4, store 3")
		s.reportReady()
		s.reports = append(s.reports, map[string]any{
			"cluster": "c-lab", "commit": git(s.t, s.url, "rev-parse", "dev"), "since": s.clock.now.Add(-time.Minute).Format(time.RFC3339),
			"assignment": "bench/till-live", "verdict": "failed",
		})
		s.applyAndCheck("bench 3, store 3")
	})
}

func TestFinalObjectsAreFollowedAfterARollbackToACommit(t *testing.T) {
	runForAgents(t, func(_ *testing.T, s *stagedObjects) {
		first := git(s.t, s.url, "rev-parse", "dev")
		s.lab, s.store, s.replicas = namedType("bench", "lab"), namedType("shop", "store"), 4
		s.applyAndCheck("bench 4, shop 3")
		s.reportReady()
		s.applyAndCheck("bench 4, shop 4")
		s.further["rollback_to"] = first
		s.applyAndCheck("bench 3, shop 3")
		delete(s.further, "rollback_to")
		s.replicas = 3
		s.applyAndCheck("bench 3, shop 3")
	})
}

func TestFinalObjectsAreFollowedAfterTheBranchWasRenamed(t *testing.T) {
	runForAgents(t, func(t *testing.T, s *stagedObjects) {
		first := git(s.t, s.url, "rev-parse", "dev")
		s.replicas = 4
		s.applyAndCheck("lab 4, store 3")
		git(t, s.url, "branch", "-m", "dev", "live")
		git(t, s.url, "symbolic-ref", "HEAD", "refs/heads/live")
		s.branch, s.store = "live", namedType("shop", "store")
		s.applyAndCheck("lab 4, shop 3")
		s.reportReady()
		s.applyAndCheck("lab 4, shop 4")
		s.further["rollback_to"] = first
		s.applyAndCheck("lab 3, shop 3")
	})
}
