package provider

import (
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/flotilla/terraform-provider-flotilla/internal/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// StartAt starts a provider that has another clock.
func StartAt(clock compliance.Clock) func() (tfprotov6.ProviderServer, error) {
	return StartWith(clock, git.Options{})
}

// StartWith starts a provider that has another clock, nil for the machine's, and these options of its Git client.
func StartWith(clock compliance.Clock, options git.Options) func() (tfprotov6.ProviderServer, error) {
	return func() (tfprotov6.ProviderServer, error) {
		return Server(&flotilla{version: "test", clock: clock, git: options}), nil
	}
}
