// Package reconcile implements the action flotilla_reconcile, which makes agents read a branch now.
package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

var (
	_ action.ActionWithConfigure      = &served{}
	_ action.ActionWithModifyPlan     = &served{}
	_ action.ActionWithValidateConfig = &served{}
)

// New returns the action.
func New() action.Action { return &served{} }

type served struct{ connection *connection.Connection }

type reconcileModel struct {
	Clusters   types.List    `tfsdk:"clusters"`
	GitopsRepo types.Dynamic `tfsdk:"gitops_repo"`
	Reconciler types.String  `tfsdk:"reconciler"`
}

// Definition returns the schema.
func Definition() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "Asks the agents of clusters to look at a branch of a GitOps repository now, so that a change arrives in " +
			"seconds, and not only when an agent's interval has passed. It waits for no agent. The clusters are asked at the same time, " +
			"through the provider's `clusters`, each for ten seconds at most. One that cannot be asked is a warning that names it: it looks " +
			"when its interval has passed. Where none could be asked, that is an error.",
		Attributes: map[string]schema.Attribute{
			"clusters": schema.ListAttribute{
				Required: true, ElementType: types.StringType,
				MarkdownDescription: "Names of the clusters that have the agents: entries of the provider's `clusters`. With `argocd-hub` they " +
					"are hubs.",
			},
			"gitops_repo": schemas.RequiredDynamic(schemas.Location("The branch, such as `flotilla_environment.dev.gitops_repo`. Each object " +
				"that reads it on a cluster is asked, also one that others have put there.")),
			"reconciler": schemas.OptionalText("The agent of the clusters: " + wording.Either(asking(), "`") + "; default: `" +
				reconciler.DefaultAgent + "`. The others cannot be asked."),
		},
	}
}

// asking lists the reconcilers with such a request.
func asking() []string {
	return slices.DeleteFunc(reconciler.Agents(), func(name string) bool { return reconciler.Named(name).Refresh == nil })
}

func (s *served) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_reconcile"
}

func (s *served) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = Definition()
}

func (s *served) Configure(_ context.Context, req action.ConfigureRequest, _ *action.ConfigureResponse) {
	s.connection, _ = req.ProviderData.(*connection.Connection)
}

func (s *served) ValidateConfig(ctx context.Context, req action.ValidateConfigRequest, resp *action.ValidateConfigResponse) {
	m := &reconcileModel{}
	if resp.Diagnostics.Append(req.Config.Get(ctx, m)...); !resp.Diagnostics.HasError() {
		m.check(&resp.Diagnostics)
	}
}

// ModifyPlan refuses clusters that the provider lacks.
func (s *served) ModifyPlan(ctx context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	m := &reconcileModel{}
	if resp.Diagnostics.Append(req.Config.Get(ctx, m)...); !resp.Diagnostics.HasError() && s.connection != nil {
		s.names(m, &resp.Diagnostics)
	}
}

func (s *served) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	m := &reconcileModel{}
	if resp.Diagnostics.Append(req.Config.Get(ctx, m)...); resp.Diagnostics.HasError() {
		return
	}
	by, at := m.check(&resp.Diagnostics)
	ready, away := s.names(m, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	all := len(ready) + len(away)
	now := time.Now().UTC().Format(time.RFC3339Nano)
	var progress sync.Mutex
	answers := kube.QueryAll(ctx, ready, kube.QueryOptions{UserAgent: connection.UserAgent(s.connection.Release)},
		func(ctx context.Context, name string, client *kube.ClusterClient) (struct{}, error) {
			asked, err := onboarding.RequestRefresh(ctx, client, by, at, now)
			if len(asked) > 0 {
				progress.Lock()
				defer progress.Unlock()
				resp.SendProgress(action.InvokeProgressEvent{Message: fmt.Sprintf("%s: asked %s", name, strings.Join(asked, ", "))})
			}
			return struct{}{}, err
		})
	for name, answer := range answers {
		if answer.Err != nil {
			away[name] = answer.Err.Error()
		}
	}
	report(away, all, &resp.Diagnostics)
}

// check reports all mistakes in the known parts.
func (m *reconcileModel) check(diagnostics *diag.Diagnostics) (by *reconciler.Reconciler, at folder.Location) {
	by = reconciler.Named(reconciler.DefaultAgent)
	if name := m.Reconciler.ValueString(); !m.Reconciler.IsNull() && !m.Reconciler.IsUnknown() {
		by = reconciler.Named(name)
		switch {
		case by != nil && by.NoRefresh != "":
			diagnostics.AddAttributeError(path.Root("reconciler"), "Agent cannot be asked", by.NoRefresh+".")
		case by == nil || by.Refresh == nil:
			tfvalue.CheckOneOf("reconciler", m.Reconciler, diagnostics, asking()...)
		}
	}
	at, _ = repository.DecodeLocation(m.GitopsRepo, diagnostics)
	return by, at
}

// names returns the reachable clusters, and the others with reasons. It refuses missing ones.
func (s *served) names(m *reconcileModel, diagnostics *diag.Diagnostics) (ready map[string]kube.Cluster, away map[string]string) {
	ready, away = map[string]kube.Cluster{}, map[string]string{}
	clusters := &s.connection.Clusters
	for _, element := range m.Clusters.Elements() {
		text, isText := element.(types.String)
		if !isText || text.IsUnknown() {
			continue
		}
		name := text.ValueString()
		switch waits, missing := clusters.Access(name); {
		case waits:
			away[name] = "it is not known yet how it is reached"
		case missing:
			clusters.AddMissing(path.Root("clusters"), name, diagnostics)
		default:
			ready[name] = clusters.Known[name]
		}
	}
	return ready, away
}

func report(away map[string]string, of int, diagnostics *diag.Diagnostics) {
	if len(away) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(away))
	lines := make([]string, len(names))
	for i, name := range names {
		lines[i] = name + ": " + away[name]
	}
	text := fmt.Sprintf(
		"Of %s, %d could not be asked. The commit is on the branch: an agent that was not asked looks when its interval has passed.\n%s",
		wording.Count(of, "cluster", "clusters"),
		len(names),
		wording.Lines(lines, wording.Named),
	)
	if len(away) == of {
		diagnostics.AddAttributeError(path.Root("clusters"), "Agents were not asked", text)
		return
	}
	diagnostics.AddAttributeWarning(path.Root("clusters"), "Agents were not asked", text)
}
