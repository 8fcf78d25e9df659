package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/artifacts"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/assignment"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/branchlist"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/clusterclaim"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/clusterfacts"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/clustertoken"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/commitstatus"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/comparison"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/configsnapshots"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/diff"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/functions"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/history"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/inventory"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/manifests"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/measurements"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/overview"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/promotion"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/reconcile"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repositoryfiles"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/scheduling"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/stateonly"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/values"
)

func (p *flotilla) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		agent.New,
		assignment.New,
		promotion.New,
		clusterclaim.New,
		commitstatus.New,
		values.New,
		stateonly.Cluster,
		stateonly.ClusterType,
		stateonly.ConfigContainer,
		stateonly.ConfigSchema,
		stateonly.Constraint,
		stateonly.Environment,
		stateonly.TargetPolicy,
		stateonly.Template,
		stateonly.Workload,
		stateonly.Workspace,
	}
}

func (p *flotilla) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		artifacts.New,
		clusterfacts.New,
		comparison.New,
		compliance.New,
		configsnapshots.New,
		diff.New,
		history.New,
		inventory.New,
		manifests.New,
		measurements.New,
		overview.New,
		repositoryfiles.New,
		scheduling.New,
	}
}

func (p *flotilla) Actions(context.Context) []func() action.Action {
	return []func() action.Action{reconcile.New}
}

func (p *flotilla) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{clustertoken.New}
}

// ListResources lists the constructors of all list resources for `terraform query`.
func (p *flotilla) ListResources(context.Context) []func() list.ListResource {
	return []func() list.ListResource{branchlist.Assignments, branchlist.Claims, agent.NewList}
}

func (p *flotilla) Functions(context.Context) []func() function.Function {
	return []func() function.Function{
		functions.Adopt.New,
		functions.AgentManifests.New,
		functions.ControlPlane.New,
		functions.Fleet.New,
		functions.Merge.New,
		functions.Registrations.New,
		functions.SelectorMatches.New,
	}
}
