package schemas

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

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
