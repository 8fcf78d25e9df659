package providertest

import (
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// proposed merges the configuration with what was there before, as core does for the provider to plan from:
// the configuration wins, and what is computed and not configured stays. A write-only attribute has its
// configured value here, and nowhere after.
func proposed(schema *tfprotov6.SchemaBlock, prior, config tftypes.Value) tftypes.Value {
	if config.IsNull() {
		return config
	}
	was, wants := mapping(prior), mapping(config)
	merged := make(map[string]tftypes.Value, len(schema.Attributes))
	for _, attribute := range schema.Attributes {
		merged[attribute.Name] = wants[attribute.Name]
		if !attribute.Computed || !merged[attribute.Name].IsNull() {
			continue
		}
		before, ok := was[attribute.Name]
		if !ok {
			before = tftypes.NewValue(attribute.ValueType(), nil)
		}
		merged[attribute.Name] = before
	}
	return tftypes.NewValue(schema.ValueType(), merged)
}
