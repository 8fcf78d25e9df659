// Package provider is the Terraform surface of Flotilla: it turns configuration into the model, calls
// what computes and what writes, and turns the outcome into state, plans and diagnostics.
package provider

import (
	"context"
	"net/http"
	"os"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/pipeline"
)

var (
	_ provider.Provider              = &flotilla{}
	_ provider.ProviderWithFunctions = &flotilla{}
)

// New returns a constructor of the provider. version is that of the release, "dev" for a local build.
func New(version string) func() provider.Provider {
	return func() provider.Provider { return &flotilla{version: version} }
}

type flotilla struct {
	version string
}

// connection is what resources need to reach GitOps repositories.
type connection struct {
	client      *gitops.Client
	credentials git.Credentials
	// complete is false while a credential is unknown: nobody can be asked yet.
	complete bool
	over     http.RoundTripper // what requests to Git hosts go through
	author   git.Signature
	release  string
	views    views
	heads    turns // by repository and branch that is proposed
	fleets   pipeline.Cache
}

// views keeps what was read of a repository, so that a plan reads each only once. What writes never
// relies on it.
type views struct {
	mu   sync.Mutex
	read map[viewKey]*read
}

type viewKey struct {
	url, branch string
	owner       gitops.Owner
}

// read is one view, or nobody's yet.
type read struct {
	turn turn
	view *gitops.View
}

// Metadata names the provider.
func (p *flotilla) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "flotilla"
	resp.Version = p.version
}

// Schema is the provider block.
func (p *flotilla) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Runs workloads on fleets of Kubernetes clusters: schedules deployment targets onto cluster types and " +
			"clusters by label, hydrates their configuration, renders what Flux, Argo CD, Rancher Fleet or Zarf reconcile, and commits " +
			"it to a GitOps repository.",
		Attributes: map[string]schema.Attribute{
			"git": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "How to reach GitOps repositories, and who commits. Local repositories need nothing of it.",
				Attributes: map[string]schema.Attribute{
					"token": schema.StringAttribute{
						Optional: true, Sensitive: true,
						MarkdownDescription: "Access token; wins over a password. Default: `FLOTILLA_GIT_TOKEN`. From there, and from an ephemeral " +
							"value, it gets into no plan and no state; the same goes for every other secret of this block.",
					},
					"username": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "User name for a password, or for a token where the host wants a certain one. Default: `FLOTILLA_GIT_USERNAME`.",
					},
					"password": schema.StringAttribute{
						Optional: true, Sensitive: true,
						MarkdownDescription: "Password. Default: `FLOTILLA_GIT_PASSWORD`.",
					},
					"ca_certificates": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "PEM text of certificates that are trusted beside the machine's.",
					},
					"ssh_private_key": schema.StringAttribute{
						Optional: true, Sensitive: true,
						MarkdownDescription: "PEM text of the private key for ssh. Default: `FLOTILLA_SSH_PRIVATE_KEY`, else the agent.",
					},
					"ssh_passphrase": schema.StringAttribute{
						Optional: true, Sensitive: true,
						MarkdownDescription: "Passphrase of that key. Default: `FLOTILLA_SSH_PASSPHRASE`.",
					},
					"ssh_known_hosts": schema.StringAttribute{
						Optional: true,
						MarkdownDescription: "Host keys, as in a known_hosts file; unset: those of the user and the machine. A host key is " +
							"always checked.",
					},
					"signing_key": schema.StringAttribute{
						Optional: true, Sensitive: true,
						MarkdownDescription: "Private key that signs commits: OpenPGP, armored, or ssh. Default: `FLOTILLA_SIGNING_KEY`.",
					},
					"signing_passphrase": schema.StringAttribute{
						Optional: true, Sensitive: true,
						MarkdownDescription: "Passphrase of that key. Default: `FLOTILLA_SIGNING_PASSPHRASE`.",
					},
					"author_name": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "Name of the author and committer. Default: `Flotilla`.",
					},
					"author_email": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "Email address of the author and committer.",
					},
				},
			},
		},
	}
}

type providerModel struct {
	Git *gitModel `tfsdk:"git"`
}

type gitModel struct {
	Token             types.String `tfsdk:"token"`
	Username          types.String `tfsdk:"username"`
	Password          types.String `tfsdk:"password"`
	CACertificates    types.String `tfsdk:"ca_certificates"`
	SSHPrivateKey     types.String `tfsdk:"ssh_private_key"`
	SSHPassphrase     types.String `tfsdk:"ssh_passphrase"`
	SSHKnownHosts     types.String `tfsdk:"ssh_known_hosts"`
	SigningKey        types.String `tfsdk:"signing_key"`
	SigningPassphrase types.String `tfsdk:"signing_passphrase"`
	AuthorName        types.String `tfsdk:"author_name"`
	AuthorEmail       types.String `tfsdk:"author_email"`
}

// Configure reads credentials; nothing is asked of a repository yet.
func (p *flotilla) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	settings := &gitModel{}
	var object types.Object
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("git"), &object)...)
	complete := !object.IsUnknown()
	if complete && !object.IsNull() {
		var model providerModel
		resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
		settings = model.Git
		for _, value := range object.Attributes() {
			complete = complete && !value.IsUnknown()
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	c := &connection{
		credentials: git.Credentials{
			Token:    orEnvironment(settings.Token, "FLOTILLA_GIT_TOKEN"),
			Username: orEnvironment(settings.Username, "FLOTILLA_GIT_USERNAME"),
			Password: orEnvironment(settings.Password, "FLOTILLA_GIT_PASSWORD"),
			SSH: git.SSHCredentials{
				Key:        orEnvironment(settings.SSHPrivateKey, "FLOTILLA_SSH_PRIVATE_KEY"),
				Passphrase: orEnvironment(settings.SSHPassphrase, "FLOTILLA_SSH_PASSPHRASE"),
				KnownHosts: settings.SSHKnownHosts.ValueString(),
			},
		},
		complete: complete,
		author:   git.Signature{Name: settings.AuthorName.ValueString(), Email: settings.AuthorEmail.ValueString()},
		release:  p.version,
		views:    views{read: map[viewKey]*read{}},
	}
	transport, err := git.NewHTTPTransport(git.HTTPOptions{CA: settings.CACertificates.ValueString()})
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("git").AtName("ca_certificates"), "Invalid certificates", sentence(err.Error()))
		return
	}
	c.over = transport
	options := []gitops.Option{gitops.WithGit(git.NewClient(git.WithHTTPTransport(transport)))}
	if key := orEnvironment(settings.SigningKey, "FLOTILLA_SIGNING_KEY"); key != "" {
		signer, err := git.NewSigner(key, orEnvironment(settings.SigningPassphrase, "FLOTILLA_SIGNING_PASSPHRASE"))
		if err != nil {
			resp.Diagnostics.AddAttributeError(path.Root("git").AtName("signing_key"), "Invalid signing key", sentence(err.Error()))
			return
		}
		options = append(options, gitops.WithSigner(signer))
	}
	c.client = gitops.NewClient(options...)
	resp.ResourceData, resp.DataSourceData = c, c
}

func orEnvironment(value types.String, variable string) string {
	if value.IsNull() {
		return os.Getenv(variable)
	}
	return value.ValueString()
}

// inspect reads the tip of a branch, once for each owner, and lets one caller at a time look. What failed
// is tried again.
func (c *connection) inspect(ctx context.Context, remote git.Remote, owner gitops.Owner, look func(*gitops.View) error) error {
	key := viewKey{remote.URL, remote.Branch, owner}
	c.views.mu.Lock()
	kept := c.views.read[key]
	if kept == nil {
		kept = &read{turn: make(turn, 1)}
		c.views.read[key] = kept
	}
	c.views.mu.Unlock()

	release, err := kept.turn.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	if kept.view == nil {
		view, err := c.client.Inspect(ctx, remote, owner)
		if err != nil {
			return err
		}
		kept.view = view
	}
	return look(kept.view)
}

// Resources lists the constructors of all resources.
func (p *flotilla) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		newAssignmentResource,
		clusterResource,
		clusterTypeResource,
		configContainerResource,
		configSchemaResource,
		environmentResource,
		targetPolicyResource,
		templateResource,
		workloadResource,
		workspaceResource,
	}
}

// DataSources lists the constructors of all data sources.
func (p *flotilla) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		newConfigSnapshotsDataSource,
		newHistoryDataSource,
		newManifestsDataSource,
		newSchedulingDataSource,
	}
}

// Functions lists the constructors of all functions.
func (p *flotilla) Functions(context.Context) []func() function.Function {
	return []func() function.Function{
		newControlPlaneFunction,
		newFleetFunction,
		newMergeFunction,
		newSelectorMatchesFunction,
	}
}
