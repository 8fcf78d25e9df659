// Package commitstatus implements flotilla_commit_status, the status of a commit on a Git host.
package commitstatus

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// New returns the resource. A destroy leaves the status.
func New() resource.Resource {
	return frame.Resource[commitStatusModel]{
		Name: "commit_status", Schema: definition, Validate: validate, PlanDestroy: planDestroy,
		Create: set, Read: read, Update: set, Import: importState,
		Identity: identity, Identify: identify,
	}.New()
}

// identity is the key of a status, and the connection to its Git host.
var identity = map[string]identityschema.Attribute{
	"url":     identityschema.StringAttribute{RequiredForImport: true, Description: "URL of the repository."},
	"commit":  identityschema.StringAttribute{RequiredForImport: true, Description: "Full id of the commit."},
	"context": identityschema.StringAttribute{RequiredForImport: true, Description: "Name of the status."},
	"forge": identityschema.StringAttribute{
		OptionalForImport: true,
		Description:       "Kind of the Git host, where the server's name does not tell.",
	},
	"api_url": identityschema.StringAttribute{
		OptionalForImport: true,
		Description:       "URL of the Git host's API, where it does not follow from url.",
	},
}

func identify(m *commitStatusModel) map[string]types.String {
	return map[string]types.String{"url": m.URL, "commit": m.Commit, "context": m.Context, "forge": m.Forge, "api_url": m.APIURL}
}

var states = []string{string(forge.Pending), string(forge.Success), string(forge.Failure), string(forge.Error)}

var definition = schema.Schema{
	MarkdownDescription: "Sets a status of a commit in any repository on " + titles() + ": for a control plane, whether it is rolled " +
		"out; for a team, whether its version runs. Its credentials are the entry of the provider's `git.credentials` with the longest " +
		"matching `url`, and must be allowed to set statuses; the plain keys of `git` are for the GitOps repository alone.\n\nA status is " +
		"set once, if the Git host has a different one. Each refresh reads it and shows changes by others. If the credentials may not read " +
		"statuses, a refresh warns and keeps the status that was set.\n\nNo Git host removes a status. Another `url`, `commit` or " +
		"`context` makes another status, and the former one stays what it was; so does that of a resource that is destroyed. Of two " +
		"resources with the same `url`, `commit` and `context`, the one that was applied last counts.",
	Attributes: map[string]schema.Attribute{
		"url":    schemas.RequiredText("The http or https URL from which the repository is cloned."),
		"commit": schemas.RequiredText("Full id of the commit, such as `flotilla_assignment.prod.commit`. GitLab wants one that a branch has."),
		"context": schemas.RequiredText("Name of the status, such as `flotilla/prod`: one line of at most 255 characters. On Azure Repos, " +
			"the part before the first slash is the genre."),
		"state": schemas.RequiredText("`pending`, `success`, `failure` or `error`. GitLab and Bitbucket have no `error`, which is a " +
			"failure there, and GitLab may show one that is pending as running."),
		"description": schemas.OptionalText("A text for people. It is written in one line, and cut at the limit of the Git host: 140 " +
			"characters on GitHub, 255 on the others. Credentials of the provider in it are replaced by asterisks. Without one GitLab and " +
			"Bitbucket show the state."),
		"link": schemas.OptionalText("An http or https URL for people, of at most 255 characters on GitLab, 450 on Bitbucket, and 2,000 on " +
			"the others. Without one GitLab and Bitbucket link to the repository."),
		"forge":    schemas.OptionalText("The kind of the Git host: " + forge.Listed("`") + ". Default: by the server's name."),
		"api_url":  schemas.OptionalText("Where the Git host's API is, when that does not follow from `url`."),
		"timeouts": schemas.OptionalDynamic(schemas.Setting("How long operations may take.", fleet.ObjectType, timeouts.Table)),
	},
}

func titles() string {
	var names []string
	for _, kind := range forge.Kinds() {
		names = append(names, kind.Title)
	}
	return wording.Either(names, "")
}

type commitStatusModel struct {
	URL         types.String  `tfsdk:"url"`
	Commit      types.String  `tfsdk:"commit"`
	Context     types.String  `tfsdk:"context"`
	State       types.String  `tfsdk:"state"`
	Description types.String  `tfsdk:"description"`
	Link        types.String  `tfsdk:"link"`
	Forge       types.String  `tfsdk:"forge"`
	APIURL      types.String  `tfsdk:"api_url"`
	Timeouts    types.Dynamic `tfsdk:"timeouts"`
}

// validate makes no requests.
func validate(_ context.Context, m *commitStatusModel, diagnostics *diag.Diagnostics) {
	report := func(attribute string, err error) {
		if err != nil {
			diagnostics.AddAttributeError(path.Root(attribute), "Invalid "+attribute, tfvalue.Sentence(err.Error()))
		}
	}
	known := func(value types.String) bool { return !value.IsNull() && !value.IsUnknown() }
	tfvalue.CheckOneOf("state", m.State, diagnostics, states...)
	tfvalue.CheckOneOf("forge", m.Forge, diagnostics, forge.Names()...)
	kind := forge.Forge(m.Forge.ValueString())
	if known(m.URL) && !m.Forge.IsUnknown() && (kind == "" || kind.Kind().Forge == kind) {
		at := forge.HostedRepository{URL: m.URL.ValueString(), Forge: kind}
		_, err := forge.NewGitHost(at, forge.HTTPOptions{})
		switch {
		case errors.Is(err, forge.ErrNoKind):
			report("forge", err)
		case err != nil:
			report("url", err)
		case known(m.APIURL):
			at.APIURL = m.APIURL.ValueString()
			_, err = forge.NewGitHost(at, forge.HTTPOptions{})
			report("api_url", err)
		}
		if parsed, err := url.Parse(at.URL); err == nil && kind == "" {
			kind = forge.KindOf(parsed.Hostname())
		}
	}
	if known(m.Commit) && !folder.IsCommit(m.Commit.ValueString()) {
		report("commit", errors.New("must be the full id of a commit, 40 or 64 digits in lower-case hex"))
	}
	if known(m.Context) {
		report("context", forge.CheckContext(m.Context.ValueString()))
	}
	if known(m.Link) {
		report("link", forge.CheckLink(m.Link.ValueString(), kind))
	}
}

func planDestroy(_ context.Context, c *frame.Call[commitStatusModel]) {
	tfvalue.AddWarningf(c.Diagnostics, path.Root("state"), "Status stays on the commit",
		"No Git host removes a status of a commit: the status %q of commit %s stays %s. To leave another state, apply that first.",
		c.Model.Context.ValueString(), c.Model.Commit.ValueString(), c.Model.State.ValueString())
}

func set(ctx context.Context, c *frame.Call[commitStatusModel]) {
	m := c.Model
	if validate(ctx, m, c.Diagnostics); c.Diagnostics.HasError() { // values unknown in the plan
		return
	}
	addError(ctx, c.Diagnostics, c.Connection.Delivery.SetStatus(ctx, m.settings(), m.URL.ValueString(), m.Commit.ValueString(), m.status()))
}

// read finds changes of the status.
func read(ctx context.Context, c *frame.Call[commitStatusModel]) {
	if !c.Connection.CanAsk() {
		return
	}
	m := c.Model
	wanted := m.status()
	found, err := c.Connection.Delivery.ReadStatus(ctx, m.settings(), m.URL.ValueString(), m.Commit.ValueString(), wanted)
	switch {
	case errors.Is(err, forge.ErrUnauthorized):
		c.Diagnostics.AddAttributeWarning(path.Root("url"), "Status cannot be read", tfvalue.Sentence(err.Error())+
			" The state keeps what was set; what others have made of it is not seen.")
	case errors.Is(err, forge.ErrNotFound), errors.Is(err, forge.ErrNoCommit), err == nil && found == nil:
		c.Gone = true
	case err != nil:
		addError(ctx, c.Diagnostics, err)
	case *found != wanted:
		m.State, m.Description = types.StringValue(string(found.State)), types.StringPointerValue(wording.OrNil(found.Description))
		m.Link = types.StringPointerValue(wording.OrNil(found.URL))
	}
}

func (m *commitStatusModel) settings() delivery.Settings {
	return delivery.Settings{Forge: forge.Forge(m.Forge.ValueString()), APIURL: m.APIURL.ValueString()}
}

func (m *commitStatusModel) status() forge.Status {
	return forge.Status{
		Context: m.Context.ValueString(), State: forge.StatusState(m.State.ValueString()),
		Description: m.Description.ValueString(), URL: m.Link.ValueString(),
	}
}

func addError(ctx context.Context, diagnostics *diag.Diagnostics, err error) {
	if err == nil || timeouts.AddEndedOf(ctx, diagnostics, err, "url", "The next apply sets the status unless it is set.") {
		return
	}
	attribute, kind, advice := "url", repository.KindOf(err, "Status cannot be set").Summary, ""
	switch {
	case errors.Is(err, forge.ErrNoCommit):
		attribute, kind = "commit", "Commit is not in the repository"
	case errors.Is(err, forge.ErrNotFound):
		kind, advice = "Repository does not exist", " It may also be hidden from these credentials."
	case errors.Is(err, forge.ErrRefused):
		kind = "Git host refuses the status"
	case errors.Is(err, forge.ErrGitHubApp):
		advice = repository.KindOf(err, "").Advice
	case errors.Is(err, forge.ErrUnauthorized):
		advice = repository.OtherCredentials
	}
	diagnostics.AddAttributeError(path.Root(attribute), kind, tfvalue.Sentence(err.Error())+advice)
}

// importState takes an identity, or an ID for parseID.
func importState(ctx context.Context, _ *connection.Connection, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	identity := frame.Imports(ctx, req, &resp.Diagnostics)
	imported, ok := &commitStatusModel{
		URL: identity["url"], Commit: identity["commit"], Context: identity["context"], Forge: identity["forge"], APIURL: identity["api_url"],
	}, true
	if identity == nil {
		imported, ok = parseID(req.ID)
	}
	if !ok {
		resp.Diagnostics.AddError("Invalid import ID",
			`The import ID must be "<url>#<commit>:<context>", where the URL may end with "?forge=<kind>" and "&api_url=<url>".`)
		return
	}
	if validate(ctx, imported, &resp.Diagnostics); resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, imported)...)
}

// parseID reads "<url>#<commit>:<context>". The query of the URL may have only forge and api_url.
func parseID(id string) (imported *commitStatusModel, ok bool) {
	before, after, _ := strings.Cut(id, "#")
	commit, name, ok := strings.Cut(after, ":")
	at, query, _ := strings.Cut(before, "?")
	settings, err := url.ParseQuery(query)
	if !ok || err != nil || at == "" {
		return nil, false
	}
	imported = &commitStatusModel{
		URL: types.StringValue(at), Commit: types.StringValue(commit), Context: types.StringValue(name),
		Forge:  types.StringPointerValue(wording.OrNil(settings.Get("forge"))),
		APIURL: types.StringPointerValue(wording.OrNil(settings.Get("api_url"))),
	}
	settings.Del("forge")
	settings.Del("api_url")
	return imported, len(settings) == 0
}
