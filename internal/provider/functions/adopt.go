package functions

import (
	"context"
	_ "embed"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/adopt"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
)

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
