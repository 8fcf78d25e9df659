package functions

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// NewRegistrations returns the function.
func NewRegistrations() function.Function {
	return frame.Function{Name: "registrations", Definition: registrationsDefinition, Run: runRegistrations}.New()
}

// registrationType is the type of a registration in Terraform.
var registrationType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"name": types.StringType, "workspace": types.StringType, "labels": types.MapType{ElemType: types.StringType},
	"url": types.StringType, "ref": types.StringType, "path": types.StringType,
}}

var registrationsDefinition = function.Definition{
	Summary: "Lists the repositories of Kalypso's workload registrations",
	MarkdownDescription: "Reads Kalypso's `WorkloadRegistration`s out of YAML documents, and returns a map of them by name, for the `for_each` of " +
		"`flotilla_repository_files`: `{name, workspace, labels, url, ref, path}`. Documents of other kinds are ignored: `control_plane` checks " +
		"whether they are allowed. Two registrations with the same name, or with the same repository, ref and path, are an error.\n\n" +
		"The files of a registration may have further registrations. A second call over these files, with `followed`, the results of the calls " +
		"before, returns only new ones, so that registrations in a circle come to an end.\n\n" +
		"```terraform\nlocals {\n  first  = provider::flotilla::registrations(data.flotilla_repository_files.main.files)\n" +
		"  second = provider::flotilla::registrations(local.files_of_first, local.first)\n}\n```",
	Parameters: []function.Parameter{
		function.DynamicParameter{
			Name: "documents", AllowUnknownValues: true,
			MarkdownDescription: "List or map of texts, each of one or more YAML or JSON documents, as `control_plane` takes them.",
		},
	},
	VariadicParameter: function.DynamicParameter{
		Name: "followed", AllowUnknownValues: true, AllowNullValue: true,
		MarkdownDescription: "Registrations that were followed before: results of this function, or objects with `url`, `ref` and `path`.",
	},
	Return: function.MapReturn{ElementType: registrationType},
}

// runRegistrations lists the registrations. The result is unknown while there may be one more.
func runRegistrations(ctx context.Context, req function.RunRequest) (any, *function.FuncError) {
	var documents types.Dynamic
	var followed []types.Dynamic
	if err := req.Arguments.Get(ctx, &documents, &followed); err != nil {
		return nil, err
	}
	before := make([]any, len(followed))
	for i, argument := range followed {
		before[i] = tfvalue.Plain(argument)
	}
	registrations, known, findings := fleet.DecodeRegistrations(tfvalue.Plain(documents), before)
	if len(findings) > 0 {
		return nil, wrong(findings, "documents", "followed")
	}
	if !known {
		return types.MapUnknown(registrationType), nil
	}
	elements := make(map[string]attr.Value, len(registrations))
	for name, registration := range registrations {
		labels := make(map[string]attr.Value, len(registration.Labels))
		for key, value := range registration.Labels {
			labels[key] = types.StringValue(value)
		}
		elements[name] = types.ObjectValueMust(registrationType.AttrTypes, map[string]attr.Value{
			"name": types.StringValue(name), "workspace": types.StringPointerValue(wording.OrNil(registration.Workspace)),
			"labels": types.MapValueMust(types.StringType, labels),
			"url":    types.StringValue(registration.Source.URL), "ref": types.StringValue(registration.Source.Ref),
			"path": types.StringValue(registration.Source.Path),
		})
	}
	return types.MapValueMust(registrationType, elements), nil
}
