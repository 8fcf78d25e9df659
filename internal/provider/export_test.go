package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// ForTest is the provider, which reaches local repositories without processes: those that git would start for each request
// take most of the time of tests; see [gittest.GitServes].
func ForTest() provider.Provider { return forTest(nil, git.ConnectorOptions{}) }

// StartAt starts a provider that has another clock.
func StartAt(clock compliance.Clock) func() (tfprotov6.ProviderServer, error) {
	return StartWith(clock, git.ConnectorOptions{})
}

// StartWith starts a provider that has another clock, nil for the machine's, and these options of its Git client.
func StartWith(clock compliance.Clock, options git.ConnectorOptions) func() (tfprotov6.ProviderServer, error) {
	return func() (tfprotov6.ProviderServer, error) { return Server(forTest(clock, options)), nil }
}

func forTest(clock compliance.Clock, options git.ConnectorOptions) provider.Provider {
	options.Local = gittest.Options().Local
	return &flotilla{version: "test", clock: clock, git: options}
}
