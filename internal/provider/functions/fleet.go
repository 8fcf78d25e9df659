// Package functions has the provider's functions.
package functions

import (
	"context"
	_ "embed"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

//go:embed fleet.md
var fleetDocument string

// Fleet is provider::flotilla::fleet.
var Fleet = frame.Function{Name: "fleet", Run: runFleet, Definition: function.Definition{
	Summary:             "Makes a fleet: everything of one environment, checked",
	MarkdownDescription: strings.TrimSpace(fleetDocument),
	Parameters: []function.Parameter{
		function.DynamicParameter{
			Name: "fleet", AllowUnknownValues: true,
			MarkdownDescription: "Object with everything of one environment.",
		},
	},
	Return: fleetvalue.Return(),
}}

func runFleet(_ context.Context, arguments []any) (any, error) {
	decoded, findings := fleet.Decode(arguments[0])
	_, wrong := constraint.Compile(decoded.Constraints)
	findings = append(findings, wrong...)
	if len(findings) > 0 {
		return nil, function.NewArgumentFuncError(0, "\n"+findings.Error())
	}
	return fleetvalue.Result(decoded)
}

// wrong returns all findings as one error, at the argument that the first path names or at the first.
func wrong(findings fleet.Findings, arguments ...string) error {
	at := slices.IndexFunc(arguments, func(name string) bool { return strings.HasPrefix(findings[0].Path, name) })
	return function.NewArgumentFuncError(int64(max(at, 0)), "\n"+findings.Error())
}

// options is an object that may be left out. It may be null, unlike other parameters: OpenTofu treats an untyped null as
// unknown.
func options(meaning string) function.DynamicParameter {
	return function.DynamicParameter{Name: "options", AllowUnknownValues: true, AllowNullValue: true, MarkdownDescription: meaning}
}

// dynamic returns a value of any type.
func dynamic(value any) (any, error) {
	inferred, err := tfvalue.Infer(value)
	return types.DynamicValue(inferred), err
}

//go:embed control_plane.md
var controlPlaneDocument string

// ControlPlane is provider::flotilla::control_plane.
var ControlPlane = frame.Function{Name: "control_plane", Run: runControlPlane, Definition: function.Definition{
	Summary:             "Makes a fleet of YAML documents",
	MarkdownDescription: strings.TrimSpace(controlPlaneDocument),
	Parameters: []function.Parameter{
		function.StringParameter{
			Name: "environment", AllowUnknownValues: true,
			MarkdownDescription: "Name of the environment. A workload's deployment targets of other environments are left out.",
		},
		function.DynamicParameter{
			Name: "documents", AllowUnknownValues: true,
			MarkdownDescription: "List or map of texts, each of one or more YAML or JSON documents. A map's keys, such as file names, " +
				"appear in errors. In place of a text, an object `{name, documents}` has the files of a registration: the name of a " +
				"`WorkloadRegistration`, and the texts that were read from its repository. Workloads in them belong to its workspace.",
		},
	},
	Return: fleetvalue.Return(),
}}

func runControlPlane(_ context.Context, arguments []any) (any, error) {
	decoded, findings := fleet.DecodeControlPlane(arguments[0], arguments[1])
	if len(findings) > 0 {
		return nil, wrong(findings, "environment", "documents")
	}
	return fleetvalue.Result(decoded)
}
