package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// computedText is an attribute of a data source that is a text which it gives.
func computedText(what string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: what}
}

// modelAttribute is the fleet of a data source that needs who goes where and no more: Terraform drops the rest, so
// that a value that is not known yet never defers the data source to apply. further is said of the model.
func modelAttribute(further string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Required:            true,
		MarkdownDescription: "What `provider::flotilla::fleet` or `control_plane` returned, through a `local`.",
		Attributes: map[string]schema.Attribute{
			"format":      schema.StringAttribute{Optional: true, MarkdownDescription: "Format of the fleet."},
			"environment": schema.StringAttribute{Required: true, MarkdownDescription: "Name of the environment."},
			"model":       schema.StringAttribute{Required: true, MarkdownDescription: "Canonical JSON of the fleet. The state keeps its hash" + further + "."},
		},
	}
}

// checkLimit finds a limit that lets nothing through.
func checkLimit(limit types.Int64, diagnostics *diag.Diagnostics) {
	if !limit.IsNull() && limit.ValueInt64() < 1 {
		diagnostics.AddAttributeError(path.Root("limit"), "Invalid limit", "The limit must be at least 1.")
	}
}
