package provider_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// ringFleet has the cluster types canary, region and rest, each with a cluster of the same name, and a deployment target on all of
// them. version is its configuration value.
func ringFleet(version string, further map[string]any) map[string]any {
	argument := map[string]any{
		"environment": "dev", "workspaces": []any{map[string]any{"name": "team"}},
		"cluster_types": []any{}, "clusters": []any{},
		"workloads": []any{map[string]any{
			"name": "app", "workspace": "team",
			"deployment_targets": map[string]any{"core": map[string]any{
				"environment": "dev", "manifests": map[string]any{"repo": "https://git.example.com/app", "branch": "main"},
			}},
		}},
		"target_policies":   []any{policy("all", map[string]any{}, map[string]any{})},
		"config_containers": []any{map[string]any{"name": "all", "data": map[string]any{"VERSION": version}}},
	}
	for _, ring := range []string{"canary", "region", "rest"} {
		argument["cluster_types"] = append(
			argument["cluster_types"].([]any),
			map[string]any{"name": ring, "labels": map[string]any{"ring": ring}},
		)
		argument["clusters"] = append(argument["clusters"].([]any), map[string]any{"name": ring, "cluster_type": ring, "environment": "dev"})
	}
	maps.Copy(argument, further)
	return argument
}

func ringRollout(further map[string]any) map[string]any {
	stage := func(ring string) map[string]any {
		return map[string]any{"name": ring, "cluster_type_selector": map[string]any{"match_labels": map[string]any{"ring": ring}}}
	}
	rollout := map[string]any{"stages": []any{stage("canary"), stage("region")}}
	maps.Copy(rollout, further)
	return rollout
}

// rings is an assignment with a rollout, and the clusters that report about it.
type rings struct {
	t        *testing.T
	url      string
	w        *providertest.Workspace
	now      time.Time
	verdicts map[string]verdict.Verdict
	commits  map[string]string // applied commit by cluster
	since    map[string]time.Time
	rollout  map[string]any
	further  map[string]any
}

func newRings(t *testing.T) *rings {
	t.Helper()
	r := &rings{
		t: t, url: bare(t), w: providertest.New(startProvider), now: time.Now().UTC().Truncate(time.Second),
		verdicts: map[string]verdict.Verdict{}, commits: map[string]string{}, since: map[string]time.Time{}, rollout: ringRollout(nil),
	}
	apply(t, r.w, assigned(r.url, providertest.Call{Function: "fleet", Arguments: []any{ringFleet("1", nil)}}, nil))
	return r
}

// ringsAbout is the subject of the evidence.
var ringsAbout = observe.About{Owner: "dev", Environment: "dev", Branch: "dev", Path: "clusters/all"}

// evidence returns the reports of the clusters, an hour after the previous ones.
func (r *rings) evidence() string {
	r.now = r.now.Add(time.Hour)
	e := &observe.Evidence{
		About:    ringsAbout,
		Time:     r.now,
		Tip:      git(r.t, r.url, "rev-parse", "dev"),
		Clusters: map[string]observe.ClusterEvidence{},
		Trees:    map[string]map[string]string{},
	}
	tip := r.trees(e.Tip, ringHosts...)
	for _, name := range ringHosts {
		found := r.verdicts[name]
		if found == "" {
			found = verdict.Unknown
		}
		e.Clusters[name] = observe.ClusterEvidence{Type: name, Commit: r.commits[name], Status: verdict.Status{Verdict: found, Since: r.since[name]}}
		if commit := r.commits[name]; commit != "" && e.Trees[commit] == nil {
			e.Trees[commit] = map[string]string{}
			trees := r.trees(commit, ringHosts...)
			for host, now := range tip { // folders that differ from the tip
				if trees[host] != now {
					e.Trees[commit][host+"/app-core"] = trees[host]
				}
			}
		}
	}
	return string(e.Marshal())
}

// ringHosts are the hosts of ringFleet.
var ringHosts = []string{"canary", "region", "rest"}

// trees returns the ids of the hosts' folders at a commit, by host.
func (r *rings) trees(commit string, hosts ...string) map[string]string {
	r.t.Helper()
	arguments := []string{"ls-tree", commit}
	for _, host := range hosts {
		arguments = append(arguments, "clusters/all/"+host+"/app-core")
	}
	trees := map[string]string{}
	for line := range strings.Lines(git(r.t, r.url, arguments...)) { // "040000 tree <id>", a tab, and the path
		about, path, _ := strings.Cut(line, "\t")
		trees[strings.Split(path, "/")[2]] = strings.Fields(about)[2]
	}
	return trees
}

// tree returns the id of the host's folder at a commit, or "".
func (r *rings) tree(commit, host string) string {
	r.t.Helper()
	return r.trees(commit, host)[host]
}

// report sets the verdict of a cluster at the tip.
func (r *rings) report(cluster string, reported verdict.Verdict) {
	r.verdicts[cluster], r.commits[cluster], r.since[cluster] = reported, git(r.t, r.url, "rev-parse", "dev"), r.now.Add(30*time.Minute)
}

func (r *rings) configuration(version string) providertest.Configuration {
	further := map[string]any{"evidence": r.evidence()}
	if r.rollout != nil {
		further["rollout"] = r.rollout
	}
	maps.Copy(further, r.further)
	return assigned(r.url, providertest.Call{Function: "fleet", Arguments: []any{ringFleet(version, nil)}}, further)
}

// versions returns the deployed version of each host: "2 1 1".
func (r *rings) versions() string {
	r.t.Helper()
	arguments := []string{"show"}
	for _, host := range ringHosts {
		arguments = append(arguments, "dev:clusters/all/"+host+"/app-core/platform-config.yaml")
	}
	var versions []string
	for content := range strings.SplitSeq(git(r.t, r.url, arguments...), "VERSION:") {
		version, _, _ := strings.Cut(content, "\n")
		versions = append(versions, strings.Trim(strings.TrimSpace(version), `"'`))
	}
	return strings.Join(versions[1:], " ")
}

// applyVersion expects the deployed versions: "2 1 1".
func (r *rings) applyVersion(version, want string) *providertest.Plan {
	r.t.Helper()
	plan := apply(r.t, r.w, r.configuration(version))
	if got := r.versions(); got != want {
		r.t.Fatalf("deployed %q, want %q", got, want)
	}
	return plan
}

// expectWarning expects an empty plan with this warning, twice.
func (r *rings) expectWarning(version, summary, want string) {
	r.t.Helper()
	for range 2 {
		plan, diags := r.w.Plan(r.t.Context(), r.configuration(version))
		if !plan.Empty() || diags.Err() != nil || !diags.Has(summary) || !strings.Contains(diags.String(), want) {
			r.t.Errorf("the plan says %v", diags)
		}
	}
}

func assignmentAfter(plan *providertest.Plan) map[string]any { return plan.Change(assignment).After }

func rolloutText(plan *providertest.Plan) string {
	return fmt.Sprint(assignmentAfter(plan)["changes"], assignmentAfter(plan)["rolling_out"], assignmentAfter(plan)["rolled_out"])
}
