package fleet

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
	belongs, isCertain := keep(d, o, "target_policies", &d.Fleet.TargetPolicies, policy, policy.Name)
	if isCertain {
		d.refer(o.At("workspace"), "workspaces", policy.Workspace)
	}
	return belongs
}
