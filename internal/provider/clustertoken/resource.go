// Package clustertoken implements the ephemeral resource flotilla_cluster_token.
package clustertoken

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

var (
	_ ephemeral.EphemeralResourceWithConfigure      = &served{}
	_ ephemeral.EphemeralResourceWithValidateConfig = &served{}
)

const (
	defaultDuration = time.Hour
	// shortest is the API servers' minimum.
	shortest = 10 * time.Minute
	// longest is longer than any run: a token cannot be revoked before it expires.
	longest = 24 * time.Hour
)

// New returns the ephemeral resource.
func New() ephemeral.EphemeralResource { return &served{} }

type served struct{ connection *connection.Connection }

type clusterTokenModel struct {
	Cluster        types.String `tfsdk:"cluster"`
	Namespace      types.String `tfsdk:"namespace"`
	ServiceAccount types.String `tfsdk:"service_account"`
	Audiences      types.List   `tfsdk:"audiences"`
	Duration       types.String `tfsdk:"duration"`
	Token          types.String `tfsdk:"token"`
	ExpiresAt      types.String `tfsdk:"expires_at"`
}

func (s *served) Metadata(_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_cluster_token"
}

func (s *served) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A short-lived token of a service account on a cluster. No plan and no state contains it: each plan " +
			"and each apply requests a new token through the provider's `clusters`. Their credentials need the permission to " +
			"`create` `serviceaccounts/token`. Use the token where a provider block or a program needs no more rights than the " +
			"account has.",
		Attributes: map[string]schema.Attribute{
			"cluster":         schemas.RequiredText("Name of the cluster or hub, an entry of the provider's `clusters`."),
			"namespace":       schemas.RequiredText("Namespace of the service account."),
			"service_account": schemas.RequiredText("Name of an existing service account, such as the account of an agent."),
			"audiences":       schemas.OptionalTexts("Receivers of the token. Default: the cluster's API server."),
			"duration": schemas.OptionalText("Validity of the token, from ten minutes to a day, such as `\"30m\"`. Default: `1h`. An API " +
				"server may grant more or less: see `expires_at`."),
			"token": schema.StringAttribute{
				Computed: true, Sensitive: true,
				MarkdownDescription: "The token. It is unknown while the cluster is unknown. If the same apply creates the " +
					"cluster, OpenTofu needs `depends_on` with the resource that creates it.",
			},
			"expires_at": schemas.ComputedText("End of the token's validity in RFC 3339, as reported by the API server."),
		},
	}
}

func (s *served) Configure(_ context.Context, req ephemeral.ConfigureRequest, _ *ephemeral.ConfigureResponse) {
	s.connection, _ = req.ProviderData.(*connection.Connection)
}

func (s *served) ValidateConfig(ctx context.Context, req ephemeral.ValidateConfigRequest, resp *ephemeral.ValidateConfigResponse) {
	m := &clusterTokenModel{}
	if resp.Diagnostics.Append(req.Config.Get(ctx, m)...); !resp.Diagnostics.HasError() {
		m.wanted(&resp.Diagnostics)
	}
}

func (s *served) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	m := &clusterTokenModel{}
	if resp.Diagnostics.Append(req.Config.Get(ctx, m)...); resp.Diagnostics.HasError() {
		return
	}
	wanted, name := m.wanted(&resp.Diagnostics), m.Cluster.ValueString()
	if resp.Diagnostics.HasError() {
		return
	}
	clusters := &s.connection.Clusters
	waits, missing := clusters.Access(name)
	switch {
	case missing:
		clusters.AddMissing(path.Root("cluster"), name, &resp.Diagnostics)
		return
	case waits:
		m.Token, m.ExpiresAt = types.StringUnknown(), types.StringUnknown()
	default:
		token, err := s.request(ctx, name, wanted)
		if err != nil {
			addError(name, err, &resp.Diagnostics)
			return
		}
		m.Token, m.ExpiresAt = types.StringValue(token.Text), tfvalue.Time(token.Expires)
	}
	resp.Diagnostics.Append(resp.Result.Set(ctx, m)...)
}

// wanted decodes the request without unknown attributes.
func (m *clusterTokenModel) wanted(diagnostics *diag.Diagnostics) kube.TokenRequest {
	report := func(attribute, problem string) {
		diagnostics.AddAttributeError(path.Root(attribute), "Invalid "+attribute, tfvalue.Sentence(problem))
	}
	wanted := kube.TokenRequest{
		Namespace:      m.Namespace.ValueString(),
		ServiceAccount: m.ServiceAccount.ValueString(),
		Duration:       defaultDuration,
	}
	if m.Cluster.ValueString() == "" && !m.Cluster.IsUnknown() {
		report("cluster", "cluster is empty: it is the name of an entry of the provider's clusters")
	}
	if problem := fleet.CheckLabelName(wanted.Namespace); problem != "" && !m.Namespace.IsUnknown() {
		report("namespace", fmt.Sprintf("%q %s", wanted.Namespace, problem))
	}
	if problem := fleet.CheckSubdomainName(wanted.ServiceAccount); problem != "" && !m.ServiceAccount.IsUnknown() {
		report("service_account", fmt.Sprintf("%q %s", wanted.ServiceAccount, problem))
	}
	for _, audience := range m.Audiences.Elements() {
		text, isText := audience.(types.String)
		if isText && !text.IsUnknown() && text.ValueString() == "" {
			report("audiences", "an audience is empty")
			break
		}
		wanted.Audiences = append(wanted.Audiences, text.ValueString())
	}
	if m.Duration.IsNull() || m.Duration.IsUnknown() {
		return wanted
	}
	duration, problem := fleet.ParseDuration(m.Duration.ValueString(), math.MaxInt64)
	switch {
	case problem != "":
	case duration > longest:
		problem = fmt.Sprintf("%q is more than a day, which no run takes: a token cannot be taken back before it ends", m.Duration.ValueString())
	case duration < shortest:
		problem = fmt.Sprintf("%q is less than ten minutes, the shortest that API servers give", m.Duration.ValueString())
	}
	if problem != "" {
		report("duration", problem)
	}
	wanted.Duration = duration
	return wanted
}

func (s *served) request(ctx context.Context, name string, wanted kube.TokenRequest) (token kube.Token, err error) {
	options := kube.QueryOptions{UserAgent: connection.UserAgent(s.connection.Release)}
	err = kube.QueryOne(ctx, s.connection.Clusters.Known[name], options, func(ctx context.Context, client *kube.ClusterClient) (err error) {
		token, err = client.RequestToken(ctx, wanted)
		return err
	})
	return token, err
}

func addError(name string, err error, diagnostics *diag.Diagnostics) {
	text := fmt.Sprintf("Cluster %q: %s.", name, err)
	switch kube.ReasonOf(err) {
	case kube.ReasonRefused:
		diagnostics.AddAttributeError(path.Root("service_account"), "Cluster gives no token", text)
	case kube.ReasonForbidden:
		diagnostics.AddAttributeError(path.Root("cluster"), "Credentials of the cluster lack permissions", text)
	default:
		diagnostics.AddAttributeError(path.Root("cluster"), "Cluster cannot be reached", text)
	}
}
