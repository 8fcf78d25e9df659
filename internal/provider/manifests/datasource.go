// Package manifests is flotilla_manifests: the files that an assignment writes.
package manifests

import (
	"cmp"
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
)

// New returns the data source.
func New() datasource.DataSource {
	return frame.DataSource[model]{Name: "manifests", Schema: definition(), Read: read}.New()
}

func definition() schema.Schema {
	attributes := fleetvalue.NarrowingAttributes()
	attributes["fleet"] = fleetvalue.RenderedAttribute()
	attributes["gitops_repo"] = schema.DynamicAttribute{
		Optional:            true,
		MarkdownDescription: "`{url, branch, path}`, for templates that read `.Repo`.",
	}
	attributes["name"] = schema.StringAttribute{
		Optional: true,
		MarkdownDescription: "Name of the `flotilla_assignment`, which is in a label of reconciler objects. Unset: the name of the fleet's " +
			"environment.",
	}
	attributes["files"] = schema.MapAttribute{
		Computed: true, ElementType: types.StringType,
		MarkdownDescription: "Content by path, `<host>/<deployment target>/<file>`.",
	}
	return schema.Schema{
		MarkdownDescription: "The files that `flotilla_assignment` writes: to read, to test, or for other tools. They are in the state: narrow " +
			"them down where the fleet is large.",
		Attributes: attributes,
	}
}

type model struct {
	fleetvalue.Narrowing
	Fleet      types.Object  `tfsdk:"fleet"`
	GitopsRepo types.Dynamic `tfsdk:"gitops_repo"`
	Name       types.String  `tfsdk:"name"`
	Files      types.Map     `tfsdk:"files"`
}

// read renders the fleet, and checks the files.
func read(_ context.Context, c *connection.Connection, m *model, diagnostics *diag.Diagnostics) {
	var repo *render.Repo
	if !m.GitopsRepo.IsNull() {
		at, known, findings := fleet.DecodeGitopsRepo(tfvalue.Plain(m.GitopsRepo))
		tfvalue.AddFindings(diagnostics, path.Root("gitops_repo"), "Invalid GitOps repository", tfvalue.Inner(findings))
		repo = repository.ForTemplates(at, known)
	}
	result := c.Compute(fleetvalue.Of(m.Fleet, diagnostics), diagnostics)
	if result == nil || diagnostics.HasError() {
		return
	}
	if m.Check(result.Fleet, diagnostics); diagnostics.HasError() {
		return
	}
	texts := map[string]attr.Value{}
	var problems []string
	for i, assignment := range result.Schedule.Assignments {
		if !m.Includes(assignment) {
			continue
		}
		files, wrong, err := result.CheckedFiles(i, pipeline.Destination{Owner: cmp.Or(m.Name.ValueString(), result.Fleet.Environment), Repo: repo})
		if errors.Is(err, render.ErrUnknown) {
			diagnostics.AddAttributeError(path.Root("gitops_repo"), "Repository is needed",
				"A template reads .Repo: set gitops_repo to what flotilla_assignment has.")
			return
		}
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		problems = append(problems, wrong...)
		for _, file := range files {
			texts[assignment.Key()+"/"+file.Name] = types.StringValue(string(file.Content))
		}
	}
	fleetvalue.AddLimited(diagnostics, problems, func(problem string) {
		diagnostics.AddAttributeError(fleetvalue.Path, "Invalid rendering", tfvalue.Sentence(problem))
	})
	m.Files = types.MapValueMust(types.StringType, texts)
}
