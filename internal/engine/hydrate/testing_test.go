package hydrate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// fleetBuilder builds a fleet, its configuration and its assignments.
type fleetBuilder struct {
	fleet       fleet.Fleet
	config      fleet.Config
	assignments []*schedule.Assignment
}

// dev returns an empty environment.
func dev() *fleetBuilder {
	return &fleetBuilder{fleet: fleet.Fleet{Environment: "dev", Hydration: &fleet.Hydration{}}, config: fleet.Config{}}
}

// container adds a config container. Its data is JSON, or empty if unknown.
func (g *fleetBuilder) container(name string, labels fleet.Labels, data string) *fleetBuilder {
	g.fleet.ConfigContainers = append(g.fleet.ConfigContainers, fleet.ConfigContainer{Name: name, Labels: labels})
	if data != "" {
		g.config[name] = data
	}
	return g
}

// configMap adds a container from a ConfigMap.
func (g *fleetBuilder) configMap(name string, labels fleet.Labels, data string) *fleetBuilder {
	g.container(name, labels, data)
	g.last().FromConfigMap = true
	return g
}

func (g *fleetBuilder) last() *fleet.ConfigContainer {
	return &g.fleet.ConfigContainers[len(g.fleet.ConfigContainers)-1]
}

// priority sets the priority of the last container.
func (g *fleetBuilder) priority(priority string) *fleetBuilder {
	g.last().Priority = fleetNumber(priority)
	return g
}

func (g *fleetBuilder) schema(name string, labels fleet.Labels, schema string) *fleetBuilder {
	g.fleet.ConfigSchemas = append(g.fleet.ConfigSchemas, fleet.ConfigSchema{Name: name, Labels: labels, Schema: schema})
	return g
}

func (g *fleetBuilder) hydration(hydration fleet.Hydration) *fleetBuilder {
	g.fleet.Hydration = &hydration
	return g
}

// assign puts the deployment target "<workload>-test" on a cluster type.
func (g *fleetBuilder) assign(clusterType, workload string, host, target fleet.Labels, schemas ...string) *fleetBuilder {
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

// onCluster moves the last assignment to a cluster of its cluster type.
func (g *fleetBuilder) onCluster(name string) *fleetBuilder {
	host := g.assignments[len(g.assignments)-1].Host
	host.Name, host.Cluster = "clusters/"+name, &fleet.Cluster{Name: name, ClusterType: host.ClusterType.Name}
	return g
}

func (g *fleetBuilder) hydrate(t testing.TB) *hydrate.Snapshots {
	t.Helper()
	result, err := tryHydrate(g)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// idle returns the containers without assignments.
func (g *fleetBuilder) idle(t testing.TB) []string {
	t.Helper()
	idle, err := hydrate.IdleContainers(&g.fleet, g.assignments)
	if err != nil {
		t.Fatal(err)
	}
	return idle
}

// findingLines returns the findings, one per line.
func findingLines(findings []hydrate.ValueFinding) string {
	lines := make([]string, len(findings))
	for i, finding := range findings {
		lines[i] = finding.String()
	}
	return strings.Join(lines, "\n")
}

func equal(t testing.TB, name string, got, want any) {
	t.Helper()
	if got, want := fmt.Sprintf("%v", got), fmt.Sprintf("%v", want); got != want {
		t.Errorf("%s\n got: %s\nwant: %s", name, got, want)
	}
}

// tryHydrate hydrates the fleet with the assigned deployment targets.
func tryHydrate(g *fleetBuilder) (*hydrate.Snapshots, error) {
	g.fleet.Workloads = nil
	seen := map[string]bool{}
	for _, assignment := range g.assignments {
		if target := assignment.Target; !seen[target.Name] {
			seen[target.Name] = true
			g.fleet.Workloads = append(
				g.fleet.Workloads,
				fleet.Workload{Name: target.Workload.Name, DeploymentTargets: []fleet.DeploymentTarget{*target.Target}},
			)
		}
	}
	return hydrate.Hydrate(&g.fleet, g.config, g.assignments)
}
