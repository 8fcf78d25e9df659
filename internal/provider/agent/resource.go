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
		Description:       "Name of the cluster that has Argo CD, with the reconciler argocd-hub.",
	},
	"name": identityschema.StringAttribute{
		OptionalForImport: true,
		Description:       "Name of the agent's objects, where it is not the default.",
	},
	"namespace": identityschema.StringAttribute{OptionalForImport: true, Description: "Namespace of the agent, where it is not the default."},
}

func identify(m *agentModel) map[string]types.String {
	return map[string]types.String{"cluster": m.Cluster, "hub": m.Hub, "name": m.Name, "namespace": m.Namespace}
}

var replaces = []planmodifier.String{stringplanmodifier.RequiresReplace()}

var definition = schema.Schema{
	MarkdownDescription: "Lets a cluster follow two folders of a GitOps repository: the folder of its type and its own. It applies the " +
		"objects of its agent by server-side apply with the field manager `flotilla`, through the provider's `clusters`. An object that " +
		"is changed or deleted there shows up in the next plan by name, and the next apply repairs it; a field with another manager is a " +
		"conflict that names the manager. A cluster that cannot be reached, or is not known yet, is no error at plan. One that is " +
		"recreated is onboarded again.",
	Attributes: map[string]schema.Attribute{
		"cluster": schema.StringAttribute{
			Required: true, PlanModifiers: replaces,
			MarkdownDescription: "Name of the cluster: an entry of the provider's `clusters`, and the name that the fleet has for it. With " +
				"`argocd-hub` only the hub is asked, and the entry may be left out.",
		},
		"cluster_type": schemas.RequiredText("Name of its cluster type. With another one it follows that one's folder."),
		"gitops_repo": schemas.RequiredDynamic(
			schemas.Location("The location that it follows, such as `flotilla_environment.dev.gitops_repo`."),
		),
		"reconciler": schemas.OptionalText("Its agent: " + reconciler.AgentsInWords() + "."),
		"hub": schema.StringAttribute{
			Optional: true, PlanModifiers: replaces,
			MarkdownDescription: "With `argocd-hub`, the name of the cluster that has Argo CD: an entry of the provider's `clusters`.",
		},
		"environment": schemas.OptionalText("With `argocd-hub`, the name of the environment: a hub may have clusters of several."),
		"registration": schemas.OptionalDynamic(
			schemas.Setting(
				"With `argocd-hub`, how the hub reaches the cluster. A token or a client certificate is for `credentials_wo`.",
				fleet.ObjectType,
				agent.RegistrationTable,
			),
		),
		"name": schemas.OptionalText(
			"Name of the objects, or the beginning of their names. Default: `flotilla`. Two agents of one configuration with the same " +
				"cluster, namespace and name are an error at plan.",
		),
		"namespace": schemas.OptionalText("Namespace of the agent. Default: " + wording.Either(reconciler.AgentNamespaces(), "`") + "."),
		"interval":  schemas.OptionalText("How often the agent reads the repository, a duration such as `\"30s\"`. Default: `1m`."),
		"timeout":   schemas.OptionalText("How long the agent waits for the objects of a commit to become ready. Default: `5m`."),
		"install": schemas.OptionalDynamic(
			"The agent's own manifests, if it is not installed otherwise: a text of YAML documents, such as the output of `flux install " +
				"--export` or Argo CD's `manifests/install.yaml`, or a list or map of such texts. Definitions and namespaces are applied first.",
		),
		"credentials_wo": schema.DynamicAttribute{
			Optional: true, WriteOnly: true, Sensitive: true,
			MarkdownDescription: schemas.Setting(
				"Credentials of the agent for the repository, `feedback` and `registration`. It is write-only: "+
					"in no state and no plan. A change is applied with the next change of `credentials_wo_version`, or of anything else.",
				fleet.ObjectType,
				SecretsTable,
			),
		},
		"credentials_wo_version": schemas.OptionalWhole("Any number; another one applies `credentials_wo` again."),
		"credentials": schemas.OptionalDynamic(
			schemas.Setting("An existing Secret, in place of `credentials_wo`.", fleet.ObjectType, SecretTable),
		),
		"feedback": schemas.OptionalDynamic(
			schemas.Setting(
				"How the agent reports to the Git host, for `commit_statuses` of `flotilla_compliance`. A token is for "+
					"`credentials_wo`.",
				fleet.ObjectType,
				agent.FeedbackTable,
			),
		),
		"decryption": schemas.OptionalDynamic(schemas.Described(&fleet.Attribute{
			Meaning: "How the agent decrypts files of config containers that SOPS has encrypted, as the cluster type has it " +
				"(`flotilla_cluster_type.edge.decryption`), by the Secret in the agent's namespace; `{}` uses the agent's own identity. " +
				"For Flux only.",
			Type: fleet.ObjectType, Of: fleet.DecryptionTable(),
		}, "reference-fleet")),
		"wait": schemas.OptionalBool(
			"Whether an apply waits until the agent runs, has applied the branch's commit, and all objects of both folders are ready. Default: " +
				"false: " +
				"it waits only for definitions and deletions.",
		),
		"on_destroy": schemas.OptionalText(
			"The effect of a destroy: `keep` (default) turns off pruning in the objects that follow the folders, checks that it is off, and " +
				"then removes them, the credentials and the feedback: workloads keep running. `delete` removes the objects that the agent has " +
				"applied, " +
				"waits until they are gone, and then the agent itself, if it was installed by `install`. Neither changes earlier objects, " +
				"nor a namespace that a deployment target sets by name or that contains objects of others. Apply a change of `on_destroy` before " +
				"the destroy.",
		),
		"on_unreachable": schemas.OptionalText(
			"The effect of a destroy on a cluster that cannot be reached: `fail` (default) is an error, since its agent and the credentials " +
				"may still be there; `forget` removes the agent from the state, with a warning that names objects that may remain on the cluster. It " +
				"is for clusters that come and go. Apply a change of it before the destroy. A cluster that the provider's `clusters` does not " +
				"name any more is always forgotten, with the same warning.",
		),
		"confine": schemas.OptionalBool(
			"Whether Flux' controllers are to confine Flux' objects in a namespace to the rights of a service account there (default " +
				"`true`). `install` gets the arguments for it. Where Flux was installed otherwise, a plan warns of controllers that lack them. " +
				"`false` is for clusters on which the platform alone may create such objects.",
		),
		"force": schemas.OptionalBool(
			"Whether fields that others manage are taken over, which is a conflict otherwise, and objects that the agent of another cluster " +
				"has, which is an error otherwise.",
		),
		"timeouts": schemas.OptionalDynamic(schemas.Setting("How long operations may take, waiting included.", fleet.ObjectType, timeouts.Table)),
		"objects": schemas.ComputedTextMap(
			"The objects of the agent on the cluster, and on the hub, by name: `applied`, or how they differ now.",
		),
		"found": schemas.ComputedTexts("Objects among `objects` that existed before. A destroy leaves them."),
		"changes": schemas.ComputedTexts(
			"The changes of the plan, for people: removals first, then effects of the configuration, then manual changes on the " +
				"cluster. Never a value.",
		),
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
	if settings, known := m.settings(m.secrets(diagnostics), nil, diagnostics); known && !diagnostics.HasError() {
		(&request{}).render(settings, diagnostics)
	}
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
	if c.Diagnostics.HasError() || c.Connection == nil {
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

// remove removes the applied objects according to on_destroy.
func remove(ctx context.Context, c *frame.Call[agentModel]) {
	before := loadAgent(ctx, c.Private, c.Diagnostics)
	if c.Diagnostics.HasError() {
		return
	}
	if c.Connection != nil && len(before.Records) > 0 {
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
