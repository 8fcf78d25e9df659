package functions

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/adopt"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

// Adopt is provider::flotilla::adopt.
var Adopt = frame.Function{Name: "adopt", Run: runAdopt, Definition: function.Definition{
	Summary: "Makes a fleet of the objects of reconcilers that are there",
	MarkdownDescription: "Reads the YAML that clusters follow today: Argo CD's Applications and ApplicationSets, Flux' sources, " +
		"Kustomizations and HelmReleases, Rancher Fleet's GitRepos, HelmOps and Bundles, and Config Sync's RootSyncs and RepoSyncs. It " +
		"returns `{fleet, listed}`. The guide [Adopt a fleet](../guides/adopting.md) takes a fleet through it.\n\n* `fleet` is what " +
		"`fleet` takes: `environment`, `workspaces`, `cluster_types`, `clusters`, `workloads`, `target_policies` and `templates`. " +
		"Flotilla writes the same objects of it, with the same names, `metadata` and `spec`, and three labels of its own: " +
		"`flotilla.dev/owner`, `flotilla.dev/host` and `flotilla.dev/deployment-target`.\n* `listed` is a list of `{file, object, " +
		"reason, taken}`: everything that is not in the fleet, and why. Where `taken` is true, the object is in the fleet as it is, and " +
		"`reason` names its parts that a deployment target cannot express.\n\nAn object is a workload, with the sources that it alone has. " +
		"Hosts " +
		"on which it is the same have one deployment target in common. `manifests` and `namespace` have the repository, the path, the " +
		"branch, the chart and the namespace of the object, and decide them from then on; everything else is in `parameters.objects`, where " +
		"`$(repo)`, `$(path)`, `$(chart)`, `$(version)`, `$(branch)`, `$(revision)`, `$(ref)` and `$(namespace)` stand for them. Target " +
		"policies select cluster types by the fewest labels.\n\nA cluster type is a folder that a cluster of Flux follows, a folder " +
		"below one called `clusters`, or the cluster that an Application names as its destination; objects of none are on a cluster type " +
		"with the name of the environment. A folder that an adopted object brings stays the content of that object. If it brings other " +
		"Kustomizations or Applications, those are adopted in its place. Kustomizations, and the folders of such objects, are rendered " +
		"from the documents, without the network.",
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
func runAdopt(ctx context.Context, req function.RunRequest) (any, *function.FuncError) {
	var environment, documents attr.Value
	var further []types.Dynamic
	if err := req.Arguments.Get(ctx, &environment, &documents, &further); err != nil {
		return nil, err
	}
	options, twice := optional(further, 2)
	if twice != nil {
		return nil, twice
	}
	folders := &renderer.Loose{}
	defer folders.Close()
	bounded, cancel := context.WithTimeout(ctx, adoptTime)
	defer cancel()
	adopted, known, findings := adopt.Adopt(
		tfvalue.Plain(environment),
		tfvalue.Plain(documents),
		options,
		func(files map[string]string, request *objects.Request) (*objects.Rendering, error) {
			return folders.Render(bounded, files, request)
		},
	)
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
	value, err := tfvalue.Infer(map[string]any{"fleet": adopted.Fleet, "listed": listed})
	if err != nil {
		return nil, function.NewFuncError(err.Error())
	}
	return types.DynamicValue(value), nil
}
