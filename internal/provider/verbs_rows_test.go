package provider_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

type row struct {
	// attributes returns the attributes at a version. twin is "" or "-2", the suffix of names of the second resource.
	attributes func(m *matrix, version int, twin string) map[string]any
	// id returns the import ID; nil for a resource that exists only in the state, so the next apply creates it again.
	id func(m *matrix) string
	// outside returns the resource's objects outside of the state, "" for none; nil for a type without such objects.
	outside func(m *matrix, twin string) string
	// edit changes these objects by hand.
	edit func(m *matrix)
	// duplicateError is the summary of the error for two resources with one name; "" if that is allowed.
	duplicateError string
}

// rows has the types of resources. TestEachResourceHasARow compares it with the provider's schema.
var rows = map[string]row{
	"flotilla_assignment": {
		attributes: func(m *matrix, version int, twin string) map[string]any {
			attributes := map[string]any{
				"name": "dev" + twin, "fleet": matrixFleet(version),
				"gitops_repo": map[string]any{"url": m.url, "branch": "dev", "path": "all" + twin},
			}
			if m.adopt {
				attributes["adopt"] = true
			}
			return attributes
		},
		id:      func(m *matrix) string { return m.url + "#dev:all:dev" },
		outside: func(m *matrix, twin string) string { return m.folder("dev", "all"+twin, "/app-core/") },
		edit: func(m *matrix) {
			m.edit("dev", "all/drone/app-core/namespace.yaml", func(string) string { return "by hand\n" })
		},
		duplicateError: "Two assignments have the same name",
	},
	"flotilla_cluster_claim": {
		attributes: func(m *matrix, version int, twin string) map[string]any {
			pool := poolFleet("pool-1", "pool-2", "pool-3", "pool-4")
			if twin != "" { // another pool, because the order of two claims is random
				pool = poolFleet("pool-5", "pool-6", "pool-7", "pool-8")
			}
			attributes := claimOn(m.url, "web"+twin, 1+version%2, pool)
			if m.adopt {
				attributes["adopt"] = true
			}
			return attributes
		},
		id: func(m *matrix) string { return m.url + "#prod:prod:web" },
		outside: func(m *matrix, twin string) string {
			var record struct{ Clusters []struct{ Name string } }
			if json.Unmarshal([]byte(m.show("prod", "prod/.flotilla/.claims/web"+twin+".json")), &record) != nil {
				return ""
			}
			return fmt.Sprint(record.Clusters)
		},
		edit: func(m *matrix) {
			m.edit("prod", "prod/.flotilla/.claims/web.json", func(text string) string { return strings.Replace(text, `"pool-1"`, `"pool-9"`, 1) })
		},
		duplicateError: "Two claims have the same name",
	},
	"flotilla_commit_status": { // its object outside of the state is permanent
		attributes: func(m *matrix, version int, twin string) map[string]any {
			return map[string]any{
				"url": m.statuses + "/team/app.git", "forge": "gitea", "commit": strings.Repeat("2", 40), "context": "flotilla/dev" + twin,
				"state": "success", "description": fmt.Sprint("v", version), "link": "https://ci.example.com/",
			}
		},
		id: func(m *matrix) string {
			return m.statuses + "/team/app.git?forge=gitea#" + strings.Repeat("2", 40) + ":flotilla/dev"
		},
	},
	"flotilla_agent": {
		attributes: func(_ *matrix, version int, twin string) map[string]any {
			return map[string]any{
				"cluster": "edge" + twin, "cluster_type": "edge", "namespace": "flux-system", "interval": fmt.Sprintf("%dm", 1+version),
				"gitops_repo": map[string]any{
					"url":    "https://git.example.com/gitops",
					"branch": "dev",
				}, "credentials_wo": map[string]any{"token": "a-token"},
			}
		},
		id: func(*matrix) string { return "edge" },
		outside: func(m *matrix, twin string) string {
			m.cluster.mu.Lock()
			defer m.cluster.mu.Unlock()
			var objects []string
			for _, key := range slices.Sorted(maps.Keys(m.cluster.objects)) {
				if object := m.cluster.objects[key]; strings.HasPrefix(key, "edge"+twin+"/") && object["kind"] != "Namespace" {
					objects = append(objects, fmt.Sprint(key, object["spec"]))
				}
			}
			return strings.Join(objects, "\n")
		},
		edit: func(m *matrix) {
			m.cluster.mu.Lock()
			defer m.cluster.mu.Unlock()
			for key, object := range m.cluster.objects {
				if strings.HasPrefix(key, "edge/") && object["kind"] == "GitRepository" {
					object["spec"].(map[string]any)["interval"] = "99m0s"
				}
			}
		},
		duplicateError: "Two agents have the same name",
	},
	"flotilla_promotion": {
		attributes: func(_ *matrix, version int, _ string) map[string]any {
			return map[string]any{"candidate": fmt.Sprint("v", version), "open": false, "pin": fmt.Sprint("v", version)}
		},
		id: func(m *matrix) string { return fmt.Sprintf(`"v%d"`, m.version) },
	},
	"flotilla_rollout": {
		attributes: func(_ *matrix, version int, twin string) map[string]any {
			at := time.Date(2126, 11, 23, version, 0, 0, 0, time.UTC) // after all applies
			return map[string]any{
				"name": "kubernetes" + twin, "fleet": poolFleet("edge-1", "edge-2"), "wanted": fmt.Sprint("v", version), "stages": []any{},
				"released": fmt.Sprint("v", version), // without it, a replacement is an error
				"evidence": string((&observe.Evidence{Time: at, Clusters: map[string]observe.ClusterEvidence{}}).Marshal()),
			}
		},
		id: func(m *matrix) string { return fmt.Sprintf(`{"edge-1":"v%[1]d","edge-2":"v%[1]d"}`, m.version) },
	},
	"flotilla_environment": {attributes: func(_ *matrix, version int, twin string) map[string]any {
		return map[string]any{
			"name":        "dev" + twin,
			"labels":      labelled(version),
			"gitops_repo": map[string]any{"url": "https://git.example.com/gitops", "branch": "dev"},
		}
	}},
	"flotilla_workspace": {attributes: func(_ *matrix, version int, twin string) map[string]any {
		return map[string]any{"name": "team" + twin, "labels": labelled(version)}
	}},
	"flotilla_cluster_type": {attributes: func(_ *matrix, version int, twin string) map[string]any {
		return map[string]any{"name": "drone" + twin, "environment": "dev", "labels": labelled(version)}
	}},
	"flotilla_cluster": {attributes: func(_ *matrix, version int, twin string) map[string]any {
		return map[string]any{"name": "drone-7" + twin, "environment": "dev", "cluster_type": "drone", "labels": labelled(version)}
	}},
	"flotilla_workload": {attributes: func(_ *matrix, version int, twin string) map[string]any {
		return map[string]any{"name": "app" + twin, "workspace": "team", "labels": labelled(version)}
	}},
	"flotilla_target_policy": {attributes: func(_ *matrix, version int, twin string) map[string]any {
		return map[string]any{
			"name":                  "edge" + twin,
			"environment":           "dev",
			"cluster_type_selector": map[string]any{"match_labels": labelled(version)},
		}
	}},
	"flotilla_config_container": {attributes: func(_ *matrix, version int, twin string) map[string]any {
		return map[string]any{"name": "all" + twin, "data": map[string]any{"VERSION": fmt.Sprint(version)}}
	}},
	"flotilla_config_schema": {attributes: func(_ *matrix, version int, twin string) map[string]any {
		return map[string]any{"name": "all" + twin, "labels": labelled(version), "schema": `{"type":"object"}`}
	}},
	"flotilla_template": {attributes: func(_ *matrix, version int, twin string) map[string]any {
		return map[string]any{
			"name":      "own" + twin,
			"type":      "namespace",
			"manifests": []any{fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {{ .Namespace }}-v%d\n", version)},
		}
	}},
	"flotilla_constraint": {attributes: func(_ *matrix, version int, twin string) map[string]any {
		return map[string]any{"name": "rule" + twin, "expression": "true", "message": fmt.Sprint("v", version)}
	}},
}

const gitops = "one"

func labelled(version int) map[string]any { return map[string]any{"version": fmt.Sprint("v", version)} }

// matrixFleet has one deployment target on two hosts. Both folders have the version.
func matrixFleet(version int) providertest.Call {
	fleet := fleetOf(
		map[string]any{"config_containers": []any{map[string]any{"name": "all", "data": map[string]any{"VERSION": fmt.Sprint("v", version)}}}},
	)
	fleet.Arguments[0].(map[string]any)["target_policies"] = []any{
		policy("core", map[string]any{"expression": "!edge"}, map[string]any{"expression": "edge=true"}),
	}
	return fleet
}
