// Package agent implements flotilla_agent, which makes a cluster follow its folders.
package agent

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// New returns the resource.
func New() resource.Resource {
	return frame.Resource[agentModel]{
		Name: "agent", Schema: definition, Validate: validate, Plan: plan,
		Create: create, Read: read, Update: update, Delete: remove, Import: importState,
		Identity: identity, Identify: identify,
		WriteOnly: func(m *agentModel) map[string]any { return map[string]any{"credentials_wo": &m.Secrets} },
	}.New()
}

// identity distinguishes agents of one cluster by names and namespaces.
var identity = map[string]identityschema.Attribute{
	"cluster": identityschema.StringAttribute{RequiredForImport: true, Description: "Name of the cluster."},
	"hub": identityschema.StringAttribute{
		OptionalForImport: true,
		Description:       "Name of the cluster that runs Argo CD, with the reconciler argocd-hub.",
	},
	"name": identityschema.StringAttribute{
		OptionalForImport: true,
		Description:       "Name of the agent's objects, unless it is the default.",
	},
	"namespace": identityschema.StringAttribute{OptionalForImport: true, Description: "Namespace of the agent, unless it is the " +
		"default."},
}

func identify(m *agentModel) map[string]types.String {
	return map[string]types.String{"cluster": m.Cluster, "hub": m.Hub, "name": m.Name, "namespace": m.Namespace}
}

var replaces = []planmodifier.String{stringplanmodifier.RequiresReplace()}

var definition = schema.Schema{
	MarkdownDescription: "Makes a cluster follow its two folders of a GitOps repository: the folder of its type and its own. The " +
		"resource applies the agent's objects by server-side apply with the field manager `flotilla`, through the provider's " +
		"`clusters`. If an object is changed or deleted on the cluster, the next plan names it, and the next apply repairs it. If " +
		"another manager owns a field, the plan reports a conflict that names the manager. A cluster that is unreachable or not " +
		"known yet causes no error at plan. A cluster that was recreated is onboarded again.",
	Attributes: map[string]schema.Attribute{
		"cluster": schema.StringAttribute{
			Required: true, PlanModifiers: replaces,
			MarkdownDescription: "Name of the cluster in the provider's `clusters` and in the fleet. With `argocd-hub`, `clusters` " +
				"needs no entry for it, because only the hub is queried.",
		},
		"cluster_type": schemas.RequiredText("Name of the cluster's type. After a change, the cluster follows the folder of the " +
			"new type."),
		"gitops_repo": schemas.RequiredDynamic(
			schemas.Location("The location that the cluster follows, such as `flotilla_environment.dev.gitops_repo`."),
		),
		"reconciler": schemas.OptionalText("The cluster's agent: " + reconciler.AgentsInWords() + "."),
		"hub": schema.StringAttribute{
			Optional: true, PlanModifiers: replaces,
			MarkdownDescription: "With `argocd-hub`, the name of the cluster that runs Argo CD, an entry of the provider's " +
				"`clusters`.",
		},
		"environment": schemas.OptionalText("With `argocd-hub`, the name of the environment: a hub may serve several."),
		"registration": schemas.OptionalDynamic(schemas.Setting(
			"With `argocd-hub`, the hub's access to the cluster. Put a token or a client certificate into `credentials_wo`.",
			fleet.ObjectType,
			agent.RegistrationTable,
		)),
		"name": schemas.OptionalText("Name of the agent's objects, or the beginning of their names. Default: `flotilla`. Two agents in one " +
			"configuration must not have the same cluster, namespace and name."),
		"namespace": schemas.OptionalText("Namespace of the agent. Default: " + wording.Either(reconciler.AgentNamespaces(), "`") + "."),
		"interval":  schemas.OptionalText("Time between two reads of the repository, such as `\"30s\"`. Default: `1m`."),
		"timeout":   schemas.OptionalText("Time for the objects of a commit to become ready. Default: `5m`."),
		"install": schema.DynamicAttribute{
			Optional: true, Sensitive: true,
			MarkdownDescription: "The agent's own manifests, unless the agent is installed in another way: a text of YAML documents, " +
				"such as the output of `flux install --export` or Argo CD's `manifests/install.yaml`, or a list or map of such texts. " +
				"Definitions and namespaces are applied first. It is marked as sensitive so that a plan has one line for it: " +
				"`changes` names the objects that change.",
		},
		"credentials_wo": schema.DynamicAttribute{
			Optional: true, WriteOnly: true,
			MarkdownDescription: schemas.Setting("Credentials with which the agent reads the repository, and the credentials of `feedback` "+
				"and `registration`. The argument is write-only: no plan and no state contains it. A change takes effect with the next change of "+
				"`credentials_wo_version` or of another argument.", fleet.ObjectType, SecretsTable),
		},
		"credentials_wo_version": schemas.OptionalWhole("Any number. A new number makes the next apply write `credentials_wo` " +
			"again."),
		"credentials": schemas.OptionalDynamic(
			schemas.Setting("An existing Secret that replaces `credentials_wo`.", fleet.ObjectType, SecretTable),
		),
		"feedback": schemas.OptionalDynamic(schemas.Setting("How the agent reports to the Git host, for `commit_statuses` of "+
			"`flotilla_compliance`. Put a token into `credentials_wo`.", fleet.ObjectType, agent.FeedbackTable)),
		"decryption": schemas.OptionalDynamic(schemas.Described(&fleet.Attribute{
			Meaning: "How the agent decrypts SOPS files of config containers, the same as `decryption` of the cluster type " +
				"(`flotilla_cluster_type.edge.decryption`). The named objects must be in the agent's namespace. `{}` uses the " +
				"agent's own identity. For Flux only.",
			Type: fleet.ObjectType, Of: fleet.DecryptionTable(),
		}, "reference-fleet")),
		"wait": schemas.OptionalBool("Whether an apply waits until the agent runs, has applied the branch's commit, and the contents of " +
			"both folders are ready. Default: `false`. An apply always waits for definitions and for deletions."),
		"on_destroy": schemas.OptionalText("The objects that a destroy removes. `keep` (default) keeps workloads running: it turns off " +
			"pruning in the objects that follow the folders, checks that pruning is off, and removes these objects, the credentials and the " +
			"feedback. `delete` removes everything that the agent has applied, waits for the end of that, and removes the agent itself if " +
			"`install` installed it. Neither changes objects that existed before, nor a namespace that a deployment target names or that " +
			"contains objects of others. Apply a change of `on_destroy` before the destroy."),
		"on_unreachable": schemas.OptionalText("The effect of a destroy if the cluster cannot be reached. `fail` (default) is an error, " +
			"because the agent and its credentials may still be there. `forget` removes the agent from the state and warns of the objects " +
			"that may remain; it is for clusters that come and go. Apply a change of `on_unreachable` before the destroy. An agent is always " +
			"forgotten if the provider's `clusters` no longer names its cluster."),
		"confine": schemas.OptionalBool("Whether Flux' controllers must confine the Flux objects of a namespace to the rights of a service " +
			"account there. Default: `true`. `install` gets the arguments for it. If Flux was installed in another way, a plan warns of " +
			"controllers without these arguments. Set `false` on clusters where only the platform may create such objects."),
		"force": schemas.OptionalBool("Whether to take over fields of other managers and objects of another cluster's agent. Default: " +
			"`false`, which makes both an error."),
		"timeouts": schemas.OptionalDynamic(schemas.Setting("Time limits of operations, including waiting.", fleet.ObjectType, timeouts.Table)),
		"objects": schemas.ComputedTextMap(
			"The agent's objects on the cluster and on the hub, by name: `applied`, or the difference from the applied object.",
		),
		"found": schemas.ComputedTexts("The objects that existed before. A destroy keeps them."),
		"changes": schemas.ComputedTexts("The changes of the plan, one line each: removals first, then changes of the configuration, then " +
			"drift of the cluster. No line contains a value."),
	},
}

type agentModel struct {
	Cluster        types.String  `tfsdk:"cluster"`
	ClusterType    types.String  `tfsdk:"cluster_type"`
	GitopsRepo     types.Dynamic `tfsdk:"gitops_repo"`
	Reconciler     types.String  `tfsdk:"reconciler"`
	Hub            types.String  `tfsdk:"hub"`
	Environment    types.String  `tfsdk:"environment"`
	Registration   types.Dynamic `tfsdk:"registration"`
	Name           types.String  `tfsdk:"name"`
	Namespace      types.String  `tfsdk:"namespace"`
	Interval       types.String  `tfsdk:"interval"`
	Timeout        types.String  `tfsdk:"timeout"`
	Install        types.Dynamic `tfsdk:"install"`
	Secrets        types.Dynamic `tfsdk:"credentials_wo"`
	SecretsVersion types.Int64   `tfsdk:"credentials_wo_version"`
	Credentials    types.Dynamic `tfsdk:"credentials"`
	Confine        types.Bool    `tfsdk:"confine"`
	Feedback       types.Dynamic `tfsdk:"feedback"`
	Decryption     types.Dynamic `tfsdk:"decryption"`
	Wait           types.Bool    `tfsdk:"wait"`
	OnDestroy      types.String  `tfsdk:"on_destroy"`
	OnUnreachable  types.String  `tfsdk:"on_unreachable"`
	Force          types.Bool    `tfsdk:"force"`
	Timeouts       types.Dynamic `tfsdk:"timeouts"`
	Objects        types.Map     `tfsdk:"objects"`
	Found          types.List    `tfsdk:"found"`
	Changes        types.List    `tfsdk:"changes"`
}

// validate checks the configuration without clusters.
func validate(_ context.Context, m *agentModel, diagnostics *diag.Diagnostics) {
	tfvalue.CheckOneOf("on_destroy", m.OnDestroy, diagnostics, "delete", "keep")
	tfvalue.CheckOneOf("on_unreachable", m.OnUnreachable, diagnostics, failUnreachable, forgetCluster)
	m.checkHub(diagnostics)
	var problems diag.Diagnostics
	settings, known := m.settings(m.secrets(&problems), &connection.Clusters{Unknown: true}, &problems)
	if known && !problems.HasError() && !diagnostics.HasError() {
		_, wrong := agent.Render(settings)
		addAgentProblems(&problems, wrong)
	}
	diagnostics.Append(problems.Errors()...) // the plan has the warnings
}

// plan plans from configuration and state alone, because Terraform plans again when it applies, and the cluster may
// answer differently by then. It reads the cluster only to find objects that would be refused.
func plan(ctx context.Context, c *frame.Call[agentModel]) {
	private := loadAgent(ctx, c.Private, c.Diagnostics)
	// A replacement is planned twice: first with the old state, then with none, but with its private state. An imported
	// agent has no private state.
	before := past{
		model: c.Prior, private: private, formerName: private.Cluster, isCounted: (c.Prior != nil) == (len(private.Records) > 0),
	}
	if c.Prior == nil {
		before.private = &agentPrivate{}
	}
	newRequest(c).plan(ctx, before)
}

// create applies the objects. After a failure the state has nothing, because Terraform would destroy a tainted object:
// the next apply recognizes created objects by their annotation.
func create(ctx context.Context, c *frame.Call[agentModel]) {
	after := newRequest(c).apply(ctx, nil)
	if c.Diagnostics.HasError() {
		return
	}
	for i := range after.Records {
		c.Connection.CreatedObjects.Store(after.identityOf(&after.Records[i]), nil)
	}
	after.save(ctx, c.Private, c.Diagnostics)
}

// read compares the cluster with the applied objects.
func read(ctx context.Context, c *frame.Call[agentModel]) {
	before := loadAgent(ctx, c.Private, c.Diagnostics)
	if c.Diagnostics.HasError() {
		return
	}
	if c.Model.ClusterType.IsNull() { // imported
		if recognized := newRequest(c).recognize(ctx); recognized != nil {
			recognized.save(ctx, c.Private, c.Diagnostics)
		}
		return
	}
	if after := newRequest(c).refresh(ctx, before); !c.Diagnostics.HasError() && !before.equal(after) {
		after.save(ctx, c.Private, c.Diagnostics)
	}
}

// update applies the planned objects. It touches no cluster for timeouts, on_destroy and on_unreachable.
func update(ctx context.Context, c *frame.Call[agentModel]) {
	before := loadAgent(ctx, c.Private, c.Diagnostics)
	if c.Diagnostics.HasError() || !c.Model.Found.IsUnknown() {
		return
	}
	if after := newRequest(c).apply(ctx, before); !c.Diagnostics.HasError() {
		after.save(ctx, c.Private, c.Diagnostics)
	}
}

func remove(ctx context.Context, c *frame.Call[agentModel]) {
	before := loadAgent(ctx, c.Private, c.Diagnostics)
	if c.Diagnostics.HasError() {
		return
	}
	if len(before.Records) > 0 {
		// With create_before_destroy, this agent's successor has just applied the same objects.
		before.Records = slices.DeleteFunc(before.Records, func(record onboarding.Record) bool {
			_, taken := c.Connection.CreatedObjects.Load(before.identityOf(&record))
			return taken
		})
		if len(before.Records) == 0 {
			return
		}
	}
	newRequest(c).remove(ctx, before)
}

// importState takes an identity or a cluster's name. The refresh reads the objects, and the next apply takes over the
// rest.
func importState(ctx context.Context, _ *connection.Connection, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	identity := frame.Imports(ctx, req, &resp.Diagnostics)
	if identity == nil {
		identity = map[string]types.String{"cluster": types.StringValue(req.ID)}
	}
	for name, value := range identity {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), value)...)
	}
}
