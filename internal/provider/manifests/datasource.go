// Package manifests implements flotilla_manifests: the files that an assignment writes.
package manifests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/once"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// New returns the data source.
func New() datasource.DataSource {
	return frame.DataSource[manifestsModel]{
		Name: "manifests", Read: read,
		Description: "The files that `flotilla_assignment` writes, and the final objects of its manifests, for people, tests and " +
			"other tools. All of them are in the state: select a part of a large fleet.",
		Attributes: fleetvalue.Narrowed(map[string]schema.Attribute{
			"fleet":       fleetvalue.RenderedAttribute(),
			"gitops_repo": schemas.OptionalDynamic(schemas.Location("The location, for templates that read `.Repo`.")),
			"name": schemas.OptionalText("Name of the `flotilla_assignment`, which is in a label of reconciler objects. Unset: the name of " +
				"the fleet's environment."),
			"timeouts": timeouts.ReadAttribute(),
			"files":    schemas.ComputedTextMap("Content by path, `<host>/<deployment target>/<file>`."),
			"objects": objectsTable.ListAttribute("The final objects of assignments whose `render` asks for them, as their reconcilers make " +
				"them: see the guide [Final objects](../guides/rendering.md#final-objects). They are sorted by assignment, and then by group, " +
				"kind, namespace and name."),
			"images": schemas.ComputedTexts("The images of all containers of `objects`, each once, sorted."),
		}),
	}.New()
}

type manifestsModel struct {
	fleetvalue.Narrowing
	Fleet      types.Object  `tfsdk:"fleet"`
	GitopsRepo types.Dynamic `tfsdk:"gitops_repo"`
	Name       types.String  `tfsdk:"name"`
	Timeouts   types.Dynamic `tfsdk:"timeouts"`
	Files      types.Map     `tfsdk:"files"`
	Objects    types.List    `tfsdk:"objects"`
	Images     types.List    `tfsdk:"images"`
}

type object struct {
	*objects.FinalObject
	assignment, text string
}

var objectsTable = table.Definition[object]{
	table.Text("assignment", "Key of the assignment, `<host>/<deployment target>`.", func(o object) string { return o.assignment }),
	table.Text("api_version", "API version, such as `apps/v1`.", func(o object) string {
		if o.Group == "" {
			return o.Version
		}
		return o.Group + "/" + o.Version
	}),
	table.Text("kind", "Kind, such as `Deployment`.", func(o object) string { return o.Kind }),
	table.TextOrNull("namespace", "The namespace that it is applied to; null where it has none.",
		func(o object) string { return o.Namespace }),
	table.Text("name", "Its name.", func(o object) string { return o.Name }),
	table.Text("made_by", "Its maker: `chart`, `kustomization` or `manifest`.", func(o object) string { return string(o.From) }),
	table.TextOrNull("hook", "When Helm runs it, as in `pre-install,pre-upgrade`; null where it is no hook.",
		func(o object) string { return o.Hook }),
	table.TextOrNull("on", "`install` or `upgrade` if the chart makes the object, or this form of it, only then; otherwise null.",
		func(o object) string { return string(o.On) }),
	table.Text("yaml", "The object, with its fields sorted. A Secret in any form has `(hidden)` in place of each value and annotation.",
		func(o object) string { return o.text }),
}

func read(ctx context.Context, c *connection.Connection, m *manifestsModel, diagnostics *diag.Diagnostics) {
	var repo *folder.Location
	repository.CheckOwnerName(m.Name, diagnostics)
	if !m.GitopsRepo.IsNull() {
		at, known, findings := fleet.DecodeGitopsRepo(tfvalue.Plain(m.GitopsRepo))
		tfvalue.AddFindings(diagnostics, path.Root("gitops_repo"), "Invalid GitOps repository", tfvalue.Inner(findings))
		repo = repository.ForTemplates(at, known)
	}
	result := c.Compute(fleetvalue.DecodeObject(m.Fleet, diagnostics), diagnostics)
	if result == nil || diagnostics.HasError() {
		return
	}
	if m.Check(result.Schedule, diagnostics); diagnostics.HasError() {
		return
	}
	texts := map[string]string{}
	final, images, problems, unrendered := []object{}, map[string]bool{}, pipeline.Problems{}, pipeline.Unrendered{}
	for i, assignment := range result.Schedule.Assignments {
		if !m.Includes(assignment) {
			continue
		}
		to := pipeline.Destination{Owner: cmp.Or(m.Name.ValueString(), result.Fleet.Environment), Repo: repo}
		files, wrong, err := result.CheckedFiles(ctx, i, to)
		isWaiting := errors.Is(err, render.ErrUnknown)
		switch {
		case isWaiting && repo != nil && render.HasObjects(assignment): // Final says for what
		case isWaiting:
			diagnostics.AddAttributeError(path.Root("gitops_repo"), "Repository is needed",
				"A template reads .Repo, or what follows final objects names the repository: set gitops_repo to what flotilla_assignment has.")
			return
		case errors.Is(err, pipeline.ErrUnrendered):
			unrendered.Add(err.Error(), assignment.Target.Name)
			continue
		case err != nil:
			problems.Add(assignment, err.Error())
			continue
		}
		problems.Add(assignment, wrong...)
		for _, file := range files {
			texts[assignment.Key()+"/"+file.Name] = string(file.Content)
		}
		made, waitsFor, err := result.Final(ctx, i, to)
		if waitsFor != "" {
			err = fmt.Errorf("it waits for %s", waitsFor)
		}
		if err != nil {
			unrendered.Add(err.Error(), assignment.Target.Name)
			continue
		}
		for k := range made {
			text, runs, err := made[k].Shown()
			if err != nil {
				problems.Add(assignment, err.Error())
			}
			final = append(final, object{&made[k], assignment.Key(), text})
			for _, image := range runs {
				images[image] = true
			}
		}
	}
	fleetvalue.AddLimited(diagnostics, unrendered.Messages(), func(message string) {
		once.Error(diagnostics, fleetvalue.Path, "Manifests cannot be rendered", tfvalue.Sentence(message))
	})
	fleetvalue.AddLimited(diagnostics, problems.Messages(), func(problem string) {
		once.Error(diagnostics, fleetvalue.Path, "Invalid rendering", tfvalue.Sentence(problem))
	})
	m.Files = tfvalue.TextMap(texts)
	m.Objects, m.Images = objectsTable.List(final), tfvalue.Texts(slices.Sorted(maps.Keys(images)))
}
