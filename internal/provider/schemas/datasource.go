package schemas

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
)

// ComputedText is a computed text attribute of a data source.
func ComputedText(what string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: what}
}
