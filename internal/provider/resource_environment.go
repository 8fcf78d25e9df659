package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

var environmentResource = newStateOnly(object{
	name:       "environment",
	collection: "environments",
	check: func(value any) fleet.Findings {
		return checkGitopsRepo("gitops_repo", value.(map[string]any)["gitops_repo"])
	},
	schema: schema.Schema{
		Description:         "environment",
		MarkdownDescription: "A stage of the chain: dev, stage, prod. It names a location in a GitOps repository.",
		Attributes: map[string]schema.Attribute{
			"name":        nameAttribute("Name of the environment, a DNS label."),
			"labels":      labelsAttribute(),
			"description": descriptionAttribute(),
			"gitops_repo": schema.DynamicAttribute{
				Required: true,
				MarkdownDescription: "Where the environment is delivered to: `{url, branch, path}`. `url` is http(s), ssh, a local path or " +
					"`file://`, without credentials; `path` is a folder of the repository, unset: its root.",
			},
		},
	},
})
