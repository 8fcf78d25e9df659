package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	listschema "github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

var _ list.ListResourceWithConfigure = &listed{}

// NewList returns the list resource of agents, found by their objects on the provider's clusters.
func NewList() list.ListResource { return &listed{} }

type listed struct{ connection *connection.Connection }

// ListDefinition is the configuration. A test compares the documentation with it.
var ListDefinition = listschema.Schema{
	MarkdownDescription: "The agents in clusters, found by their objects in any state. The list omits agents of a hub.",
	Attributes: map[string]listschema.Attribute{
		"clusters": schemas.OptionalTexts("Names of the clusters to query, entries of the provider's `clusters`. Default: all of " +
			"them."),
	},
}

func (l *listed) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_agent"
}

func (l *listed) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = ListDefinition
}

func (l *listed) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	l.connection, _ = req.ProviderData.(*connection.Connection)
}

func (l *listed) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var diagnostics diag.Diagnostics
	var names []string
	diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("clusters"), &names)...)
	settings := &l.connection.Clusters
	asked := maps.Clone(settings.Known)
	if names != nil {
		maps.DeleteFunc(asked, func(name string, _ kube.Cluster) bool { return !slices.Contains(names, name) })
		for _, name := range names {
			if _, missing := settings.Access(name); missing {
				settings.AddMissing(path.Root("clusters"), name, &diagnostics)
			}
		}
	}
	bounded, cancel := timeouts.Default.During(ctx, timeouts.Read, &l.connection.Budget)
	defer cancel()
	answers := kube.QueryAll(bounded, asked, kube.QueryOptions{Deadline: lookDeadline, UserAgent: connection.UserAgent(l.connection.Release)},
		func(ctx context.Context, name string, client *kube.ClusterClient) (on agentsOn, err error) {
			on.found, on.refused, err = onboarding.FindAgents(ctx, client, name)
			return on, err
		})
	var found []agent.Settings
	var failed, refused []string
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		if err := answers[name].Err; err != nil {
			failed = append(failed, fullStop(fmt.Sprintf("Cluster %q: %s", name, onboarding.NewFailure(err).Error())))
		}
		found = append(found, answers[name].Value.found...)
		for _, one := range answers[name].Value.refused {
			refused = append(refused, fullStop("The "+one.String()))
		}
	}
	report := diagnostics.AddAttributeWarning
	if len(found) == 0 {
		report = diagnostics.AddAttributeError // Terraform shows warnings of results alone
	}
	if len(refused) > 0 {
		report(path.Root("clusters"), refusedSummary, wording.Lines(refused, wording.Named)+"\n"+refusedRemedy)
	}
	if len(failed) > 0 {
		report(path.Root("clusters"), "Cluster cannot be reached", wording.Lines(failed, wording.Named)+"\nTheir agents are not listed.")
	}
	if diagnostics.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diagnostics)
		return
	}
	stream.Results = func(push func(list.ListResult) bool) {
		for i := range found {
			result := req.NewListResult(ctx)
			if i == 0 {
				result.Diagnostics.Append(diagnostics...) // they belong to no result
			}
			recognized := agentModel{Cluster: types.StringValue(found[i].Cluster)}
			recognized.recognize(&found[i])
			result.DisplayName = wording.List(
				slices.DeleteFunc([]string{found[i].Cluster, found[i].Namespace, found[i].Name}, func(part string) bool { return part == "" }),
				3,
			)
			for name, value := range identify(&recognized) {
				result.Diagnostics.Append(result.Identity.SetAttribute(ctx, path.Root(name), value)...)
			}
			if req.IncludeResource {
				for name, value := range recognized.attributes() {
					result.Diagnostics.Append(result.Resource.SetAttribute(ctx, path.Root(name), value)...)
				}
			}
			if !push(result) {
				return
			}
		}
	}
}

type agentsOn struct {
	found   []agent.Settings
	refused []agent.Refused
}

const (
	refusedSummary = "Objects of an agent are not as Flotilla writes them"
	refusedRemedy  = "They are not listed or imported, since their values would become configuration. Anybody who may create objects " +
		"in that namespace can have made them: find out who did, and correct or remove them."
)

func (m *agentModel) recognize(settings *agent.Settings) {
	text := func(given string) types.String {
		if given == "" {
			return types.StringNull()
		}
		return types.StringValue(given)
	}
	object := func(fields map[string]string) types.Dynamic {
		kinds, values := map[string]attr.Type{}, map[string]attr.Value{}
		for name, field := range fields {
			if field != "" {
				kinds[name], values[name] = types.StringType, types.StringValue(field)
			}
		}
		return types.DynamicValue(types.ObjectValueMust(kinds, values))
	}
	m.ClusterType, m.Reconciler = text(settings.ClusterType), text(settings.Reconciler)
	if m.Name.IsNull() {
		m.Name = text(settings.Name)
	}
	if m.Namespace.IsNull() {
		m.Namespace = text(settings.Namespace)
	}
	m.GitopsRepo = object(
		map[string]string{"url": settings.Repository.URL, "branch": settings.Repository.Branch, "path": settings.Repository.Path},
	)
	if settings.Interval > 0 {
		m.Interval = text(settings.Interval.String())
	}
	if settings.Timeout > 0 {
		m.Timeout = text(settings.Timeout.String())
	}
	if settings.CredentialsSecret != "" {
		m.Credentials = object(map[string]string{"secret": settings.CredentialsSecret})
	}
	if of := settings.Decryption; of != nil {
		m.Decryption = object(map[string]string{"secret": of.Secret, "service_account": of.ServiceAccount})
	}
}

// attributes returns the attributes of [agentModel.recognize] by name.
func (m *agentModel) attributes() map[string]attr.Value {
	return map[string]attr.Value{
		"cluster": m.Cluster, "cluster_type": m.ClusterType, "reconciler": m.Reconciler, "name": m.Name, "namespace": m.Namespace,
		"gitops_repo": m.GitopsRepo,
		"interval":    m.Interval, "timeout": m.Timeout, "credentials": m.Credentials, "decryption": m.Decryption,
	}
}

// recognize reads an imported agent. Without one, it returns nil, and the next apply applies all objects.
func (r *request) recognize(ctx context.Context) *agentPrivate {
	m := r.model
	if waits, missing := r.access(); waits || missing || !m.Hub.IsNull() {
		return nil
	}
	after := &agentPrivate{Cluster: m.Cluster.ValueString()}
	recognized := false
	err := r.connect(ctx, min(lookDeadline, remaining(ctx)), nil, func(ctx context.Context, client *kube.ClusterClient) error {
		found, refused, err := onboarding.FindAgents(ctx, client, m.Cluster.ValueString())
		for _, one := range refused {
			if one.Settings.IsCalled(m.Name.ValueString(), m.Namespace.ValueString()) {
				r.diagnostics.AddError(refusedSummary, fullStop("The "+one.String())+"\n"+refusedRemedy)
				return nil
			}
		}
		at := slices.IndexFunc(found, func(s agent.Settings) bool { return s.IsCalled(m.Name.ValueString(), m.Namespace.ValueString()) })
		if err != nil || at < 0 {
			return err
		}
		m.recognize(&found[at])
		objects := r.rendered(m, nil, r.clusters())
		look, err := onboarding.Inspect(ctx, client, objects, onboarding.InspectOptions{SecretsUnknown: true})
		if err != nil {
			return err
		}
		recognized, after.UID, after.Records = true, look.UID, onboarding.Recognize(objects, look)
		after.Drift = onboarding.FindDrift(objects, look)
		m.Objects, m.Found, m.Changes = objectsValue(objects, after.Drift.Findings), foundValue(after.Records), tfvalue.Texts(nil)
		if len(after.Drift.Findings) == 0 {
			after.Drift = onboarding.Drift{}
		}
		return nil
	})
	if err != nil {
		r.warnOfAway(err, "The next apply for cluster %q applies everything again.")
	}
	if !recognized {
		return nil
	}
	return after
}
