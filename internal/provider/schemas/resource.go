// Package schemas has attributes that several resources or data sources share.
package schemas

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// The attributes that several resources share.
//
// Attributes with objects in them (selectors, taints, deployment targets) are dynamic: Terraform
// silently drops misspelt keys of nested attributes, which for labels is silent misplacement.

// NameAttribute is the name of an object.
func NameAttribute(what string) schema.StringAttribute {
	return schema.StringAttribute{Required: true, MarkdownDescription: what}
}

// LabelsAttribute is dynamic, since Terraform would convert a number to text before it can be refused: 1.10 to "1.1".
func LabelsAttribute() schema.DynamicAttribute {
	return schema.DynamicAttribute{
		Optional:            true,
		MarkdownDescription: "Kubernetes labels, a map of texts, which selectors and config containers match. Numbers and bools must be in quotes.",
	}
}

// DescriptionAttribute is a text for people.
func DescriptionAttribute() schema.StringAttribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: "Description for people; nothing is computed from it."}
}

// EnvironmentAttribute is the environment of an object.
func EnvironmentAttribute(optional bool) schema.StringAttribute {
	return schema.StringAttribute{
		Required: !optional, Optional: optional,
		MarkdownDescription: "Name of the environment that it belongs to." + map[bool]string{true: " Unset: every environment."}[optional],
	}
}

// NamesAttribute is a set of names.
func NamesAttribute(what string) schema.SetAttribute {
	return schema.SetAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: what}
}

// DefaultAttribute is a text with a default.
func DefaultAttribute(value, what string) schema.StringAttribute {
	return schema.StringAttribute{
		Optional: true, Computed: true, Default: stringdefault.StaticString(value),
		MarkdownDescription: what + " Default `" + value + "`.",
	}
}

// TaintsAttribute is the taints of a host.
func TaintsAttribute() schema.DynamicAttribute {
	return schema.DynamicAttribute{
		Optional: true,
		MarkdownDescription: "List of `{key, value, effect}`: keeps deployment targets away unless their policy tolerates it, " +
			"by Kubernetes' rules. `effect` is `NoSchedule`.",
	}
}

// SelectorDescription says what a selector is.
const SelectorDescription = " A selector is `{match_labels = {…}, match_expressions = [{key, operator, values}], expression = \"…\"}`; " +
	"all that it says must hold, `{}` matches everything."

// SelectorAttribute is a selector.
func SelectorAttribute(what string) schema.DynamicAttribute {
	return schema.DynamicAttribute{Optional: true, MarkdownDescription: what + SelectorDescription}
}
