package fleettest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Labels of each host and deployment target in a dense fleet.
const (
	denseLabels = 8
	denseValues = 3
)

// denseSettings is the number of scalar keys of a container.
const denseSettings = 3

// Dense returns a fleet in which about 27 of a hundred config containers match each assignment, almost always another set. Each
// host has ten deployment targets. Containers share keys and merged objects. It has no findings: containers of equal priority
// share no leaf.
func Dense(assignments, containers, keys int, seed uint64) (*fleet.Fleet, fleet.Config) {
	d := &dense{
		samePriority: max(1, keys/denseSettings),
		random:       rand.New(rand.NewPCG(seed, 2)),
		fleet:        &fleet.Fleet{Environment: referenceEnvironment, Explicit: true, Workspaces: []fleet.Workspace{{Name: "team"}}},
		config:       fleet.Config{},
	}
	d.hosts((assignments + 9) / 10)
	d.workloads(assignments)
	for i := range containers {
		d.container(i)
	}
	d.fleet.ConfigSchemas = []fleet.ConfigSchema{{Name: "settings", Schema: denseSchema}}
	return d.fleet, d.config
}

const denseSchema = `{"type":"object","properties":{` +
	`"SETTING_000":{"type":"string","minLength":3},"SETTING_001":{"type":"string","pattern":"^value-"},` +
	`"FEATURES_0":{"type":"object","properties":{"limits":{"type":"object","additionalProperties":{"type":"integer"}}}}}}`

type dense struct {
	random       *rand.Rand
	fleet        *fleet.Fleet
	config       fleet.Config
	samePriority int // how many containers have the same priority
}

func (d *dense) labels(side string) fleet.Labels {
	labels := fleet.Labels{}
	for i := range denseLabels {
		d.label(labels, side, i)
	}
	return labels
}

func (d *dense) label(into fleet.Labels, side string, number int) {
	into[fmt.Sprintf("%s-%d", side, number)] = fmt.Sprintf("v%d", d.random.IntN(denseValues))
}

func (d *dense) hosts(count int) {
	for i := range count {
		d.fleet.ClusterTypes = append(d.fleet.ClusterTypes, fleet.ClusterType{
			Name: fmt.Sprintf("type-%06d", i), Labels: d.labels("host"),
			Reconciler: fleet.DefaultReconciler, NamespaceService: fleet.DefaultNamespaceService, ConfigType: fleet.DefaultConfigType,
		})
	}
}

func (d *dense) workloads(assignments int) {
	count := max(10, assignments/50)
	for i := range count {
		name := fmt.Sprintf("app-%06d", i)
		d.fleet.Workloads = append(d.fleet.Workloads, fleet.Workload{Name: name, Workspace: "team", DeploymentTargets: []fleet.DeploymentTarget{{
			Name: "live", Labels: d.labels("target"),
			Manifests: fleet.Manifests{
				Manifests: folder.Manifests{Storage: "git", Repo: "https://git.example.com/team/" + name, Branch: "main", Path: "./live"},
			},
		}}})
	}
	for i := range assignments {
		host, number := i/10, i%10
		workload := d.fleet.Workloads[(host*7+number)%count]
		d.fleet.Assignments = append(d.fleet.Assignments, fleet.ExplicitAssignment{
			ClusterType: d.fleet.ClusterTypes[host].Name, DeploymentTarget: fleet.FullName(workload.Name, "live"),
		})
	}
	slices.SortFunc(d.fleet.Assignments, fleet.CompareExplicitAssignments)
}

func (d *dense) container(number int) {
	labels := fleet.Labels{}
	sides := []string{"host", "target"}
	if d.random.IntN(100) < 73 {
		sides = sides[:1:1]
		if d.random.IntN(2) == 0 {
			sides[0] = "target"
		}
	}
	for _, side := range sides {
		d.label(labels, side, d.random.IntN(denseLabels))
	}
	priority, turn := number/d.samePriority, number%d.samePriority
	container := fleet.ConfigContainer{Name: fmt.Sprintf("config-%05d", number), Labels: labels}
	if priority > 0 {
		container.Priority = json.Number(fmt.Sprint(priority))
	}
	data := map[string]any{}
	for i := range denseSettings {
		data[fmt.Sprintf("SETTING_%03d", turn*denseSettings+i)] = fmt.Sprintf("value-%08x", d.random.Uint32())
	}
	data[fmt.Sprintf("FEATURES_%d", turn/4)] = map[string]any{
		fmt.Sprintf("feature-%d", turn): d.random.IntN(2) == 0,
		"limits":                        map[string]any{fmt.Sprintf("limit-%d", turn): json.Number(fmt.Sprint(d.random.IntN(100)))},
	}
	text, err := fleet.CanonicalJSON(data)
	if err != nil {
		panic(err) // never
	}
	d.fleet.ConfigContainers = append(d.fleet.ConfigContainers, container)
	d.config[container.Name] = text
}
