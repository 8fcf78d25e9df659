package fleet_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// freeTexts matches the places in everything that accept numbers as well as texts.
var freeTexts = regexp.MustCompile(
	`\.(data|config_schema|parameters|schema|resource_quota|limit_range\[\]\.(default|default_request|max|min|max_limit_request_ratio)|json)(\.|\[|$)`,
)

func TestNumbersAndBoolsInPlaceOfTextsAreFindings(t *testing.T) {
	count, whole := 0, input(t, everything)
	walk("", whole, func(string, any, func(any)) { count++ })
	checked := 0
	for i := range count {
		for _, other := range []struct {
			value any
			want  string
		}{
			{json.Number("1.10"), "not a number: put it in quotes, since 1.10 would become 1.1"},
			{true, "not a bool: put it in quotes"},
		} {
			changed, path, position := clone(whole), "", 0
			walk("", changed, func(current string, value any, replace func(any)) {
				if _, isText := value.(string); isText && position == i && !freeTexts.MatchString(current) {
					path = current
					replace(other.value)
				}
				position++
			})
			if path == "" {
				continue
			}
			checked++
			_, findings := fleet.Decode(changed)
			if !strings.Contains(findings.Error(), other.want) {
				t.Errorf("%s = %v: got %q, want %q", path, other.value, findings.Error(), other.want)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d texts were checked", checked)
	}
}

func TestNumbersAndBoolsInPlaceOfTextsInDocumentsAreFindings(t *testing.T) {
	const hint = "put it in quotes"
	for name, test := range map[string]struct{ document, want string }{
		"a version": {
			"apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Workload\nmetadata: {name: w}\nspec: {deploymentTargets: [{name: t, environment: dev, manifests: {repo: 'https://x', storage: helm, chart: c, version: 1.10}}]}",
			`.spec.deploymentTargets["t"].manifests.version: must be a string, not a number: ` + hint,
		},
		"a parameter": {
			"apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Workload\nmetadata: {name: w}\nspec: {deploymentTargets: [{name: t, environment: dev, manifests: {repo: 'https://x', extra: 1.10}}]}",
			`.spec.deploymentTargets["t"].manifests.extra: must be a string, not a number: ` + hint,
		},
		"a label":            {"apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ClusterType\nmetadata: {name: a, labels: {gpu: true}}\nspec: {}", `.metadata.labels["gpu"]: must be a string, not a bool: ` + hint},
		"a name":             {"apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ClusterType\nmetadata: {name: 7}\nspec: {}", `.metadata.name: must be a string, not a number: ` + hint},
		"a label of a model": {"kind: Cluster\nname: a\nmetadata: {tier: 1}", `.metadata["tier"]: must be a string, not a number: ` + hint},
		"a branch":           {"kind: Application\nname: a\nrepo_url: https://x\nrepo_branch: 1.10", `.repo_branch: must be a string, not a number: ` + hint},
		"a selector":         {"kind: TargetPolicy\nname: a\napp_selector: {tier: 1}\ncluster_selector: {}", `.app_selector["tier"]: must be a string, not a number: ` + hint},
		"a group":            {"kind: Namespace\nname: a\ngroup: [7]", `.group[0]: must be a string, not a number: ` + hint},
		"a value":            {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {platform-config: 'true'}}\ndata: {A: 1.10}", `.data["A"]: must be a string, not a number: ` + hint},
		"the platform's label": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {platform-config: true}}\ndata: {}",
			`.metadata.labels["platform-config"]: must be a string, not a bool: ` + hint,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := fleet.DecodeControlPlane("dev", []any{test.document})
			if !strings.Contains(findings.Error(), test.want) {
				t.Errorf("got %s, want %q", findings.Error(), test.want)
			}
		})
	}
}

func TestQuotasOfUnknownResourcesAreFindings(t *testing.T) {
	prefix := `workspaces["team"].resource_quota["`
	for name, want := range map[string]string{
		"limits.cpu":              "",
		"requests.storage":        "",
		"pods":                    "",
		"services.loadbalancers":  "",
		"hugepages-2Mi":           "",
		"requests.hugepages-2Mi":  "",
		"requests.nvidia.com/gpu": "",
		"gold.storageclass.storage.k8s.io/requests.storage": "",
		"count/deployments.apps":                            "",
		"count/pods":                                        "",
		"count/widgets.example.com":                         "",
		"limit.cpu":                                         `is not a resource that a quota can limit; did you mean "limits.cpu"?`,
		"pod":                                               `is not a resource that a quota can limit; did you mean "pods"?`,
		"deployments":                                       "is not a resource that a quota can limit",
		"count/deployment.apps":                             `has no effect: Kubernetes has no such resource; did you mean "count/deployments.apps"?`,
		"count/deployments":                                 `has no effect: Kubernetes has no such resource; did you mean "count/deployments.apps"?`,
		"count/":                                            "has no effect",
		"count/a b.example.com":                             `is not a resource such as "count/deployments.apps"`,
		"nvidia.com/gpu":                                    `has no effect: an extended resource is written "requests.nvidia.com/gpu"`,
		"limits.nvidia.com/gpu":                             `has no effect: an extended resource is written "requests.nvidia.com/gpu"`,
		"gold.storageclass.storage.k8s.io/storage": `is not a resource of a class of storage, which are persistentvolumeclaims, requests.storage`,
		"a b": `"a b" is not a resource such as "limits.cpu"`,
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := fleet.Decode(map[string]any{"environment": "dev", "workspaces": []any{
				map[string]any{"name": "team", "resource_quota": map[string]any{name: json.Number("5")}},
			}})
			if want == "" {
				wantFindings(t, findings)
				return
			}
			wantFindings(t, findings, prefix+name+`"]: `+want)
		})
	}
	_, findings := fleet.Decode(
		input(
			t,
			"environment: dev\nworkspaces: [{name: team, limit_range: [{max: {cpus: 1}}, {type: PersistentVolumeClaim, max: {storage: 1Gi, cpu: 1}}]}]",
		),
	)
	wantFindings(
		t,
		findings,
		`workspaces["team"].limit_range[0].max["cpus"]: "cpus" is not a resource that a limit of type Container can be about, which are cpu, ephemeral-storage, memory; did you mean "cpu"?`,
		`workspaces["team"].limit_range[1].max["cpu"]: "cpu" is not a resource that a limit of type PersistentVolumeClaim can be about, which are storage`,
	)
}
