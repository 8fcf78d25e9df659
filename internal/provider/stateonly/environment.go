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
	Schema: kind("environments", map[string]schema.Attribute{
		"gitops_repo": schemas.RequiredDynamic(described("environments", "gitops_repo")),
	}),
})
