// Package schemas has attributes that several resources or data sources share.
package schemas

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// They serve data sources and actions, too: the framework has the same interface for all.

// RequiredText is a required text.
func RequiredText(what string) schema.StringAttribute {
	return schema.StringAttribute{Required: true, MarkdownDescription: what}
}

// OptionalText is an optional text.
func OptionalText(what string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: what}
}

// ComputedText is a computed text.
func ComputedText(what string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: what}
}

// RequiredDynamic is a required value of any type.
func RequiredDynamic(what string) schema.DynamicAttribute {
	return schema.DynamicAttribute{Required: true, MarkdownDescription: what}
}

// OptionalDynamic is an optional value of any type.
func OptionalDynamic(what string) schema.DynamicAttribute {
	return schema.DynamicAttribute{Optional: true, MarkdownDescription: what}
}

// ComputedDynamic is a computed value of any type.
func ComputedDynamic(what string) schema.DynamicAttribute {
	return schema.DynamicAttribute{Computed: true, MarkdownDescription: what}
}

// RequiredWriteOnly is of any type, and in no plan and no state.
func RequiredWriteOnly(what string) schema.DynamicAttribute {
	return schema.DynamicAttribute{Required: true, WriteOnly: true, MarkdownDescription: what}
}

// OptionalWriteOnly is the same, optional.
func OptionalWriteOnly(what string) schema.DynamicAttribute {
	return schema.DynamicAttribute{Optional: true, WriteOnly: true, MarkdownDescription: what}
}

// OptionalBool is an optional bool.
func OptionalBool(what string) schema.BoolAttribute {
	return schema.BoolAttribute{Optional: true, MarkdownDescription: what}
}

// ComputedBool is a computed bool.
func ComputedBool(what string) schema.BoolAttribute {
	return schema.BoolAttribute{Computed: true, MarkdownDescription: what}
}

// OptionalWhole is an optional whole number.
func OptionalWhole(what string) schema.Int64Attribute {
	return schema.Int64Attribute{Optional: true, MarkdownDescription: what}
}

// ComputedWhole is a computed whole number.
func ComputedWhole(what string) schema.Int64Attribute {
	return schema.Int64Attribute{Computed: true, MarkdownDescription: what}
}

// OptionalTexts is an optional list of texts.
func OptionalTexts(what string) schema.ListAttribute {
	return schema.ListAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: what}
}

// ComputedTexts is a computed list of texts.
func ComputedTexts(what string) schema.ListAttribute {
	return schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: what}
}

// OptionalTextMap is an optional map of texts.
func OptionalTextMap(what string) schema.MapAttribute {
	return schema.MapAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: what}
}

// ComputedTextMap is a computed map of texts.
func ComputedTextMap(what string) schema.MapAttribute {
	return schema.MapAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: what}
}
