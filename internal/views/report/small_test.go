package report_test

import (
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/comparison"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// smallPage returns a page with every part.
func smallPage() *report.Page {
	values := &report.Snapshot{Version: "1f0c9a7be2d34c58", Checked: true, Values: []report.Value{
		{
			Pointer: "/DATABASE_URL", Container: "east", Overridden: []string{"defaults", "prod"}, Text: `"postgres://east.example.com/app"`,
			Schemas: []string{`config schema "net"`},
		},
		{Pointer: "/LOCALE", Schemas: []string{`config schema "net"`}},
		{Pointer: "/REPLICAS", Container: "defaults", Text: "3"},
	}}
	hidden := &report.Snapshot{Version: "8d21f7cc90ab1e34", Values: []report.Value{{Pointer: "/REPLICAS", Container: "defaults"}}}
	hour := func(n int) time.Time { return evidence.Add(-time.Duration(n) * time.Hour) }
	return &report.Page{
		Title: "platform", Environment: "prod", Commit: "4c1ff0a96d0f8e5b7a3f2c6d1e0b9a8877665544", Time: evidence,
		Repository: folder.Location{URL: "https://git.example.com/platform/fleet.git", Branch: "main", Path: "clusters"},
		Hosts: []report.Host{
			{
				Name:      "clusters/factory-7",
				IsCluster: true,
				Labels:    map[string]string{"region": "west"},
				Region:    "west",
				Clusters:  1,
				Health: &health.Score{
					Value: 15, Parts: []health.Part{{Verdict: verdict.Unknown, Points: 25, Percent: 60}, {Verdict: verdict.Failed, Percent: 40}}},
			},
			{Name: "large", Labels: map[string]string{"region": "east", "size": "large"}, Region: "east", Clusters: 12, Health: &health.Score{
				Value: 96, Parts: []health.Part{{Verdict: verdict.Ready, Points: 100, Percent: 92}, {Verdict: verdict.Behind, Points: 60, Percent: 8}}}},
			{Name: "small", Clusters: 0},
		},
		Links: report.Links{
			Assignments: map[string]string{
				"Argo CD": "https://argocd.example.com/{environment}-{cluster_type}/{deployment_target}?n={namespace}&w={workload}&t={workspace}&h={host}",
				"Files":   "https://git.example.com/{commit}/{folder}",
				"Shell":   "https://shell.example.com/{cluster}",
			},
			Clusters: map[string]string{"<Logs>": "https://logs.example.com/{cluster_type}/{cluster}?at={commit}"},
		},
		Targets: []report.Target{
			{
				Name:      "payments-app-live",
				Workload:  "payments-app",
				Workspace: "payments",
				Labels:    map[string]string{"ring": "outer"},
				Version:   "v2.4.1",
			},
			{Name: "telemetry-agent", Workload: "telemetry", Workspace: "observability"},
		},
		Assignments: []report.Assignment{
			{
				Host: "large", Target: "payments-app-live", Namespace: "payments", Policies: []string{"payments-east", "payments-large"},
				Status: verdict.Status{Verdict: verdict.Ready, Since: hour(30)}, Clusters: [5]int{4: 12}, State: report.Changed, Tree: "aaaaaaaaaaaaaaaa", Deployed: "bbbbbbbbbbbbbbbb",
				Commit: "1234567890abcdef", Changed: hour(31), WaitsFor: "the window to open", Snapshot: values,
				Running: []report.Run{
					{Running: reconciler.Running{Version: "v2.4.0", Revision: "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"}, Clusters: 9},
					{
						Running:  reconciler.Running{Version: "2.3.9", Chart: "payments", AppVersion: "r7", Images: "example.com/api:7 example.com/web:7"},
						Clusters: 2,
					},
				},
				Version: "v2.4.0", Source: "https://git.example.com/platform/control-plane@77f0e1d2c3b4",
			},
			{
				Host: "clusters/factory-7", Target: "payments-app-live", Namespace: "payments", Policies: []string{"payments-factories"},
				Status:   verdict.Status{Verdict: verdict.Failed, Since: hour(2), Message: "Deployment web: progress deadline exceeded"},
				Clusters: [5]int{1}, State: report.UpToDate,
				Tree: "cccccccccccccccc", Deployed: "cccccccccccccccc", Commit: "fedcba0987654321", Changed: hour(3), Snapshot: hidden,
			},
			{Host: "gone", Target: "telemetry-agent", State: report.Removed, Deployed: "dddddddddddddddd"},
		},
		Clusters: []report.Cluster{
			{
				Name:   "factory-7",
				Type:   "small",
				Status: verdict.Status{Verdict: verdict.Failed, Since: hour(2), Message: "Deployment web: progress deadline exceeded"},
				Commit: "4c1ff0a96d0f8e5b",
			},
			{
				Name:        "large-01",
				Type:        "large",
				Status:      verdict.Status{Verdict: verdict.Behind, Since: hour(5), Message: "the source cannot be fetched"},
				Commit:      "00112233445566778899",
				Behind:      3,
				BehindSince: hour(5),
			},
			{Name: "large-02", Type: "large", Status: verdict.Status{Verdict: verdict.Unknown}, Behind: -1},
			{Name: "large-03", Type: "large", Status: verdict.Status{Verdict: verdict.Ready, Since: hour(30)}, Commit: "4c1ff0a96d0f8e5b"},
		},
		Rollouts: []rollout.Progress{
			{
				DeploymentTarget: "payments-app-live",
				Content:          "1f0c9a7b",
				Stage:            2,
				Stages:           3,
				StageName:        "factories",
				HostsDone:        1,
				Hosts:            4,
				Since:            hour(2),
				WaitsFor:         rollout.WaitsForContent,
				Condition:        rollout.RolledBack,
			},
			{
				DeploymentTarget: "telemetry-agent",
				Content:          "77aa01bc",
				Stage:            1,
				Stages:           2,
				Removes:          true,
				HostsDone:        1,
				Hosts:            2,
				Since:            hour(1),
				WaitsFor:         rollout.WaitsForSoak,
				Condition:        rollout.Waiting,
			},
		},
		Promotions: []report.Promotion{
			{Name: "to-prod", Candidate: "9f8e7d6c", Promoted: "1a2b3c4d", WaitsFor: "the gate to open", Since: hour(8)},
			{Name: "chart", Candidate: "4.11.2", Promoted: "4.11.2", Since: hour(50)},
		},
		Comparisons: []report.Comparison{{Name: "stage and prod", Result: smallComparison()}},
		History: gitops.History{Commits: []gitops.HistoryCommit{
			{
				Commit:  "4c1ff0a96d0f8e5b7a3f2c6d1e0b9a8877665544",
				Author:  git.Signature{Name: "Ada Example"},
				Subject: "platform: change 2 assignments",
				Time:    hour(3),
				Source:  "https://git.example.com/platform/control-plane@88f0e1d2c3b4",
				Changes: []gitops.HistoryChange{
					historyChange(folder.Changed, "clusters/factory-7", "payments-app-live"), historyChange(folder.Added, "large", "payments-app-live")},
			},
			{
				Commit:  "1234567890abcdef1234567890abcdef12345678",
				Author:  git.Signature{Name: "pipeline"},
				Subject: "platform: add 1 assignment",
				Time:    hour(31),
				Changes: []gitops.HistoryChange{historyChange(folder.Added, "large", "payments-app-live")},
			},
		}},
		Unscheduled: []schedule.Unscheduled{
			{DeploymentTarget: "reports-nightly", Reason: "no host has gpu=true", NearestHost: "large", FailedRequirement: "gpu=true"},
		},
		IdleHosts:    []string{"small"},
		IdlePolicies: []schedule.IdlePolicy{{Name: "old-canary", Reason: "selects no deployment target"}},
		Excluded:     []schedule.Excluded{{Host: "large", DeploymentTarget: "telemetry-agent", Policies: []string{"not-on-large"}}},
		Rules: []constraint.RuleResult{
			{Name: "no-mutable-tags", Mode: "enforce", Looked: 2, Passed: 2},
			{
				Name:   "two-regions",
				Mode:   "inform",
				Looked: 2,
				Passed: 1,
				Violations: []constraint.RuleViolation{
					{Subject: constraint.Subject{DeploymentTarget: "telemetry-agent"}, Message: "runs in one region only"},
				},
			},
		},
		Health: &health.Score{Value: 71, Parts: []health.Part{
			{
				Verdict: verdict.Ready,
				Count:   8,
				Of:      12,
				Points:  100,
				Percent: 67,
			}, {Verdict: verdict.Behind, Count: 1, Of: 12, Points: 44, Percent: 8},
			{Verdict: verdict.Failed, Count: 3, Of: 12, Percent: 25},
		}},
		Regions: []report.Region{
			{
				Name:     "east",
				Hosts:    1,
				Clusters: 12,
				Health:   &health.Score{Value: 96},
			}, {Name: "west", Hosts: 1, Clusters: 1, Health: &health.Score{Value: 15}}, {Name: "", Hosts: 1},
		},
	}
}

func historyChange(action folder.Action, host, target string) gitops.HistoryChange {
	return gitops.HistoryChange{Change: folder.Change{Action: action, Key: folder.Key{Host: host, DeploymentTarget: target}}}
}

// smallComparison returns a comparison with every part.
func smallComparison() *comparison.Result {
	version := func(tag string, hosts ...string) comparison.Version {
		return comparison.Version{Manifests: &folder.Manifests{Storage: "git", Repo: "https://git.example.com/payments", Tag: tag}, Hosts: hosts}
	}
	return &comparison.Result{
		Left: comparison.Seen{
			Name:        "stage",
			Branch:      "stage",
			Commit:      "1234567890abcdef1234567890abcdef12345678",
			Written:     true,
			Hosts:       2,
			Assignments: 6,
		},
		Right: comparison.Seen{
			Name:        "prod",
			Branch:      "main",
			Path:        "clusters",
			Commit:      "4c1ff0a96d0f8e5b7a3f2c6d1e0b9a8877665544",
			Written:     true,
			Hosts:       3,
			Assignments: 9,
		},
		Counts: comparison.Counts{OnlyLeft: 1, OnlyRight: 1, Different: 3, Same: 12, Unread: 1},
		Targets: []comparison.Target{
			{
				Name: "payments-app-live", Workload: "payments-app", Workspace: "payments", State: comparison.Different,
				Differs: []comparison.Aspect{comparison.ByHosts, comparison.ByVersion, comparison.ByValues, comparison.ByPolicies},
				Left: comparison.Part{
					Versions:     []comparison.Version{version("v2.4.1", "large", "small")},
					OnlyHosts:    []string{"small"},
					OnlyPolicies: []string{"everywhere"},
				},
				Right: comparison.Part{
					Versions: []comparison.Version{
						version("v2.4.0", "clusters/factory-7", "large"),
						version("v2.4.1", "canary"),
					}, OnlyHosts: []string{"canary", "clusters/factory-7"}, MoreHosts: 3,
				},
				Keys: []comparison.Key{
					{
						Key:   "DATABASE_URL",
						State: comparison.Different,
						Left:  []string{"postgres://stage"},
						Right: []string{"postgres://east", "postgres://west"},
					},
					{Key: "DEBUG", State: comparison.OnlyLeft, Left: []string{""}}, {Key: "REPLICAS", State: comparison.OnlyRight, Right: []string{"3"}},
				},
				MoreKeys: 2,
			},
			{
				Name:        "reports-live",
				RightName:   "reports-prod",
				Workload:    "reports",
				State:       comparison.Different,
				Differs:     []comparison.Aspect{comparison.ByValues},
				Left:        comparison.Part{Versions: []comparison.Version{version("v1", "large")}},
				Right:       comparison.Part{Versions: []comparison.Version{version("v1", "large")}},
				KeysUnknown: true,
			},
			{
				Name:     "search-live",
				Workload: "search",
				State:    comparison.Different,
				Differs:  []comparison.Aspect{comparison.ByVersion, comparison.ByPolicies},
				Left:     comparison.Part{Versions: []comparison.Version{version("v7", "large")}},
				Right: comparison.Part{
					Versions: []comparison.Version{
						{
							Manifests: &folder.Manifests{Storage: "helm", Repo: "https://charts.example.com", Chart: "search", Version: "v7"},
							Hosts:     []string{"large"},
						},
					},
				},
			},
			{
				Name:     "telemetry-agent",
				Workload: "telemetry",
				State:    comparison.OnlyRight,
				Right:    comparison.Part{Versions: []comparison.Version{{Hosts: []string{"large"}}}},
			},
			{
				Name:     "trial-live",
				Workload: "trial",
				State:    comparison.OnlyLeft,
				Left:     comparison.Part{Versions: []comparison.Version{version("", "large")}},
			},
		},
		Notes: []string{"It is unknown which values differ in 1 deployment target."},
	}
}
