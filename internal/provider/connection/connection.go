// Package connection has the configured provider: repositories, clusters and caches.
package connection

import (
	"context"
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
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// Connection is the configured provider.
type Connection struct {
	Delivery *delivery.Service
	Sources  *source.FileReader
	// Artifacts resolves and fetches the artifacts of manifests.
	Artifacts *origin.Resolver
	// Complete is false while a credential is unknown.
	Complete bool
	Clusters Clusters
	// Measure queries measuring servers; nil while a credential for them is unknown.
	Measure *measure.Measurer
	Release string
	Fleets  pipeline.Cache
	Agents  agent.Cache
	// CreatedObjects are the agent objects that this process has created.
	CreatedObjects sync.Map
	// PlannedRoots are the folder-following objects that this process has planned.
	PlannedRoots sync.Map
	Clock        compliance.Clock
	// Budget records the time spent on reading artifacts.
	Budget budget.Ledger
	// Said remembers warnings and errors that several objects share.
	Said once.Memory
}

// CanAsk reports whether requests to repositories and Git hosts are possible already.
func (c *Connection) CanAsk() bool { return c.Complete }

// Now returns the time in whole seconds of UTC.
func (c *Connection) Now() time.Time { return c.Clock.Now().UTC().Truncate(time.Second) }

// WallClock is the clock of a run.
type WallClock struct{}

// Now returns the time.
func (WallClock) Now() time.Time { return time.Now() }

// Sleep returns after d or when the context ends.
func (WallClock) Sleep(ctx context.Context, d time.Duration) {
	_ = wait.For(ctx, d) // sleeping code looks at the context
}

// UserAgent returns the User-Agent of requests, with the release.
func UserAgent(release string) string { return "terraform-provider-flotilla/" + release }

// Compute schedules and hydrates a fleet, and compiles its templates. It returns nil after an error.
func (c *Connection) Compute(value fleet.Value, diagnostics *diag.Diagnostics) *pipeline.Computation {
	result, found := c.Fleets.Compute(value)
	fleetvalue.AddErrors(diagnostics, found)
	return result
}
