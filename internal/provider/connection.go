package provider

import (
	"context"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/flotilla/terraform-provider-flotilla/internal/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/source"
)

// connection is what resources and data sources have of the provider.
type connection struct {
	delivery *delivery.Client
	sources  *source.Client
	// complete is false while a credential is unknown, so that no request can be sent yet.
	complete bool
	clusters clusterSettings
	release  string
	fleets   pipeline.Cache
	agents   agent.Cache
	// createdObjects are the objects of the agents that this process has created, by cluster and object.
	createdObjects sync.Map
	// plannedRoots are the objects that follow folders, of the agents that this process has planned.
	plannedRoots sync.Map
	clock        compliance.Clock // nil: the wall clock
}

// canAsk says whether repositories and Git hosts can be asked already.
func (c *connection) canAsk() bool { return c != nil && c.complete }

// userAgent is the User-Agent of requests: the provider, and its release.
func userAgent(release string) string { return "terraform-provider-flotilla/" + release }

// compute schedules and hydrates a fleet, and compiles its templates. It returns nil after an error.
func (c *connection) compute(value fleet.Value, diagnostics *diag.Diagnostics) *pipeline.Result {
	compute := pipeline.Compute
	if c != nil {
		compute = c.fleets.Compute
	}
	result, found := compute(value)
	addErrors(diagnostics, found)
	return result
}

// connected is what data sources have of the provider; the connection is nil before that is configured.
type connected struct {
	connection *connection
}

// Configure takes over the provider's connection.
func (d *connected) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	d.connection, _ = req.ProviderData.(*connection)
}
