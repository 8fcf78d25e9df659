package stateonly

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
)

// Environment returns the resource.
var Environment = newResource(Object{
	Name:       "environment",
	collection: "environments",
	check: func(value any) fleet.Findings {
		return repository.CheckGitopsRepo("gitops_repo", value.(map[string]any)["gitops_repo"])
	},
	Schema: schema.Schema{
		Description:         "environment",
		MarkdownDescription: "A stage of the chain: dev, stage, prod. It names a location in a GitOps repository.",
		Attributes: map[string]schema.Attribute{
			"name":        schemas.NameAttribute("Name of the environment, a DNS label."),
			"labels":      schemas.LabelsAttribute(),
			"description": schemas.DescriptionAttribute(),
			"gitops_repo": schema.DynamicAttribute{
				Required: true,
				MarkdownDescription: "Where the environment is delivered to: `{url, branch, path}`. `url` is http(s), ssh, a local path (`~/` is your home directory) or " +
					"`file://`, without credentials; `path` is a folder of the repository, unset: its root.",
			},
		},
	},
})
