package functions

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

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
