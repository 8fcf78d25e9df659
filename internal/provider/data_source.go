package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// computedText is a computed text attribute of a data source.
func computedText(what string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: what}
}

// modelAttribute is the fleet of a data source that needs only the model. Terraform drops the other attributes, so that
// an unknown value in them does not defer the data source to apply. further is added to the description of the model.
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

// checkLimit reports a limit that is less than 1.
func checkLimit(limit types.Int64, diagnostics *diag.Diagnostics) {
	if !limit.IsNull() && limit.ValueInt64() < 1 {
		diagnostics.AddAttributeError(path.Root("limit"), "Invalid limit", "The limit must be at least 1.")
	}
}
