package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// measured is a report of a cluster that has what is wanted, of which a check decides.
func (s *site) measured(host string, is verdict.Verdict, message string) rollout.Report {
	return rollout.Report{Known: true, Tree: s.Deployed[host]["app"], Source: "errors", Status: verdict.Status{Verdict: is, Message: message}}
}

const tooMany = "errors: 0.9 % against 0.2 % on 12 clusters (passes where value < 0.4)"

func TestThePlanSaysTheFigureThatIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expect(t, "2 1 1")
	s.reports["canary"] = s.measured("canary", verdict.Progressing, tooMany)
	out := s.expect(t, "2 1 1")
	waits(t, out, rollout.WaitsForClusters, rollout.Detail{
		Clusters: rollout.ClusterCounts{Total: 1, NotReady: 1}, Reason: rollout.Reason{Message: tooMany, IsMost: true},
	})
	rolling := out.RollingOut()["app"]
	s.reports["canary"] = s.measured("canary", verdict.Progressing, "errors: 0.8 % (passes where value < 0.4)")
	if out := s.expect(t, "2 1 1"); out.RollingOut()["app"] != rolling {
		t.Errorf("another figure: %v", out.RollingOut())
	}
	s.report("canary", verdict.Progressing)
	if out := s.expect(t, "2 1 1"); out.RollingOut()["app"] != rolling {
		t.Errorf("without a check: %v", out.Lines())
	}
	s.reports["canary"] = s.measured("canary", verdict.Unknown, "errors: there is no figure")
	waits(t, s.expect(t, "2 1 1"), rollout.WaitsForClusters, rollout.Detail{
		Clusters: rollout.ClusterCounts{Total: 1, Unknown: 1}, Reason: rollout.Reason{Message: "errors: there is no figure", IsMost: true},
	})
	s.report("canary", verdict.Ready)
	s.expect(t, "2 2 1")
}

func TestThePlanSaysTheFigureThatFailed(t *testing.T) {
	t.Parallel()
	const failed = "errors: 9 % against 0.2 % on 12 clusters (fails where value > 5.0)"
	s := newSite(t, nil)
	s.expect(t, "2 1 1")
	s.reports["canary"] = s.measured("canary", verdict.Failed, failed)
	figure := rollout.Reason{Message: failed, IsMost: true}
	waits(t, s.expect(t, "2 1 1"), rollout.WaitsForContent, rollout.Detail{
		Clusters: rollout.ClusterCounts{Total: 1, Failed: 1}, Reason: figure,
	})

	s = newSite(t, map[string]any{"on_failure": "roll_back", "failed_for": "3h"})
	s.expect(t, "2 1 1")
	s.reports["canary"] = s.measured("canary", verdict.Failed, failed)
	waits(t, s.expect(t, "2 1 1"), rollout.WaitsForContent, rollout.Detail{
		Clusters: rollout.ClusterCounts{Total: 1, Failed: 1}, Reason: figure, RollsBackAt: noon.Add(4*time.Hour + time.Minute),
	})
	s.Now = s.Now.Add(3 * time.Hour)
	waits(t, s.expect(t, "1 1 1"), rollout.WaitsForContent, rollout.Detail{Reason: figure})
	out := s.expect(t, "1 1 1")
	if waits(t, out, rollout.WaitsForContent, rollout.Detail{}); out.Progress[0].Retry == "" {
		t.Error("nothing retries it")
	}

	s = newSite(t, map[string]any{"progress_deadline": "2h"})
	s.expect(t, "2 1 1")
	s.reports["canary"] = s.measured("canary", verdict.Progressing, tooMany)
	s.Now = s.Now.Add(3 * time.Hour)
	waits(t, s.expect(t, "2 1 1"), rollout.WaitsForContent, rollout.Detail{
		Clusters: rollout.ClusterCounts{Total: 1, Stuck: 1}, Reason: rollout.Reason{Message: tooMany, IsMost: true},
	})
}

func TestTheMostCommonFigureIsSaid(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	var clusters []string
	for i := range 8 {
		clusters = append(clusters, fmt.Sprint("canary-", i))
	}
	s.Hosts["canary"].Clusters = clusters
	s.expect(t, "2 1 1")
	figures := func(messages ...string) rollout.Reason {
		for i, cluster := range clusters {
			report := s.measured("canary", verdict.Progressing, messages[min(i, len(messages)-1)])
			if report.Message == "" {
				report.Source = ""
			}
			s.reports[cluster] = report
		}
		return s.expect(t, "2 1 1").Progress[0].Detail.Reason
	}
	for _, c := range []struct {
		messages []string
		want     rollout.Reason
	}{
		{[]string{"1 %"}, rollout.Reason{Message: "1 %", IsMost: true}},
		{[]string{"1 %", "2 %"}, rollout.Reason{Message: "2 %", Others: 1, IsMost: true}},
		{[]string{"1 %", "2 %", "3 %", "4 %", "5 %", "6 %", "7 %", "8 %"}, rollout.Reason{Message: "1 %", Others: 7, IsMost: true}},
		{[]string{"1 %", ""}, rollout.Reason{Message: "1 %"}},
	} {
		if got := figures(c.messages...); got != c.want {
			t.Errorf("%q: %+v", c.messages, got)
		}
	}
}

func TestManyChangesSayTheFigureOfOneOfThem(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for i := range 20 {
		target := fmt.Sprint("app-", i)
		for host := range s.Hosts {
			s.Wanted[host][target], s.Deployed[host][target] = "2-tree", "1-tree"
		}
	}
	s.Reports = func(_ string, key folder.Key) rollout.Report {
		return rollout.Report{Known: true, Tree: s.Deployed[key.Host][key.DeploymentTarget], Source: "errors", Status: verdict.Status{
			Verdict: verdict.Progressing, Message: "errors: " + key.DeploymentTarget,
		}}
	}
	s.run(t)
	out, _ := s.run(t)
	want := `21 deployment targets at stage 1 of 3 "canary", on 21 of 63 hosts: waits for clusters to be ready, such as: errors: app`
	if lines := out.Lines(); len(lines) != 1 || lines[0] != want {
		t.Errorf("got %q, want %q", lines, want)
	}
}
