// Package provider is the Terraform surface of Flotilla: it decodes configuration, calls the packages that compute and
// write, and turns the results into state, plans and diagnostics.
package provider

import (
	"context"
	"encoding/json"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/run"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact/origin"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/source"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/functions"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/troubleshooting"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/wire"
)

var (
	_ provider.Provider                       = &flotilla{}
	_ provider.ProviderWithActions            = &flotilla{}
	_ provider.ProviderWithEphemeralResources = &flotilla{}
	_ provider.ProviderWithFunctions          = &flotilla{}
	_ provider.ProviderWithListResources      = &flotilla{}
	_ provider.ProviderWithValidateConfig     = &flotilla{}
)

// New returns a constructor of the provider. version is the release.
func New(version string) func() provider.Provider {
	return func() provider.Provider { return &flotilla{version: version, clock: connection.WallClock{}} }
}

type flotilla struct {
	version string
	git     git.ConnectorOptions // data sources of tests
	clock   compliance.Clock
	workers *renderer.Workers // of all tests
}

func (p *flotilla) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "flotilla"
	resp.Version = p.version
}

func (p *flotilla) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Runs workloads on fleets of Kubernetes clusters: schedules deployment targets onto cluster types and " +
			"clusters by label, hydrates their configuration, renders what Flux, Argo CD, Config Sync, Rancher Fleet or Zarf reconcile, and " +
			"commits it to a GitOps repository.",
		Attributes: map[string]schema.Attribute{
			"cache":    cacheAttribute(),
			"clusters": connection.ClustersAttribute(),
			definitionsAttribute: schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "CustomResourceDefinitions of the clusters, in addition to definitions among final objects: a text of YAML " +
					"documents, or a list or map of such texts. Final objects are checked against their schemas. Objects of kinds without a " +
					"definition are not checked.",
			},
			"git": schemas.OfProvider("How to reach GitOps repositories, and who commits. Local repositories need none of it. Secrets that come "+
				"from the environment, or from ephemeral values, are in no plan and no state.", fleet.ObjectType, GitTable),
			"measurements": schemas.OfProvider("Credentials for the servers that `flotilla_measurements` asks. It is in no state, and secrets "+
				"that come from the environment, or from ephemeral values, are in no plan either.", fleet.ObjectType, MeasurementsTable),
			"verification": schemas.OfProvider(
				"Whose signatures content needs before it is rendered into final objects. Unset: none, unless a cluster type requires it.",
				fleet.ObjectType,
				VerificationTable,
			),
		},
	}
}

func (p *flotilla) ValidateConfig(ctx context.Context, req provider.ValidateConfigRequest, resp *provider.ValidateConfigResponse) {
	decode(ctx, req.Config, &resp.Diagnostics)
}

type configuration struct {
	git          gitSettings
	clusters     connection.Clusters
	measurements measurementsSettings
	cache        cacheSettings
	verification verificationSettings
	definitions  pipeline.Definitions
}

func decode(ctx context.Context, config tfsdk.Config, diagnostics *diag.Diagnostics) configuration {
	read := func(name string) (value types.Dynamic) {
		diagnostics.Append(config.GetAttribute(ctx, path.Root(name), &value)...)
		return value
	}
	return configuration{
		git:          decodeGit(read("git"), diagnostics),
		clusters:     connection.DecodeClusters(read("clusters"), diagnostics),
		measurements: decodeMeasurements(read("measurements"), diagnostics),
		cache:        decodeCache(read("cache"), diagnostics),
		verification: decodeVerification(read("verification"), diagnostics),
		definitions:  decodeDefinitions(read(definitionsAttribute), diagnostics),
	}
}

// Configure reads credentials. It sends no request.
func (p *flotilla) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	given := decode(ctx, req.Config, &resp.Diagnostics)
	given.clusters.WarnOfUnverified(&resp.Diagnostics)
	given.cache.check(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	settings := given.git
	over, err := git.NewHTTPTransport(settings.certificates)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("git"), "Invalid certificates", tfvalue.Sentence("ca_certificates: "+err.Error()))
		return
	}
	measureClient, err := given.measurements.client(connection.UserAgent(p.version))
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("measurements"), "Invalid certificates", tfvalue.Sentence("ca_certificates: "+err.Error()))
		return
	}
	reaching := p.git
	reaching.UserAgent, reaching.Log = connection.UserAgent(p.version), logDebug
	if reaching.Over == nil {
		reaching.Over = over
	}
	client := git.NewConnector(reaching)
	options := gitops.BranchOptions{Git: client, Now: p.clock.Now}
	if settings.signingKey != "" {
		if options.Signer, err = git.NewSigner(settings.signingKey, settings.passphrase); err != nil {
			resp.Diagnostics.AddAttributeError(path.Root("git"), "Invalid signing key", tfvalue.Sentence("signing_key: "+err.Error()))
			return
		}
	}
	if settings.signers != nil && settings.complete {
		if options.Signer == nil || !settings.signers.Accepts(options.Signer) {
			reportInvalid(&resp.Diagnostics, "git",
				"allowed_signers needs a signing_key, and has to list the public key of that: what Flotilla itself writes would not be believed")
			return
		}
		options.AllowedSigners = settings.signers
	}
	c := &connection.Connection{
		Delivery: delivery.New(delivery.ServiceOptions{
			Git: gitops.NewBranchClient(options), Credentials: settings.credentials, Over: over, Author: settings.author,
			Release: p.version, Run: run.Current(os.Getenv), UserAgent: connection.UserAgent(p.version),
		}),
		Sources: source.NewReader(client, settings.credentials),
		Artifacts: origin.NewResolver(origin.ResolverOptions{
			Git: client, Credentials: settings.credentials, Over: over, UserAgent: connection.UserAgent(p.version),
			Trusted: given.verification.sources,
		}),
		Complete: settings.complete, Clusters: given.clusters, Measure: measureClient, Release: p.version, Clock: p.clock,
	}
	if c.Complete && given.verification.complete && given.cache.complete {
		c.Fleets.Definitions = given.definitions
		c.Fleets.Renderer = renderer.NewPool(origin.NewStore(c.Artifacts, given.cache.folder), renderer.PoolOptions{
			Cache: given.cache.folder, Workers: p.workers,
		})
	}
	resp.ResourceData, resp.DataSourceData, resp.EphemeralResourceData = c, c, c
	resp.ActionData, resp.ListResourceData = c, c
}

// logDebug logs requests to repositories, without secrets.
func logDebug(ctx context.Context, message string, fields map[string]any) {
	tflog.Debug(ctx, message, fields)
}

// Server serves a provider by the plugin framework. Package wire reads and writes the large values: the argument of
// provider::flotilla::fleet, and the assignments of flotilla_scheduling and flotilla_inventory. The framework gets a small
// value in their place, and does everything else.
//
// In a plan of 20,000 assignments without changes, the framework took 2.3 s of processor time for the first two.
func Server(p provider.Provider) tfprotov6.ProviderServer {
	var metadata provider.MetadataResponse
	p.Metadata(context.Background(), provider.MetadataRequest{}, &metadata)
	return &server{troubleshooting.Explain(providerserver.NewProtocol6(p)(), metadata.Version)}
}

type server struct{ troubleshooting.Server }

// CallFunction reads the argument of fleet. If it cannot, the framework reads it and reports the error.
func (s *server) CallFunction(ctx context.Context, req *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	if req.Name != functions.Fleet.Name || len(req.Arguments) != 1 || req.Arguments[0] == nil {
		return s.Server.CallFunction(ctx, req)
	}
	argument, err := wire.Plain(req.Arguments[0].MsgPack)
	if err != nil {
		return s.Server.CallFunction(ctx, req)
	}
	seen, err := tfprotov6.NewDynamicValue(tftypes.DynamicPseudoType, tftypes.NewValue(tftypes.String, "read already"))
	if err != nil {
		return nil, err
	}
	return s.Server.CallFunction(wire.WithArgument(ctx, argument),
		&tfprotov6.CallFunctionRequest{Name: req.Name, Arguments: []*tfprotov6.DynamicValue{&seen}})
}

// ReadDataSource adds the attribute that the data source has set aside.
func (s *server) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	ctx, aside := wire.WithAside(ctx)
	resp, err := s.Server.ReadDataSource(ctx, req)
	if err != nil || aside.Value == nil {
		return resp, err
	}
	resp.State.MsgPack, err = wire.Replace(resp.State.MsgPack, aside.Name, aside.Value)
	return resp, err
}

// sayChanges lists the resources with an attribute changes.
var sayChanges = map[string]bool{"flotilla_assignment": true, "flotilla_agent": true, "flotilla_rollout": true}

// UpgradeResourceState reads the attribute changes as empty. The state has the changes of the last apply; the next plan
// must neither show those lines nor omit equal new ones. If a refresh emptied it, Terraform would report a change outside
// of Terraform after every apply.
func (s *server) UpgradeResourceState(
	ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	if sayChanges[req.TypeName] && req.RawState != nil {
		var attributes map[string]json.RawMessage
		if json.Unmarshal(req.RawState.JSON, &attributes) == nil && attributes["changes"] != nil {
			attributes["changes"] = json.RawMessage("[]")
			if text, err := json.Marshal(attributes); err == nil {
				without := *req
				without.RawState = &tfprotov6.RawState{JSON: text}
				req = &without
			}
		}
	}
	return s.Server.UpgradeResourceState(ctx, req)
}

// ReadResource writes numbers as text. Terraform finds a 1 from a provider different from a 1 in the state: each `plan
// -refresh-only -detailed-exitcode` would return 2 without showing a change (github.com/hashicorp/terraform/issues/36403).
func (s *server) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	resp, err := s.Server.ReadResource(ctx, req)
	if err == nil && resp.NewState != nil {
		if message, err := wire.NumbersAsText(resp.NewState.MsgPack); err == nil {
			resp.NewState = &tfprotov6.DynamicValue{MsgPack: message}
		}
	}
	return resp, err
}
