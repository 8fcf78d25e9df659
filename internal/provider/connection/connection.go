// Package connection is what resources and data sources have of the configured provider: repositories, clusters, caches.
package connection

import (
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/measure"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact/origin"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/source"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/once"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/budget"
)

// Connection is what resources and data sources have of the provider.
type Connection struct {
	Delivery *delivery.Service
	Sources  *source.Client
	// Artifacts asks what manifests point to.
	Artifacts *origin.Client
	// complete is false while a credential is unknown, so that no request can be sent yet.
	Complete bool
	Clusters Clusters
	// Measure asks servers for figures; nil while a credential for them is unknown.
	Measure *measure.Measurer
	Release string
	Fleets  pipeline.Cache
	Agents  agent.Cache
	// createdObjects are the objects of the agents that this process has created, by cluster and object.
	CreatedObjects sync.Map
	// plannedRoots are the objects that follow folders, of the agents that this process has planned.
	PlannedRoots sync.Map
	Clock        compliance.Clock // nil: the wall clock
	// Budget records what reading what workloads name takes.
	Budget budget.Ledger
	// Said is what was said of fleets and repositories, which several objects have.
	Said once.Memory
}

// CanAsk says whether repositories and Git hosts can be asked already.
func (c *Connection) CanAsk() bool { return c != nil && c.Complete }

// Now is the time, in whole seconds of UTC.
func (c *Connection) Now() time.Time {
	now := time.Now()
	if c != nil && c.Clock != nil {
		now = c.Clock.Now()
	}
	return now.UTC().Truncate(time.Second)
}

// Ledger returns the budget; before the provider is configured, one that nobody else has.
func (c *Connection) Ledger() *budget.Ledger {
	if c == nil {
		return &budget.Ledger{}
	}
	return &c.Budget
}

// Reduce says once what other objects have said, too.
func (c *Connection) Reduce(diagnostics *diag.Diagnostics) {
	if c == nil {
		(*once.Memory)(nil).Reduce(diagnostics)
		return
	}
	c.Said.Reduce(diagnostics)
}

// UserAgent is the User-Agent of requests: the provider, and its release.
func UserAgent(release string) string { return "terraform-provider-flotilla/" + release }

// Compute schedules and hydrates a fleet, and compiles its templates. It returns nil after an error.
func (c *Connection) Compute(value fleet.Value, diagnostics *diag.Diagnostics) *pipeline.Computation {
	compute := pipeline.Compute
	if c != nil {
		compute = c.Fleets.Compute
	}
	result, found := compute(value)
	fleetvalue.AddErrors(diagnostics, found)
	return result
}
