package constraint_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// TestVariablesAndFieldsMatchTheGuide evaluates each field over a subject with a known value.
func TestVariablesAndFieldsMatchTheGuide(t *testing.T) {
	t.Parallel()
	subjects := subjectsOf(computeFleet(t, shop))
	for _, test := range []struct {
		over       constraint.Over
		expression string // true for every subject
	}{
		{constraint.OverFleet, `environment == "prod"`},

		{constraint.OverAssignments, `assignment.key != "large/api-west" || assignment.host == "large"`},
		{constraint.OverAssignments, `assignment.key != "large/api-west" || assignment.deployment_target == "api-west"`},
		{constraint.OverAssignments, `assignment.key != "large/api-west" || assignment.namespace == "api"`},
		{constraint.OverAssignments, `assignment.key != "large/db-main" || assignment.namespace == "prod-large-db-main"`},
		{constraint.OverAssignments, `assignment.key != "large/api-west" || assignment.policies == ["stable"]`},
		{constraint.OverAssignments, `assignment.key != "large/api-west" || assignment.requires == ["db-main"]`},
		{constraint.OverAssignments, `assignment.key != "small/site-all" || assignment.config_containers == ["base", "east"]`},
		{constraint.OverAssignments, `assignment.config_version.matches("^[0-9a-f]{16}$") && has(assignment.config_version)`},
		{constraint.OverAssignments, `assignment.key in ["large/api-west", "large/db-main", "large/site-all", "small/site-all", "clusters/c1/site-one"]`},

		{constraint.OverHosts, `host.name in ["large", "small", "clusters/c1", "clusters/c2"]`},
		{constraint.OverHosts, `host.cluster_type == (host.name == "small" ? "small" : "large")`},
		{constraint.OverHosts, `has(host.cluster) ? host.name == "clusters/" + host.cluster : host.cluster == "" && host.name == host.cluster_type`},
		{constraint.OverHosts, `host.name != "clusters/c1" || host.labels == {"region": "west", "size": "large", "site": "harbour"}`},
		{constraint.OverHosts, `host.name != "clusters/c2" || host.labels.region == "north"`},
		{constraint.OverHosts, `host.name != "clusters/c2" || host.taints.exists_one(t, t.key == "restricted" && t.value == "yes" && t.effect == "NoSchedule")`},
		{constraint.OverHosts, `host.name != "small" || size(host.taints) == 0 && !has(host.taints)`},
		{constraint.OverHosts, `host.reconciler == "flux" && host.namespace_service == "default" && host.config_type == "configmap"`},
		{constraint.OverHosts, `host.name != "large" || host.parameters.kustomization == {"interval": dyn("5m"), "wait": dyn(true)}`},
		{constraint.OverHosts, `host.name != "large" || host.clusters == ["c1", "c2"]`},
		{constraint.OverHosts, `host.name != "clusters/c1" || host.clusters == ["c1"]`},
		{constraint.OverHosts, `host.name != "large" || host.targets == ["api-west", "db-main", "site-all"]`},
		{constraint.OverHosts, `host.name != "clusters/c2" || host.targets.size() == 0`},

		{constraint.OverDeploymentTargets, `target.name in ["api-west", "db-main", "site-all", "site-one"]`},
		{constraint.OverDeploymentTargets, `target.name == target.workload + "-" + target.short_name`},
		{constraint.OverDeploymentTargets, `target.workspace == (target.workload == "site" ? "web" : "payments") && workspace.name == target.workspace`},
		{constraint.OverDeploymentTargets, `target.name != "api-west" || target.labels == {"tier": "backend", "track": "stable"}`},
		{constraint.OverDeploymentTargets, `target.namespace == (target.name == "api-west" ? "api" : "") && has(target.namespace) == (target.name == "api-west")`},
		{constraint.OverDeploymentTargets, `target.config_as == (target.name == "db-main" ? ["values"] : ["configmap"])`},
		{constraint.OverDeploymentTargets, `target.requires == (target.name == "api-west" ? ["db"] : [])`},
		{constraint.OverDeploymentTargets, `target.name != "site-all" || target.hosts.map(h, h.name) == ["large", "small"]`},
		{constraint.OverDeploymentTargets, `target.name != "site-all" || target.hosts.map(h, h.labels[?"region"].orValue("")) == ["west", "east"]`},
		{constraint.OverDeploymentTargets, `target.name != "api-west" || target.manifests.storage == "git" && target.manifests.repo == "https://git.example.com/api"`},
		{constraint.OverDeploymentTargets, `target.name != "api-west" || target.manifests.tag == "v1.2.3" && target.manifests.path == "prod" && !has(target.manifests.branch) && target.manifests.commit == ""`},
		{constraint.OverDeploymentTargets, `target.name != "api-west" || target.manifests.parameters.kustomization.timeout == "3m"`},
		{constraint.OverDeploymentTargets, `target.name != "db-main" || target.manifests.chart == "db" && target.manifests.version == "2.0.1" && target.manifests.type == ""`},
		{constraint.OverDeploymentTargets, `target.name != "site-all" || target.manifests.branch == "main"`},

		{constraint.OverWorkspaces, `workspace.name in ["payments", "web"]`},
		{constraint.OverWorkspaces, `workspace.name != "payments" || workspace.labels == {"cost-center": "4711"}`},
		{constraint.OverWorkspaces, `workspace.name != "payments" || workspace.contributor_groups == ["payers"] && workspace.reader_groups == ["auditors"]`},
		{constraint.OverWorkspaces, `workspace.name != "payments" || quantity(workspace.resource_quota["requests.cpu"]).isGreaterThan(quantity("7"))`},
		{constraint.OverWorkspaces, `workspace.name != "payments" || workspace.limit_range.all(l, l.type == "Container" && l.default.cpu == "500m" && l.default_request.cpu == "100m" && l.max.cpu == "2" && l.min.cpu == "50m" && l.max_limit_request_ratio.cpu == "10")`},
		{constraint.OverWorkspaces, `workspace.network_policy == (workspace.name == "payments" ? "isolated" : "none")`},
		{constraint.OverWorkspaces, `workspace.name != "payments" || workspace.service_account == "payments-deployer" && workspace.argocd_project == "payments"`},
		{constraint.OverWorkspaces, `workspace.name != "web" || workspace.targets == ["site-all", "site-one"] && !has(workspace.resource_quota)`},

		{constraint.OverAssignments, `config.replicas == 2 && config.ratio == 0.25 && config.debug == false && config.big == 9007199254740993`},
		{constraint.OverAssignments, `config.db.host == "db.example.com" && config.db.port > 1024 && config.hosts == ["a", "b"] && size(config.nothing) == 0`},
		{constraint.OverAssignments, `host.name != "small" || config.LOG_LEVEL == "debug" && config.?EAST.orValue("") == "yes"`},
		{constraint.OverAssignments, `has(config.EAST) == (host.name == "small") && !("NOTHING" in config) && config.all(k, k != "NOTHING")`},

		{constraint.OverObjects, `object.kind in ["Namespace", "ResourceQuota", "LimitRange", "RoleBinding", "NetworkPolicy", "ConfigMap", "GitRepository", "Kustomization", "HelmRelease", "HelmRepository", "OCIRepository"]`},
		{constraint.OverObjects, `object.kind != "ConfigMap" || object.data.LOG_LEVEL == config.LOG_LEVEL && object.metadata.namespace == assignment.namespace`},
		{constraint.OverObjects, `object.kind != "Namespace" || object.metadata.name == assignment.namespace && assignment.host == host.name && workspace.name == target.workspace && environment == "prod"`},

		{constraint.OverAssignments, `host.name != "" && target.name != ""`},
		{constraint.OverAssignments, `host.name != "" && workspace.name != ""`},
		{constraint.OverFleet, `true`},
	} {
		result := checkRule(t, subjects, fleet.Constraint{Expression: test.expression})
		if result.Over != test.over {
			t.Errorf("%s is evaluated over %s, want %s", test.expression, result.Over, test.over)
		}
		if !result.Holds() || result.Looked == 0 || result.Passed != result.Looked {
			t.Errorf("%s: %+v", test.expression, result)
		}
	}
}
