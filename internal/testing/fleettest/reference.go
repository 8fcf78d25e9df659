// Package fleettest generates fleets for tests and benchmarks. Equal seeds give equal fleets.
package fleettest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Sizes of the reference fleet and the stretch fleet.
const (
	ReferenceAssignments = 20_000
	StretchAssignments   = 100_000
)

const referenceEnvironment = "prod"

// A policy selects ten cluster types in a region and ten clusters at a site: forty assignments for each workload of two
// policies and two deployment targets each.
const (
	typesPerRegion         = 10
	clustersPerSite        = 10
	assignmentsPerWorkload = 40
)

// targetNames are the deployment targets of every workload.
var targetNames = []struct{ name, ring string }{
	{"batch", "outer"}, {"canary", "inner"}, {"live", "outer"}, {"smoke", "inner"},
}

// Reference returns the reference fleet, scaled to this number of assignments. At [ReferenceAssignments] it has 500 cluster
// types, 3,000 clusters, 500 workloads with four deployment targets, 1,000 target policies and 1,000 config containers; a
// deployment target runs on about ten hosts at any size. It uses every form of selector, clusters as hosts, taints, exclusion,
// requirements and schemas. It has no findings.
func Reference(assignments int, seed uint64) (*fleet.Fleet, fleet.Config) {
	g := &reference{
		random:  rand.New(rand.NewPCG(seed, 0)),
		fleet:   &fleet.Fleet{Environment: referenceEnvironment},
		config:  fleet.Config{},
		groups:  max(1, assignments/assignmentsPerWorkload),
		regions: max(1, assignments/assignmentsPerWorkload/typesPerRegion),
	}
	g.sites = max(1, g.groups*6/clustersPerSite)
	g.workspaces()
	g.clusterTypes()
	g.clusters()
	g.workloads()
	g.containers()
	g.schemas()
	return g.fleet, g.config
}

// ReferenceWithSecrets adds a reference to a secret to every second config container.
func ReferenceWithSecrets(assignments int, seed uint64) (*fleet.Fleet, fleet.Config) {
	f, config := Reference(assignments, seed)
	for i := range f.ClusterTypes {
		f.ClusterTypes[i].SecretService = "external-secrets"
		f.ClusterTypes[i].SecretStores = map[string]fleet.SecretStore{"vault": {}}
	}
	for i := range f.ConfigContainers {
		if container := &f.ConfigContainers[i]; i%2 == 0 {
			key := "TOKEN_" + strings.ReplaceAll(strings.ToUpper(container.Name), "-", "_") // of no other container
			references := map[string]*fleet.SecretReference{key: {Store: "vault", Key: referenceEnvironment + "/" + container.Name, Version: "1"}}
			if err := config.SetSecrets(container, fleet.ContainerSecrets{References: references}); err != nil {
				panic(err) // never
			}
		}
	}
	return f, config
}

type reference struct {
	random                 *rand.Rand
	fleet                  *fleet.Fleet
	config                 fleet.Config
	groups, regions, sites int
}

func workspaceName(i int) string   { return fmt.Sprintf("team-%04d", i) }
func regionName(i int) string      { return fmt.Sprintf("region-%04d", i) }
func siteName(i int) string        { return fmt.Sprintf("site-%05d", i) }
func clusterTypeName(i int) string { return fmt.Sprintf("edge-%04d", i) }
func workloadName(i int) string    { return fmt.Sprintf("app-%04d", i) }

func (g *reference) workspaceCount() int { return max(1, g.groups/10) }

func (g *reference) workspaces() {
	for i := range g.workspaceCount() {
		name := workspaceName(i)
		workspace := fleet.Workspace{
			Name:              name,
			ContributorGroups: []string{name + "-developers"},
			ReaderGroups:      []string{name + "-auditors", name + "-support"},
			Labels:            fleet.Labels{"department": fmt.Sprintf("department-%d", i%7)},
		}
		if i%2 == 0 {
			workspace.ResourceQuota = map[string]string{"limits.cpu": "16", "limits.memory": "64Gi"}
		}
		if i%5 == 0 {
			workspace.NetworkPolicy = "isolated"
		}
		g.fleet.Workspaces = append(g.fleet.Workspaces, workspace)
	}
}

func (g *reference) clusterTypes() {
	sizes := []string{"large", "medium", "small"}
	for i := range g.groups {
		clusterType := fleet.ClusterType{
			Name: clusterTypeName(i),
			Labels: fleet.Labels{
				"region": regionName(i / typesPerRegion % g.regions),
				"size":   sizes[g.random.IntN(len(sizes))],
				"tier":   fmt.Sprintf("tier-%d", i%4),
			},
			Reconciler:       fleet.DefaultReconciler,
			NamespaceService: fleet.DefaultNamespaceService,
			ConfigType:       fleet.DefaultConfigType,
			Description:      fmt.Sprintf("Edge sites, generation %d", i),
		}
		if i%4 == 3 {
			clusterType.Reconciler = "argocd"
		}
		if i/typesPerRegion%g.regions%10 == 9 {
			clusterType.Labels["restricted"] = "true"
			clusterType.Taints = []fleet.Taint{{Key: "restricted", Value: "true", Effect: "NoSchedule"}}
		}
		g.fleet.ClusterTypes = append(g.fleet.ClusterTypes, clusterType)
	}
}

func (g *reference) clusters() {
	for i := range g.groups * 6 {
		g.fleet.Clusters = append(g.fleet.Clusters, fleet.Cluster{
			Name:        fmt.Sprintf("c%05d", i),
			ClusterType: clusterTypeName(i / 6),
			Labels: fleet.Labels{
				"site": siteName(i / clustersPerSite % g.sites),
				"rack": fmt.Sprintf("rack-%d", g.random.IntN(40)),
			},
		})
	}
}

func (g *reference) workloads() {
	for i := range g.groups {
		name, workspace := workloadName(i), workspaceName(i%g.workspaceCount())
		workload := fleet.Workload{
			Name: name, Workspace: workspace,
			Labels: fleet.Labels{"app": name, "family": fmt.Sprintf("family-%d", i%20)},
		}
		for _, target := range targetNames {
			workload.DeploymentTargets = append(workload.DeploymentTargets, fleet.DeploymentTarget{
				Name:      target.name,
				Labels:    fleet.Labels{"ring": target.ring, "purpose": target.name},
				Manifests: manifests(i, workspace, name, target.name),
			})
		}
		if i%25 == 0 {
			workload.DeploymentTargets[0].ConfigSchemas = []string{targetSchema}
		}
		// A workload must run on the hosts of the workload that requires it.
		like := i
		if i%20 == 1 {
			workload.Requires = []string{workloadName(i - 1)}
			like = i - 1
		}
		g.fleet.Workloads = append(g.fleet.Workloads, workload)
		g.policies(i, like)
	}
}

func manifests(i int, workspace, workload, target string) fleet.Manifests {
	switch i % 10 {
	case 8:
		return fleet.Manifests{
			Manifests: folder.Manifests{Storage: "helm", Repo: "https://charts.example.com/" + workspace, Chart: workload, Version: "1.2.3"},
		}
	case 9:
		return fleet.Manifests{
			Manifests: folder.Manifests{Storage: "oci", Repo: "oci://registry.example.com/" + workspace + "/" + workload, Tag: "v1.2.3"},
		}
	}
	return fleet.Manifests{
		Manifests: folder.Manifests{
			Storage: "git",
			Repo:    "https://git.example.com/" + workspace + "/" + workload,
			Branch:  referenceEnvironment,
			Path:    "./" + target,
		},
	}
}

// policies adds two policies of a workload, with the hosts of another workload.
func (g *reference) policies(i, like int) {
	for ring, ringName := range []string{"inner", "outer"} {
		// Each ring has its own region if there are enough.
		group := like*2 + ring
		policy := fleet.TargetPolicy{
			Name: fmt.Sprintf("%s-%s", workloadName(i), ringName), Effect: "schedule",
			Workspace:                workspaceName(i % g.workspaceCount()),
			DeploymentTargetSelector: &fleet.Selector{MatchLabels: map[string]string{"app": workloadName(i), "ring": ringName}},
		}
		region, next := regionName(group%g.regions), regionName((group+1)%g.regions)
		if group%g.regions%10 == 9 || (group+1)%g.regions%10 == 9 {
			policy.Tolerations = []fleet.Toleration{{Key: "restricted", Operator: "Equal", Value: "true"}}
		}
		switch like % 10 {
		case 3:
			policy.ClusterTypeSelector = &fleet.Selector{Expression: fmt.Sprintf("region in (%s, %s), size notin (large)", region, next)}
		case 5:
			policy.ClusterTypeSelector = &fleet.Selector{MatchExpressions: []fleet.Expression{
				{Key: "region", Operator: "In", Values: slices.Sorted(slices.Values([]string{region, next}))},
				{Key: "tier", Operator: "NotIn", Values: []string{"tier-0", "tier-1"}},
			}}
		case 6:
			policy.ClusterSelector = &fleet.Selector{MatchLabels: map[string]string{"site": siteName(group % g.sites)}}
			policy.Tolerations = []fleet.Toleration{{Operator: "Exists"}}
		case 7:
			policy.WorkloadSelector = &fleet.Selector{Expression: "app=" + workloadName(i)}
			policy.DeploymentTargetSelector = &fleet.Selector{MatchExpressions: []fleet.Expression{
				{Key: "purpose", Operator: "Exists"}, {Key: "ring", Operator: "In", Values: []string{ringName}},
			}}
			policy.ClusterTypeSelector = &fleet.Selector{MatchLabels: map[string]string{"region": region}}
		case 9:
			if ring == 1 { // keep the first ring off some hosts
				policy.Effect = "exclude"
				policy.DeploymentTargetSelector.MatchLabels["ring"] = "inner"
				policy.ClusterTypeSelector = &fleet.Selector{
					MatchLabels: map[string]string{"region": regionName(like * 2 % g.regions)}, Expression: "size=small",
				}
				break
			}
			policy.DeploymentTargetSelector.MatchLabels = map[string]string{"app": workloadName(i)}
			policy.ClusterTypeSelector = &fleet.Selector{MatchLabels: map[string]string{"region": region}}
		default:
			policy.ClusterTypeSelector = &fleet.Selector{MatchLabels: map[string]string{"region": region}}
		}
		g.fleet.TargetPolicies = append(g.fleet.TargetPolicies, policy)
	}
}
