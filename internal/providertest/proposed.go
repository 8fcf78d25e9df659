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
	return proposedAttributes(schema.ValueType(), schema.Attributes, prior, config)
}

func proposedAttributes(typ tftypes.Type, attributes []*tfprotov6.SchemaAttribute, prior, config tftypes.Value) tftypes.Value {
	was, wants := mapping(prior), mapping(config)
	merged := make(map[string]tftypes.Value, len(attributes))
	for _, attribute := range attributes {
		before, ok := was[attribute.Name]
		if !ok {
			before = tftypes.NewValue(attribute.ValueType(), nil)
		}
		configured := wants[attribute.Name]
		switch {
		case attribute.Computed && configured.IsNull() && !configuredBefore(attribute, before):
			merged[attribute.Name] = before
		case attribute.NestedType != nil && configured.IsKnown() && !configured.IsNull():
			merged[attribute.Name] = proposedNested(attribute.NestedType, before, configured)
		default:
			merged[attribute.Name] = configured
		}
	}
	return tftypes.NewValue(typ, merged)
}

// configuredBefore reports whether an optional attribute that is computed, too, was in the configuration: some
// of its nested attributes can come from nowhere else.
func configuredBefore(attribute *tfprotov6.SchemaAttribute, before tftypes.Value) bool {
	return attribute.Optional && attribute.NestedType != nil && holdsConfigured(attribute.NestedType, before)
}

func holdsConfigured(schema *tfprotov6.SchemaObject, value tftypes.Value) bool {
	for _, object := range objects(schema, value) {
		attributes := mapping(object)
		for _, attribute := range schema.Attributes {
			inner := attributes[attribute.Name]
			switch {
			case inner.IsNull():
			case !attribute.Computed, attribute.NestedType != nil && holdsConfigured(attribute.NestedType, inner):
				return true
			}
		}
	}
	return false
}

// objects are the objects of a nested attribute, whatever its nesting.
func objects(schema *tfprotov6.SchemaObject, value tftypes.Value) []tftypes.Value {
	switch schema.Nesting {
	case tfprotov6.SchemaObjectNestingModeSingle:
		return []tftypes.Value{value}
	case tfprotov6.SchemaObjectNestingModeMap:
		var elements []tftypes.Value
		by := mapping(value)
		for _, name := range names(by) {
			elements = append(elements, by[name])
		}
		return elements
	}
	return sequence(value)
}

// proposedNested merges nested objects by index or by key. Core correlates the elements of sets by a rule of
// thumb; no schema here needs it, so that sets are taken from the configuration.
func proposedNested(schema *tfprotov6.SchemaObject, prior, config tftypes.Value) tftypes.Value {
	if !prior.IsKnown() {
		prior = tftypes.NewValue(schema.ValueType(), nil)
	}
	switch schema.Nesting {
	case tfprotov6.SchemaObjectNestingModeSingle:
		return proposedAttributes(config.Type(), schema.Attributes, prior, config)
	case tfprotov6.SchemaObjectNestingModeMap:
		was, merged := mapping(prior), map[string]tftypes.Value{}
		for name, element := range mapping(config) {
			merged[name] = proposedElement(schema, was[name], element)
		}
		return tftypes.NewValue(config.Type(), merged)
	case tfprotov6.SchemaObjectNestingModeList:
		was, wants := sequence(prior), sequence(config)
		merged := make([]tftypes.Value, len(wants))
		for i, element := range wants {
			if merged[i] = element; i < len(was) {
				merged[i] = proposedElement(schema, was[i], element)
			}
		}
		return tftypes.NewValue(config.Type(), merged)
	}
	return config
}

func proposedElement(schema *tfprotov6.SchemaObject, prior, config tftypes.Value) tftypes.Value {
	if !config.IsKnown() || config.IsNull() {
		return config
	}
	return proposedAttributes(config.Type(), schema.Attributes, prior, config)
}
