package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/provider"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// NewWithGit returns a constructor of a provider whose Git client is made otherwise.
func NewWithGit(options ...git.Option) func() provider.Provider {
	return func() provider.Provider { return &flotilla{version: "test", git: options} }
}
