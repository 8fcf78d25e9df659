package providertest

import (
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// propose merges configuration and prior value like core: the configuration wins, and unconfigured computed values stay.
// Only a proposed value has write-only attributes.
func propose(schema *tfprotov6.SchemaBlock, prior, config tftypes.Value) tftypes.Value {
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
