package stateonly

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
)

// TargetPolicy returns the resource.
var TargetPolicy = newResource(Object{
	Name:       "target_policy",
	collection: "target_policies",
	Schema: schema.Schema{
		Description: "target policy",
		MarkdownDescription: "Selects deployment targets, and the cluster types or clusters that they go to. Without a " +
			"`cluster_selector` the hosts are cluster types; with one, each selected cluster is a host of its own.",
		Attributes: map[string]schema.Attribute{
			"name":                       schemas.NameAttribute("Name of the policy, a DNS subdomain."),
			"environment":                schemas.EnvironmentAttribute(false),
			"workspace":                  schema.StringAttribute{Optional: true, MarkdownDescription: "Only deployment targets of this workspace. Unset: of any."},
			"workload_selector":          schemas.SelectorAttribute("Only deployment targets of workloads with matching labels."),
			"deployment_target_selector": schemas.SelectorAttribute("Only deployment targets with matching labels: their own and their workload's, their own winning."),
			"cluster_type_selector":      schemas.SelectorAttribute("Cluster types with matching labels. This or `cluster_selector` must be given."),
			"cluster_selector":           schemas.SelectorAttribute("Clusters with matching labels: their own and their type's, their own winning."),
			"tolerations": schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "List of `{key, operator, value, effect}`: the taints of hosts that this policy ignores, " +
					"by Kubernetes' rules. `operator` is `Equal` (default) or `Exists`.",
			},
			"placement": schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "`{number_of_hosts, prefer = [{selector, weight}], spread = [{key, max_skew}]}`: goes to some of the hosts that " +
					"are selected, for each deployment target separately. Hosts of more weight come first; `spread` keeps the numbers of hosts for " +
					"each value of a label at most `max_skew` apart. When a host is added or removed, as few deployment targets as possible move. Unset: every host.",
			},
			"effect": schemas.DefaultAttribute("schedule", "`exclude` removes what other policies assign."),
		},
	},
})
