package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// checkReport returns the report of a check on the deployed content.
func (s *site) checkReport(host string, status verdict.Verdict, message string) rollout.Report {
	return rollout.Report{Known: true, Tree: s.Deployed[host]["app"], Source: "errors", Status: verdict.Status{Verdict: status, Message: message}}
}

const tooMany = "errors: 0.9 % against 0.2 % on 12 clusters (passes where value < 0.4)"

func TestThePlanShowsThePendingFigure(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expectVersions(t, "2 1 1")
	s.reports["canary"] = s.checkReport("canary", verdict.Progressing, tooMany)
	out := s.expectVersions(t, "2 1 1")
	expectWait(t, out, rollout.WaitsForClusters, rollout.Detail{
		Clusters: rollout.ClusterCounts{Total: 1, NotReady: 1}, Reason: rollout.Reason{Message: tooMany, IsMost: true},
	})
	rolling := out.RollingOut()["app"]
	s.reports["canary"] = s.checkReport("canary", verdict.Progressing, "errors: 0.8 % (passes where value < 0.4)")
	if out := s.expectVersions(t, "2 1 1"); out.RollingOut()["app"] != rolling {
		t.Errorf("with another figure: got %v, want %v", out.RollingOut(), rolling)
	}
	s.setReport("canary", verdict.Progressing)
	if out := s.expectVersions(t, "2 1 1"); out.RollingOut()["app"] != rolling {
		t.Errorf("without a check: %v", out.Lines())
	}
	s.reports["canary"] = s.checkReport("canary", verdict.Unknown, "errors: there is no figure")
	expectWait(t, s.expectVersions(t, "2 1 1"), rollout.WaitsForClusters, rollout.Detail{
		Clusters: rollout.ClusterCounts{Total: 1, Unknown: 1}, Reason: rollout.Reason{Message: "errors: there is no figure", IsMost: true},
	})
	s.setReport("canary", verdict.Ready)
	s.expectVersions(t, "2 2 1")
}

func TestThePlanShowsTheFailedFigure(t *testing.T) {
	t.Parallel()
	const failed = "errors: 9 % against 0.2 % on 12 clusters (fails where value > 5.0)"
	s := newSite(t, nil)
	s.expectVersions(t, "2 1 1")
	s.reports["canary"] = s.checkReport("canary", verdict.Failed, failed)
	figure := rollout.Reason{Message: failed, IsMost: true}
	expectWait(t, s.expectVersions(t, "2 1 1"), rollout.WaitsForContent, rollout.Detail{
		Clusters: rollout.ClusterCounts{Total: 1, Failed: 1}, Reason: figure,
	})

	s = newSite(t, map[string]any{"on_failure": "roll_back", "failed_for": "3h"})
	s.expectVersions(t, "2 1 1")
	s.reports["canary"] = s.checkReport("canary", verdict.Failed, failed)
	expectWait(t, s.expectVersions(t, "2 1 1"), rollout.WaitsForContent, rollout.Detail{
		Clusters: rollout.ClusterCounts{Total: 1, Failed: 1}, Reason: figure, RollsBackAt: noon.Add(4*time.Hour + time.Minute),
	})
	s.Now = s.Now.Add(3 * time.Hour)
	expectWait(t, s.expectVersions(t, "1 1 1"), rollout.WaitsForContent, rollout.Detail{Reason: figure})
	out := s.expectVersions(t, "1 1 1")
	if expectWait(t, out, rollout.WaitsForContent, rollout.Detail{}); out.Progress[0].Retry == "" {
		t.Error("the progress has no approval for a retry")
	}

	s = newSite(t, map[string]any{"progress_deadline": "2h"})
	s.expectVersions(t, "2 1 1")
	s.reports["canary"] = s.checkReport("canary", verdict.Progressing, tooMany)
	s.Now = s.Now.Add(3 * time.Hour)
	expectWait(t, s.expectVersions(t, "2 1 1"), rollout.WaitsForContent, rollout.Detail{
		Clusters: rollout.ClusterCounts{Total: 1, Stuck: 1}, Reason: rollout.Reason{Message: tooMany, IsMost: true},
	})
}

func TestTheMostCommonFigureIsShown(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	var clusters []string
	for i := range 8 {
		clusters = append(clusters, fmt.Sprint("canary-", i))
	}
	s.Hosts["canary"].Clusters = clusters
	s.expectVersions(t, "2 1 1")
	figures := func(messages ...string) rollout.Reason {
		for i, cluster := range clusters {
			report := s.checkReport("canary", verdict.Progressing, messages[min(i, len(messages)-1)])
			if report.Message == "" {
				report.Source = ""
			}
			s.reports[cluster] = report
		}
		return s.expectVersions(t, "2 1 1").Progress[0].Detail.Reason
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
			t.Errorf("%q: got %+v, want %+v", c.messages, got, c.want)
		}
	}
}

func TestManyChangesShowOneExampleFigure(t *testing.T) {
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
