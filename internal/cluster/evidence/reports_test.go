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

// two is a fleet with the cluster types a and b, each with two clusters, and the cluster c-1 as a host of its own. All want
// the tree new of app-core; a has it since an hour ago, and the others have the tree old.
func two() rollout.StepInput {
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

// agents is what agents say of every cluster.
func agents(known bool, tree string, is verdict.Verdict) evidence.Lookup {
	return func(string, folder.Key) rollout.Report {
		return rollout.Report{Known: known, Tree: tree, Status: verdict.Status{Verdict: is, Since: noon.Add(-time.Minute), Message: "agents"}}
	}
}

func measured(of evidence.SubjectKind, pass, fail string, figures map[string]float64) evidence.Document {
	check := evidence.Check{Name: "errors", Of: of, Unit: "%", Pass: pass, Fail: fail, Figures: map[string]evidence.Figure{}}
	for subject, value := range figures {
		check.Figures[subject] = evidence.Figure{Value: value}
	}
	return evidence.Document{Measurements: &evidence.Measurements{Environment: "dev", Time: noon, Checks: []evidence.Check{check}}}
}

func factsOf(is verdict.Verdict, clusters ...string) evidence.Document {
	facts := &evidence.Facts{Time: noon, Clusters: map[string]evidence.ClusterFacts{}}
	for _, name := range clusters {
		facts.Clusters[name] = evidence.ClusterFacts{Status: verdict.Status{Verdict: is, Message: "2 of 2 nodes are ready"}}
	}
	return evidence.Document{Facts: facts}
}

func TestWhatDocumentsTogetherSayOfAFolderOnACluster(t *testing.T) {
	t.Parallel()
	errors := func(value float64) evidence.Document {
		return measured(evidence.OfCluster, "value < 1.0", "value > 5.0", map[string]float64{"a-1": value})
	}
	older := errors(0)
	older.Measurements.Time = noon.Add(-2 * time.Hour)
	for name, c := range map[string]struct {
		list    evidence.List
		knowing []evidence.Lookup
		change  func(*rollout.StepInput)
		want    string // the verdict, the tree or "?", the source
	}{
		"agents alone": {nil, []evidence.Lookup{agents(true, "new", verdict.Ready)}, nil, "ready new "},
		"agents alone that do not know the content": {nil, []evidence.Lookup{agents(false, "", verdict.Ready)}, nil, "ready ? "},
		"both are ready":  {evidence.List{errors(0.5)}, []evidence.Lookup{agents(true, "new", verdict.Ready)}, nil, "ready new "},
		"the check waits": {evidence.List{errors(2)}, []evidence.Lookup{agents(true, "new", verdict.Ready)}, nil, "progressing new errors"},
		"the check fails": {evidence.List{errors(9)}, []evidence.Lookup{agents(true, "new", verdict.Ready)}, nil, "failed new errors"},
		"the check has no figure": {
			evidence.List{measured(evidence.OfCluster, "true", "", nil)}, []evidence.Lookup{agents(true, "new", verdict.Ready)}, nil, "progressing new errors",
		},
		"agents know of two contents, and one is wanted": {
			nil, []evidence.Lookup{agents(true, "new", verdict.Ready), agents(true, "old", verdict.Ready)}, nil, "ready old ",
		},
		"agents know of two contents, in the other order": {
			nil, []evidence.Lookup{agents(true, "old", verdict.Ready), agents(true, "new", verdict.Ready)}, nil, "ready old ",
		},
		"one of two agents knows": {
			nil, []evidence.Lookup{agents(true, "new", verdict.Ready), agents(false, "", verdict.Ready)}, nil, "progressing new ",
		},
		"agents that are ready with an unknown content": {
			evidence.List{errors(0.5)}, []evidence.Lookup{agents(false, "", verdict.Ready)}, nil, "progressing new ",
		},
		"a dead cluster": {
			evidence.List{measured(evidence.OfCluster, "true", "", nil), factsOf(verdict.Unknown, "a-1")}, []evidence.Lookup{agents(false, "", verdict.Unknown)}, nil, "unknown ? ",
		},
		"a dead cluster, and a figure of its host": {
			evidence.List{measured(evidence.OfHost, "true", "", map[string]float64{"a": 1})}, []evidence.Lookup{agents(false, "", verdict.Unknown)}, nil, "unknown ? ",
		},
		"a dead cluster, and a figure of the fleet that fails": {
			evidence.List{measured(evidence.OfFleet, "false", "true", map[string]float64{"": 1})}, []evidence.Lookup{agents(false, "", verdict.Unknown)}, nil, "failed new errors",
		},
		"agents that do not know what failed, and a check that passes": {
			evidence.List{errors(0.5)}, []evidence.Lookup{agents(false, "", verdict.Failed)}, nil, "failed ? ",
		},
		"a check alone":                {evidence.List{errors(0.5)}, nil, nil, "ready new errors"},
		"a check alone that fails":     {evidence.List{errors(9)}, nil, nil, "failed new errors"},
		"a check alone without figure": {evidence.List{measured(evidence.OfCluster, "true", "", nil)}, nil, nil, "unknown ? errors"},
		"a check alone, of an open pull request": {
			evidence.List{errors(0.5)}, nil, func(in *rollout.StepInput) { in.Proposed = true }, "ready not yet errors",
		},
		"a check alone, and a folder that others have changed": {
			evidence.List{errors(0.5)}, nil, func(in *rollout.StepInput) { in.Found = folder.Trees{"a": {"app-core": "by hand"}} }, "ready by hand errors",
		},
		"a check that is older than the content": {evidence.List{older}, nil, func(in *rollout.StepInput) { in.Now = older.Time() }, "progressing not yet errors"},
		"a check that is as old as the content": {
			evidence.List{errors(0.5)}, nil, func(in *rollout.StepInput) { in.Records[onA] = rollout.Record{Tree: "new", Changed: noon} }, "progressing not yet errors",
		},
		"a failure that is older than the content": {
			evidence.List{measuredAt(errors(9), noon.Add(-2*time.Hour))}, []evidence.Lookup{agents(true, "new", verdict.Ready)}, nil, "progressing new errors",
		},
		"a check alone, when it is not known when the folder changed": {
			evidence.List{errors(0.5)}, nil, func(in *rollout.StepInput) {
				in.Records, in.State.Targets["app-core"].Since = nil, noon
			}, "progressing not yet errors",
		},
		"facts alone":             {evidence.List{factsOf(verdict.Ready, "a-1")}, nil, nil, "ready new facts"},
		"facts of other clusters": {evidence.List{factsOf(verdict.Ready, "b-1")}, []evidence.Lookup{agents(true, "new", verdict.Ready)}, nil, "progressing new facts"},
		"facts of several hubs": {
			evidence.List{factsOf(verdict.Ready, "b-1"), factsOf(verdict.Ready, "a-1")}, []evidence.Lookup{agents(true, "new", verdict.Ready)}, nil, "ready new ",
		},
		"a folder that is removed has no figure": {
			evidence.List{measured(evidence.OfAssignment, "true", "", nil)}, nil, func(in *rollout.StepInput) {
				delete(in.Wanted, "a")
				delete(in.Deployed, "a")
				in.Records, in.State.Targets["app-core"].Hosts["a"].Gone = nil, noon.Add(-time.Hour)
			}, "progressing  ",
		},
		"a folder that is removed after the check": {
			evidence.List{errors(0.5)}, nil, func(in *rollout.StepInput) {
				delete(in.Wanted, "a")
				delete(in.Deployed, "a")
				in.Records, in.State.Targets["app-core"].Hosts["a"].Gone = nil, noon
			}, "progressing not yet errors",
		},
	} {
		in := two()
		if c.change != nil {
			c.change(&in)
		}
		report := c.list.Reports(in, c.knowing...)("a-1", onA)
		tree := "?"
		if report.Known {
			tree = report.Tree
		}
		if got := fmt.Sprintf("%s %s %s", report.Verdict, tree, report.Source); got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

func measuredAt(d evidence.Document, at time.Time) evidence.Document {
	d.Measurements.Time = at
	return d
}

func TestDocumentsThatSayNothingLeaveItToTime(t *testing.T) {
	t.Parallel()
	list := evidence.List{
		{
			Compliance: &observe.Evidence{Time: noon, Clusters: map[string]observe.ClusterEvidence{}},
		}, {Facts: &evidence.Facts{Time: noon}}, {Measurements: &evidence.Measurements{Time: noon}},
	}
	if list.Speaks() || list.Reports(two()) != nil {
		t.Error("empty documents say something")
	}
	for i := range list {
		if one := (evidence.List{list[i]}); one.Speaks() || !one.Time().Equal(noon) {
			t.Errorf("document %d", i)
		}
	}
}

func TestAFigureIsComparedWithTheHostsThatDoNotHaveTheChangeYet(t *testing.T) {
	t.Parallel()
	ofClusters := map[string]float64{"a-1": 9, "a-2": 9, "b-1": 1, "b-2": 2, "c-1": 6}
	for name, c := range map[string]struct {
		document evidence.Document
		change   func(*rollout.StepInput)
		want     string
	}{
		"clusters": {measured(evidence.OfCluster, "value < rest", "", ofClusters), nil, "errors: 9 % against 3 % on 3 clusters (passes where value < rest)"},
		"hosts": {
			measured(evidence.OfHost, "value < rest", "", map[string]float64{"a": 9, "b": 1, "c-1": 4}), nil, "errors: 9 % against 2.5 % on 2 hosts (passes where value < rest)",
		},
		"assignments": {
			measured(evidence.OfAssignment, "value < rest", "", map[string]float64{"a/app-core": 9, "b/app-core": 1, "b/app-other": 100}), nil,
			"errors: 9 % against 1 % on 1 host (passes where value < rest)",
		},
		"the fleet has no rest": {measured(evidence.OfFleet, "value < 1.0", "", map[string]float64{"": 9}), nil, "errors: 9 % (passes where value < 1.0)"},
		"all have it, and it is proven on one": {
			measured(evidence.OfCluster, "value < rest", "", ofClusters), func(in *rollout.StepInput) {
				in.Deployed["b"]["app-core"], in.Deployed["c-1"]["app-core"] = "new", "new"
				in.State.Targets["app-core"].Hosts["c-1"].Proven = true
			}, "errors: 9 % against 6 % on 1 cluster (passes where value < rest)",
		},
		"all have it, and it is proven on none": {
			measured(evidence.OfCluster, "value < rest", "", ofClusters), func(in *rollout.StepInput) {
				in.Deployed["b"]["app-core"], in.Deployed["c-1"]["app-core"] = "new", "new"
			}, "errors: 9 %: pass has no rest to compare with; test with `rest == null`",
		},
		"hosts that are to get or to lose the deployment target do not have the change": {
			measured(evidence.OfHost, "value < rest", "", map[string]float64{"a": 9, "b": 1, "c-1": 4}), func(in *rollout.StepInput) {
				delete(in.Wanted["b"], "app-core")
				delete(in.Deployed["c-1"], "app-core")
			}, "errors: 9 % against 2.5 % on 2 hosts (passes where value < rest)",
		},
		"hosts that are not in the fleet any more are none": {
			measured(evidence.OfHost, "value < rest", "", map[string]float64{"a": 9, "b": 1, "c-1": 4}), func(in *rollout.StepInput) { delete(in.Hosts, "b") },
			"errors: 9 % against 4 % on 1 host (passes where value < rest)",
		},
		"hosts without a figure do not count": {
			measured(evidence.OfHost, "value < rest", "", map[string]float64{"a": 9, "c-1": 4}), nil, "errors: 9 % against 4 % on 1 host (passes where value < rest)",
		},
	} {
		in := two()
		if c.change != nil {
			c.change(&in)
		}
		lookup := evidence.List{c.document}.Reports(in)
		for range 2 {
			if report := lookup("a-1", onA); report.Message != c.want {
				t.Errorf("%s: %s", name, report.Message)
			}
		}
	}
}

func TestFiguresAreOfWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	key := func(host string) folder.Key { return folder.Key{Host: host, DeploymentTarget: "app-core"} }
	for of, want := range map[evidence.SubjectKind]string{ // of a-1, a-2, b-1, and c-1, which is a host of its own; agents say nothing
		evidence.OfCluster:    "progressing failed progressing unknown",
		evidence.OfHost:       "unknown unknown failed progressing",
		evidence.OfAssignment: "unknown unknown failed progressing",
		evidence.OfFleet:      "unknown unknown unknown unknown",
	} {
		figures := map[evidence.SubjectKind]map[string]float64{
			evidence.OfCluster: {"a-1": 1, "a-2": 9, "b-1": 3}, evidence.OfHost: {"a": 1, "b": 9, "c-1": 1},
			evidence.OfAssignment: {"a/app-core": 1, "b/app-core": 9, "c-1/app-core": 1}, evidence.OfFleet: {"": 1},
		}
		lookup := evidence.List{measured(of, "value < 2.0", "value > 5.0", figures[of])}.Reports(two(), agents(false, "", verdict.Unknown))
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
				t.Errorf("%s: %s, not %s", of, got, want)
			}
		}
	}
}

func TestEachDeploymentTargetIsComparedWithItsOwnRest(t *testing.T) {
	t.Parallel()
	in := two()
	in.Wanted["a"]["app-other"], in.Deployed["a"]["app-other"] = "new", "new"
	in.Wanted["b"]["app-other"], in.Deployed["b"]["app-other"] = "new", "old"
	lookup := evidence.List{measured(evidence.OfHost, "value < rest", "", map[string]float64{"a": 9, "b": 1, "c-1": 4})}.Reports(in)
	for _, c := range [][2]string{{"app-core", "2.5 % on 2 hosts"}, {"app-other", "1 % on 1 host"}, {"app-core", "2.5 % on 2 hosts"}} {
		if said := lookup("a-1", folder.Key{Host: "a", DeploymentTarget: c[0]}).Message; said != "errors: 9 % against "+c[1]+" (passes where value < rest)" {
			t.Errorf("%s: %s", c[0], said)
		}
	}
}
