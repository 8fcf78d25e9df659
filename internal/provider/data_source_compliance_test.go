package provider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// fleetWithClusters returns the small fleet with two clusters of type drone and one of type large.
func fleetWithClusters(further map[string]any) providertest.Call {
	with := map[string]any{"clusters": []any{
		map[string]any{"name": "drone-1", "cluster_type": "drone"},
		map[string]any{"name": "drone-2", "cluster_type": "drone"},
		map[string]any{"name": "large-1", "cluster_type": "large"},
	}}
	maps.Copy(with, further)
	return fleetOf(with)
}

func readCompliance(t *testing.T, url string, providerBlock, further map[string]any) (map[string]any, providertest.Diagnostics) {
	t.Helper()
	arguments := map[string]any{
		"name": "dev", "fleet": fleetWithClusters(nil),
		"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"},
	}
	maps.Copy(arguments, further)
	return providertest.New(startProvider).
		ReadData(t.Context(), providertest.Configuration{Provider: providerBlock}, "flotilla_compliance", arguments)
}

func mustReadCompliance(t *testing.T, url string, further map[string]any) map[string]any {
	t.Helper()
	values, diags := readCompliance(t, url, nil, further)
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	return values
}

// clusterVerdicts lists the verdicts of the three clusters by name.
func clusterVerdicts(values map[string]any) string {
	var all []string
	clusters, _ := values["clusters"].(map[string]any)
	for _, name := range []string{"drone-1", "drone-2", "large-1"} {
		cluster, _ := clusters[name].(map[string]any)
		verdict, _ := cluster["verdict"].(string)
		all = append(all, verdict)
	}
	return strings.Join(all, " ")
}

func report(cluster, commit string, further map[string]any) map[string]any {
	one := map[string]any{"cluster": cluster, "commit": commit, "ready": true}
	maps.Copy(one, further)
	return one
}

// The first plan has neither repository nor clusters.
func TestComplianceOfAnEmptyRepositoryIsUnknownAndHasEvidence(t *testing.T) {
	t.Parallel()
	for name, further := range map[string]map[string]any{
		"no feedback":       {},
		"an empty feedback": {"feedback": map[string]any{}},
		"missing clusters":  {"feedback": map[string]any{"clusters": true}},
		"reports":           {"feedback": map[string]any{"reports": []any{report("drone-1", strings.Repeat("1", 40), nil)}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := time.Now().Add(-time.Second)
			values := mustReadCompliance(t, bare(t), further)
			if got := clusterVerdicts(values); got != "unknown unknown unknown" {
				t.Errorf("the verdicts are %s", got)
			}
			text, _ := values["evidence"].(string)
			evidence, err := observe.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			clusters := 3
			if name == "an empty feedback" {
				clusters = 0 // a rollout then uses time alone
			}
			if evidence.Time.Before(before.Truncate(time.Second)) || len(evidence.Clusters) != clusters ||
				values["time"] != evidence.Time.Format(time.RFC3339) {
				t.Errorf("the evidence is %s", text)
			}
		})
	}
}

func TestComplianceDerivesVerdictsFromReports(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	apply(t, w, assigned(url, fleetWithClusters(nil), nil))
	first := git(t, url, "rev-parse", "dev")
	apply(t, w, assigned(url, fleetWithClusters(map[string]any{"config_containers": []any{
		map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": "info"}},
		map[string]any{"name": "large", "labels": map[string]any{"cluster-type": "large"}, "data": map[string]any{"DATABASE_URL": "mysql://two"}},
	}}), nil))
	second := git(t, url, "rev-parse", "dev")

	read := func(reports ...any) map[string]any {
		return mustReadCompliance(t, url, map[string]any{"feedback": map[string]any{"reports": reports}})
	}
	// The second commit changes only large, so drone is ready with the first.
	values := read(report("drone-1", first, nil), report("drone-2", second[:9], nil), report("large-1", first, nil))
	if got := clusterVerdicts(values); got != "ready ready behind" {
		t.Errorf("the verdicts are %s: %v", got, values["clusters"])
	}
	failed := read(
		report("drone-1", first, map[string]any{"ready": nil, "verdict": "failed"}),
		report("drone-2", first, nil),
		map[string]any{
			"cluster":    "drone-2",
			"assignment": "drone/app-core",
			"verdict":    "failed",
			"message":    "too many errors",
		},
		report("large-1", second, nil),
	)
	if got := clusterVerdicts(failed); got != "failed failed ready" {
		t.Errorf("the verdicts are %s: %v", got, failed["clusters"])
	}
	evil := read(
		map[string]any{
			"cluster": "drone-1",
			"verdict": "failed",
			"commit":  first,
			"message": "\x1b[2J\u202eApply complete!\n\u009b" + strings.Repeat("x", 1<<20),
		},
	)
	delete(evil, "feedback")
	if text := fmt.Sprint(evil); wording.Visible(text) != text || len(text) > 10_000 {
		t.Errorf("the result of %d bytes is long or has escapes: %.500q", len(text), text)
	}
	failures, err := observe.Parse([]byte(failed["evidence"].(string)))
	if err != nil {
		t.Fatal(err)
	}
	ofCluster, ofAssignment := failures.Assignment("drone-1", "drone/app-core"), failures.Assignment("drone-2", "drone/app-core")
	if !ofCluster.OfRoot || ofAssignment.OfRoot || ofAssignment.Message != "too many errors" ||
		ofCluster.Message != "the report says that it has failed" {
		t.Errorf("the evidence is %s", failed["evidence"])
	}
	large, _ := values["clusters"].(map[string]any)["large-1"].(map[string]any)
	if large["commit"] != first || !strings.Contains(large["message"].(string), "has commit "+first[:7]) {
		t.Errorf("large-1 is %v", large)
	}
	if assignments, _ := values["assignments"].(map[string]any); len(assignments) != 1 || assignments["large/app-core"] == nil {
		t.Errorf("assignments are %v", assignments)
	}
	if drift, _ := values["drift"].([]any); len(drift) != 1 || drift[0].(map[string]any)["assignment"] != "large/app-core" {
		t.Errorf("drift is %v", drift)
	}
	evidence, err := observe.Parse([]byte(values["evidence"].(string)))
	if err != nil {
		t.Fatal(err)
	}
	if got := evidence.Assignment("drone-1", "drone/app-core"); !got.Known || !got.AtTip || got.Verdict != verdict.Ready ||
		got.Since.IsZero() {
		t.Errorf("the evidence of drone-1 is %+v", got)
	}
	if got := evidence.Assignment("large-1", "large/app-core"); got.AtTip ||
		got.Tree != git(t, url, "rev-parse", first+":clusters/all/large/app-core") {
		t.Errorf("the evidence of large-1 is %+v", got)
	}

	values = read(
		report("drone-1", second, map[string]any{"ready": false, "message": "no space"}),
		report("drone-2", strings.Repeat("1", 40), nil),
	)
	if got := clusterVerdicts(values); got != "progressing unknown unknown" {
		t.Errorf("the verdicts are %s: %v", got, values["clusters"])
	}
	if text := values["evidence"].(string); !strings.Contains(text, `"message":"no space"`) {
		t.Errorf("the evidence is %s", text)
	}

	// Unwanted folders and manual changes of the branch are drift, even before a cluster is read.
	values = mustReadCompliance(t, url, map[string]any{"fleet": fleetWithClusters(map[string]any{
		"target_policies": []any{
			policy(
				"edge",
				map[string]any{"match_labels": map[string]any{"edge": "true"}},
				map[string]any{"match_labels": map[string]any{"edge": "true"}},
			),
		},
	})})
	drift, _ := values["drift"].([]any)
	if len(drift) != 2 || drift[0].(map[string]any)["wanted"] != false ||
		drift[0].(map[string]any)["reason"] != "Git has a folder that the fleet does not want any more" {
		t.Errorf("drift is %v", drift)
	}
}

func TestComplianceRefusesInvalidConfiguration(t *testing.T) {
	t.Parallel()
	reports := func(one any) map[string]any { return map[string]any{"feedback": map[string]any{"reports": []any{one}}} }
	for name, test := range map[string]struct {
		arguments map[string]any
		want      string
	}{
		"a misspelt feedback":              {map[string]any{"feedback": map[string]any{"cluster": true}}, `cluster: unknown attribute; did you mean "clusters"?`},
		"a feedback of another type":       {map[string]any{"feedback": "clusters"}, "Must be an object, not a string."},
		"clusters of another type":         {map[string]any{"feedback": map[string]any{"clusters": "yes"}}, "clusters: must be true, false or an object, not a string."},
		"an invalid deadline":              {map[string]any{"feedback": map[string]any{"clusters": map[string]any{"deadline": "soon"}}}, "clusters.deadline: must be a duration above zero"},
		"no parallel requests":             {map[string]any{"feedback": map[string]any{"clusters": map[string]any{"parallel": 0}}}, "clusters.parallel: must be a whole number from 1 to 4096, not 0."},
		"a missing hub":                    {map[string]any{"feedback": map[string]any{"hub": "hub"}}, `hub: the provider's clusters have no entry "hub".`},
		"a hub of another type":            {map[string]any{"feedback": map[string]any{"hub": true}}, "hub: must be a string, not a bool: put it in quotes; where it is a variable, write tostring(...)."},
		"a misspelt key of statuses":       {map[string]any{"feedback": map[string]any{"commit_statuses": map[string]any{"contxt": "x"}}}, `commit_statuses.contxt: unknown attribute; did you mean "context"?`},
		"a context without a cluster":      {map[string]any{"feedback": map[string]any{"commit_statuses": map[string]any{"context": "flotilla"}}}, "has no {cluster}"},
		"commits of another type":          {map[string]any{"feedback": map[string]any{"commit_statuses": map[string]any{"commits": "all"}}}, "commit_statuses.commits: must be a whole number, not a string."},
		"statuses of a local repository":   {map[string]any{"feedback": map[string]any{"commit_statuses": true}}, "commit_statuses: "},
		"reports of another type":          {map[string]any{"feedback": map[string]any{"reports": "all"}}, "reports: must be a list of objects, not a string."},
		"a null report":                    {reports(nil), "reports[0]: must be an object"},
		"a misspelt key of a report":       {reports(map[string]any{"cluster": "drone-1", "comit": "x"}), `reports[0].comit: unknown attribute; did you mean "commit"?`},
		"a report without a cluster":       {reports(map[string]any{"commit": "x"}), "reports[0].cluster: is required."},
		"a report of an unknown cluster":   {reports(map[string]any{"cluster": "drone-3"}), `reports[0]: no cluster of this fleet is called "drone-3"; did you mean "drone-1"?`},
		"ready of another type":            {reports(map[string]any{"cluster": "drone-1", "ready": "yes"}), "reports[0].ready: must be true or false, not a string."},
		"an invalid time":                  {reports(map[string]any{"cluster": "drone-1", "since": "yesterday"}), "reports[0].since: \"yesterday\" is not a time such as"},
		"ready with a verdict":             {reports(map[string]any{"cluster": "drone-1", "ready": true, "verdict": "failed"}), "reports[0].ready: cannot be set together with verdict"},
		"an invalid verdict":               {reports(map[string]any{"cluster": "drone-1", "verdict": "behind"}), "reports[0].verdict: must be ready, progressing, failed or unknown"},
		"an unknown assignment":            {reports(map[string]any{"cluster": "drone-1", "assignment": "drone/app-cor"}), `reports[0].assignment: cluster "drone-1" has no assignment with the key "drone/app-cor"; did you mean "drone/app-core"?`},
		"an assignment of another cluster": {reports(map[string]any{"cluster": "drone-1", "assignment": "large/app-core"}), `cluster "drone-1" has no assignment with the key "large/app-core"`},
		"an empty wait":                    {map[string]any{"wait": map[string]any{}}, "so no cluster would ever be ready"},
		"a misspelt attribute of wait":     {map[string]any{"wait": map[string]any{"percent": 1}}, `percent: unknown attribute.`},
		"more than 100 percent":            {map[string]any{"wait": map[string]any{"ready_percent": 101}}, "ready_percent: must be a whole number from 1 to 100, not 101."},
		"an invalid name":                  {map[string]any{"name": "Dev!"}, `"Dev!"`},
		"a location without branch":        {map[string]any{"gitops_repo": map[string]any{"url": "x"}}, "branch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, diags := readCompliance(t, bare(t), nil, test.arguments)
			if diags.Err() == nil || !strings.Contains(diags.String(), test.want) {
				t.Errorf("got diagnostics %s", diags)
			}
		})
	}
}

// A cluster without credentials does not fail the plan.
func TestComplianceWarnsOnceOfClustersWithoutAnEntry(t *testing.T) {
	t.Parallel()
	values, diags := readCompliance(t, bare(t), map[string]any{"clusters": map[string]any{
		"drone-1": map[string]any{"host": "https://127.0.0.1:1", "token": "t"},
		"drone-2": map[string]any{"host": "https://127.0.0.1:1", "token": "t"},
	}}, map[string]any{"feedback": map[string]any{"clusters": true}})
	if diags.Err() != nil || strings.Count(diags.String(), "large-1") != 1 || !strings.Contains(diags.String(), "Clusters cannot be asked") {
		t.Errorf("got diagnostics %s", diags)
	}
	if got := clusterVerdicts(values); got != "unknown unknown unknown" {
		t.Errorf("the verdicts are %s", got)
	}
}

func TestAWaitThatTimesOutNamesUnreadyClusters(t *testing.T) {
	t.Parallel()
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleetWithClusters(nil), nil))
	commit := git(t, url, "rev-parse", "dev")
	clock := &stoppedClock{now: time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)}
	w := providertest.New(provider.StartAt(clock))
	read := func(percent int) (map[string]any, providertest.Diagnostics) {
		return w.ReadData(t.Context(), providertest.Configuration{}, "flotilla_compliance", map[string]any{
			"name": "dev", "fleet": fleetWithClusters(nil), "gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"},
			"feedback": map[string]any{
				"reports": []any{report("drone-1", commit, nil), report("drone-2", commit, map[string]any{"ready": false, "message": "no space"})},
			},
			"wait": map[string]any{"ready_percent": percent, "timeout": "5m"},
		})
	}
	values, diags := read(33)
	if diags.Err() != nil || values["time"] != "2026-11-22T01:00:00Z" {
		t.Errorf("got diagnostics %s at %v", diags, values["time"])
	}
	_, diags = read(34)
	for _, want := range []string{"Clusters are not ready", "After 5m0s, 1 of 3 clusters are ready (33 %), but ready_percent is 34 %:", "drone-2: progressing: no space", "large-1: unknown: "} {
		if !strings.Contains(diags.String(), want) {
			t.Errorf("got diagnostics %s, want %q", diags, want)
		}
	}
	if waited := clock.now.Sub(time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)); waited != 5*time.Minute || clock.slept > 30 {
		t.Errorf("it waited %s in %d pauses", waited, clock.slept)
	}
}

// The second Kustomization sorts first and is at a newer commit.
func TestASecondKustomizationOfAFolderDoesNotHideTheFirst(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	apply(t, w, assigned(url, fleetWithClusters(nil), nil))
	first := git(t, url, "rev-parse", "dev")
	apply(
		t,
		w,
		assigned(
			url,
			fleetWithClusters(map[string]any{"config_containers": []any{map[string]any{"name": "more", "data": map[string]any{"more": "yes"}}}}),
			nil,
		),
	)
	tip := git(t, url, "rev-parse", "dev")
	if first == tip {
		t.Fatal("the second apply made no commit")
	}
	ready := []any{
		map[string]any{
			"type":               "Ready",
			"status":             "True",
			"reason":             "ReconciliationSucceeded",
			"observedGeneration": 1,
			"lastTransitionTime": "2026-11-21T19:00:00Z",
		},
	}
	lists := map[string][]any{}
	for namespace, commit := range map[string]string{"a-team": tip, "flux-system": first} {
		metadata := map[string]any{"name": "gitops", "namespace": namespace, "generation": 1}
		lists["/apis/source.toolkit.fluxcd.io/v1/gitrepositories"] = append(
			lists["/apis/source.toolkit.fluxcd.io/v1/gitrepositories"],
			map[string]any{
				"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": metadata, "spec": map[string]any{"url": url, "ref": map[string]any{"branch": "dev"}},
				"status": map[string]any{"observedGeneration": 1, "conditions": ready, "artifact": map[string]any{"revision": "dev@sha1:" + commit}},
			},
		)
		lists["/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations"] = append(
			lists["/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations"],
			map[string]any{
				"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": metadata,
				"spec": map[string]any{
					"path":      "clusters/all/drone",
					"wait":      true,
					"sourceRef": map[string]any{"kind": "GitRepository", "name": "gitops"},
				},
				"status": map[string]any{
					"observedGeneration":    1,
					"conditions":            ready,
					"lastAppliedRevision":   "dev@sha1:" + commit,
					"lastAttemptedRevision": "dev@sha1:" + commit,
				},
			},
		)
	}
	values, diags := readCompliance(
		t,
		url,
		map[string]any{"clusters": map[string]any{"drone-1": map[string]any{"host": serveLists(t, lists)}}},
		map[string]any{"feedback": map[string]any{"clusters": true}},
	)
	drone, _ := values["clusters"].(map[string]any)["drone-1"].(map[string]any)
	if want := "2 objects follow the folder; by Kustomization flux-system/gitops: has commit " + first[:7]; diags.Err() != nil ||
		drone["verdict"] != "behind" ||
		drone["message"] != want ||
		drone["commit"] != first {
		t.Errorf("drone-1 is %v, want %q; %s", drone, want, diags)
	}
}

// stoppedClock advances only during Sleep.
type stoppedClock struct {
	now   time.Time
	slept int
}

func (c *stoppedClock) Now() time.Time { return c.now }

func (c *stoppedClock) Sleep(_ context.Context, d time.Duration) {
	c.now = c.now.Add(d)
	c.slept++
}

// commitForeignFiles commits files without an owner until done(number of commits) is true.
func commitForeignFiles(t *testing.T, url string, done func(commits int64) bool) {
	t.Helper()
	for i := int64(0); !done(i); i++ {
		commitByHand(t, url, "dev", func(folder string) { writeFile(t, filepath.Join(folder, "others", fmt.Sprint(i)), "x") })
	}
}

func TestAssignmentStaysReadyWhileOthersCommitAllTheTime(t *testing.T) {
	t.Parallel()
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleetWithClusters(nil), nil))
	first := git(t, url, "rev-parse", "dev")
	var pushed atomic.Int64
	var isRead atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		commitForeignFiles(t, url, func(commits int64) bool {
			pushed.Store(commits)
			return isRead.Load() && commits >= 3
		})
	}()
	defer func() {
		isRead.Store(true)
		<-done
	}()
	for range 4 {
		before := pushed.Load()
		values := mustReadCompliance(t, url, map[string]any{"feedback": map[string]any{"reports": []any{
			report("drone-1", first, nil), report("drone-2", first, nil), report("large-1", git(t, url, "rev-parse", "dev"), nil),
		}}})
		if got := clusterVerdicts(values); got != "ready ready ready" {
			t.Fatalf("after %d commits of others, the verdicts are %s: %v", before, got, values["clusters"])
		}
		drone, _ := values["clusters"].(map[string]any)["drone-1"].(map[string]any)
		if behind, err := strconv.ParseInt(fmt.Sprint(drone["commits_behind"]), 10, 64); err != nil || behind < before || behind > pushed.Load()+1 {
			t.Errorf("after %d commits of others, drone-1 is %v", before, drone)
		}
		if drift, _ := values["drift"].([]any); len(drift) != 0 {
			t.Errorf("after %d commits of others, drift is %v", before, drift)
		}
		if t.Failed() {
			return
		}
	}
}

// serveLists serves a Kubernetes API with lists by path, and returns its URL.
func serveLists(t *testing.T, lists map[string][]any) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		items, found := lists[r.URL.Path]
		if !found && r.URL.Path != "/version" {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).
			Encode(map[string]any{"gitVersion": "v1.36.3", "kind": "List", "apiVersion": "v1", "metadata": map[string]any{}, "items": items})
	}))
	t.Cleanup(server.Close)
	return server.URL
}
