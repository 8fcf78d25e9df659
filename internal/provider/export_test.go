package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/flotilla/terraform-provider-flotilla/internal/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// NewWithGit returns a constructor of a provider whose Git client is made otherwise.
func NewWithGit(options ...git.Option) func() provider.Provider {
	return func() provider.Provider { return &flotilla{version: "test", git: options} }
}

// StartAt starts a provider that has another clock, and whose Git client is made otherwise.
func StartAt(clock compliance.Clock, options ...git.Option) func() (tfprotov6.ProviderServer, error) {
	return func() (tfprotov6.ProviderServer, error) {
		return Server(&flotilla{version: "test", clock: clock, git: options}), nil
	}
}
