// Package schemas has attributes that several resources or data sources share.
package schemas

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
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

// Evidence returns a document. One longer than a rollout reads is an error with a remedy.
func Evidence(document []byte, remedy string, diagnostics *diag.Diagnostics) types.String {
	if size := len(document); size > observe.MaxEvidence {
		tfvalue.AddErrorf(diagnostics, path.Root("evidence"), "Evidence is too long",
			"It would have %d MiB, and %d MiB are the most: %s.", size>>20, observe.MaxEvidence>>20, remedy)
	}
	return types.StringValue(string(document))
}

// The length of Markdown, in bytes.
const (
	defaultMarkdownLimit = 65536
	minMarkdownLimit     = 1024
	maxMarkdownLimit     = 16 << 20
)

// MarkdownLimitAttribute is for data sources with markdown.
func MarkdownLimitAttribute() schema.Int64Attribute {
	return OptionalWhole(
		fmt.Sprintf("The maximum size of `markdown` in bytes, from %d to %d. Further parts are left out and counted. Default %d, "+
			"which is what GitHub takes for a comment. GitLab and Gitea take more.", minMarkdownLimit, maxMarkdownLimit, defaultMarkdownLimit),
	)
}

// MarkdownLimit reads it.
func MarkdownLimit(value types.Int64, diagnostics *diag.Diagnostics) int {
	return tfvalue.WholeWithin("markdown_limit", value, defaultMarkdownLimit, minMarkdownLimit, maxMarkdownLimit, diagnostics)
}

// Described returns an attribute's meaning, its default unless [DefaultAttribute] says it, and a link to its objects.
func Described(attribute *fleet.Attribute, guide string) string {
	what := attribute.Meaning
	if attribute.Allowed != nil {
		what = "One of " + attribute.TypeText() + ". " + what
	}
	if _, isText := attribute.Default.(string); !isText && attribute.Default != nil {
		what += " Default `" + attribute.DefaultText() + "`."
	}
	if table := attribute.Of; table != nil {
		what += " " + map[fleet.Type]string{
			fleet.ObjectType: "Object", fleet.ObjectsType: "List of objects", fleet.ObjectMapType: "Map of objects",
			fleet.TextOrObjectType: "Text or object",
			fleet.BoolOrObjectType: "Bool or object", fleet.CollectionType: "List or map of objects",
		}[attribute.Type] + " with the keys `" + strings.Join(table.Keys(), "`, `") + "`: see the [reference](../guides/" + guide +
			".md#" + table.Anchor() + ")."
	}
	return what
}

// Setting describes an attribute by a table of the guide "Reference: settings".
func Setting(meaning string, typ fleet.Type, table *fleet.Table) string {
	return Described(&fleet.Attribute{Meaning: meaning, Type: typ, Of: table}, "reference-settings")
}

// Location describes a location of a GitOps repository.
func Location(meaning string) string {
	return Described(&fleet.Attribute{Meaning: meaning, Type: fleet.ObjectType, Of: fleet.LocationTable()}, "reference-fleet")
}

// OfProvider is an attribute of the provider. It is dynamic, since Terraform silently drops misspelt keys of nested
// attributes.
func OfProvider(meaning string, typ fleet.Type, table *fleet.Table) schema.DynamicAttribute {
	return schema.DynamicAttribute{
		Optional: true, Sensitive: true, MarkdownDescription: strings.ReplaceAll(Setting(meaning, typ, table), "](../guides/", "](guides/"),
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

// SelectorDescription describes selectors.
const SelectorDescription = " A selector is `{match_labels = {…}, match_expressions = [{key, operator, values}], expression = \"…\"}`; " +
	"all its conditions must hold, `{}` matches everything."
