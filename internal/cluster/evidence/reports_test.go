package evidence_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// newStepInput returns a fleet with three hosts: the cluster types a and b with two clusters each, and the cluster c-1. All want the tree
// "new" of app-core. Host a has had it for an hour; the others have the tree "old".
func newStepInput() rollout.StepInput {
	in := rollout.StepInput{
		Now: noon, Wanted: folder.Trees{}, Deployed: folder.Trees{}, Records: map[folder.Key]rollout.Record{},
		Hosts: map[string]*rollout.FleetHost{
			"a": {Clusters: []string{"a-1", "a-2"}}, "b": {Clusters: []string{"b-1", "b-2"}}, "c-1": {IsCluster: true, Clusters: []string{"c-1"}},
		},
		State: &rollout.StepState{
			Targets: map[string]*rollout.ChangeState{"app-core": {Hosts: map[string]*rollout.HostState{"a": {}, "b": {}, "c-1": {}}}},
		},
	}
	for host := range in.Hosts {
		in.Wanted[host], in.Deployed[host] = map[string]string{"app-core": "new"}, map[string]string{"app-core": "old"}
	}
	in.Deployed["a"]["app-core"] = "new"
	in.Records[onA] = rollout.Record{Tree: "new", Before: "old", Changed: noon.Add(-time.Hour)}
	return in
}

var onA = folder.Key{Host: "a", DeploymentTarget: "app-core"}

// agentLookup returns the same report of agents for every cluster.
func agentLookup(known bool, tree string, v verdict.Verdict) evidence.Lookup {
	return func(string, folder.Key) rollout.Report {
		return rollout.Report{Known: known, Tree: tree, Status: verdict.Status{Verdict: v, Since: noon.Add(-time.Minute), Message: "agents"}}
	}
}

func measurementsOf(of evidence.SubjectKind, pass, fail string, figures map[string]float64) evidence.Document {
	check := evidence.Check{Name: "errors", Of: of, Unit: "%", Pass: pass, Fail: fail, Figures: map[string]evidence.Figure{}}
	for subject, value := range figures {
		check.Figures[subject] = evidence.Figure{Value: value}
	}
	return evidence.Document{Measurements: &evidence.Measurements{Environment: "dev", Time: noon, Checks: []evidence.Check{check}}}
}

func factsOf(v verdict.Verdict, clusters ...string) evidence.Document {
	facts := &evidence.Facts{Time: noon, Clusters: map[string]evidence.ClusterFacts{}}
	for _, name := range clusters {
		facts.Clusters[name] = evidence.ClusterFacts{Status: verdict.Status{Verdict: v, Message: "2 of 2 nodes are ready"}}
	}
	return evidence.Document{Facts: facts}
}

func TestReportsCombineDocuments(t *testing.T) {
	t.Parallel()
	errors := func(value float64) evidence.Document {
		return measurementsOf(evidence.OfCluster, "value < 1.0", "value > 5.0", map[string]float64{"a-1": value})
	}
	older := errors(0)
	older.Measurements.Time = noon.Add(-2 * time.Hour)
	for name, c := range map[string]struct {
		list   evidence.List
		agents []evidence.Lookup
		change func(*rollout.StepInput)
		want   string // verdict, tree or "?", source
	}{
		"agents alone":                  {nil, []evidence.Lookup{agentLookup(true, "new", verdict.Ready)}, nil, "ready new "},
		"agents alone, unknown content": {nil, []evidence.Lookup{agentLookup(false, "", verdict.Ready)}, nil, "ready ? "},
		"both are ready":                {evidence.List{errors(0.5)}, []evidence.Lookup{agentLookup(true, "new", verdict.Ready)}, nil, "ready new "},
		"the check waits":               {evidence.List{errors(2)}, []evidence.Lookup{agentLookup(true, "new", verdict.Ready)}, nil, "progressing new errors"},
		"the check fails":               {evidence.List{errors(9)}, []evidence.Lookup{agentLookup(true, "new", verdict.Ready)}, nil, "failed new errors"},
		"the check has no figure": {
			evidence.List{measurementsOf(evidence.OfCluster, "true", "", nil)}, []evidence.Lookup{agentLookup(true, "new", verdict.Ready)}, nil, "progressing new errors",
		},
		"two agents with different contents": {
			nil, []evidence.Lookup{agentLookup(true, "new", verdict.Ready), agentLookup(true, "old", verdict.Ready)}, nil, "ready old ",
		},
		"two agents with different contents, in the other order": {
			nil, []evidence.Lookup{agentLookup(true, "old", verdict.Ready), agentLookup(true, "new", verdict.Ready)}, nil, "ready old ",
		},
		"two agents, one with unknown content": {
			nil, []evidence.Lookup{agentLookup(true, "new", verdict.Ready), agentLookup(false, "", verdict.Ready)}, nil, "progressing new ",
		},
		"ready agents with unknown content, and a check": {
			evidence.List{errors(0.5)}, []evidence.Lookup{agentLookup(false, "", verdict.Ready)}, nil, "progressing new ",
		},
		"a dead cluster": {
			evidence.List{measurementsOf(evidence.OfCluster, "true", "", nil), factsOf(verdict.Unknown, "a-1")}, []evidence.Lookup{agentLookup(false, "", verdict.Unknown)}, nil, "unknown ? ",
		},
		"a dead cluster, and a figure of its host": {
			evidence.List{measurementsOf(evidence.OfHost, "true", "", map[string]float64{"a": 1})}, []evidence.Lookup{agentLookup(false, "", verdict.Unknown)}, nil, "unknown ? ",
		},
		"a dead cluster, and a failing figure of the fleet": {
			evidence.List{measurementsOf(evidence.OfFleet, "false", "true", map[string]float64{"": 1})}, []evidence.Lookup{agentLookup(false, "", verdict.Unknown)}, nil, "failed new errors",
		},
		"failed agents with unknown content, and a passing check": {
			evidence.List{errors(0.5)}, []evidence.Lookup{agentLookup(false, "", verdict.Failed)}, nil, "failed ? ",
		},
		"a check alone":                {evidence.List{errors(0.5)}, nil, nil, "ready new errors"},
		"a check alone that fails":     {evidence.List{errors(9)}, nil, nil, "failed new errors"},
		"a check alone without figure": {evidence.List{measurementsOf(evidence.OfCluster, "true", "", nil)}, nil, nil, "unknown ? errors"},
		"a check alone, of an open pull request": {
			evidence.List{errors(0.5)}, nil, func(in *rollout.StepInput) { in.Proposed = true }, "ready not yet errors",
		},
		"a check alone, and a folder changed by hand": {
			evidence.List{errors(0.5)}, nil, func(in *rollout.StepInput) { in.Found = folder.Trees{"a": {"app-core": "by hand"}} }, "ready by hand errors",
		},
		"a check older than the content": {evidence.List{older}, nil, func(in *rollout.StepInput) { in.Now = older.Time() }, "progressing not yet errors"},
		"a check as old as the content": {
			evidence.List{errors(0.5)}, nil, func(in *rollout.StepInput) { in.Records[onA] = rollout.Record{Tree: "new", Changed: noon} }, "progressing not yet errors",
		},
		"a failure older than the content": {
			evidence.List{withTime(errors(9), noon.Add(-2*time.Hour))}, []evidence.Lookup{agentLookup(true, "new", verdict.Ready)}, nil, "progressing new errors",
		},
		"a check alone, unknown time of the change": {
			evidence.List{errors(0.5)}, nil, func(in *rollout.StepInput) {
				in.Records, in.State.Targets["app-core"].Since = nil, noon
			}, "progressing not yet errors",
		},
		"facts alone":             {evidence.List{factsOf(verdict.Ready, "a-1")}, nil, nil, "ready new facts"},
		"facts of other clusters": {evidence.List{factsOf(verdict.Ready, "b-1")}, []evidence.Lookup{agentLookup(true, "new", verdict.Ready)}, nil, "progressing new facts"},
		"facts of several hubs": {
			evidence.List{factsOf(verdict.Ready, "b-1"), factsOf(verdict.Ready, "a-1")}, []evidence.Lookup{agentLookup(true, "new", verdict.Ready)}, nil, "ready new ",
		},
		"a removed folder without a figure": {
			evidence.List{measurementsOf(evidence.OfAssignment, "true", "", nil)}, nil, func(in *rollout.StepInput) {
				delete(in.Wanted, "a")
				delete(in.Deployed, "a")
				in.Records, in.State.Targets["app-core"].Hosts["a"].Gone = nil, noon.Add(-time.Hour)
			}, "progressing  ",
		},
		"a folder removed after the check": {
			evidence.List{errors(0.5)}, nil, func(in *rollout.StepInput) {
				delete(in.Wanted, "a")
				delete(in.Deployed, "a")
				in.Records, in.State.Targets["app-core"].Hosts["a"].Gone = nil, noon
			}, "progressing not yet errors",
		},
	} {
		in := newStepInput()
		if c.change != nil {
			c.change(&in)
		}
		report := c.list.Reports(in, c.agents...)("a-1", onA)
		tree := "?"
		if report.Known {
			tree = report.Tree
		}
		if got := fmt.Sprintf("%s %s %s", report.Verdict, tree, report.Source); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func withTime(d evidence.Document, at time.Time) evidence.Document {
	d.Measurements.Time = at
	return d
}

func TestEmptyDocumentsGiveNoReports(t *testing.T) {
	t.Parallel()
	list := evidence.List{
		{
			Compliance: &observe.Evidence{Time: noon, Clusters: map[string]observe.ClusterEvidence{}},
		}, {Facts: &evidence.Facts{Time: noon}}, {Measurements: &evidence.Measurements{Time: noon}},
	}
	if list.Speaks() || list.Reports(newStepInput()) != nil {
		t.Error("got reports from empty documents, want none")
	}
	for i := range list {
		if one := (evidence.List{list[i]}); one.Speaks() || !one.Time().Equal(noon) {
			t.Errorf("document %d: Speaks is %v, time %s", i, one.Speaks(), one.Time())
		}
	}
}

func TestAFigureIsComparedWithHostsWithoutTheChange(t *testing.T) {
	t.Parallel()
	ofClusters := map[string]float64{"a-1": 9, "a-2": 9, "b-1": 1, "b-2": 2, "c-1": 6}
	for name, c := range map[string]struct {
		document evidence.Document
		change   func(*rollout.StepInput)
		want     string
	}{
		"clusters": {measurementsOf(evidence.OfCluster, "value < rest", "", ofClusters), nil, "errors: 9 % against 3 % on 3 clusters (passes where value < rest)"},
		"hosts": {
			measurementsOf(evidence.OfHost, "value < rest", "", map[string]float64{"a": 9, "b": 1, "c-1": 4}), nil, "errors: 9 % against 2.5 % on 2 hosts (passes where value < rest)",
		},
		"assignments": {
			measurementsOf(evidence.OfAssignment, "value < rest", "", map[string]float64{"a/app-core": 9, "b/app-core": 1, "b/app-other": 100}), nil,
			"errors: 9 % against 1 % on 1 host (passes where value < rest)",
		},
		"the fleet has no rest": {measurementsOf(evidence.OfFleet, "value < 1.0", "", map[string]float64{"": 9}), nil, "errors: 9 % (passes where value < 1.0)"},
		"all have the change, proven on one": {
			measurementsOf(evidence.OfCluster, "value < rest", "", ofClusters), func(in *rollout.StepInput) {
				in.Deployed["b"]["app-core"], in.Deployed["c-1"]["app-core"] = "new", "new"
				in.State.Targets["app-core"].Hosts["c-1"].Proven = true
			}, "errors: 9 % against 6 % on 1 cluster (passes where value < rest)",
		},
		"all have the change, proven on none": {
			measurementsOf(evidence.OfCluster, "value < rest", "", ofClusters), func(in *rollout.StepInput) {
				in.Deployed["b"]["app-core"], in.Deployed["c-1"]["app-core"] = "new", "new"
			}, "errors: 9 %: pass has no rest to compare with; test with `rest == null`",
		},
		"new and removed deployment targets": {
			measurementsOf(evidence.OfHost, "value < rest", "", map[string]float64{"a": 9, "b": 1, "c-1": 4}), func(in *rollout.StepInput) {
				delete(in.Wanted["b"], "app-core")
				delete(in.Deployed["c-1"], "app-core")
			}, "errors: 9 % against 2.5 % on 2 hosts (passes where value < rest)",
		},
		"a removed host": {
			measurementsOf(evidence.OfHost, "value < rest", "", map[string]float64{"a": 9, "b": 1, "c-1": 4}), func(in *rollout.StepInput) { delete(in.Hosts, "b") },
			"errors: 9 % against 4 % on 1 host (passes where value < rest)",
		},
		"a host without a figure": {
			measurementsOf(evidence.OfHost, "value < rest", "", map[string]float64{"a": 9, "c-1": 4}), nil, "errors: 9 % against 4 % on 1 host (passes where value < rest)",
		},
	} {
		in := newStepInput()
		if c.change != nil {
			c.change(&in)
		}
		lookup := evidence.List{c.document}.Reports(in)
		for range 2 {
			if report := lookup("a-1", onA); report.Message != c.want {
				t.Errorf("%s: got %q, want %q", name, report.Message, c.want)
			}
		}
	}
}

func TestFiguresAreFoundBySubject(t *testing.T) {
	t.Parallel()
	key := func(host string) folder.Key { return folder.Key{Host: host, DeploymentTarget: "app-core"} }
	for kind, want := range map[evidence.SubjectKind]string{ // verdicts of a-1, a-2, b-1 and c-1; agents report nothing
		evidence.OfCluster:    "progressing failed progressing unknown",
		evidence.OfHost:       "unknown unknown failed progressing",
		evidence.OfAssignment: "unknown unknown failed progressing",
		evidence.OfFleet:      "unknown unknown unknown unknown",
	} {
		figures := map[evidence.SubjectKind]map[string]float64{
			evidence.OfCluster: {"a-1": 1, "a-2": 9, "b-1": 3}, evidence.OfHost: {"a": 1, "b": 9, "c-1": 1},
			evidence.OfAssignment: {"a/app-core": 1, "b/app-core": 9, "c-1/app-core": 1}, evidence.OfFleet: {"": 1},
		}
		lookup := evidence.List{measurementsOf(kind, "value < 2.0", "value > 5.0", figures[kind])}.Reports(newStepInput(), agentLookup(false, "", verdict.Unknown))
		for range 2 {
			got := fmt.Sprint(
				lookup("a-1", key("a")).Verdict,
				" ",
				lookup("a-2", key("a")).Verdict,
				" ",
				lookup("b-1", key("b")).Verdict,
				" ",
				lookup("c-1", key("c-1")).Verdict,
			)
			if got != want {
				t.Errorf("%s: got %s, want %s", kind, got, want)
			}
		}
	}
}

func TestEachDeploymentTargetIsComparedWithItsOwnRest(t *testing.T) {
	t.Parallel()
	in := newStepInput()
	in.Wanted["a"]["app-other"], in.Deployed["a"]["app-other"] = "new", "new"
	in.Wanted["b"]["app-other"], in.Deployed["b"]["app-other"] = "new", "old"
	lookup := evidence.List{measurementsOf(evidence.OfHost, "value < rest", "", map[string]float64{"a": 9, "b": 1, "c-1": 4})}.Reports(in)
	for _, c := range [][2]string{{"app-core", "2.5 % on 2 hosts"}, {"app-other", "1 % on 1 host"}, {"app-core", "2.5 % on 2 hosts"}} {
		if got := lookup("a-1", folder.Key{Host: "a", DeploymentTarget: c[0]}).Message; got != "errors: 9 % against "+c[1]+" (passes where value < rest)" {
			t.Errorf("%s: got %q", c[0], got)
		}
	}
}
