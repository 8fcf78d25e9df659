// Package manifests is flotilla_manifests: the files that an assignment writes.
package manifests

import (
	"cmp"
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
)

var (
	_ datasource.DataSource              = &manifestsDataSource{}
	_ datasource.DataSourceWithConfigure = &manifestsDataSource{}
)

type manifestsDataSource struct{ connection.DataSource }

func New() datasource.DataSource { return &manifestsDataSource{} }

// Metadata names the data source.
func (*manifestsDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_manifests"
}

// Schema is the fleet, what to narrow it by, and the files.
func (*manifestsDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
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
	resp.Schema = schema.Schema{
		MarkdownDescription: "The files that `flotilla_assignment` writes: to read, to test, or for other tools. They are in the state: narrow " +
			"them down where the fleet is large.",
		Attributes: attributes,
	}
}

type manifestsModel struct {
	Fleet            fleetvalue.Rendered `tfsdk:"fleet"`
	ClusterType      types.String        `tfsdk:"cluster_type"`
	Cluster          types.String        `tfsdk:"cluster"`
	DeploymentTarget types.String        `tfsdk:"deployment_target"`
	GitopsRepo       types.Dynamic       `tfsdk:"gitops_repo"`
	Name             types.String        `tfsdk:"name"`
	Files            map[string]string   `tfsdk:"files"`
}

// Read renders the fleet, and checks the files.
func (d *manifestsDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var model manifestsModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	var repo *render.Repo
	if !model.GitopsRepo.IsNull() {
		at, known, findings := fleet.DecodeGitopsRepo(tfvalue.Plain(model.GitopsRepo))
		tfvalue.AddFindings(&resp.Diagnostics, path.Root("gitops_repo"), "Invalid GitOps repository", tfvalue.Inner(findings))
		repo = repository.ForTemplates(delivery.Location(at), known)
	}
	result := d.Connection.Compute(model.Fleet.Value(&resp.Diagnostics), &resp.Diagnostics)
	if result == nil || resp.Diagnostics.HasError() {
		return
	}
	wanted := fleetvalue.Narrowing{ClusterType: model.ClusterType, Cluster: model.Cluster, DeploymentTarget: model.DeploymentTarget}
	if wanted.Check(result.Fleet, &resp.Diagnostics); resp.Diagnostics.HasError() {
		return
	}
	model.Files = map[string]string{}
	var problems []string
	for i, assignment := range result.Schedule.Assignments {
		if !wanted.Includes(assignment) {
			continue
		}
		files, wrong, err := result.CheckedFiles(i, pipeline.Destination{Owner: cmp.Or(model.Name.ValueString(), result.Fleet.Environment), Repo: repo})
		if errors.Is(err, render.ErrUnknown) {
			resp.Diagnostics.AddAttributeError(path.Root("gitops_repo"), "Repository is needed",
				"A template reads .Repo: set gitops_repo to what flotilla_assignment has.")
			return
		}
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		problems = append(problems, wrong...)
		for _, file := range files {
			model.Files[assignment.Key()+"/"+file.Name] = string(file.Content)
		}
	}
	fleetvalue.AddLimited(&resp.Diagnostics, problems, func(problem string) {
		resp.Diagnostics.AddAttributeError(fleetvalue.Path, "Invalid rendering", tfvalue.Sentence(problem))
	})
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	}
}
