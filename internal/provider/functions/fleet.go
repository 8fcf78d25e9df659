// Package functions has the provider's functions.
package functions

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/adopt"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
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

//go:embed adopt.md
var adoptDocument string

// Adopt is provider::flotilla::adopt.
var Adopt = frame.Function{Name: "adopt", Run: runAdopt, Definition: function.Definition{
	Summary:             "Makes a fleet of the objects that clusters follow today",
	MarkdownDescription: strings.TrimSpace(adoptDocument),
	Parameters: []function.Parameter{
		function.StringParameter{
			Name: "environment", AllowUnknownValues: true,
			MarkdownDescription: "Name of the environment, which all deployment targets get.",
		},
		function.DynamicParameter{
			Name: "documents", AllowUnknownValues: true,
			MarkdownDescription: "Map of texts, each of YAML or JSON documents, by the paths of the files, as `flotilla_repository_files` " +
				"has them; or a list of texts. Files whose names end in neither `.yaml`, `.yml` nor `.json` are passed over.",
		},
	},
	VariadicParameter: options(schemas.Setting("The options, which may be left out.", fleet.ObjectType, adopt.OptionsTable)),
	Return:            function.DynamicReturn{},
}}

// adoptTime bounds rendering. Objects not rendered by then are listed.
const adoptTime = time.Minute

// runAdopt returns unknown while a document is.
func runAdopt(ctx context.Context, arguments []any) (any, error) {
	folders := &renderer.Loose{}
	defer folders.Close()
	bounded, cancel := context.WithTimeout(ctx, adoptTime)
	defer cancel()
	render := func(files map[string]string, request *objects.Request) (*objects.Rendering, error) {
		return folders.Render(bounded, files, request)
	}
	adopted, known, findings := adopt.Adopt(arguments[0], arguments[1], arguments[2], render)
	if len(findings) > 0 {
		return nil, wrong(findings, "environment", "documents", "options")
	}
	if !known {
		return types.DynamicUnknown(), nil
	}
	listed := make([]any, len(adopted.Listed))
	for i, one := range adopted.Listed {
		listed[i] = map[string]any{"file": one.File, "object": one.Object, "reason": one.Reason, "taken": one.Taken}
	}
	return dynamic(map[string]any{"fleet": adopted.Fleet, "listed": listed})
}

// AgentManifests is provider::flotilla::agent_manifests.
var AgentManifests = frame.Function{Name: "agent_manifests", Run: runAgentManifests, Definition: function.Definition{
	Summary: "Writes the objects that a cluster's agent needs to follow its folders",
	MarkdownDescription: "Returns the objects that `flotilla_agent` would apply, as a list of YAML documents in the order that " +
		"they have to be applied: definitions of kinds, namespaces, the rest. For cloud-init, Azure Arc and templates of clusters, where " +
		"Terraform does not reach the cluster itself.\n\nUnknown keys are errors. While any value is unknown, so is the list.",
	Parameters: []function.Parameter{
		function.DynamicParameter{
			Name: "settings", AllowUnknownValues: true,
			MarkdownDescription: schemas.Setting("Says which cluster it is, and which folders it follows.", fleet.ObjectType, agent.SettingsTable),
		},
	},
	Return: function.ListReturn{ElementType: types.StringType},
}}

// runAgentManifests returns all problems in the one error of a function.
func runAgentManifests(_ context.Context, arguments []any) (any, error) {
	unknown := types.ListUnknown(types.StringType)
	if !tfvalue.IsItselfKnown(arguments[0]) {
		return unknown, nil
	}
	settings, known, problems := agent.Decode(arguments[0])
	var objects []agent.StagedObject
	if known && !agent.Failed(problems) {
		objects, problems = agent.Render(settings)
	}
	var wrong []string
	for _, problem := range problems {
		if !problem.Warning {
			wrong = append(wrong, problem.String())
		}
	}
	switch {
	case wrong != nil:
		return nil, function.NewArgumentFuncError(0, "\n"+strings.Join(wrong, "\n"))
	case !known:
		return unknown, nil
	}
	return agent.Texts(objects)
}

// Merge is provider::flotilla::merge.
var Merge = frame.Function{Name: "merge", Run: runMerge, Definition: function.Definition{
	Summary: "Merges objects deeply",
	MarkdownDescription: "Merges a list of objects as config containers are merged: objects deeply, the later winning, `null` removing a " +
		"key. Options are `{lists, list_key}`: lists are replaced (`lists = \"replace\"`, the default), appended (`append`), or merged " +
		"(`merge`) by the objects in them that have the same `list_key`, which is `name` by default.",
	Parameters: []function.Parameter{
		function.DynamicParameter{Name: "objects", AllowUnknownValues: true, MarkdownDescription: "List of objects, in the order of merging."},
	},
	VariadicParameter: options("`{lists, list_key}`; may be left out."),
	Return:            function.DynamicReturn{},
}}

// runMerge returns unknown while a value is: it could be an object or null.
func runMerge(_ context.Context, arguments []any) (any, error) {
	options, known, findings := fleet.DecodeMerge(arguments[1])
	if len(findings) > 0 {
		return nil, function.NewArgumentFuncError(1, "\n"+findings.Error())
	}
	if !known || !fleet.IsKnown(arguments[0]) {
		return types.DynamicUnknown(), nil
	}
	list, ok := arguments[0].([]any)
	if !ok {
		return nil, function.NewArgumentFuncError(0, "must be a list of objects")
	}
	objects := make([]map[string]any, len(list))
	for i := range list {
		if objects[i], ok = list[i].(map[string]any); !ok {
			return nil, function.NewArgumentFuncError(0, fmt.Sprintf("element %d must be an object", i))
		}
	}
	merged, err := hydrate.Merge(objects, options)
	if err != nil {
		return nil, function.NewArgumentFuncError(0, err.Error())
	}
	return dynamic(merged)
}

// SelectorMatches is provider::flotilla::selector_matches.
var SelectorMatches = frame.Function{Name: "selector_matches", Run: runSelectorMatches, Definition: function.Definition{
	Summary:             "Says whether a selector matches labels",
	MarkdownDescription: "Says whether a selector matches labels, by the rules of target policies." + schemas.SelectorDescription,
	Parameters: []function.Parameter{
		function.DynamicParameter{Name: "selector", AllowUnknownValues: true, MarkdownDescription: "The selector."},
		function.DynamicParameter{Name: "labels", AllowUnknownValues: true, MarkdownDescription: "Map of labels."},
	},
	Return: function.BoolReturn{},
}}

func runSelectorMatches(_ context.Context, arguments []any) (any, error) {
	selector, selectorKnown, findings := fleet.DecodeSelector(arguments[0])
	if len(findings) > 0 {
		return nil, function.NewArgumentFuncError(0, "\n"+findings.Error())
	}
	labels, labelsKnown, findings := fleet.DecodeLabels(arguments[1])
	if len(findings) > 0 {
		return nil, function.NewArgumentFuncError(1, "\n"+findings.Error())
	}
	if !selectorKnown || !labelsKnown {
		return types.BoolUnknown(), nil
	}
	if selector == nil {
		return nil, function.NewArgumentFuncError(0, "an absent selector is not a selector: {} matches everything")
	}
	requirements, _ := selector.Compile() // findings are reported already
	return types.BoolValue(requirements.Matches(labels)), nil
}

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
