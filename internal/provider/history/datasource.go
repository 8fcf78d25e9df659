// Package history implements flotilla_history: the changes on a branch, with author, time and versions.
package history

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// New returns the data source.
func New() datasource.DataSource {
	return frame.DataSource[historyModel]{
		Name: "history", Read: read,
		Description: "Changes of assignments with author, time and versions of the configuration, from the commits of a GitOps " +
			"repository, newest first.",
		Attributes: map[string]schema.Attribute{
			"gitops_repo":       schemas.RequiredDynamic(schemas.Location("Where to look.")),
			"name":              schemas.OptionalText("Only folders of this assignment. Unset: of every one at the path."),
			"host":              schemas.OptionalText("Only this host's folders: a cluster type, or `clusters/<cluster>`."),
			"deployment_target": schemas.OptionalText("Only this deployment target's folders, by its full name."),
			"since":             schemas.OptionalText("Only commits from then on, as in `2026-01-31T00:00:00Z` (RFC 3339)."),
			"limit":             schemas.OptionalWhole("How many commits at most. Default 100."),
			"timeouts":          timeouts.ReadAttribute(),
			"complete":          schemas.ComputedBool("Whether `commits` is complete."),
			"commits":           commits.ListAttribute("Commits that changed such folders."),
		},
	}.New()
}

type historyModel struct {
	GitopsRepo       types.Dynamic `tfsdk:"gitops_repo"`
	Name             types.String  `tfsdk:"name"`
	Host             types.String  `tfsdk:"host"`
	DeploymentTarget types.String  `tfsdk:"deployment_target"`
	Since            types.String  `tfsdk:"since"`
	Limit            types.Int64   `tfsdk:"limit"`
	Timeouts         types.Dynamic `tfsdk:"timeouts"`
	Complete         types.Bool    `tfsdk:"complete"`
	Commits          types.List    `tfsdk:"commits"`
}

var commits = table.Definition[gitops.HistoryCommit]{
	table.Text("commit", "Id of the commit.", func(c gitops.HistoryCommit) string { return c.Commit }),
	table.Text("author_name", "Name of its author.", func(c gitops.HistoryCommit) string { return c.Author.Name }),
	table.Text("author_email", "Email address of its author.", func(c gitops.HistoryCommit) string { return c.Author.Email }),
	table.Text("time", "When it was committed, RFC 3339.", func(c gitops.HistoryCommit) string { return tfvalue.TimeText(c.Time) }),
	table.Text("subject", "First line of its message.", func(c gitops.HistoryCommit) string { return c.Subject }),
	table.Bool("signed",
		"Whether one of `git.allowed_signers` of the provider has signed it; null without them. A merge, or a commit that the Git host "+
			"made of a pull request, has the Git host's signature or none.", func(c gitops.HistoryCommit) *bool { return c.Signed }),
	table.Texts("assignments", "Assignments that made it, also where a pull request brought it; empty where folders were changed by hand.",
		func(c gitops.HistoryCommit) []string { return c.Owners }),
	table.ObjectOrNull("source", "Where the changes came from, by the attribute `source` of the assignment; null where it was not set.",
		repository.Source, func(c gitops.HistoryCommit) folder.Source { return c.Source }),
	table.TextOrNull("run", "The pipeline run that made it, by the trailer `Flotilla-Run`: a URL or an id; null outside of pipelines. A "+
		"merge has the run of the newest commit that it merged.", func(c gitops.HistoryCommit) string { return c.Run }),
	table.Objects("changes", "Folders that it changed.", changes, func(c gitops.HistoryCommit) []gitops.HistoryChange { return c.Changes }),
}

var changes = table.Definition[gitops.HistoryChange]{
	table.Text("assignment", "The assignment that owns the folder.", func(c gitops.HistoryChange) string { return c.Owner }),
	table.Text("host", "The host.", func(c gitops.HistoryChange) string { return c.Host }),
	table.Text("deployment_target", "Full name of the deployment target.", func(c gitops.HistoryChange) string { return c.DeploymentTarget }),
	table.Text("action", "`added`, `changed`, `moved` or `removed`.", func(c gitops.HistoryChange) string { return string(c.Action) }),
	table.TextOrNull("from",
		"The name that the host had before, where the folder moved because its cluster type has another name; null otherwise.",
		func(c gitops.HistoryChange) string { return c.From }),
	table.TextOrNull("before", "Version of the configuration before; null for none.", func(c gitops.HistoryChange) string { return c.Before }),
	table.TextOrNull("after", "Version of the configuration after; null for none.", func(c gitops.HistoryChange) string { return c.After }),
}

func read(ctx context.Context, c *connection.Connection, m *historyModel, diagnostics *diag.Diagnostics) {
	at, _ := repository.DecodeLocation(m.GitopsRepo, diagnostics)
	filter := gitops.HistoryFilter{
		Host:             m.Host.ValueString(),
		DeploymentTarget: m.DeploymentTarget.ValueString(),
		Limit:            int(m.Limit.ValueInt64()),
	}
	repository.CheckOwnerName(m.Name, diagnostics)
	tfvalue.CheckLimit(m.Limit, diagnostics)
	if !m.Since.IsNull() {
		since, err := time.Parse(time.RFC3339, m.Since.ValueString())
		if err != nil {
			diagnostics.AddAttributeError(path.Root("since"), "Invalid time", "The time must be as in 2026-01-31T00:00:00Z (RFC 3339).")
		}
		filter.Since = since
	}
	if diagnostics.HasError() {
		return
	}
	history, err := c.Delivery.ReadHistory(ctx, delivery.Owner{Location: at, Name: m.Name.ValueString()}, filter)
	if err != nil {
		repository.AddError(ctx, diagnostics, err, false)
		return
	}
	if len(history.Commits) == 0 {
		repository.WarnOfNames(ctx, c.Delivery, at, repository.Names{
			Assignment: m.Name.ValueString(), Host: filter.Host, DeploymentTarget: filter.DeploymentTarget,
		}, diagnostics)
	}
	m.Complete, m.Commits = types.BoolValue(history.Complete), commits.List(history.Commits)
}
