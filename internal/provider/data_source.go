package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
)

// computedText is a computed text attribute of a data source.
func computedText(what string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: what}
}
