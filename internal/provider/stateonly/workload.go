package stateonly

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
)

// Workload returns the resource.
var Workload = newResource(Object{
	Name:       "workload",
	collection: "workloads",
	Schema: schema.Schema{
		Description:         "workload",
		MarkdownDescription: "An application or a platform service, owned by a workspace, with its deployment targets in every environment.",
		Attributes: map[string]schema.Attribute{
			"name":      schemas.NameAttribute("Name of the workload, a DNS label."),
			"workspace": schema.StringAttribute{Required: true, MarkdownDescription: "Name of the workspace that owns it."},
			"labels":    schemas.LabelsAttribute(),
			"requires":  schemas.NamesAttribute("Names of workloads that must run on every host that this one runs on."),
			"deployment_targets": schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "Map of `{environment, labels, namespace, manifests, config_as, render, config_schema}` by name; the full name of a deployment target is " +
					"`<workload>-<target>`, at most 63 characters. `namespace` is where it runs, on each of its hosts; without it that is " +
					"`<environment>-<host>-<deployment target>`. Deployment targets that set the same one share it, and it stays when they go; those of agents, such as `flux-system`, and of Kubernetes cannot be set. " +
					"`manifests` says where the workload's own manifests are: " +
					"`{storage, repo, branch, tag, commit, path, chart, version, type, parameters}`, with `storage` one of `git` (default), " +
					"`helm` and `oci`. `parameters` reach every field of what is rendered: see the guide \"What is rendered\". `config_as` lists the forms " +
					"in which it gets its configuration: `configmap` (default; `configmap:<name>` gives it another name), `values` (among a chart's " +
					"values; `values:<key>` below a key), `substitute` (Flux substitutes it for variables) and `secret` (the Secret of references to secrets, which is there with `configmap`, too; `secret:<name>` gives it another name). `render` is how far its manifests are rendered, in place of what the cluster type has. `config_schema` is the JSON Schema that its values must satisfy.",
			},
		},
	},
})
