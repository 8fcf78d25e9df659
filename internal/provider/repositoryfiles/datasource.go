// Package repositoryfiles implements flotilla_repository_files.
package repositoryfiles

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/source"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/budget"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// New returns the data source.
func New() datasource.DataSource {
	return frame.DataSource[repositoryFilesModel]{
		Name: "repository_files", Validate: validate, Read: read,
		Description: "Files of any Git repository at a branch, a tag or a commit: a control plane, the workloads of a team. " +
			"Nothing is checked out, and nothing is kept on disk. The provider's `git.credentials` has the credentials, by the beginning of " +
			"the URL; the plain keys of `git` are for the GitOps repository alone.\n\nOnly folders below which something may match are read, and " +
			"only files that match are fetched, where the server filters, as GitHub, GitLab, Gitea and every repository on this machine do. " +
			"A server that filters files but not folders (GitLab) sends the names of all files of the commit, too; one that does not filter " +
			"sends the whole commit, without its history.\n\nAll files that match have to be text. A file that is not UTF-8, one in Git " +
			"LFS, a symbolic link and a submodule are errors that name it, because a file must not be missing silently: narrow `include`, or name " +
			"them in `exclude`. Files in submodules are not read.\n\nIf the repository, or the selection of files, is known only after an " +
			"apply, so are the files: then the plan does not show their effects.",
		Attributes: map[string]schema.Attribute{
			"url": schemas.RequiredText("Where the repository is: https, ssh, or a path on this machine."),
			"ref": schemas.OptionalText("A branch, a tag, or the full id of a commit. Default: the repository's default branch. " +
				"`refs/heads/…` and `refs/tags/…` distinguish a branch from a tag of the same name. A commit that no branch and no tag contains " +
				"is read where the server gives it."),
			"path": schemas.OptionalText("The folder to read, such as `workloads`; `./workloads/` is the same. Default: the root."),
			"include": schemas.OptionalTexts("Patterns of the files to read, below `path`, as `fileset` has them: `*`, `?` and `[a-z]` within " +
				"a name, `**` for any number of folders, `{yaml,yml}` for one or the other. Default: every file. That none matches is an error."),
			"exclude": schemas.OptionalTexts("Patterns of files, and of folders with their content, to leave out."),
			"sources": schemas.OptionalTexts("Beginnings of URLs, such as the `sources` of a workspace: a `url` outside of them is not " +
				"requested, and neither is a redirect outside. Set it if a team decides `url`, for example by a registration. Default: any, on " +
				"this machine too."),
			"limits": schemas.OptionalDynamic(
				schemas.Setting("How many files may match, and how many bytes they may have, since the state keeps them.",
					fleet.ObjectType, LimitsTable),
			),
			"timeouts": timeouts.ReadAttribute(),
			"commit":   schemas.ComputedText("Id of the commit that was read."),
			"files":    schemas.ComputedTextMap("Content of the files, by their paths below `path`."),
		},
	}.New()
}

// LimitsTable describes the attribute limits.
var LimitsTable = &fleet.Table{
	Name:    "limits",
	Meaning: "The attribute `limits` of `flotilla_repository_files`, since the state keeps the files. More is an error.",
	Attributes: []fleet.Attribute{
		{Name: "files", Type: fleet.WholeType, Default: source.DefaultLimits.Files, Least: 1, Most: source.MaxLimits.Files,
			Meaning: "How many files may match."},
		{Name: "bytes", Type: fleet.WholeType, Default: source.DefaultLimits.Bytes, Least: 1, Most: source.MaxLimits.Bytes,
			Meaning: "How many bytes they may have in all."},
	},
}

type repositoryFilesModel struct {
	URL      types.String  `tfsdk:"url"`
	Ref      types.String  `tfsdk:"ref"`
	Path     types.String  `tfsdk:"path"`
	Include  types.List    `tfsdk:"include"`
	Exclude  types.List    `tfsdk:"exclude"`
	Sources  types.List    `tfsdk:"sources"`
	Limits   types.Dynamic `tfsdk:"limits"`
	Timeouts types.Dynamic `tfsdk:"timeouts"`
	Commit   types.String  `tfsdk:"commit"`
	Files    types.Map     `tfsdk:"files"`
}

func validate(m *repositoryFilesModel, diagnostics *diag.Diagnostics) { m.decode(diagnostics) }

func (m *repositoryFilesModel) decode(diagnostics *diag.Diagnostics) source.Query {
	query := source.Query{URL: m.URL.ValueString(), Ref: m.Ref.ValueString(), Path: m.Path.ValueString(), Limits: source.DefaultLimits}
	unknown := map[string]bool{"url": m.URL.IsUnknown()}
	for _, list := range []struct {
		name  string
		value types.List
		texts *[]string
	}{{"include", m.Include, &query.Include}, {"exclude", m.Exclude, &query.Exclude}, {"sources", m.Sources, &query.Sources}} {
		elements, ok := tfvalue.Plain(list.value).([]any)
		if !ok {
			continue
		}
		*list.texts = []string{}
		for _, element := range elements {
			text, ok := element.(string)
			unknown[list.name] = unknown[list.name] || !ok && element != nil
			unknown["url"] = unknown["url"] || list.name == "sources" && unknown["sources"]
			*list.texts = append(*list.texts, text)
		}
	}
	tfvalue.ReadStrictly("limits", LimitsTable, m.Limits, diagnostics, func(o *fleet.ObjectReader) {
		query.Limits.Files = o.Int("files")
		query.Limits.Bytes = o.Int("bytes")
	})
	for _, wrong := range query.Check() {
		if !unknown[wrong.Attribute] {
			addSourceError(diagnostics, wrong)
		}
	}
	return query
}

func addSourceError(diagnostics *diag.Diagnostics, wrong *source.QueryError) {
	diagnostics.AddAttributeError(path.Root(wrong.Attribute), wrong.Summary, tfvalue.Sentence(wrong.Detail))
}

func read(ctx context.Context, c *connection.Connection, m *repositoryFilesModel, diagnostics *diag.Diagnostics) {
	query := m.decode(diagnostics)
	if diagnostics.HasError() {
		return
	}
	end := budget.Begin(ctx, fmt.Sprintf("repository %q", wording.Visible(wording.Cut(query.URL, 200))))
	read, err := c.Sources.Read(ctx, query)
	end()
	if err != nil {
		addError(ctx, c, diagnostics, query.URL, err)
		return
	}
	m.Commit, m.Files = types.StringValue(read.Commit), tfvalue.TextMap(read.Texts)
}

func addError(ctx context.Context, c *connection.Connection, diagnostics *diag.Diagnostics, address string, err error) {
	if wrong := (*source.QueryError)(nil); errors.As(err, &wrong) {
		addSourceError(diagnostics, wrong)
		return
	}
	at, detail := path.Root("url"), tfvalue.Sentence(err.Error())
	if ctx.Err() != nil && !errors.As(context.Cause(ctx), new(*timeouts.Cause)) {
		diagnostics.AddAttributeError(at, "Interrupted", detail)
		return
	}
	if timeouts.AddEnded(ctx, diagnostics, err) {
		return
	}
	if !c.CanAsk() && (errors.Is(err, git.ErrUnauthorized) || errors.Is(err, git.ErrNotFound)) {
		diagnostics.AddAttributeError(at, "Credentials are not known yet",
			detail+" The request was made without those credentials of the provider's git that are known only "+
				"after an apply. Apply what they come from first, with -target, or set the environment variables.")
		return
	}
	kind := repository.KindOf(err, "Repository cannot be read")
	switch {
	case errors.Is(err, git.ErrUnauthorized):
		kind.Advice = repository.OtherCredentials
	case errors.Is(err, git.ErrTooLarge):
		kind.Summary, kind.Advice = "Repository is too large", " Its server cannot filter, and sends the whole commit."
	case errors.Is(err, git.ErrNotFound) && strings.HasPrefix(strings.ToLower(address), "http"):
		kind.Advice = " A Git host answers the same for a private repository without credentials for it: add an entry with the beginning of " +
			"its URL to git.credentials of the provider."
	}
	diagnostics.AddAttributeError(at, kind.Summary, detail+kind.Advice)
}
