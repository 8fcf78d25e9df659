package fleet

import (
	"cmp"
)

// TargetPolicy assigns deployment targets to cluster types or clusters.
type TargetPolicy struct {
	Name                     string       `json:"name"`
	Workspace                string       `json:"workspace,omitempty"` // empty: any
	WorkloadSelector         *Selector    `json:"workload_selector,omitempty"`
	DeploymentTargetSelector *Selector    `json:"deployment_target_selector,omitempty"`
	ClusterTypeSelector      *Selector    `json:"cluster_type_selector,omitempty"`
	ClusterSelector          *Selector    `json:"cluster_selector,omitempty"`
	Tolerations              []Toleration `json:"tolerations,omitempty"`
	Placement                *Placement   `json:"placement,omitempty"`
	Effect                   string       `json:"effect"` // "schedule" or "exclude"
}

var targetPolicyKind = defineKind(Table{
	Name: "target policy",
	Meaning: "Selects deployment targets, and the cluster types or clusters that they go to. Without a " +
		"`cluster_selector` the hosts are cluster types; with one, each selected cluster is a host of its own. One of the two must be given.",
	Some: []string{"cluster_type_selector", "cluster_selector"},
}, func(p *TargetPolicy) []row {
	return []row{
		namedAttribute(&p.Name, subdomainForm, "Name of the policy, a DNS subdomain."),
		unstoredAttribute(environmentAttribute),
		textAttribute(&p.Workspace, Attribute{Meaning: "Only deployment targets of this workspace. Unset: of any."}),
		selectorAttribute(&p.WorkloadSelector, workloadSelector),
		selectorAttribute(&p.DeploymentTargetSelector, targetSelector),
		selectorAttribute(&p.ClusterTypeSelector, clusterTypeSelector),
		selectorAttribute(&p.ClusterSelector, clusterSelector),
		listAttribute(&p.Tolerations, tolerationKind, Attribute{
			Meaning: "The taints of hosts that this policy ignores, by Kubernetes' rules.",
		}),
		objectAttribute(&p.Placement, placementKind, Attribute{
			Meaning: "The policy goes to some of the hosts that are selected, for each deployment target separately. Unset: every host.",
		}),
		textAttribute(&p.Effect, Attribute{
			Default: "schedule", Allowed: []string{"schedule", "exclude"},
			Meaning: "`exclude` removes what other policies assign.",
		}),
	}
}).checkedBy(func(o *ObjectReader, _ *TargetPolicy) {
	if o.fields["cluster_type_selector"] == nil && o.fields["cluster_selector"] == nil {
		o.Report("cluster_type_selector", "a target policy without a host selector selects no host: "+
			"give cluster_type_selector or cluster_selector; {} matches every host")
	}
})

func decodeTargetPolicy(d *decoder, o *ObjectReader) belonging {
	policy := targetPolicyKind.decode(o)
	belongs := keep(d, o, "target_policies", &d.Fleet.TargetPolicies, policy, policy.Name)
	if belongs == inEnvironment {
		d.refer(o.At("workspace"), "workspaces", policy.Workspace)
	}
	return belongs
}

// Placement chooses among the hosts of a target policy, for each deployment target.
type Placement struct {
	NumberOfHosts int          `json:"number_of_hosts"` // at least 1
	Prefer        []Preference `json:"prefer,omitempty"`
	Spread        []Spread     `json:"spread,omitempty"`
}

// Preference adds weight to hosts. More weight is chosen first.
type Preference struct {
	Selector *Selector `json:"selector"`
	Weight   int       `json:"weight"`
}

// Spread keeps the numbers of chosen hosts per value of a label at most MaxSkew apart while hosts are left. Hosts
// without the label count as one more value.
type Spread struct {
	Key     string `json:"key"`
	MaxSkew int    `json:"max_skew"` // at least 1
}

// maxWeight keeps sums from overflowing.
const maxWeight = 1000

var placementKind = defineKind(Table{
	Name: "placement",
	Meaning: "Chooses among the hosts that a target policy selects. Hosts of more weight come first. When a host is added or removed, as " +
		"few deployment targets as possible move.",
}, func(p *Placement) []row {
	return []row{
		wholeAttribute(&p.NumberOfHosts, Attribute{
			Required: true, Least: 1, Most: maxWhole,
			Meaning: "How many hosts each deployment target goes to.",
		}),
		listAttribute(&p.Prefer, preferenceKind, Attribute{Meaning: "Which hosts come first."}),
		listAttribute(&p.Spread, spreadKind, Attribute{Meaning: "Over which labels hosts are spread."}),
	}
}).checkedBy(func(o *ObjectReader, _ *Placement) {
	o.Require("number_of_hosts", "is required: without placement, a policy assigns to every host that it selects")
})

var preferenceKind = defineKind(Table{
	Name:    "preference",
	Meaning: "Adds its weight to every host that its selector matches.",
}, func(p *Preference) []row {
	return []row{
		selectorAttribute(&p.Selector, Attribute{Required: true, Meaning: "Hosts with matching labels."}),
		wholeAttribute(&p.Weight, Attribute{
			Default: 1, Least: -maxWeight, Most: maxWeight,
			Meaning: "The weight that is added; hosts with a negative weight come last.",
		}),
	}
}).checkedBy(func(o *ObjectReader, _ *Preference) { o.Require("selector", "is required") })

var spreadKind = defineKind(Table{
	Name:    "spread",
	Meaning: "Keeps the numbers of hosts for each value of a label close to each other. Hosts without the label count as one more value.",
}, func(s *Spread) []row {
	return []row{
		textAttribute(&s.Key, Attribute{Required: true, Form: labelKeyForm, Meaning: "Key of the label."}),
		wholeAttribute(&s.MaxSkew, Attribute{Default: 1, Least: 1, Most: maxWhole, Meaning: "How far the numbers may be apart."}),
	}
})

// ExplicitAssignment replaces scheduling. Either ClusterType or Cluster is set.
type ExplicitAssignment struct {
	ClusterType      string `json:"cluster_type,omitempty"`
	Cluster          string `json:"cluster,omitempty"`
	DeploymentTarget string `json:"deployment_target"`
}

var explicitKind = defineKind(Table{
	Name:    "assignment",
	Meaning: "One deployment target on one host: a cluster type, or a cluster.",
	Some:    []string{"cluster_type", "cluster"}, One: true,
}, func(a *ExplicitAssignment) []row {
	return []row{
		textAttribute(&a.ClusterType, Attribute{Meaning: "Name of the cluster type that it goes to."}),
		textAttribute(&a.Cluster, Attribute{Meaning: "Name of the cluster that it goes to."}),
		textAttribute(&a.DeploymentTarget, Attribute{
			Required: true, Meaning: "Full name of the deployment target, `<workload>-<target>`.",
		}),
	}
})

func decodeExplicitAssignment(d *decoder, o *ObjectReader) belonging {
	assignment := explicitKind.decode(o)
	o.Finish()
	d.Fleet.Assignments = append(d.Fleet.Assignments, assignment)
	ofType, ofCluster := assignment.ClusterType != "", assignment.Cluster != ""
	if ofType == ofCluster && (!ofType || isSet(assignment.ClusterType) && isSet(assignment.Cluster)) {
		o.Report("cluster_type", "give either cluster_type or cluster")
		return inEnvironment
	}
	d.refer(o.At("cluster_type"), "cluster_types", assignment.ClusterType)
	d.refer(o.At("cluster"), "clusters", assignment.Cluster)
	d.refer(o.At("deployment_target"), deploymentTargets, assignment.DeploymentTarget)
	if !o.unknown {
		d.registerAt(objectKey{"assignments", assignment.key()}, o.path, o.path)
	}
	return inEnvironment
}

func (a ExplicitAssignment) key() string {
	if a.Cluster != "" {
		return "clusters/" + a.Cluster + "/" + a.DeploymentTarget
	}
	return a.ClusterType + "/" + a.DeploymentTarget
}

// CompareExplicitAssignments sorts clusters first.
func CompareExplicitAssignments(a, b ExplicitAssignment) int {
	return cmp.Or(cmp.Compare(a.ClusterType, b.ClusterType), cmp.Compare(a.Cluster, b.Cluster),
		cmp.Compare(a.DeploymentTarget, b.DeploymentTarget))
}
