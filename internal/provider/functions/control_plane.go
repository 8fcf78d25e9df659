package functions

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

// ControlPlane is provider::flotilla::control_plane.
var ControlPlane = frame.Function{Name: "control_plane", Run: runControlPlane, Definition: function.Definition{
	Summary: "Makes a fleet of YAML documents",
	MarkdownDescription: "Reads the YAML that a control plane is kept in, and returns a fleet as `fleet` does. It knows Kalypso's " +
		"kinds (`ClusterType`, `Workload`, `WorkloadRegistration`, `SchedulingPolicy`, `Template`, `ConfigSchema`; `Environment`, " +
		"`GitOpsRepo` and `BaseRepo` are ignored), `ConfigMap` with the label `platform-config: \"true\"`, and the JSON models " +
		"`Application`, `Cluster`, `Namespace` and `TargetPolicy`. Any other kind is an error.\n\nNames, versions, tags, refs and labels " +
		"are text, and must be in quotes where YAML would read a number or a bool. A document may have 1.5 MiB, and 1 MiB with its " +
		"aliases expanded, as may a value of a `ConfigMap`.\n\nValues merge as Kalypso merges them: by name, lists of objects by their " +
		"`name`, and text that is a YAML map or list is one.",
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

func runControlPlane(ctx context.Context, req function.RunRequest) (any, *function.FuncError) {
	var environment, documents attr.Value // the framework copies other types twice
	if err := req.Arguments.Get(ctx, &environment, &documents); err != nil {
		return nil, err
	}
	decoded, findings := fleet.DecodeControlPlane(tfvalue.Plain(environment), tfvalue.Plain(documents))
	if len(findings) > 0 {
		return nil, wrong(findings, "environment", "documents")
	}
	return fleetvalue.Result(ctx, decoded)
}
