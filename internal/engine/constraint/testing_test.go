package constraint_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// shop is the fleet of most tests here.
const shop = `
environment: prod
workspaces:
- name: payments
  labels: {cost-center: "4711"}
  contributor_groups: [payers]
  reader_groups: [auditors]
  resource_quota: {requests.cpu: "8", requests.memory: 16Gi}
  limit_range: [{type: Container, default: {cpu: 500m}, default_request: {cpu: 100m}, max: {cpu: "2"}, min: {cpu: 50m}, max_limit_request_ratio: {cpu: "10"}}]
  network_policy: isolated
  service_account: payments-deployer
  argocd_project: {name: payments}
  parameters: [namespace]
- {name: web}
cluster_types:
- name: large
  labels: {region: west, size: large}
  taints: [{key: restricted, value: "yes", effect: NoSchedule}]
  parameters: {kustomization: {interval: 5m, wait: true}}
- {name: small, labels: {region: east, size: small}}
clusters:
- {name: c1, cluster_type: large, labels: {site: harbour}}
- {name: c2, cluster_type: large, labels: {region: north}}
workloads:
- name: api
  workspace: payments
  labels: {tier: backend}
  requires: [db]
  deployment_targets:
    west: {environment: prod, labels: {track: stable}, namespace: api, manifests: {storage: git, repo: "https://git.example.com/api", tag: v1.2.3, path: prod, parameters: {kustomization: {timeout: 3m}}}}
- name: db
  workspace: payments
  deployment_targets:
    main: {environment: prod, labels: {track: stable}, manifests: {storage: helm, repo: "https://charts.example.com", chart: db, version: 2.0.1}, config_as: [values]}
- name: site
  workspace: web
  deployment_targets:
    all: {environment: prod, labels: {track: latest}, manifests: {storage: git, repo: "https://git.example.org/site", branch: main, path: .}}
    one: {environment: prod, labels: {track: single}, manifests: {storage: oci, repo: "oci://registry.example.com/site", tag: latest}}
target_policies:
- {name: stable, deployment_target_selector: {match_labels: {track: stable}}, cluster_type_selector: {match_labels: {size: large}}, tolerations: [{operator: Exists}]}
- {name: latest, deployment_target_selector: {match_labels: {track: latest}}, cluster_type_selector: {}, tolerations: [{operator: Exists}]}
- {name: single, deployment_target_selector: {match_labels: {track: single}}, cluster_selector: {match_labels: {site: harbour}}, tolerations: [{operator: Exists}]}
config_containers:
- {name: base, allow_plain: [secret], data: {LOG_LEVEL: info, replicas: 2, ratio: 0.25, big: 9007199254740993, debug: false, nothing: {}, db: {host: db.example.com, port: 5432}, hosts: [a, b]}}
- {name: east, labels: {region: east}, data: {LOG_LEVEL: debug, EAST: "yes"}}
`

func decodeFleet(t testing.TB, text string) *fleet.Decoded {
	t.Helper()
	input, err := fleet.ParseYAML(text)
	if err != nil {
		t.Fatal(err)
	}
	decoded, findings := fleet.Decode(withUnknown(input))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return decoded
}

// withUnknown replaces the text UNKNOWN by an unknown value.
func withUnknown(value any) any {
	switch value := value.(type) {
	case string:
		if value == "UNKNOWN" {
			return fleet.Unknown{}
		}
	case map[string]any:
		for key := range value {
			value[key] = withUnknown(value[key])
		}
	case []any:
		for i := range value {
			value[i] = withUnknown(value[i])
		}
	}
	return value
}

func computeFleet(t testing.TB, text string) *pipeline.Computation {
	t.Helper()
	value, err := decodeFleet(t, text).Value()
	if err != nil {
		t.Fatal(err)
	}
	return compute(t, value)
}

func compute(t testing.TB, value fleet.Value) *pipeline.Computation {
	t.Helper()
	result, findings := pipeline.Compute(value)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return result
}

// subjectsOf returns the subjects of a fleet with a known GitOps repository.
func subjectsOf(result *pipeline.Computation) constraint.Subjects {
	to := pipeline.Destination{Owner: "prod", Repo: &folder.Location{URL: "https://git.example.com/gitops", Branch: "prod"}}
	return constraint.Subjects{
		Fleet: result.Fleet, Schedule: result.Schedule, Snapshots: result.Snapshots.All, Config: result.Value.Config,
		Files: func(i int) ([]render.AssignmentFile, string, error) {
			if !result.Snapshots.All[i].Known {
				return nil, "configuration values", nil
			}
			files, _, err := result.CheckedFiles(context.Background(), i, to)
			if errors.Is(err, render.ErrUnknown) {
				return nil, "what is not known yet", nil
			}
			if err != nil {
				return nil, "", err
			}
			rendered := make([]render.AssignmentFile, len(files))
			for k, file := range files {
				rendered[k] = render.AssignmentFile{Name: file.Name, Content: file.Content}
			}
			return rendered, "", nil
		},
	}
}

func checkRules(t testing.TB, subjects constraint.Subjects, rules ...fleet.Constraint) *constraint.Results {
	t.Helper()
	program, findings := constraint.Compile(rules)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	results, err := program.Check(context.Background(), subjects)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// checkRule returns the result of one rule.
func checkRule(t testing.TB, subjects constraint.Subjects, rule fleet.Constraint) constraint.RuleResult {
	t.Helper()
	if rule.Name == "" {
		rule.Name = "rule"
	}
	results := checkRules(t, subjects, rule)
	if len(results.Rules) != 1 {
		t.Fatalf("%d results", len(results.Rules))
	}
	return results.Rules[0]
}

func replace(t testing.TB, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("nothing to replace: %s", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}
