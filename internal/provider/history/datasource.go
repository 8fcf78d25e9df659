// Package history is flotilla_history: who changed what, when, by the commits of a branch.
package history

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

var (
	_ datasource.DataSource              = &historyDataSource{}
	_ datasource.DataSourceWithConfigure = &historyDataSource{}
)

type historyDataSource struct{ connection.DataSource }

func New() datasource.DataSource { return &historyDataSource{} }

// Metadata names the data source.
func (d *historyDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_history"
}

// Schema is the location, what to narrow it by, and the commits.
func (d *historyDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Who changed what, when, and from which version of the configuration to which: read from the commits of a GitOps " +
			"repository, newest first.",
		Attributes: map[string]schema.Attribute{
			"gitops_repo":       schema.DynamicAttribute{Required: true, MarkdownDescription: "Where to look: `{url, branch, path}`."},
			"name":              schema.StringAttribute{Optional: true, MarkdownDescription: "Only folders of this assignment. Unset: of every one at the path."},
			"host":              schema.StringAttribute{Optional: true, MarkdownDescription: "Only this host's folders: a cluster type, or `clusters/<cluster>`."},
			"deployment_target": schema.StringAttribute{Optional: true, MarkdownDescription: "Only this deployment target's folders, by its full name."},
			"since":             schema.StringAttribute{Optional: true, MarkdownDescription: "Only commits from then on, as in `2026-01-31T00:00:00Z` (RFC 3339)."},
			"limit":             schema.Int64Attribute{Optional: true, MarkdownDescription: "How many commits at most. Default 100."},
			"timeouts":          timeouts.ReadAttribute(),
			"complete":          schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether that is all."},
			"commits": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "Commits that changed such folders.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"commit":       schemas.ComputedText("Id of the commit."),
					"author_name":  schemas.ComputedText("Name of its author."),
					"author_email": schemas.ComputedText("Email address of its author."),
					"time":         schemas.ComputedText("When it was committed, RFC 3339."),
					"subject":      schemas.ComputedText("First line of its message."),
					"signed": schema.BoolAttribute{
						Computed: true,
						MarkdownDescription: "Whether one of `git.allowed_signers` of the provider has signed it; null without them. A merge, or a commit that the " +
							"Git host made of a pull request, has the Git host's signature or none.",
					},
					"assignments": schema.ListAttribute{
						Computed: true, ElementType: types.StringType,
						MarkdownDescription: "Assignments that made it; empty where folders were changed by hand.",
					},
					"changes": schema.ListNestedAttribute{
						Computed:            true,
						MarkdownDescription: "Folders that it changed.",
						NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
							"assignment":        schemas.ComputedText("The assignment that owns the folder."),
							"host":              schemas.ComputedText("The host."),
							"deployment_target": schemas.ComputedText("Full name of the deployment target."),
							"action":            schemas.ComputedText("`added`, `changed` or `removed`."),
							"before":            schemas.ComputedText("Version of the configuration before; null for none."),
							"after":             schemas.ComputedText("Version of the configuration after; null for none."),
						}},
					},
				}},
			},
		},
	}
}

type historyModel struct {
	GitopsRepo       types.Dynamic        `tfsdk:"gitops_repo"`
	Name             types.String         `tfsdk:"name"`
	Host             types.String         `tfsdk:"host"`
	DeploymentTarget types.String         `tfsdk:"deployment_target"`
	Since            types.String         `tfsdk:"since"`
	Limit            types.Int64          `tfsdk:"limit"`
	Timeouts         types.Dynamic        `tfsdk:"timeouts"`
	Complete         types.Bool           `tfsdk:"complete"`
	Commits          []historyCommitModel `tfsdk:"commits"`
}

type historyCommitModel struct {
	Commit      string               `tfsdk:"commit"`
	AuthorName  string               `tfsdk:"author_name"`
	AuthorEmail string               `tfsdk:"author_email"`
	Time        string               `tfsdk:"time"`
	Subject     string               `tfsdk:"subject"`
	Signed      *bool                `tfsdk:"signed"`
	Assignments []string             `tfsdk:"assignments"`
	Changes     []historyChangeModel `tfsdk:"changes"`
}

type historyChangeModel struct {
	Assignment       string  `tfsdk:"assignment"`
	Host             string  `tfsdk:"host"`
	DeploymentTarget string  `tfsdk:"deployment_target"`
	Action           string  `tfsdk:"action"`
	Before           *string `tfsdk:"before"`
	After            *string `tfsdk:"after"`
}

// Read walks the branch back.
func (d *historyDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var model historyModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	at, _ := repository.DecodeLocation(model.GitopsRepo, &resp.Diagnostics)
	filter := gitops.HistoryFilter{
		Host: model.Host.ValueString(), DeploymentTarget: model.DeploymentTarget.ValueString(), Limit: int(model.Limit.ValueInt64()),
	}
	tfvalue.CheckLimit(model.Limit, &resp.Diagnostics)
	if !model.Since.IsNull() {
		since, err := time.Parse(time.RFC3339, model.Since.ValueString())
		if err != nil {
			resp.Diagnostics.AddAttributeError(path.Root("since"), "Invalid time", "The time must be as in 2026-01-31T00:00:00Z (RFC 3339).")
		}
		filter.Since = since
	}
	deadlines := timeouts.DecodeRead(model.Timeouts, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := deadlines.During(ctx, timeouts.Read)
	defer cancel()
	history, err := d.Connection.Delivery.History(ctx, delivery.Owner{Location: at, Name: model.Name.ValueString()}, filter)
	if err != nil {
		repository.AddError(ctx, &resp.Diagnostics, err, false)
		return
	}
	model.Complete = types.BoolValue(history.Complete)
	model.Commits = make([]historyCommitModel, len(history.Commits))
	for i, commit := range history.Commits {
		model.Commits[i] = historyCommitModel{
			Commit: commit.Commit, AuthorName: commit.Author.Name, AuthorEmail: commit.Author.Email,
			Time: commit.Time.UTC().Format(time.RFC3339), Subject: commit.Subject, Signed: commit.Signed,
			Assignments: tfvalue.OrEmpty(commit.Owners), Changes: make([]historyChangeModel, len(commit.Changes)),
		}
		for j, change := range commit.Changes {
			model.Commits[i].Changes[j] = historyChangeModel{
				Assignment: change.Owner, Host: change.Host, DeploymentTarget: change.DeploymentTarget,
				Action: string(change.Action), Before: wording.OrNil(change.Before), After: wording.OrNil(change.After),
			}
		}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}
