package stateonly

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
)

// Workspace returns the resource.
var Workspace = newResource(Object{
	Name:       "workspace",
	collection: "workspaces",
	Schema: schema.Schema{
		Description: "workspace",
		MarkdownDescription: "A team: its workloads, the groups that may use its namespaces, its quota. The template of type `policy` " +
			"renders role bindings, quota and network policy into every namespace of the team.",
		Attributes: map[string]schema.Attribute{
			"name":               schemas.NameAttribute("Name of the workspace, a DNS label."),
			"contributor_groups": schemas.NamesAttribute("Groups that may change objects in the team's namespaces."),
			"reader_groups":      schemas.NamesAttribute("Groups that may read objects in the team's namespaces."),
			"environments":       schemas.NamesAttribute("Environments that the team may deploy to. Unset: all."),
			"resource_quota": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Hard limits of each namespace, as in a ResourceQuota: `{\"requests.cpu\" = \"2\"}`.",
			},
			"limit_range": schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "Limits of what runs in each namespace, as in a LimitRange: list of " +
					"`{type, default, default_request, max, min, max_limit_request_ratio}`, each but `type` a map of quantities. " +
					"`type` is `Container` (default), `Pod` or `PersistentVolumeClaim`.",
			},
			"network_policy": schemas.DefaultAttribute("none", "`isolated` lets in traffic from the team's own namespaces alone, those with the label "+
				"`workspace`; `none` does nothing."),
			"service_account": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Service account that Flux impersonates when it reconciles the team's workloads, in the namespace `flux-system`; " +
					"for Rancher Fleet that of the cluster's agent. With Config Sync, which has no such account, they may do no more than the cluster role `admin` in their namespace. Unset: they have the rights of the reconciler.",
			},
			"argocd_project": schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "Argo CD project of the team's Applications: its name, or `{name, render}`. With `render = true` Flotilla writes the " +
					"AppProject too, which allows the sources and namespaces of the team's own deployment targets and no others. Unset: `default`.",
			},
			"secrets": schemas.NamesAttribute("Names of the Secrets and ConfigMaps, in the namespace of the reconciler's objects, that the team's workloads may name " +
				"in their parameters. No other workspace's workloads can name them then."),
			"sources": schemas.NamesAttribute("Beginnings of URLs, such as `https://git.example.com/team`, that the team's manifests come from. " +
				"Unset: any."),
			"parameters": schemas.NamesAttribute("Paths of fields, such as `helm_release.valuesFrom`, that the team's workloads may set although they reach " +
				"Secrets, accounts, clusters, namespaces or other content; or `namespace`, `project`, `secret_ref`. With this, `secrets`, `sources`, " +
				"`service_account` or a project that is rendered, all that is not allowed so is an error at plan."),
			"labels": schemas.LabelsAttribute(),
		},
	},
})
