package hydrate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// given is a fleet as the tests write it.
type given struct {
	fleet       fleet.Fleet
	config      fleet.Config
	assignments []*schedule.Assignment
}

// dev is an environment with nothing in it.
func dev() *given {
	return &given{fleet: fleet.Fleet{Environment: "dev", Hydration: &fleet.Hydration{}}, config: fleet.Config{}}
}

// container adds a config container; its data is JSON, or empty where it is not known yet.
func (g *given) container(name string, labels fleet.Labels, data string) *given {
	g.fleet.ConfigContainers = append(g.fleet.ConfigContainers, fleet.ConfigContainer{Name: name, Labels: labels})
	if data != "" {
		g.config[name] = data
	}
	return g
}

// configMap adds a container that was a ConfigMap.
func (g *given) configMap(name string, labels fleet.Labels, data string) *given {
	g.container(name, labels, data)
	g.last().FromConfigMap = true
	return g
}

func (g *given) last() *fleet.ConfigContainer {
	return &g.fleet.ConfigContainers[len(g.fleet.ConfigContainers)-1]
}

// priority sets that of the container added last.
func (g *given) priority(priority string) *given {
	g.last().Priority = fleetNumber(priority)
	return g
}

func (g *given) schema(name string, labels fleet.Labels, schema string) *given {
	g.fleet.ConfigSchemas = append(g.fleet.ConfigSchemas, fleet.ConfigSchema{Name: name, Labels: labels, Schema: schema})
	return g
}

func (g *given) hydration(hydration fleet.Hydration) *given {
	g.fleet.Hydration = &hydration
	return g
}

// assign puts the deployment target "<workload>-test" on a cluster type.
func (g *given) assign(clusterType, workload string, host, target fleet.Labels, schemas ...string) *given {
	g.assignments = append(g.assignments, &schedule.Assignment{
		Host: &schedule.Host{Name: clusterType, ClusterType: &fleet.ClusterType{Name: clusterType}, Labels: host},
		Target: &schedule.Target{
			Name:     workload + "-test",
			Workload: &fleet.Workload{Name: workload, Workspace: "kaizen"},
			Target:   &fleet.DeploymentTarget{Name: "test", ConfigSchemas: schemas},
			Labels:   target,
		},
	})
	return g
}

// onCluster puts the assignment added last on a cluster of its cluster type.
func (g *given) onCluster(name string) *given {
	host := g.assignments[len(g.assignments)-1].Host
	host.Name, host.Cluster = "clusters/"+name, &fleet.Cluster{Name: name, ClusterType: host.ClusterType.Name}
	return g
}

func (g *given) hydrate(t testing.TB) *hydrate.Snapshots {
	t.Helper()
	result, err := hydrateError(g)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// idle returns the containers without assignments.
func (g *given) idle(t testing.TB) []string {
	t.Helper()
	idle, err := hydrate.IdleContainers(&g.fleet, g.assignments)
	if err != nil {
		t.Fatal(err)
	}
	return idle
}

// report is all that a result complains about, a line each.
func report(findings []hydrate.ValueFinding) string {
	lines := make([]string, len(findings))
	for i, finding := range findings {
		lines[i] = finding.String()
	}
	return strings.Join(lines, "\n")
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if got, want := fmt.Sprintf("%v", got), fmt.Sprintf("%v", want); got != want {
		t.Errorf("%s\n got: %s\nwant: %s", what, got, want)
	}
}

// hydrateError hydrates the fleet with the deployment targets that are assigned.
func hydrateError(g *given) (*hydrate.Snapshots, error) {
	g.fleet.Workloads = nil
	seen := map[string]bool{}
	for _, assignment := range g.assignments {
		if of := assignment.Target; !seen[of.Name] {
			seen[of.Name] = true
			g.fleet.Workloads = append(
				g.fleet.Workloads,
				fleet.Workload{Name: of.Workload.Name, DeploymentTargets: []fleet.DeploymentTarget{*of.Target}},
			)
		}
	}
	return hydrate.Hydrate(&g.fleet, g.config, g.assignments)
}
