package evidence

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

func TestAFigureBlamesTheOnlyChangeOfItsSubject(t *testing.T) {
	t.Parallel()
	hosts := func(names ...string) *rollout.ChangeState {
		target := &rollout.ChangeState{Hosts: map[string]*rollout.HostState{}}
		for _, name := range names {
			target.Hosts[name] = &rollout.HostState{}
		}
		return target
	}
	in := rollout.StepInput{
		Hosts: map[string]*rollout.FleetHost{
			"a": {Clusters: []string{"a-1", "a-2"}}, "b": {Clusters: []string{"b-1"}}, "clusters/a-1": {IsCluster: true, Clusters: []string{"a-1"}},
		},
		Wanted: folder.Trees{
			"a": {"app": "new", "web": "new", "job": "new"}, "b": {"app": "new", "web": "new"}, "clusters/a-1": {"shelf": "new"},
		},
		Deployed: folder.Trees{
			"a": {"app": "new", "web": "old", "job": "new", "gone": ""}, "b": {"app": "new", "web": "new"}, "clusters/a-1": {"shelf": "new"},
		},
		// web is not written to a yet, and job has no change.
		State: &rollout.StepState{
			Targets: map[string]*rollout.ChangeState{"app": hosts("a", "b"), "web": hosts("a", "b", "left"), "shelf": hosts("clusters/a-1")},
		},
	}
	s := newSuspects(in)
	for _, c := range []struct {
		of                    SubjectKind
		cluster, host, target string
		want                  bool
	}{
		{OfHost, "a-1", "a", "app", true},
		{OfHost, "a-1", "a", "web", false},
		{OfHost, "a-1", "a", "job", false},
		{OfHost, "b-1", "b", "app", false},
		{OfCluster, "a-2", "a", "app", true},
		{OfCluster, "a-1", "a", "app", false}, // shelf changes, too
		{OfCluster, "a-1", "clusters/a-1", "shelf", false},
		{OfFleet, "a-2", "a", "app", false},
		{OfAssignment, "b-1", "b", "web", true},
		{OfCluster, "unknown", "a", "app", false},
	} {
		if got := s.blames(c.of, c.cluster, folder.Key{Host: c.host, DeploymentTarget: c.target}); got != c.want {
			t.Errorf("a figure of a %s blames %s on %s, on cluster %s: %v", c.of, c.target, c.host, c.cluster, got)
		}
	}
	if newSuspects(rollout.StepInput{}).blames(OfFleet, "", folder.Key{Host: "a", DeploymentTarget: "app"}) {
		t.Error("got blame without a state, want none")
	}
}
