package schedule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// decode decodes a fleet in YAML. It adds the environment (dev), the workspaces (team, other) and the manifests of targets.
func decode(t *testing.T, text string) *fleet.Fleet {
	t.Helper()
	value, err := fleet.ParseYAML("environment: dev\nworkspaces: [{name: team}, {name: other}]\n" + text)
	if err != nil {
		t.Fatal(err)
	}
	workloads, _ := value.(map[string]any)["workloads"].([]any)
	for _, workload := range workloads {
		workload := workload.(map[string]any)
		if workload["workspace"] == nil {
			workload["workspace"] = "team"
		}
		for _, target := range workload["deployment_targets"].(map[string]any) {
			target := target.(map[string]any)
			target["environment"], target["manifests"] = "dev", map[string]any{"repo": "https://git.example.com/x"}
		}
	}
	decoded, findings := fleet.Decode(value)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return decoded.Fleet
}

const (
	// hosts declares cluster types of two regions, one of them tainted, and a cluster of each.
	hosts = `
cluster_types:
- {name: drone, labels: {region: east, size: small}}
- {name: large, labels: {region: west, size: large}}
- {name: vault, labels: {region: west, size: small}, taints: [{key: restricted, value: 'true'}]}
clusters:
- {name: drone-1, cluster_type: drone, labels: {site: north}}
- {name: large-1, cluster_type: large, labels: {site: north, region: south}}
- {name: vault-1, cluster_type: vault, taints: [{key: gpu}]}
`
	// workloads declares two workloads with labels. A target overrides one of them.
	workloads = `
workloads:
- {name: hello, labels: {family: web, ring: outer}, deployment_targets: {test: {labels: {ring: inner}}, live: {}}}
- {name: audit, workspace: other, labels: {family: batch}, deployment_targets: {live: {}}}
`
)

func TestPoliciesSelectTargetsAndHosts(t *testing.T) {
	for name, test := range map[string]struct {
		policy string
		want   []string
	}{
		"everything":        {"cluster_type_selector: {}", []string{"drone/audit-live", "drone/hello-live", "drone/hello-test", "large/audit-live", "large/hello-live", "large/hello-test"}},
		"one workspace":     {"workspace: other, cluster_type_selector: {}", []string{"drone/audit-live", "large/audit-live"}},
		"labels":            {"deployment_target_selector: {match_labels: {ring: inner}}, cluster_type_selector: {match_labels: {region: east}}", []string{"drone/hello-test"}},
		"expressions":       {"deployment_target_selector: {match_expressions: [{key: ring, operator: Exists}]}, cluster_type_selector: {match_expressions: [{key: size, operator: NotIn, values: [small]}]}", []string{"large/hello-live", "large/hello-test"}},
		"a string":          {"deployment_target_selector: {expression: '!ring'}, cluster_type_selector: {expression: 'region in (east, west), size!=large'}", []string{"drone/audit-live"}},
		"all three forms":   {"cluster_type_selector: {match_labels: {region: west}, match_expressions: [{key: size, operator: In, values: [small, large]}], expression: size=large}, workspace: other", []string{"large/audit-live"}},
		"workloads":         {"workload_selector: {match_labels: {ring: outer}}, cluster_type_selector: {match_labels: {cluster-type: drone}}", []string{"drone/hello-live", "drone/hello-test"}},
		"reserved labels":   {"workload_selector: {expression: 'workload=hello, workspace=team, environment=dev'}, deployment_target_selector: {match_labels: {deployment-target: hello-test}}, cluster_type_selector: {expression: 'cluster-type=large, environment=dev'}", []string{"large/hello-test"}},
		"clusters":          {"workspace: other, cluster_selector: {match_labels: {site: north}}", []string{"clusters/drone-1/audit-live", "clusters/large-1/audit-live"}},
		"a cluster":         {"workspace: other, cluster_selector: {match_labels: {cluster: drone-1, cluster-type: drone}}", []string{"clusters/drone-1/audit-live"}},
		"labels of a type":  {"workspace: other, cluster_selector: {match_labels: {size: small}}", []string{"clusters/drone-1/audit-live"}},
		"its own labels":    {"workspace: other, cluster_selector: {match_labels: {region: south}}", []string{"clusters/large-1/audit-live"}},
		"clusters of types": {"workspace: other, cluster_type_selector: {match_labels: {size: large}}, cluster_selector: {}", []string{"clusters/large-1/audit-live"}},
		"a tolerated taint": {"workspace: other, cluster_type_selector: {match_labels: {region: west}}, tolerations: [{key: restricted, value: 'true'}]", []string{"large/audit-live", "vault/audit-live"}},
		"another value":     {"workspace: other, cluster_type_selector: {match_labels: {region: west}}, tolerations: [{key: restricted, value: 'no'}]", []string{"large/audit-live"}},
		"one of two taints": {"workspace: other, cluster_selector: {match_labels: {cluster-type: vault}}, tolerations: [{key: restricted, operator: Exists}]", nil},
		"both taints":       {"workspace: other, cluster_selector: {match_labels: {cluster-type: vault}}, tolerations: [{key: restricted, operator: Exists}, {key: gpu}]", []string{"clusters/vault-1/audit-live"}},
		"any taint":         {"workspace: other, cluster_selector: {match_labels: {cluster-type: vault}}, tolerations: [{operator: Exists}]", []string{"clusters/vault-1/audit-live"}},
	} {
		t.Run(name, func(t *testing.T) {
			result, findings := schedule.Schedule(decode(t, hosts+workloads+"target_policies: [{name: p, "+test.policy+"}]"))
			if len(findings) > 0 {
				t.Fatal(findings)
			}
			if got := assignmentKeys(result.Assignments); !slices.Equal(got, test.want) {
				t.Errorf("assignments %q, want %q", got, test.want)
			}
		})
	}
}

func assignmentKeys(assignments []*schedule.Assignment) []string {
	var keys []string
	for _, assignment := range assignments {
		keys = append(keys, assignment.Key())
	}
	return keys
}

func TestAssignmentsListEveryPolicyAndExclusionWins(t *testing.T) {
	result, findings := schedule.Schedule(decode(t, hosts+workloads+`
target_policies:
- {name: z, workspace: other, cluster_type_selector: {}}
- {name: b, workspace: other, cluster_type_selector: {match_labels: {size: large}}}
- {name: not-on-drones, effect: exclude, cluster_type_selector: {match_labels: {cluster-type: drone}}}
- {name: nowhere-tainted, effect: exclude, cluster_type_selector: {match_labels: {cluster-type: vault}}}
- {name: a, workspace: other, cluster_type_selector: {match_labels: {cluster-type: vault}}, tolerations: [{operator: Exists}]}
`))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	if got := assignmentKeys(result.Assignments); !slices.Equal(got, []string{"large/audit-live"}) {
		t.Fatalf("assignments %q, want large/audit-live alone", got)
	}
	if got := result.Assignments[0].Policies; !slices.Equal(got, []string{"b", "z"}) {
		t.Errorf("policies %q, want b and z", got)
	}
	want := []schedule.Excluded{
		{Host: "drone", DeploymentTarget: "audit-live", Policies: []string{"not-on-drones"}},
		{Host: "vault", DeploymentTarget: "audit-live", Policies: []string{"nowhere-tainted"}},
	}
	if got := fmt.Sprint(result.Excluded); got != fmt.Sprint(want) {
		t.Errorf("excluded %s, want %s", got, fmt.Sprint(want))
	}
	if len(result.IdlePolicies) > 0 {
		t.Errorf("idle policies %v, want none", result.IdlePolicies)
	}
}

func TestUnscheduledTargetsHaveAReason(t *testing.T) {
	for name, test := range map[string]struct {
		policies string
		want     schedule.Unscheduled
	}{
		"no policy": {"", schedule.Unscheduled{Reason: `environment "dev" has no target policy`}},
		"not selected": {
			"- {name: p, workspace: other, deployment_target_selector: {match_labels: {ring: inner, family: batch}}, cluster_type_selector: {}}\n" +
				"- {name: q, deployment_target_selector: {match_labels: {ring: inner}, expression: '!beta'}, cluster_type_selector: {}}",
			schedule.Unscheduled{Reason: `no target policy selects it; nearest is "q", which wants ring=inner`, FailedRequirement: "ring=inner"},
		},
		"another workspace": {
			"- {name: p, workspace: other, cluster_type_selector: {}}",
			schedule.Unscheduled{Reason: `no target policy selects it; nearest is "p", which wants workspace=other`, FailedRequirement: "workspace=other"},
		},
		"no host": {
			"- {name: p, cluster_type_selector: {match_labels: {region: west, size: huge, zone: a}}}\n" +
				"- {name: q, cluster_type_selector: {match_labels: {region: west, size: huge}}}",
			schedule.Unscheduled{
				Reason:      `target policy "q" selects it, but no cluster type of environment "dev" has region=west,size=huge`,
				NearestHost: "large", FailedRequirement: "size=huge",
			},
		},
		"no cluster": {
			"- {name: p, cluster_selector: {match_labels: {site: east}}, cluster_type_selector: {match_labels: {size: small}}}",
			schedule.Unscheduled{
				Reason:      `target policy "p" selects it, but no cluster of environment "dev" has size=small,site=east`,
				NearestHost: "clusters/drone-1", FailedRequirement: "site=east",
			},
		},
		"a taint": {
			"- {name: p, cluster_type_selector: {match_labels: {cluster-type: vault}}}\n- {name: q, cluster_type_selector: {match_labels: {zone: a}}}",
			schedule.Unscheduled{
				Reason:      `target policy "p" selects it and host "vault", but does not tolerate the host's taint restricted=true:NoSchedule`,
				NearestHost: "vault", FailedRequirement: "taint restricted=true:NoSchedule",
			},
		},
		"exclusion": {
			"- {name: p, cluster_type_selector: {}}\n- {name: b, effect: exclude, cluster_type_selector: {match_labels: {region: east}}}\n" +
				"- {name: a, effect: exclude, cluster_type_selector: {}}",
			schedule.Unscheduled{Reason: `is excluded by target policy "a", "b"`, NearestHost: "drone"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			policies := ""
			if test.policies != "" {
				policies = "target_policies:\n" + test.policies
			}
			result, findings := schedule.Schedule(
				decode(t, hosts+"workloads: [{name: hello, labels: {family: web}, deployment_targets: {live: {}}}]\n"+policies),
			)
			if len(findings) > 0 {
				t.Fatal(findings)
			}
			test.want.DeploymentTarget = "hello-live"
			if len(result.Unscheduled) != 1 || result.Unscheduled[0] != test.want {
				t.Errorf("unscheduled\n%+v, want\n%+v", result.Unscheduled, test.want)
			}
		})
	}
}

func TestReasonNamesAFleetWithoutClusters(t *testing.T) {
	result, _ := schedule.Schedule(
		decode(t, workloads+"target_policies: [{name: p, cluster_selector: {}}, {name: q, cluster_type_selector: {}}]"),
	)
	if got, want := result.Unscheduled[0].Reason, `target policy "p" selects it, but environment "dev" has no cluster`; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
}

func TestIdlePoliciesHaveAReason(t *testing.T) {
	for policy, want := range map[string]string{
		"workspace: other, cluster_type_selector: {}":                                                          "",
		"deployment_target_selector: {match_labels: {a: b}}, cluster_type_selector: {}":                        "selects no deployment target",
		"cluster_type_selector: {match_labels: {a: b}}":                                                        "selects no host",
		"deployment_target_selector: {match_labels: {a: b}}, cluster_selector: {match_labels: {a: b}}":         "selects no deployment target and no host",
		"cluster_type_selector: {match_labels: {cluster-type: vault}}":                                         "tolerates the taints of none of the hosts that it selects",
		"effect: exclude, cluster_type_selector: {match_labels: {cluster-type: vault}}":                        "",
		"effect: exclude, cluster_type_selector: {match_labels: {a: b}}":                                       "selects no host",
		"cluster_type_selector: {match_labels: {a: b}, expression: '!a'}":                                      "selects nothing: its cluster_type_selector can never match: a=b,!a",
		"cluster_type_selector: {expression: 'a in (b, c), a notin (b, c, d)'}":                                "selects nothing: its cluster_type_selector can never match: a in (b,c),a notin (b,c,d)",
		"cluster_selector: {expression: 'a=b, a=c'}":                                                           "selects nothing: its cluster_selector can never match: a=b,a=c",
		"workload_selector: {expression: 'a, !a'}, cluster_type_selector: {}":                                  "selects nothing: its workload_selector can never match: a,!a",
		"deployment_target_selector: {expression: 'a notin (b), !a'}, cluster_type_selector: {}":               "",
		"deployment_target_selector: {expression: 'family in (web, x), family!=x'}, cluster_type_selector: {}": "",
	} {
		t.Run(policy, func(t *testing.T) {
			result, _ := schedule.Schedule(decode(t, hosts+workloads+"target_policies: [{name: p, "+policy+"}]"))
			got := ""
			if len(result.IdlePolicies) > 0 {
				got = result.IdlePolicies[0].Reason
			}
			if got != want {
				t.Errorf("reason %q, want %q", got, want)
			}
		})
	}
}

func TestExplicitAssignmentsReplaceTheScheduler(t *testing.T) {
	result, findings := schedule.Schedule(decode(t, hosts+workloads+`
assignments:
- {cluster_type: vault, deployment_target: hello-live}
- {cluster: drone-1, deployment_target: hello-test}
- {cluster_type: drone, deployment_target: hello-live}
`))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	if got, want := assignmentKeys(result.Assignments), []string{"clusters/drone-1/hello-test", "drone/hello-live", "vault/hello-live"}; !slices.Equal(
		got,
		want,
	) {
		t.Errorf("assignments %q, want %q", got, want)
	}
	if got := result.Assignments[0].Policies; got != nil {
		t.Errorf("policies %q, want none", got)
	}
	if got, want := len(result.Unscheduled), 1; got != want {
		t.Fatalf("%d unscheduled, want %d", got, want)
	}
	if got, want := result.Unscheduled[0].Reason, "is not among the fleet's assignments"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
}

func TestRequirementsMustBeOnTheSameHost(t *testing.T) {
	const requiring = `
workloads:
- {name: app, requires: [database, cache], deployment_targets: {live: {}}}
- {name: cache, deployment_targets: {live: {}}}
- {name: database, deployment_targets: {live: {}, replica: {}}}
`
	for name, test := range map[string]struct {
		assignments string
		requires    []string // of the assignment of app-live
		findings    []string
	}{
		"together": {
			"drone: app-live, drone: cache-live, drone: database-live, drone: database-replica",
			[]string{"cache-live", "database-live", "database-replica"}, nil,
		},
		"apart": {
			"drone: app-live, large: cache-live, drone: database-live", []string{"database-live"},
			[]string{`workloads["app"].requires: deployment target "app-live" is assigned to host "drone", but workload "cache", which it requires, has no deployment target there`},
		},
		"on the cluster's type": {
			"clusters/drone-1: app-live, drone: cache-live, clusters/drone-1: database-live", []string{"cache-live", "database-live"}, nil,
		},
		"on a cluster of the type": {
			"drone: app-live, clusters/drone-1: cache-live, drone: database-live", []string{"database-live"},
			[]string{`workloads["app"].requires: deployment target "app-live" is assigned to host "drone", but workload "cache", which it requires, has no deployment target there`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, findings := schedule.Schedule(explicitFleet(t, hosts+requiring, test.assignments))
			got := findingTexts(findings)
			if !slices.Equal(got, test.findings) {
				t.Errorf("findings %q, want %q", got, test.findings)
			}
			for _, assignment := range result.Assignments {
				if assignment.Target.Name == "app-live" && !slices.Equal(assignment.Requires, test.requires) {
					t.Errorf("requires %q, want %q", assignment.Requires, test.requires)
				}
			}
		})
	}
}

func TestTaintOfAClusterReplacesItsTypesTaint(t *testing.T) {
	result, _ := schedule.Schedule(decode(t, `
cluster_types: [{name: vault, taints: [{key: restricted, value: high}]}]
clusters: [{name: vault-1, cluster_type: vault, taints: [{key: restricted, value: low}]}]
workloads: [{name: a, deployment_targets: {live: {}}}]
target_policies: [{name: p, cluster_selector: {}, tolerations: [{key: restricted, value: low}]}]
`))
	if got, want := assignmentKeys(result.Assignments), []string{"clusters/vault-1/a-live"}; !slices.Equal(got, want) {
		t.Errorf("assignments %q, want %q", got, want)
	}
}

func TestNamespace(t *testing.T) {
	long := strings.Repeat("x", 40)
	for _, test := range []struct{ environment, host, target, want string }{
		{"dev", "drone", "hello-live", "dev-drone-hello-live"},
		{"dev", "clusters/drone-1", "hello-live", "dev-drone-1-hello-live"},
		{"dev", strings.Repeat("y", 18), long, "dev-" + strings.Repeat("y", 18) + "-" + long},
		{"dev", strings.Repeat("y", 19), long, "dev-" + strings.Repeat("y", 19) + "-" + strings.Repeat("x", 30) + "-60226783"},
		{"dev", strings.Repeat("y", 49) + "-y", long, "dev-" + strings.Repeat("y", 49) + "-37f51b63"},
	} {
		if got := schedule.Namespace(test.environment, test.host, test.target); got != test.want {
			t.Errorf("namespace of %s on %s: %q, want %q", test.target, test.host, got, test.want)
		}
	}
	if a, b := schedule.Namespace("dev", long, long+"a"), schedule.Namespace("dev", long, long+"b"); a == b {
		t.Errorf("two long namespaces are both shortened to %q", a)
	}
}

func FuzzNamespace(f *testing.F) {
	f.Add("dev", "drone", "hello-live")
	f.Add("d", "clusters/"+strings.Repeat("a-", 31)+"a", strings.Repeat("b", 63))
	f.Fuzz(func(t *testing.T, environment, host, target string) {
		if fleet.CheckLabelName(environment) != "" || fleet.CheckLabelName(strings.TrimPrefix(host, "clusters/")) != "" ||
			fleet.CheckLabelName(target) != "" {
			return
		}
		if problems := validation.IsDNS1123Label(schedule.Namespace(environment, host, target)); problems != nil {
			t.Errorf("namespace %q: %v", schedule.Namespace(environment, host, target), problems)
		}
	})
}

func TestSelectClustersMatchesLikeATargetPolicy(t *testing.T) {
	f := &fleet.Fleet{
		Environment:  "prod",
		ClusterTypes: []fleet.ClusterType{{Name: "pool", Labels: fleet.Labels{"size": "small", "zone": "a"}}, {Name: "other"}},
		Clusters: []fleet.Cluster{
			{Name: "b", ClusterType: "pool", Labels: fleet.Labels{"zone": "b"}}, {Name: "a", ClusterType: "pool"},
			{Name: "c", ClusterType: "other"}, {Name: "d", ClusterType: "nowhere"},
		},
	}
	for expression, want := range map[string]string{
		"size=small": "a b", "zone=b": "b", "zone=a": "a", "cluster-type=other": "c", "cluster=a": "a", "environment=prod": "a b c", "x": "", "": "a b c",
	} {
		requirements, findings := (&fleet.Selector{Expression: expression}).Compile()
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		if got := strings.Join(schedule.SelectClusters(f, requirements), " "); got != want {
			t.Errorf("%q selects %q, want %q", expression, got, want)
		}
	}
}
