package rollout_test

import (
	"fmt"
	"strings"
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
	says(t, out, `at stage 1 of 3 "canary", on 1 of 3 hosts: waits for `+tooMany+"; 0 of 1 cluster is ready, 1 not ready yet")
	rolling := out.RollingOut()["app"]
	s.reports["canary"] = s.measured("canary", verdict.Progressing, "errors: 0.8 % (passes where value < 0.4)")
	if out := s.expect(t, "2 1 1"); out.RollingOut()["app"] != rolling || !out.HasMore() {
		t.Errorf("another figure: %v", out.RollingOut())
	}
	s.report("canary", verdict.Progressing)
	if out := s.expect(t, "2 1 1"); out.RollingOut()["app"] != rolling || out.HasMore() {
		t.Errorf("without a check: %v", out.Lines())
	}
	s.reports["canary"] = s.measured("canary", verdict.Unknown, "errors: there is no figure")
	says(t, s.expect(t, "2 1 1"), "waits for errors: there is no figure; 0 of 1 cluster is ready, 1 unknown")
	s.report("canary", verdict.Ready)
	s.expect(t, "2 2 1")
}

func TestThePlanSaysTheFigureThatFailed(t *testing.T) {
	t.Parallel()
	const failed = "errors: 9 % against 0.2 % on 12 clusters (fails where value > 5.0)"
	s := newSite(t, nil)
	s.expect(t, "2 1 1")
	s.reports["canary"] = s.measured("canary", verdict.Failed, failed)
	says(t, s.expect(t, "2 1 1"), "waits for newer content, since this one failed: 1 cluster has failed: "+failed)

	s = newSite(t, map[string]any{"on_failure": "roll_back", "failed_for": "3h"})
	s.expect(t, "2 1 1")
	s.reports["canary"] = s.measured("canary", verdict.Failed, failed)
	says(t, s.expect(t, "2 1 1"), "1 cluster has failed: "+failed+", and it is rolled back if that lasts until 2026-01-01T16:01:00Z")
	s.Now = s.Now.Add(3 * time.Hour)
	says(t, s.expect(t, "1 1 1"), failed+"; it was rolled back; add ")
	out := s.expect(t, "1 1 1")
	says(t, out, "since this one failed: it was rolled back; add ")

	s = newSite(t, map[string]any{"progress_deadline": "2h"})
	s.expect(t, "2 1 1")
	s.reports["canary"] = s.measured("canary", verdict.Progressing, tooMany)
	s.Now = s.Now.Add(3 * time.Hour)
	says(t, s.expect(t, "2 1 1"), "since this one is stuck: 1 cluster is not ready in time: "+tooMany)
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
	say := func(messages ...string) string {
		for i, cluster := range clusters {
			s.reports[cluster] = s.measured("canary", verdict.Progressing, messages[min(i, len(messages)-1)])
			if messages[min(i, len(messages)-1)] == "" {
				report := s.reports[cluster]
				report.Source = ""
				s.reports[cluster] = report
			}
		}
		_, waits, _ := strings.Cut(s.expect(t, "2 1 1").Lines()[0], "waits for ")
		return waits
	}
	for _, c := range []struct {
		messages []string
		want     string
	}{
		{[]string{"errors: 1 %"}, "errors: 1 %; 0 of 8 clusters are ready, 8 not ready yet"},
		{[]string{"errors: 1 %", "errors: 2 %"}, "errors: 2 %, and other figures of 1 cluster; 0 of 8"},
		{[]string{"errors: 1 %", "errors: 2 %", "errors: 3 %", "errors: 4 %", "errors: 5 %", "errors: 6 %", "errors: 7 %", "errors: 8 %"}, "errors: 1 %, and other figures of 7 clusters; 0 of 8"},
		{[]string{"errors: 1 %", ""}, "clusters to be ready: 0 of 8 clusters are ready, 8 not ready yet; errors: 1 %"},
		{[]string{"errors: 1 %\nextra\x1b[31m"}, "errors: 1 % extra"},
		{[]string{"errors: " + strings.Repeat("long ", 1000)}, "errors: long"},
	} {
		got := say(c.messages...)
		if !strings.HasPrefix(got, c.want) || strings.ContainsAny(got, "\n\x1b") || len(got) > 500 {
			t.Errorf("%q: %q", c.messages, got)
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
	says(t, out, `21 deployment targets at stage 1 of 3 "canary", on 21 of 63 hosts: waits for clusters to be ready, such as: errors: app`)
}
