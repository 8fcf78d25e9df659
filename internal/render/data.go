package render

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// workspace is what templates see of a workspace.
type workspace struct {
	contributorGroups []any
	readerGroups      []any
	resourceQuota     map[string]any
	networkPolicy     string
}

// data is what templates see. Names that Kalypso has too mean the same. Lists and maps are []any and
// map[string]any, because that is what sprig's functions take.
func (t *Templates) data(subject Subject) map[string]any {
	assignment := subject.Assignment
	workload, target, host := assignment.Target.Workload, assignment.Target.Target, assignment.Host

	labels := mapOf(assignment.Target.Labels, 2)
	labels["workspace"] = workload.Workspace
	labels["workload"] = workload.Name
	cluster := ""
	if host.Cluster != nil {
		cluster = host.Cluster.Name
	}
	team := t.workspaces[workload.Workspace]
	if team == nil {
		team = &workspace{resourceQuota: map[string]any{}}
	}
	config, _ := natural(subject.Config).(map[string]any)
	if config == nil {
		config = map[string]any{}
	}
	return map[string]any{
		"DeploymentTargetName": assignment.Target.Name,
		"Namespace":            assignment.Namespace,
		"Environment":          subject.Environment,
		"Workspace":            workload.Workspace,
		"Workload":             workload.Name,
		"Labels":               labels,
		"Manifests":            manifestsOf(&target.Manifests),
		"ClusterType":          host.ClusterType.Name,
		"ConfigData":           config,

		"Cluster":       cluster,
		"HostLabels":    mapOf(host.Labels, 0),
		"ConfigVersion": subject.ConfigVersion,
		"Policies":      listOf(assignment.Policies),
		"Requires":      listOf(assignment.Requires),
		"IsChart":       isChart(&target.Manifests),
		"Dependencies":  t.dependencies(subject),
		"Wave":          t.waves[workload.Name],
		"Repo":          repoOf(subject.Repo),

		"ContributorGroups": team.contributorGroups,
		"ReaderGroups":      team.readerGroups,
		"ResourceQuota":     team.resourceQuota,
		"NetworkPolicy":     team.networkPolicy,
	}
}

// manifestsOf has every key, so that templates can ask for each. Parameters stand beside them too,
// because Kalypso's manifests are a free map.
func manifestsOf(manifests *fleet.Manifests) map[string]any {
	result := make(map[string]any, 10+len(manifests.Parameters))
	parameters, _ := natural(manifests.Parameters).(map[string]any)
	if parameters == nil {
		parameters = map[string]any{}
	}
	for name, value := range parameters {
		result[name] = value
	}
	result["storage"] = manifests.Storage
	result["repo"] = manifests.Repo
	result["branch"] = manifests.Branch
	result["tag"] = manifests.Tag
	result["commit"] = manifests.Commit
	result["path"] = manifests.Path
	result["chart"] = manifests.Chart
	result["version"] = manifests.Version
	result["type"] = manifests.Type
	result["parameters"] = parameters
	return result
}

// dependencies are the deployment targets that the assignment requires: each is {name, namespace,
// isChart}.
func (t *Templates) dependencies(subject Subject) []any {
	requires := subject.Assignment.Requires
	if len(requires) == 0 {
		return nil
	}
	dependencies := make([]any, len(requires))
	for i, name := range requires {
		dependency := map[string]any{
			"name":      name,
			"namespace": schedule.Namespace(subject.Environment, subject.Assignment.Host.Name, name),
			"isChart":   t.targets[name] != nil && isChart(&t.targets[name].Manifests),
		}
		dependencies[i] = dependency
	}
	return dependencies
}

// isChart says whether manifests are a Helm chart.
func isChart(manifests *fleet.Manifests) bool {
	return manifests.Storage == "helm" || manifests.Type == "helm" || manifests.Chart != ""
}

// unknownRepo stands for a repository that is not known yet: whatever reads it fails.
type unknownRepo struct{}

// URL fails.
func (unknownRepo) URL() (string, error) { return "", ErrUnknown }

// Branch fails.
func (unknownRepo) Branch() (string, error) { return "", ErrUnknown }

// Path fails.
func (unknownRepo) Path() (string, error) { return "", ErrUnknown }

func repoOf(repo *Repo) any {
	if repo == nil {
		return unknownRepo{}
	}
	return map[string]any{"URL": repo.URL, "Branch": repo.Branch, "Path": repo.Path}
}

func indexWorkspaces(f *fleet.Fleet) map[string]*workspace {
	index := make(map[string]*workspace, len(f.Workspaces))
	for i := range f.Workspaces {
		team := &f.Workspaces[i]
		index[team.Name] = &workspace{
			contributorGroups: listOf(team.ContributorGroups),
			readerGroups:      listOf(team.ReaderGroups),
			resourceQuota:     mapOf(team.ResourceQuota, 0),
			networkPolicy:     team.NetworkPolicy,
		}
	}
	return index
}

func indexTargets(f *fleet.Fleet) map[string]*fleet.DeploymentTarget {
	index := map[string]*fleet.DeploymentTarget{}
	for i := range f.Workloads {
		workload := &f.Workloads[i]
		for j := range workload.DeploymentTargets {
			index[fleet.FullName(workload.Name, workload.DeploymentTargets[j].Name)] = &workload.DeploymentTargets[j]
		}
	}
	return index
}

// indexWaves counts, for each workload, how many requirements stand before it in the longest chain.
// Cycles are the scheduler's to refuse; here they only end.
func indexWaves(f *fleet.Fleet) map[string]int {
	requires := make(map[string][]string, len(f.Workloads))
	for i := range f.Workloads {
		requires[f.Workloads[i].Name] = f.Workloads[i].Requires
	}
	waves := make(map[string]int, len(f.Workloads))
	var wave func(name string) int
	wave = func(name string) int {
		if known, ok := waves[name]; ok {
			return known
		}
		waves[name] = 0 // ends a cycle
		longest := 0
		for _, required := range requires[name] {
			longest = max(longest, wave(required)+1)
		}
		waves[name] = longest
		return longest
	}
	for i := range f.Workloads {
		wave(f.Workloads[i].Name)
	}
	return waves
}

func mapOf(labels map[string]string, more int) map[string]any {
	result := make(map[string]any, len(labels)+more)
	for key, value := range labels {
		result[key] = value
	}
	return result
}

func listOf(names []string) []any {
	result := make([]any, len(names))
	for i, name := range names {
		result[i] = name
	}
	return result
}

// natural returns the value with int64 and float64 in place of numbers, or the value itself where it
// has none. A number that neither can hold exactly stays what it is, and prints as it was written.
func natural(value any) any {
	if !holdsNumber(value) {
		return value
	}
	return convertNumbers(value)
}

func convertNumbers(value any) any {
	switch value := value.(type) {
	case json.Number:
		return naturalNumber(value)
	case []any:
		result := make([]any, len(value))
		for i, element := range value {
			result[i] = convertNumbers(element)
		}
		return result
	case map[string]any:
		result := make(map[string]any, len(value))
		for key, element := range value {
			result[key] = convertNumbers(element)
		}
		return result
	}
	return value
}

func naturalNumber(number json.Number) any {
	if integer, err := strconv.ParseInt(string(number), 10, 64); err == nil {
		return integer
	}
	float, err := strconv.ParseFloat(string(number), 64)
	if err != nil || float == 0 {
		return number // out of range, or perhaps a number so small that it only looks like zero
	}
	exact, err := fleet.CanonicalNumber(number)
	if err != nil || string(exact) != numberText(float) {
		return number
	}
	if integer, err := strconv.ParseInt(string(exact), 10, 64); err == nil {
		return integer
	}
	return float
}

func holdsNumber(value any) bool {
	switch value := value.(type) {
	case json.Number:
		return true
	case []any:
		return slices.ContainsFunc(value, holdsNumber)
	case map[string]any:
		for _, element := range value {
			if holdsNumber(element) {
				return true
			}
		}
	}
	return false
}

// copyValue copies maps and lists, so that a template can change what it was given.
func copyValue(value any) any {
	switch value := value.(type) {
	case []any:
		result := make([]any, len(value))
		for i, element := range value {
			result[i] = copyValue(element)
		}
		return result
	case map[string]any:
		result := make(map[string]any, len(value))
		for key, element := range value {
			result[key] = copyValue(element)
		}
		return result
	}
	return value
}
