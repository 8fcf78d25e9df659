package render_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// fleetOf returns a fleet of two teams, with every workload on the cluster types drone and large.
func fleetOf(reconciler string, workloads ...fleet.Workload) *fleet.Fleet {
	f := &fleet.Fleet{
		Environment: "dev",
		Workspaces:  []fleet.Workspace{{Name: "kaizen"}, {Name: "other"}},
		Explicit:    true,
		Workloads:   workloads,
	}
	for _, name := range []string{"drone", "large"} {
		f.ClusterTypes = append(
			f.ClusterTypes,
			fleet.ClusterType{Name: name, Reconciler: reconciler, NamespaceService: "default", ConfigType: "configmap"},
		)
		for _, workload := range workloads {
			f.Assignments = append(f.Assignments, fleet.ExplicitAssignment{
				ClusterType: name, DeploymentTarget: fleet.FullName(workload.Name, workload.DeploymentTargets[0].Name),
			})
		}
	}
	return f
}

// arrangeFleet returns the names of the reconciler objects by assignment, and the findings of ChooseWriters.
func arrangeFleet(t *testing.T, f *fleet.Fleet) (names map[string]string, findings fleet.Findings) {
	t.Helper()
	scheduled, wrong := schedule.Schedule(f)
	if wrong != nil {
		t.Fatal(wrong)
	}
	templates := compile(t, f)
	findings, _ = templates.ChooseWriters(scheduled.Assignments)
	names = map[string]string{}
	for _, assignment := range scheduled.Assignments {
		for _, object := range templates.Objects(render.Subject{Assignment: assignment, Environment: f.Environment}, nil) {
			names[assignment.Key()] = object.Name
		}
	}
	return names, findings
}

func workloadOf(team, name, target, namespace string, manifests fleet.Manifests) fleet.Workload {
	return fleet.Workload{
		Name:              name,
		Workspace:         team,
		DeploymentTargets: []fleet.DeploymentTarget{{Name: target, Namespace: namespace, Manifests: manifests}},
	}
}

// Teams choose the names of deployment targets, and the objects of all teams share one namespace.
func TestCollisionsNameBothTeams(t *testing.T) {
	for _, reconciler := range []string{"flux", "argocd", "fleet"} {
		pay := workloadOf("kaizen", "pay", "live", "dev-drone-apps", fromGit())
		names, findings := arrangeFleet(t, fleetOf(reconciler, pay))
		name := names["drone/pay-live"]
		if findings != nil || !strings.HasPrefix(name, "dev-drone-apps-pay-live-") {
			t.Fatal(name, findings)
		}
		hash := name[strings.LastIndex(name, "-")+1:]
		_, findings = arrangeFleet(t, fleetOf(reconciler, pay, workloadOf("other", "apps-pay-live", hash, "", fromGit())))
		want := `its objects on "drone" would be called "` + name + `", as those of deployment target "apps-pay-live-` + hash + `" of workspace "other"`
		other := `its objects on "drone" would be called "` + name + `", as those of deployment target "pay-live" of workspace "kaizen"`
		if len(findings) != 1 || !strings.Contains(findings.Error(), want) && !strings.Contains(findings.Error(), other) {
			t.Errorf("%s: got findings %v", reconciler, findings)
		}
	}
}

// On a hub, the objects of all hosts share one namespace.
func TestNamesOnAHubDifferByHostAndEnvironment(t *testing.T) {
	f := fleetOf("argocd-hub", workloadOf("kaizen", "pay", "live", "shop", fromGit()))
	names, findings := arrangeFleet(t, f)
	f.Environment = "stage"
	elsewhere, _ := arrangeFleet(t, f)
	if findings != nil || names["drone/pay-live"] == names["large/pay-live"] || names["drone/pay-live"] == elsewhere["drone/pay-live"] {
		t.Error(names, elsewhere, findings)
	}
}

func TestNoWorkloadIncludesTheSourceOfAnotherTeam(t *testing.T) {
	include := func(name string) fleet.Manifests {
		return withParameters(fromGit(), parseObject(t, `{"git_repository": {"include": [{"repository": {"name": "`+name+`"}}]}}`))
	}
	_, findings := arrangeFleet(
		t,
		fleetOf(
			"flux",
			workloadOf("kaizen", "pay", "live", "", fromGit()),
			workloadOf("other", "spy", "live", "", include("dev-large-pay-live")),
		),
	)
	const want = `workloads["spy"].deployment_targets["live"].manifests.parameters.git_repository.include[0].repository.name: ` +
		`"dev-large-pay-live" is an object of a workload of workspace "kaizen", which this workload of workspace "other" cannot use`
	if findings.Error() != want {
		t.Errorf("got findings %v", findings)
	}
	_, findings = arrangeFleet(
		t,
		fleetOf("flux", workloadOf("other", "pay", "live", "", fromGit()), workloadOf("other", "spy", "live", "", include("dev-large-pay-live"))),
	)
	if findings != nil {
		t.Errorf("a source of the same team: got findings %v", findings)
	}
	// The name of an object may match two pairs of host and deployment target.
	two := fleetOf("flux", workloadOf("kaizen", "a-pay", "live", "", fromGit()), workloadOf("other", "pay", "live", "", fromGit()),
		workloadOf("other", "spy", "live", "", include("dev-drone-a-pay-live")))
	two.ClusterTypes[1].Name, two.Assignments[3].ClusterType, two.Assignments[4].ClusterType, two.Assignments[5].ClusterType = "drone-a", "drone-a", "drone-a", "drone-a"
	if _, findings := arrangeFleet(t, two); !strings.Contains(
		findings.Error(),
		`"dev-drone-a-pay-live" is an object of a workload of workspace "kaizen"`,
	) {
		t.Errorf("got findings %v", findings)
	}
}

// The agent's namespace contains the Secrets with chart values of all teams.
func TestNoWorkloadReadsTheSecretValuesOfAnotherTeam(t *testing.T) {
	const parameters = `workloads["spy"].deployment_targets["live"].manifests.parameters.`
	for name, test := range map[string]struct{ reconciler, parameters, field string }{
		"values":   {"flux", `{"helm_release": {"valuesFrom": [{"kind": "Secret", "name": "NAME"}]}}`, "helm_release.valuesFrom[0].name"},
		"source":   {"flux", `{"secret_ref": "NAME"}`, "secret_ref"},
		"a HelmOp": {"fleet", `{"helm_op": {"helm": {"valuesFrom": [{"secretKeyRef": {"name": "NAME", "namespace": "dev-drone-pay-live"}}]}}}`, "helm_op.helm.valuesFrom[0].secretKeyRef.name"},
	} {
		spying := func(team string) fleet.Findings {
			spy := withParameters(helmChart, parseObject(t, strings.ReplaceAll(test.parameters, "NAME", "dev-drone-pay-live-platform-values")))
			_, findings := arrangeFleet(
				t,
				fleetOf(test.reconciler, workloadOf("kaizen", "pay", "live", "", helmChart), workloadOf(team, "spy", "live", "", spy)),
			)
			return findings
		}
		want := parameters + test.field + `: "dev-drone-pay-live-platform-values" is the Secret with the values of a workload of workspace "kaizen", ` +
			`which this workload of workspace "other" cannot use`
		if findings := spying("other"); findings.Error() != want {
			t.Errorf("%s: got findings %v, want %s", name, findings, want)
		}
		if findings := spying("kaizen"); findings != nil {
			t.Errorf("%s, a Secret of the same team: got findings %v", name, findings)
		}
	}
}

// A confined workspace need not list the Secret of its own references.
func TestAConfinedWorkspaceGetsItsOwnSecretValues(t *testing.T) {
	files := deployment{
		workspace: withAccount, manifests: withParameters(helmChart, nil), secretService: "external-secrets", stores: stores, secrets: vaultSecrets, configAs: fleet.ConfigAs{"values"},
	}.render(t)
	if !strings.Contains(files["reconciler.yaml"], "name: \"dev-drone-hello-dev-platform-values\"") {
		t.Error(files["reconciler.yaml"])
	}
}
