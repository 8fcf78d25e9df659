package constraint

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// values are the values of the variables: one object for each object of the fleet, created once.
type values struct {
	*language
	subjects    Subjects
	environment ref.Val

	workspaces []ref.Val // as the fleet lists them
	hosts      []ref.Val // as the schedule lists them
	targets    []ref.Val

	workspaceOf []ref.Val // by deployment target
	hostOf      []int32   // by assignment
	targetOf    []int32
}

func newValues(l *language, subjects Subjects) *values {
	v := &values{language: l, subjects: subjects, environment: types.String(subjects.Fleet.Environment)}
	scheduled := subjects.Schedule
	hosts, targets := make(map[*schedule.Host]int32, len(scheduled.Hosts)), make(map[*schedule.Target]int32, len(scheduled.Targets))
	for i, host := range scheduled.Hosts {
		hosts[host] = int32(i)
	}
	for i, target := range scheduled.Targets {
		targets[target] = int32(i)
	}
	targetNames, hostValues := make([][]string, len(scheduled.Hosts)), make([][]ref.Val, len(scheduled.Targets))
	v.hosts = make([]ref.Val, len(scheduled.Hosts))
	clusters := map[string][]string{}
	for _, host := range scheduled.Hosts {
		if host.Cluster != nil {
			clusters[host.ClusterType.Name] = append(clusters[host.ClusterType.Name], host.Cluster.Name)
		}
	}
	for i, host := range scheduled.Hosts {
		v.hosts[i] = v.host(host, clusters[host.ClusterType.Name])
	}
	v.hostOf, v.targetOf = make([]int32, len(scheduled.Assignments)), make([]int32, len(scheduled.Assignments))
	for i, assignment := range scheduled.Assignments {
		host, target := hosts[assignment.Host], targets[assignment.Target]
		v.hostOf[i], v.targetOf[i] = host, target
		targetNames[host] = append(targetNames[host], assignment.Target.Name)
		hostValues[target] = append(hostValues[target], v.hosts[host])
	}
	for i, names := range targetNames {
		v.hosts[i].(*object).fields[hostTargets] = v.list(names)
	}
	v.targets = make([]ref.Val, len(scheduled.Targets))
	ofWorkspace := map[string][]string{}
	for i, target := range scheduled.Targets {
		v.targets[i] = v.target(target, hostValues[i])
		ofWorkspace[target.Workload.Workspace] = append(ofWorkspace[target.Workload.Workspace], target.Name)
	}
	byName := map[string]ref.Val{}
	for i := range subjects.Fleet.Workspaces {
		workspace := &subjects.Fleet.Workspaces[i]
		byName[workspace.Name] = v.workspace(workspace, ofWorkspace[workspace.Name])
		v.workspaces = append(v.workspaces, byName[workspace.Name])
	}
	v.workspaceOf = make([]ref.Val, len(scheduled.Targets))
	for i, target := range scheduled.Targets {
		name := target.Workload.Workspace
		if byName[name] == nil { // one that the fleet does not describe
			byName[name] = v.workspace(&fleet.Workspace{Name: name}, ofWorkspace[name])
		}
		v.workspaceOf[i] = byName[name]
	}
	return v
}

func (v *values) object(c *class) *object {
	return &object{class: c, kind: v.kinds[c.name], fields: make([]ref.Val, len(c.fields))}
}

func (v *values) list(list []string) ref.Val { return types.NewStringList(v.adapter, list) }

func (v *values) labels(labels map[string]string) ref.Val {
	return types.NewStringStringMap(v.adapter, labels)
}

func (v *values) free(values map[string]any) ref.Val {
	return types.NewStringInterfaceMap(v.adapter, values)
}

func (v *values) host(host *schedule.Host, ofType []string) ref.Val {
	o := v.object(v.vocabulary.host)
	cluster, clusters := "", ofType
	if host.Cluster != nil {
		cluster, clusters = host.Cluster.Name, []string{host.Cluster.Name}
	}
	taints := make([]ref.Val, len(host.Taints))
	for i, taint := range host.Taints {
		t := v.object(v.vocabulary.taint)
		t.fields[taintKey], t.fields[taintValue], t.fields[taintEffect] = types.String(taint.Key), types.String(taint.Value), types.String(taint.Effect)
		taints[i] = t
	}
	o.fields[hostName] = types.String(host.Name)
	o.fields[hostClusterType] = types.String(host.ClusterType.Name)
	o.fields[hostCluster] = types.String(cluster)
	o.fields[hostLabels] = v.labels(host.Labels)
	o.fields[hostTaints] = types.NewRefValList(v.adapter, taints)
	o.fields[hostReconciler] = types.String(host.ClusterType.Reconciler)
	o.fields[hostNamespaceService] = types.String(host.ClusterType.NamespaceService)
	o.fields[hostConfigType] = types.String(host.ClusterType.ConfigType)
	o.fields[hostParameters] = v.free(host.ClusterType.Parameters)
	o.fields[hostClusters] = v.list(clusters)
	return o
}

func (v *values) target(target *schedule.Target, hosts []ref.Val) ref.Val {
	o := v.object(v.vocabulary.target)
	configAs := []string(target.Target.Manifests.ConfigAs)
	if len(configAs) == 0 {
		configAs = []string{"configmap"}
	}
	o.fields[targetName] = types.String(target.Name)
	o.fields[targetShortName] = types.String(target.Target.Name)
	o.fields[targetWorkload] = types.String(target.Workload.Name)
	o.fields[targetWorkspace] = types.String(target.Workload.Workspace)
	o.fields[targetLabels] = v.labels(target.Labels)
	o.fields[targetNamespace] = types.String(target.Target.Namespace)
	o.fields[targetConfigAs] = v.list(configAs)
	o.fields[targetRequires] = v.list(target.Workload.Requires)
	o.fields[targetManifests] = v.manifests(target)
	o.fields[targetHosts] = types.NewRefValList(v.adapter, hosts)
	if target.Target.ManifestsPending {
		o.fields[targetConfigAs] = o.fields[targetManifests]
	}
	return o
}

func (v *values) manifests(target *schedule.Target) ref.Val {
	if target.Target.ManifestsPending {
		return unknown(fmt.Sprintf("the manifests of deployment target %q", target.Name))
	}
	m := &target.Target.Manifests
	o := v.object(v.vocabulary.manifests)
	for field, text := range map[int]string{
		manifestsStorage: m.Storage, manifestsRepo: m.Repo, manifestsBranch: m.Branch, manifestsTag: m.Tag, manifestsCommit: m.Commit,
		manifestsPath: m.Path, manifestsChart: m.Chart, manifestsVersion: m.Version, manifestsType: m.Type,
	} {
		o.fields[field] = types.String(text)
	}
	o.fields[manifestsParameters] = v.free(m.Parameters)
	return o
}

func (v *values) workspace(workspace *fleet.Workspace, targets []string) ref.Val {
	o := v.object(v.vocabulary.workspace)
	limits := make([]ref.Val, len(workspace.LimitRange))
	for i := range workspace.LimitRange {
		limit := &workspace.LimitRange[i]
		l := v.object(v.vocabulary.limit)
		l.fields[limitType] = types.String(limit.Type)
		l.fields[limitDefault], l.fields[limitDefaultRequest] = v.labels(limit.Default), v.labels(limit.DefaultRequest)
		l.fields[limitMax], l.fields[limitMin] = v.labels(limit.Max), v.labels(limit.Min)
		l.fields[limitMaxRatio] = v.labels(limit.MaxLimitRequestRatio)
		limits[i] = l
	}
	project := ""
	if workspace.ArgocdProject != nil {
		project = workspace.ArgocdProject.Name
	}
	o.fields[workspaceName] = types.String(workspace.Name)
	o.fields[workspaceLabels] = v.labels(workspace.Labels)
	o.fields[workspaceContributorGroups] = v.list(workspace.ContributorGroups)
	o.fields[workspaceReaderGroups] = v.list(workspace.ReaderGroups)
	o.fields[workspaceResourceQuota] = v.labels(workspace.ResourceQuota)
	o.fields[workspaceLimitRange] = types.NewRefValList(v.adapter, limits)
	o.fields[workspaceNetworkPolicy] = types.String(cmp.Or(workspace.NetworkPolicy, "none"))
	o.fields[workspaceServiceAccount] = types.String(workspace.ServiceAccount)
	o.fields[workspaceArgocdProject] = types.String(project)
	o.fields[workspaceTargets] = v.list(targets)
	return o
}

// snapshot of an assignment; nil where no values are at hand.
func (v *values) snapshot(assignment int) *hydrate.Snapshot {
	if v.subjects.Snapshots == nil {
		return nil
	}
	return v.subjects.Snapshots[assignment]
}

// config returns the values of a snapshot, or an unknown value.
func (v *values) config(snapshot *hydrate.Snapshot) any {
	if snapshot != nil && snapshot.Known {
		return snapshot.Values()
	}
	return v.unknownConfig(snapshot)
}

func (v *values) unknownConfig(snapshot *hydrate.Snapshot) ref.Val {
	var waits []string
	if snapshot != nil && v.subjects.Config != nil {
		for _, container := range snapshot.Containers() {
			if _, known := v.subjects.Config[container]; !known {
				waits = append(waits, fmt.Sprintf("config container %q", container))
			}
		}
	}
	if len(waits) == 0 {
		return unknown("configuration values")
	}
	return unknown(strings.Join(waits, ", "))
}

// assignment creates the object of an assignment. Its fields are set when they are read.
func (v *values) assignment(assignment *schedule.Assignment, snapshot *hydrate.Snapshot) ref.Val {
	o := v.object(v.vocabulary.assignment)
	o.makeField = func(field int) ref.Val {
		switch field {
		case assignmentKey:
			return types.String(assignment.Key())
		case assignmentHost:
			return types.String(assignment.Host.Name)
		case assignmentDeploymentTarget:
			return types.String(assignment.Target.Name)
		case assignmentNamespace:
			return types.String(assignment.Namespace)
		case assignmentPolicies:
			return v.list(assignment.Policies)
		case assignmentRequires:
			return v.list(assignment.Requires)
		case assignmentConfigContainers:
			if snapshot == nil {
				return unknown("configuration values")
			}
			return v.list(snapshot.Containers())
		default:
			if snapshot == nil || !snapshot.Known {
				return v.unknownConfig(snapshot)
			}
			return types.String(snapshot.Version)
		}
	}
	return o
}

// variables are the variables of one evaluation. They are used again for the next one.
type variables struct {
	*values
	workspace, host, target ref.Val
	assignment              ref.Val // nil until it is read
	config                  any     // likewise
	object                  map[string]any

	of       *schedule.Assignment
	snapshot *hydrate.Snapshot
}

// ResolveName returns the value of a variable. Rules have only variables that apply to them.
func (v *variables) ResolveName(name string) (any, bool) {
	switch name {
	case "environment":
		return v.environment, true
	case "workspace":
		return v.workspace, true
	case "host":
		return v.host, true
	case "target":
		return v.target, true
	case "assignment":
		if v.assignment == nil {
			v.assignment = v.values.assignment(v.of, v.snapshot)
		}
		return v.assignment, true
	case "config":
		if v.config == nil {
			v.config = v.values.config(v.snapshot)
		}
		return v.config, true
	case "object":
		return v.object, true
	}
	return nil, false
}

// Parent is nil: there are no other variables.
func (v *variables) Parent() interpreter.Activation { return nil }

// assign sets the variables to an assignment.
func (v *variables) assign(i int) {
	target := v.targetOf[i]
	v.host, v.target, v.workspace = v.hosts[v.hostOf[i]], v.targets[target], v.workspaceOf[target]
	v.of, v.snapshot = v.subjects.Schedule.Assignments[i], v.values.snapshot(i)
	v.assignment, v.config, v.object = nil, nil, nil
}
