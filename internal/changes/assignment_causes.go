package changes

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// causesOfAssignment returns why an assignment is in only one of the two versions of the fleet: the objects that
// it needs and that the other version does not have; else the objects that decide about it and have changed; else
// the policies whose placement chose other hosts.
func (r *reach) causesOfAssignment(key assignmentKey, added bool) []cause {
	assignment, in := r.current[key], r.after
	if !added {
		assignment, in = r.former[key], r.before
	}
	if assignment == nil {
		return nil
	}
	if r.differences == nil {
		if !added || r.before != nil {
			return nil
		}
		return r.assigningPolicies(assignment)
	}
	var causes []cause
	include := func(objects ...*object) {
		for _, object := range objects {
			if object != nil {
				causes = append(causes, object.cause)
			}
		}
	}
	clusterType, cluster := r.clusterTypes[assignment.Host.ClusterType.Name], r.clusters[clusterName(assignment)]
	workload, target := r.workloads[assignment.Target.Workload.Name], r.targets[assignment.Target.Name]
	if clusterType.isNewOrRemoved() {
		include(clusterType)
	} else if cluster.isNewOrRemoved() {
		include(cluster)
	}
	if target.isNewOrRemoved() {
		include(target)
	}
	policies := r.changedPolicies(assignment.Policies)
	if len(policies) == len(assignment.Policies) && !slices.ContainsFunc(policies, func(o *object) bool { return !o.isNewOrRemoved() }) {
		include(policies...)
	}
	if len(causes) > 0 {
		return causes
	}

	include(policies...)
	include(r.environment, r.assignments)
	include(r.excluders(assignment)...)
	if clusterType.has("labels", "taints") {
		include(clusterType)
	}
	if cluster.has("labels", "taints", "cluster_type") {
		include(cluster)
	}
	if workload.has("labels", "workspace") {
		include(workload)
	}
	if target.has("labels") {
		include(target)
	}
	if len(causes) > 0 {
		return causes
	}
	for _, name := range assignment.Policies {
		for i := range in.Fleet.TargetPolicies {
			if policy := &in.Fleet.TargetPolicies[i]; policy.Name == name && policy.Placement != nil {
				causes = append(causes, cause{kind: byPlacement, name: name})
			}
		}
	}
	return causes
}

// assigningPolicies returns the policies of the assignment as its causes, for when the version before is not known.
func (r *reach) assigningPolicies(assignment *schedule.Assignment) []cause {
	causes := make([]cause, 0, len(assignment.Policies))
	for _, policy := range assignment.Policies {
		causes = append(causes, cause{kind: byPolicy, name: policy})
	}
	return causes
}

func (r *reach) changedPolicies(names []string) []*object {
	var changed []*object
	for _, name := range names {
		if object := r.policies[name]; object != nil {
			changed = append(changed, object)
		}
	}
	return changed
}

// excluders returns the changed policies that exclude such an assignment in one of the versions.
func (r *reach) excluders(assignment *schedule.Assignment) []*object {
	if len(r.policies) == 0 {
		return nil
	}
	var found []*object
	for _, v := range []*Version{r.before, r.after} {
		for i := range v.Fleet.TargetPolicies {
			policy := &v.Fleet.TargetPolicies[i]
			object := r.policies[policy.Name]
			if object != nil && policy.Effect == "exclude" && !slices.Contains(found, object) && r.selects(policy, v.Fleet.Environment, assignment) {
				found = append(found, object)
			}
		}
	}
	return found
}

// selects says whether an excluding policy selects an assignment, by the scheduler's rules and the labels of
// the version that has the assignment.
func (r *reach) selects(policy *fleet.TargetPolicy, environment string, a *schedule.Assignment) bool {
	workload := a.Target.Workload
	if policy.Workspace != "" && policy.Workspace != workload.Workspace || (policy.ClusterSelector != nil) != (a.Host.Cluster != nil) {
		return false
	}
	ofHost := fleet.Labels{"environment": environment, "cluster-type": a.Host.ClusterType.Name}
	if a.Host.Cluster != nil {
		ofHost["cluster"] = a.Host.Cluster.Name
	}
	ofWorkload := fleet.Labels{"environment": environment, "workspace": workload.Workspace, "workload": workload.Name}
	host := fleet.Merge(a.Host.Labels, ofHost)
	for _, one := range []struct {
		selector *fleet.Selector
		labels   fleet.Labels
	}{
		{policy.WorkloadSelector, fleet.Merge(workload.Labels, ofWorkload)},
		{policy.DeploymentTargetSelector, fleet.Merge(a.Target.Labels, ofWorkload, fleet.Labels{"deployment-target": a.Target.Name})},
		{policy.ClusterTypeSelector, host},
		{policy.ClusterSelector, host},
	} {
		if one.selector == nil {
			continue
		}
		requirements, findings := r.compile(one.selector)
		if len(findings) > 0 || !requirements.Matches(one.labels) {
			return false
		}
	}
	return true
}

type compiledSelector struct {
	requirements fleet.Requirements
	findings     fleet.Findings
}

// compile compiles each selector once.
func (r *reach) compile(selector *fleet.Selector) (fleet.Requirements, fleet.Findings) {
	known, ok := r.selectors[selector]
	if !ok {
		known.requirements, known.findings = selector.Compile()
		r.selectors[selector] = known
	}
	return known.requirements, known.findings
}
