package metrics_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/metrics"
)

var reportTime = time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)

// assignmentOn returns an assignment on a cluster, with a verdict for some time.
func assignmentOn(host, target string, v verdict.Verdict, age time.Duration) observe.AssignmentResult {
	folder := &observe.WrittenFolder{Host: host, DeploymentTarget: target}
	return observe.AssignmentResult{Key: folder.Key(), Folder: folder, Status: verdict.Status{Verdict: v, Since: reportTime.Add(-age)}}
}

// newCluster returns a cluster with the worst verdict of its assignments.
func newCluster(name string, behind int, all ...observe.AssignmentResult) observe.ClusterResult {
	c := observe.ClusterResult{
		Name:        name,
		Commit:      "1a2b3c4d",
		Behind:      behind,
		Assignments: all,
		Status:      verdict.Status{Verdict: verdict.Ready},
	}
	for _, a := range all {
		c.Status = verdict.Worst(c.Status, a.Status)
	}
	return c
}

// newInput returns the input of a fleet that wants all assignments of its clusters.
func newInput(clusters ...observe.ClusterResult) metrics.Input {
	in := metrics.Input{
		Result: &observe.Observation{About: observe.About{Owner: "shops", Environment: "prod"}, Time: reportTime, Clusters: clusters},
		Asked:  true, Wants: map[string]bool{},
	}
	for _, c := range clusters {
		for _, a := range c.Assignments {
			in.Wants[a.Key] = true
		}
	}
	return in
}

// setWanted sets the wanted version of an assignment.
func setWanted(in metrics.Input, key, version string) {
	for _, c := range in.Result.Clusters {
		for _, a := range c.Assignments {
			if a.Key == key {
				a.Folder.Wanted = version
			}
		}
	}
}

// november returns a full hour of a day in November.
func november(day, hour int) time.Time { return time.Date(2026, 11, day, hour, 0, 0, 0, time.UTC) }

// troubledFleet returns a fleet that has a value for every metric.
func troubledFleet(t *testing.T) metrics.Input {
	t.Helper()
	in := newInput(
		newCluster("drone-1", 0, assignmentOn("drone", "app-core", verdict.Ready, time.Hour), assignmentOn("drone", "app-edge", verdict.Failed, time.Hour)),
		newCluster("drone-2", 7, assignmentOn("drone", "app-core", verdict.Behind, 2*time.Hour), assignmentOn("drone", "app-edge", verdict.Behind, 26*time.Hour)),
		newCluster("drone-3", 3, assignmentOn("drone", "app-core", verdict.Behind, 3*time.Hour), assignmentOn("drone", "app-edge", verdict.Progressing, 0)),
		newCluster("large-1", -1, assignmentOn("large", "app-core", verdict.Unknown, 0), assignmentOn("large", "old-main", verdict.Failed, 0)),
	)
	in.Wants["large/old-main"] = false
	in.Result.Clusters[0].Assignments[0].Running.Revision = "0123456789abcdef" // a commit without a tag
	for _, i := range []int{1, 2} {
		in.Result.Clusters[i].Assignments[0].Running.Version = "v1.9.0"
	}
	setWanted(in, "drone/app-core", "v2.0.0")
	setWanted(in, "drone/app-edge", "v1.4.0")
	in.Rollouts = []rollout.Progress{
		{
			DeploymentTarget: "app-core", Content: "0123abcd", Stage: 1, Stages: 3, StageName: "canary", HostsDone: 1, Hosts: 2,
			Since: november(20, 13), WaitsFor: rollout.WaitsForClusters, Condition: rollout.Waiting,
		},
		{
			DeploymentTarget: "app-edge", Content: "0123abcd", Stage: 2, Stages: 3, HostsDone: 1, Hosts: 2, Since: november(21, 13),
			WaitsFor: rollout.WaitsForContent, Condition: rollout.RolledBack,
		},
		{
			DeploymentTarget: "app-more", Content: "0123abcd", Stage: 1, Stages: 3, StageName: "canary", Hosts: 2, Since: november(21, 14),
			WaitsFor: rollout.WaitsForClusters, Condition: rollout.Waiting,
		},
		{DeploymentTarget: "app-held", HostsDone: 1, Hosts: 2, WaitsFor: rollout.WaitsForHold, Condition: rollout.Waiting},
	}
	return in
}

func TestTextOfEveryMetric(t *testing.T) {
	t.Parallel()
	const labels = `environment="prod",owner="shops"`
	want := strings.ReplaceAll(`# TYPE flotilla_evidence_timestamp_seconds gauge
# UNIT flotilla_evidence_timestamp_seconds seconds
# HELP flotilla_evidence_timestamp_seconds When the clusters were asked.
flotilla_evidence_timestamp_seconds{COMMON} 1795309200
# TYPE flotilla_clusters gauge
# HELP flotilla_clusters Clusters of the fleet by verdict.
flotilla_clusters{COMMON,verdict="failed"} 2
flotilla_clusters{COMMON,verdict="behind"} 2
flotilla_clusters{COMMON,verdict="progressing"} 0
flotilla_clusters{COMMON,verdict="unknown"} 0
flotilla_clusters{COMMON,verdict="ready"} 0
# TYPE flotilla_health_score gauge
# HELP flotilla_health_score Health of the fleet, from 0 to 100; absent where no cluster was asked or nothing is deployed.
flotilla_health_score{COMMON} 52
# TYPE flotilla_commits_behind gauge
# HELP flotilla_commits_behind Most commits by which the branch is ahead of what a cluster has applied, of any author; absent where that is known of no cluster.
flotilla_commits_behind{COMMON} 7
# TYPE flotilla_assignment_clusters gauge
# HELP flotilla_assignment_clusters Clusters that an assignment is on, by the version that the branch has, the one that runs, and verdict.
flotilla_assignment_clusters{COMMON,host="drone",deployment_target="app-edge",wanted_version="v1.4.0",verdict="failed"} 1
flotilla_assignment_clusters{COMMON,host="large",deployment_target="old-main",verdict="failed"} 1
flotilla_assignment_clusters{COMMON,host="drone",deployment_target="app-core",wanted_version="v2.0.0",running_version="v1.9.0",verdict="behind"} 2
flotilla_assignment_clusters{COMMON,host="drone",deployment_target="app-edge",wanted_version="v1.4.0",verdict="behind"} 1
flotilla_assignment_clusters{COMMON,host="drone",deployment_target="app-edge",wanted_version="v1.4.0",verdict="progressing"} 1
flotilla_assignment_clusters{COMMON,host="large",deployment_target="app-core",verdict="unknown"} 1
flotilla_assignment_clusters{COMMON,host="drone",deployment_target="app-core",wanted_version="v2.0.0",running_version="0123456789abcdef",verdict="ready"} 1
# TYPE flotilla_assignment_behind_since_timestamp_seconds gauge
# UNIT flotilla_assignment_behind_since_timestamp_seconds seconds
# HELP flotilla_assignment_behind_since_timestamp_seconds Since when a cluster has other content than the branch, of an assignment that is behind somewhere.
flotilla_assignment_behind_since_timestamp_seconds{COMMON,host="drone",deployment_target="app-edge"} 1795215600
flotilla_assignment_behind_since_timestamp_seconds{COMMON,host="drone",deployment_target="app-core"} 1795298400
# TYPE flotilla_rollouts gauge
# HELP flotilla_rollouts Deployment targets whose change is under way, by stage.
flotilla_rollouts{COMMON,state="waiting",waits_for="hold"} 1
flotilla_rollouts{COMMON,stage="1",stage_name="canary",state="waiting",waits_for="clusters"} 2
flotilla_rollouts{COMMON,stage="2",state="rolled_back",waits_for="newer_content"} 1
# TYPE flotilla_rollout_since_timestamp_seconds gauge
# UNIT flotilla_rollout_since_timestamp_seconds seconds
# HELP flotilla_rollout_since_timestamp_seconds Since when the change of a deployment target is at its stage.
flotilla_rollout_since_timestamp_seconds{COMMON,deployment_target="app-core",stage="1",stage_name="canary",state="waiting",waits_for="clusters"} 1795179600
flotilla_rollout_since_timestamp_seconds{COMMON,deployment_target="app-edge",stage="2",state="rolled_back",waits_for="newer_content"} 1795266000
flotilla_rollout_since_timestamp_seconds{COMMON,deployment_target="app-more",stage="1",stage_name="canary",state="waiting",waits_for="clusters"} 1795269600
# TYPE flotilla_omitted_series gauge
# HELP flotilla_omitted_series Series of a metric that are over the limit, and were summed or left out.
flotilla_omitted_series{COMMON,metric="flotilla_evidence_timestamp_seconds"} 0
flotilla_omitted_series{COMMON,metric="flotilla_clusters"} 0
flotilla_omitted_series{COMMON,metric="flotilla_health_score"} 0
flotilla_omitted_series{COMMON,metric="flotilla_commits_behind"} 0
flotilla_omitted_series{COMMON,metric="flotilla_assignment_clusters"} 0
flotilla_omitted_series{COMMON,metric="flotilla_assignment_behind_since_timestamp_seconds"} 0
flotilla_omitted_series{COMMON,metric="flotilla_rollouts"} 0
flotilla_omitted_series{COMMON,metric="flotilla_rollout_since_timestamp_seconds"} 0
# EOF
`, "COMMON", labels)
	if got := metrics.Text(troubledFleet(t)); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// Nobody asked the clusters, and nothing is deployed.
func TestUnknownMetricsAreAbsent(t *testing.T) {
	t.Parallel()
	in := newInput(newCluster("drone-1", -1, assignmentOn("drone", "app-core", verdict.Unknown, 0)))
	in.Asked = false
	text := metrics.Text(in)
	for _, absent := range []string{"flotilla_health_score{", "flotilla_commits_behind{", "flotilla_rollouts{", "flotilla_assignment_behind_since_timestamp_seconds{"} {
		if strings.Contains(text, absent) {
			t.Errorf("%s is there:\n%s", absent, text)
		}
	}
	if text := metrics.Text(newInput()); strings.Contains(text, "flotilla_health_score{") || !strings.HasSuffix(text, "\n# EOF\n") {
		t.Errorf("without clusters, the text is\n%s", text)
	}
}

// largeFleet returns the reference fleet: 20,000 assignments of 500 cluster types with six clusters each.
func largeFleet() metrics.Input {
	var clusters []observe.ClusterResult
	for host := range 500 {
		var all []observe.AssignmentResult
		for target := range 40 {
			v := verdict.Ready
			if target == 39 {
				v = verdict.Behind
			}
			assignment := assignmentOn(fmt.Sprintf("type-%03d", host), fmt.Sprintf("workload-%03d-target", (host+target)%500), v, time.Duration(host)*time.Hour)
			assignment.Folder.Wanted, assignment.Running.Version = "v1.0.0", "v1.0.0"
			all = append(all, assignment)
		}
		for i := range 6 {
			clusters = append(clusters, newCluster(fmt.Sprintf("cluster-%03d-%d", host, i), 0, all...))
		}
	}
	return newInput(clusters...)
}

func TestSeriesOverTheLimitAreSummed(t *testing.T) {
	t.Parallel()
	in := largeFleet()
	for i := range 2*metrics.Limit + 10 {
		in.Rollouts = append(in.Rollouts, rollout.Progress{
			DeploymentTarget: fmt.Sprintf("app-%04d", i), Content: "y", Stage: i + 1, Stages: 9999, HostsDone: 1, Hosts: 2, Since: november(20, 13),
			WaitsFor: rollout.WaitsForApproval, Condition: rollout.Waiting,
		})
	}
	text := metrics.Text(in)
	if again := metrics.Text(in); again != text {
		t.Error("the same input gives another text")
	}
	for metric, want := range map[string]int{
		"flotilla_assignment_clusters": metrics.Limit + 1, "flotilla_assignment_behind_since_timestamp_seconds": 500,
		"flotilla_rollouts": metrics.Limit + 1, "flotilla_rollout_since_timestamp_seconds": metrics.Limit,
	} {
		if got := strings.Count(text, "\n"+metric+"{"); got != want {
			t.Errorf("%s has %d series, want %d", metric, got, want)
		}
	}
	for _, want := range []string{
		`flotilla_assignment_clusters{environment="prod",owner="shops",verdict="ready"} 108000`, // 117,000 less 1,500 series of six each
		`flotilla_omitted_series{environment="prod",owner="shops",metric="flotilla_assignment_clusters"} 18000`,
		`flotilla_rollouts{environment="prod",owner="shops",state="waiting"} 2010`,
		`flotilla_omitted_series{environment="prod",owner="shops",metric="flotilla_rollout_since_timestamp_seconds"} 2010`,
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("the text lacks %s", want)
		}
	}
	if got := strings.Count(text, `verdict="behind"} 6`); got != 500 {
		t.Errorf("%d of 500 assignments behind have a series", got)
	}
	if len(text) > 1<<20 {
		t.Errorf("the text has %d bytes", len(text))
	}
}

// A text of users, such as a tag, must not start a line.
func TestHostileTextStaysInItsLabel(t *testing.T) {
	t.Parallel()
	text := metrics.Text(hostileFleet())
	want := `wanted_version="\\\"} 1 # HELP x` + "\uFFFD" + ` ` + "é" + `",verdict="ready"} 1`
	if !strings.Contains(text, want) || strings.Count(text, "# EOF") != 2 || strings.Contains(text, "\n# EOF\nx") {
		t.Errorf("got\n%s\nwant %s", text, want)
	}
	if tooLong := strings.Repeat("v", 301); strings.Contains(text, tooLong) {
		t.Error("a label has more than 300 bytes")
	}
}

func hostileFleet() metrics.Input {
	in := newInput(
		newCluster(
			"drone-1",
			0,
			assignmentOn("drone", "app-core", verdict.Ready, 0),
			assignmentOn("drone", "app-edge", verdict.Ready, 0),
			assignmentOn("drone", "app-more", verdict.Ready, 0),
		),
	)
	setWanted(in, "drone/app-core", "\\\"} 1\n# HELP x\x00\xff\n\té")
	setWanted(in, "drone/app-edge", strings.Repeat("v", 100_000))
	setWanted(in, "drone/app-more", "\n# EOF\nx 1")
	return in
}

func TestGuideListsEveryMetric(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "templates", "guides", "reference-observing.md.tmpl"))
	if err != nil {
		t.Fatal(err)
	}
	table := "| metric | its labels | what it says |\n|---|---|---|\n"
	for _, metric := range append(metrics.Metrics(), metrics.Omitted) {
		var labels []string
		for _, label := range metric.Labels {
			labels = append(labels, "`"+label+"`")
		}
		table += fmt.Sprintf("| `%s` | %s | %s |\n", metric.Name, strings.Join(labels, ", "), metric.Help)
	}
	if !strings.Contains(string(guide), "\n"+table+"\n") {
		t.Errorf("the guide lacks this table:\n%s", table)
	}
	for _, phrase := range []string{fmt.Sprintf("%d,%03d series", metrics.Limit/1000, metrics.Limit%1000)} {
		if !strings.Contains(string(guide), phrase) {
			t.Errorf("the guide lacks %q", phrase)
		}
	}
}

func BenchmarkText(b *testing.B) {
	in := largeFleet()
	for b.Loop() {
		metrics.Text(in)
	}
}
