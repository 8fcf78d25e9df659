// Package frame has the code that all data sources and resources share around their own functions.
package frame

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
)

var (
	_ datasource.DataSourceWithConfigure      = &servedDataSource[struct{}]{}
	_ datasource.DataSourceWithValidateConfig = &servedDataSource[struct{}]{}
)

// DataSource is a data source with the configuration and result M.
type DataSource[M any] struct {
	Name   string // without the provider's name
	Schema schema.Schema
	// Validate checks the configuration without servers; parts may be unknown.
	Validate func(*M, *diag.Diagnostics)
	// Read sets the computed attributes. If the schema has an attribute timeouts, the context ends after its time, or after
	// the default and Longer.
	Read   func(context.Context, *connection.Connection, *M, *diag.Diagnostics)
	Longer func(*M) time.Duration // may be nil
}

// New returns the framework's data source.
func (d DataSource[M]) New() datasource.DataSource { return &servedDataSource[M]{is: d} }

type servedDataSource[M any] struct {
	is         DataSource[M]
	connection *connection.Connection
}

func (d *servedDataSource[M]) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + d.is.Name
}

func (d *servedDataSource[M]) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = d.is.Schema
}

func (d *servedDataSource[M]) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	d.connection, _ = req.ProviderData.(*connection.Connection)
}

func (d *servedDataSource[M]) ValidateConfig(
	ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse,
) {
	if d.is.Validate == nil {
		return
	}
	model := new(M)
	if resp.Diagnostics.Append(req.Config.Get(ctx, model)...); !resp.Diagnostics.HasError() {
		untype(model)
		d.is.Validate(model, &resp.Diagnostics)
	}
}

func (d *servedDataSource[M]) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	if !checkConfigured(d.connection, &resp.Diagnostics) {
		return
	}
	defer func() { d.connection.Said.Reduce(&resp.Diagnostics) }()
	model := new(M)
	if resp.Diagnostics.Append(req.Config.Get(ctx, model)...); resp.Diagnostics.HasError() {
		return
	}
	retype := untype(model)
	if _, bounded := req.Config.Schema.GetAttributes()["timeouts"]; bounded {
		var given types.Dynamic
		resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("timeouts"), &given)...)
		untype(&given)
		deadlines := timeouts.Decode(timeouts.ReadTable, given, &resp.Diagnostics)
		if given.IsNull() && d.is.Longer != nil {
			deadlines[timeouts.Read] += d.is.Longer(model)
		}
		var cancel context.CancelFunc
		ctx, cancel = deadlines.During(ctx, timeouts.Read, &d.connection.Budget)
		defer cancel()
	}
	d.is.Read(ctx, d.connection, model, &resp.Diagnostics)
	timeouts.AddOver(ctx, &resp.Diagnostics)
	if !resp.Diagnostics.HasError() {
		retype()
		resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
	}
}

// checkConfigured reports a call without a provider. Terraform only validates before it has configured the provider.
func checkConfigured(c *connection.Connection, diagnostics *diag.Diagnostics) bool {
	if c == nil {
		diagnostics.AddError("Provider is not configured", "The provider must be configured before anything is planned, read or written.")
	}
	return c != nil
}
