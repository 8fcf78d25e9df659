package functions

import (
	"context"
	_ "embed"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

var registrationType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"name": types.StringType, "workspace": types.StringType, "labels": types.MapType{ElemType: types.StringType},
	"url": types.StringType, "ref": types.StringType, "path": types.StringType,
	"sources": types.ListType{ElemType: types.StringType},
}}

//go:embed registrations.md
var registrationsDocument string

// Registrations is provider::flotilla::registrations.
var Registrations = frame.Function{Name: "registrations", Run: runRegistrations, Definition: function.Definition{
	Summary:             "Lists the repositories of Kalypso's workload registrations",
	MarkdownDescription: strings.TrimSpace(registrationsDocument),
	Parameters: []function.Parameter{
		function.DynamicParameter{
			Name: "documents", AllowUnknownValues: true,
			MarkdownDescription: "List or map of texts, each of one or more YAML or JSON documents, as `control_plane` takes them.",
		},
	},
	VariadicParameter: options(schemas.Setting("The options, which may be left out.", fleet.ObjectType, fleet.RegistrationOptionsTable)),
	Return:            function.MapReturn{ElementType: registrationType},
}}

// runRegistrations returns unknown while another registration may follow.
func runRegistrations(_ context.Context, arguments []any) (any, error) {
	registrations, known, findings := fleet.DecodeRegistrations(arguments[0], arguments[1])
	if len(findings) > 0 {
		return nil, wrong(findings, "documents", "options")
	}
	if !known {
		return types.MapUnknown(registrationType), nil
	}
	elements := make(map[string]attr.Value, len(registrations))
	for name, registration := range registrations {
		elements[name] = types.ObjectValueMust(registrationType.AttrTypes, map[string]attr.Value{
			"name": types.StringValue(name), "workspace": types.StringPointerValue(wording.OrNil(registration.Workspace)),
			"labels": tfvalue.TextMap(registration.Labels),
			"url":    types.StringValue(registration.Source.URL), "ref": types.StringValue(registration.Source.Ref),
			"path": types.StringValue(registration.Source.Path), "sources": sourcesOf(&registration),
		})
	}
	return types.MapValueMust(registrationType, elements), nil
}

// sourcesOf returns null if a registration may use any source.
func sourcesOf(registration *fleet.Registration) types.List {
	switch {
	case !registration.SourcesKnown:
		return types.ListUnknown(types.StringType)
	case registration.Sources == nil:
		return types.ListNull(types.StringType)
	}
	return tfvalue.Texts(registration.Sources)
}
