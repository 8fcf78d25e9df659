// Package functions has the provider's functions.
package functions

import (
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/wire"
)

// Fleet is provider::flotilla::fleet.
var Fleet = frame.Function{Name: "fleet", Run: runFleet, Definition: function.Definition{
	Summary: "Makes a fleet: everything of one environment, checked",
	MarkdownDescription: "Takes an object that holds everything of one environment, checks it, and returns the fleet that data " +
		"sources and `flotilla_assignment` take: `{format, environment, model, config, manifests, constraints}`.\n\nThe object's keys " +
		"are `environment` (required), `workspaces`, `cluster_types`, `clusters`, `workloads`, `target_policies`, `config_containers`, " +
		"`config_schemas`, `templates` and `constraints`: each a list, tuple, set or map of objects, which are resources of that kind, " +
		"or objects written by hand with the same attributes: the [reference of the fleet](../guides/reference-fleet.md) has all of " +
		"them, and JSON Schemas for editors of YAML. Objects of other environments are left out. Further keys:\n\n* `environments`: " +
		"names of all environments, or environments. With it, a name that is not among them is an error.\n* `assignments`: " +
		"`[{cluster_type | cluster, deployment_target}]` in place of `target_policies`.\n* `hydration`: `{precedence, on_conflict, " +
		"lists, list_key}`, how config containers merge: see the guide [How Flotilla works](../guides/how-it-works.md#configuration).\n* " +
		"`artifacts`: the text that `flotilla_artifacts` has as `artifacts`, for the same `workloads`: the manifests of the deployment " +
		"targets in it are pinned to a commit, or to a version and a digest. While it is unknown, all of `manifests` is pending.\n* " +
		"`base`: a fleet to add to, such as one that `control_plane` returned.\n\nNames, versions, tags, refs and labels are text: a " +
		"number in place of one is an error, since `1.10` would become 1.1.\n\nUnknown keys are errors, wherever they are. Each of " +
		"`config`, `manifests` and `constraints` is `{known, pending}`. A value that is unknown puts only its container, its deployment " +
		"target or its constraint under `pending`; an unknown name or label makes `model` unknown, and so do a `namespace`, which " +
		"decides who may share a cluster, and the `parameters`, `secret_stores`, `decryption`, `render`, `kubernetes_version` and " +
		"`api_versions` of a cluster type. A fleet that another version of the provider made is an error if its `format` " +
		"differs.\n\nCall it in a `local`, and refer to that: a data source that refers to a resource directly is read only at apply " +
		"while the resource has any change pending.",
	Parameters: []function.Parameter{
		function.DynamicParameter{
			Name: "fleet", AllowUnknownValues: true,
			MarkdownDescription: "Object with everything of one environment.",
		},
	},
	Return: fleetvalue.Return(),
}}

func runFleet(ctx context.Context, req function.RunRequest) (any, *function.FuncError) {
	input, read := wire.ArgumentOf(ctx)
	if !read {
		var argument attr.Value // the framework copies other types twice
		if err := req.Arguments.Get(ctx, &argument); err != nil {
			return nil, err
		}
		input = tfvalue.Plain(argument)
	}
	decoded, findings := fleet.Decode(input)
	_, wrong := constraint.Compile(decoded.Constraints)
	findings = append(findings, wrong...)
	if len(findings) > 0 {
		return nil, function.NewArgumentFuncError(0, "\n"+findings.Error())
	}
	return fleetvalue.Result(ctx, decoded)
}

// wrong returns all findings as one error, at the argument that the first path names or at the first.
func wrong(findings fleet.Findings, arguments ...string) *function.FuncError {
	at := slices.IndexFunc(arguments, func(name string) bool { return strings.HasPrefix(findings[0].Path, name) })
	return function.NewArgumentFuncError(int64(max(at, 0)), "\n"+findings.Error())
}

// options is an object that may be left out. It may be null, unlike other parameters: OpenTofu treats an untyped null as
// unknown.
func options(meaning string) function.DynamicParameter {
	return function.DynamicParameter{Name: "options", AllowUnknownValues: true, AllowNullValue: true, MarkdownDescription: meaning}
}

// optional returns the options behind other arguments, or nil.
func optional(given []types.Dynamic, others int64) (any, *function.FuncError) {
	switch len(given) {
	case 0:
		return nil, nil
	case 1:
		return tfvalue.Plain(given[0]), nil
	}
	return nil, function.NewArgumentFuncError(others+1, "there may be only one object of options")
}

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
