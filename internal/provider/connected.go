package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
)

// connected is what data sources have of the provider; the connection is nil before that is configured.
type connected struct {
	connection *connection
}

// Configure takes over the provider's connection.
func (d *connected) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	d.connection, _ = req.ProviderData.(*connection)
}
