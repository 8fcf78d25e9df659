package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/once"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// request is one plan, apply, refresh or removal of an agent.
type request struct {
	agentTarget
	model *agentModel
}

func newRequest(c *frame.Call[agentModel]) *request {
	target := agentTarget{c.Connection, c.Diagnostics, "cluster", c.Model.Cluster}
	if c.Model.isOnHub() {
		target.attribute, target.name = "hub", c.Model.Hub
	}
	return &request{target, c.Model}
}

// past is the agent before a plan.
type past struct {
	model   *agentModel // nil for a new agent
	private *agentPrivate
	// formerName is the cluster's name at the last apply, also of a replaced agent.
	formerName string
	// isCounted includes the plan in the check for two agents of one name.
	isCounted bool
}

func (r *request) plan(ctx context.Context, before past) {
	m := r.model
	waits, missing := r.access()
	if missing {
		r.addMissing()
	}
	secrets := m.secrets(r.diagnostics)
	given, known := m.settings(secrets, r.clusters(), r.diagnostics)
	if r.diagnostics.HasError() {
		return
	}
	if !known {
		// The computed attributes are the same for a known and an unknown credential.
		shape := placeholders(shapeOf(secrets))
		if known = !hasUnknownObject(secrets); known {
			given, known = m.settings(shape, r.clusters(), r.diagnostics)
		}
		if !known {
			m.Changes, m.Found = types.ListUnknown(types.StringType), types.ListUnknown(types.StringType)
			m.Objects = types.MapUnknown(types.StringType)
			return
		}
		secrets = shape
	}
	tried := r.render(given, r.diagnostics)
	if before.isCounted {
		r.checkTwice(tried)
	}
	if r.diagnostics.HasError() {
		return
	}
	after := r.rendered(m, shapeOf(secrets), r.clusters())
	var former []agent.StagedObject
	private, prior := before.private, before.model
	if prior != nil {
		former = r.rendered(prior, private.Shape, private.Reached.clusters(prior.Cluster.ValueString()))
	}
	lines := onboarding.Changes(former, after, private.Drift.Findings, private.Records)
	if seen := private.Drift.UID; seen != "" && private.UID != "" && seen != private.UID {
		lines = []string{fmt.Sprintf("cluster %q was replaced by another one: everything is applied again", r.targetName())}
	}
	if former != nil && !m.SecretsVersion.Equal(prior.SecretsVersion) {
		lines = append(lines, "credentials_wo is applied again")
	}
	if former != nil && len(lines) == 0 {
		m.Changes, m.Found, m.Objects = prior.Changes, prior.Found, prior.Objects
		return
	}
	m.Changes, m.Found, m.Objects = tfvalue.Texts(lines), types.ListUnknown(types.StringType), objectsValue(after, nil)
	if !waits {
		r.dryRun(ctx, tried, secrets, before.formerName)
	}
}

// plannedRoot is a root object on the cluster with an address.
type plannedRoot struct {
	address string
	id      agent.ID
}

// checkTwice refuses a second agent with the same root objects: each would undo the other's changes, and a destroy of
// one would remove the objects of both.
func (r *request) checkTwice(objects []agent.StagedObject) {
	for i := range objects {
		object := &objects[i]
		if object.Part != agent.Root || object.Shared {
			continue
		}
		id := object.ID()
		other, isPlanned := r.connection.PlannedRoots.LoadOrStore(plannedRoot{r.address(), id}, r.targetName())
		if isPlanned && other != r.targetName() {
			tfvalue.AddErrorf(r.diagnostics, r.targetPath(), "Two names for one cluster",
				"The provider's clusters reach cluster %q and cluster %q by the same address, and the agent of each has %s there. "+
					"Correct the address of one, or remove one of the two.",
				min(r.targetName(), other.(string)), max(r.targetName(), other.(string)), id)
			return
		}
		if isPlanned {
			tfvalue.AddErrorf(r.diagnostics, path.Root("name"), "Two agents have the same name",
				"Another flotilla_agent of this configuration has the same cluster, namespace and name, and with them %s on cluster %q. "+
					"Remove one of the two, or give it another name.", id, r.targetName())
			return
		}
	}
}

// dryRun reports objects that the cluster refuses. It sets no attribute.
func (r *request) dryRun(ctx context.Context, objects []agent.StagedObject, secrets map[string]any, formerName string) {
	options := onboarding.InspectOptions{Force: r.model.Force.ValueBool()}
	// If the provider lacks the former name, the destroy of that agent forgets its objects.
	if _, missing := r.clusters().Access(formerName); !missing && formerName != "" {
		options.FormerLabel = render.LabelValue(formerName)
	}
	var failures onboarding.Failures
	err := r.connect(ctx, lookDeadline, hiddenIn(secrets, objects), func(ctx context.Context, client *kube.ClusterClient) error {
		look, err := onboarding.Inspect(ctx, client, objects, options)
		if err != nil {
			return err
		}
		failures = onboarding.FindFailures(objects, look)
		r.checkConfinement(ctx, client)
		return nil
	})
	for _, failure := range append(failures, onboarding.FailuresOf(err)...) {
		switch {
		case failure.Cause == onboarding.CauseNoKind:
			// Something else may install the kind in the same run.
			r.diagnostics.AddAttributeWarning(path.Root("install"), "Agent is not installed",
				r.sentence(failure)+" If something else installs it before this is applied, the apply succeeds; otherwise it fails.")
		case failure.Cause == onboarding.CauseNoSecret:
			r.diagnostics.AddAttributeWarning(path.Root("registration"), "Cluster is not registered at the hub",
				r.sentence(failure)+" If something else creates it before this is applied, the apply succeeds; otherwise it fails.")
		case isAway(failure):
			r.warnOfAway(failure, "The plan for cluster %q was not tried.")
		default:
			r.addFailure(failure)
		}
	}
}

// warnOfAway names the agent's cluster in effect, because equal warnings of a hub's agents are merged.
func (r *request) warnOfAway(err error, effect string) {
	for _, failure := range onboarding.FailuresOf(err) {
		once.Warning(r.diagnostics, r.targetPath(), "Cluster cannot be reached",
			fmt.Sprintf("%s "+effect, r.sentence(failure), r.model.Cluster.ValueString()))
	}
}

// confinement returns the confinement to check; nil if install sets it, or the user declines it.
func (r *request) confinement() *reconciler.Confinement {
	m := r.model
	isDeclined := !m.Confine.IsNull() && !m.Confine.ValueBool()
	if isDeclined || !m.Install.IsNull() {
		return nil
	}
	return r.reconciler().Agent.Confinement
}

func (r *request) reconciler() *reconciler.Reconciler {
	return reconciler.Named(cmp.Or(r.model.Reconciler.ValueString(), reconciler.DefaultAgent))
}

// checkConfinement warns of controllers that lend their rights to others. Equal warnings are merged, so they do not
// name the cluster.
func (r *request) checkConfinement(ctx context.Context, client *kube.ClusterClient) {
	confinement := r.confinement()
	if confinement == nil {
		return
	}
	of := r.reconciler()
	lacks, forbidden, err := onboarding.FindUnconfined(ctx, client, confinement, cmp.Or(r.model.Namespace.ValueString(), of.Namespace))
	if err != nil {
		return
	}
	const remedy = "Add the arguments, or set confine = false if the platform alone may create such objects on the cluster."
	switch {
	case len(lacks) > 0:
		once.Warning(r.diagnostics, path.Root("confine"), of.Product+" does not confine teams", fmt.Sprintf(
			"%s. A member of a team who may create objects of %s in one namespace, as the roles edit and admin allow, gets the rights of its "+
				"controllers on the whole cluster: the service_account of a workspace is no boundary there. %s",
			wording.List(lacks, wording.Named), of.Product, remedy))
	case forbidden:
		once.Warning(r.diagnostics, path.Root("confine"), of.Product+" may not confine teams", fmt.Sprintf(
			"The credentials of the cluster may not list Deployments, so it is not known whether the controllers of %s have the arguments "+
				"that confine teams. Allow them to list deployments.apps, or set confine = false.", of.Product))
	}
}

// agentTarget is the cluster with the objects: the agent's own, or its hub.
type agentTarget struct {
	connection  *connection.Connection
	diagnostics *diag.Diagnostics
	attribute   string // cluster or hub
	name        types.String
}

func (t *agentTarget) targetName() string { return t.name.ValueString() }

func (t *agentTarget) targetPath() path.Path { return path.Root(t.attribute) }

func (t *agentTarget) clusters() *connection.Clusters { return &t.connection.Clusters }

// access reports why the target cannot be read: its connection is unknown, or the provider's clusters lack it.
func (t *agentTarget) access() (waits, missing bool) {
	if t.name.IsUnknown() {
		return true, false
	}
	return t.clusters().Access(t.targetName())
}

func (t *agentTarget) addMissing() {
	t.clusters().AddMissing(t.targetPath(), t.targetName(), t.diagnostics)
}

// address identifies a cluster by its connection or, while that is unknown, by its name.
func (t *agentTarget) address() string {
	to, isKnown := t.clusters().Known[t.targetName()]
	switch {
	case !isKnown:
		return t.targetName()
	case to.Kubeconfig != "":
		return to.Kubeconfig + "\n" + to.Context
	}
	return strings.TrimRight(strings.ToLower(to.Host), "/") + " " + to.ProxyURL + " " + to.TLSServerName
}

// lookDeadline bounds reading one cluster in a plan or refresh.
const lookDeadline = time.Minute

// connect connects to the target and removes hidden texts from errors.
func (t *agentTarget) connect(
	ctx context.Context,
	deadline time.Duration,
	hidden []string,
	do func(ctx context.Context, client *kube.ClusterClient) error,
) error {
	var inner error
	options := kube.QueryOptions{Deadline: deadline, UserAgent: connection.UserAgent(t.connection.Release)}
	cluster := t.connection.Clusters.Known[t.targetName()]
	err := kube.QueryOne(ctx, cluster, options, func(ctx context.Context, client *kube.ClusterClient) error {
		client.Hide(hidden...)
		inner = do(ctx, client)
		return nil
	})
	if err != nil {
		return onboarding.NewFailure(err)
	}
	return inner
}

func remaining(ctx context.Context) time.Duration {
	if end, bounded := ctx.Deadline(); bounded {
		return max(time.Until(end), time.Second)
	}
	return time.Hour
}

// isAway reports whether a cluster may be reached later.
func isAway(failure *onboarding.Failure) bool {
	switch failure.Reason() {
	case kube.ReasonUnreachable, kube.ReasonTimeout, kube.ReasonServer, kube.ReasonIncomplete:
		return failure.Cause == onboarding.CauseCluster
	}
	return failure.Cause == onboarding.CauseTime
}

func (t *agentTarget) sentence(failure *onboarding.Failure) string {
	return fmt.Sprintf("Cluster %q: %s", t.targetName(), fullStop(failure.Text))
}

func fullStop(text string) string {
	if text == "" || text[len(text)-1] == '.' {
		return text
	}
	return text + "."
}

const otherRemedy = " An apply would have the cluster follow other folders, and prune everything that runs there. Either the provider's " +
	"clusters have exchanged addresses, or they have two names for one cluster: correct them. If the cluster has a new name, set force = true."

func (t *agentTarget) addFailure(failure *onboarding.Failure) {
	at, text := t.targetPath(), t.sentence(failure)
	switch failure.Cause {
	case onboarding.CauseForeign:
		t.diagnostics.AddAttributeError(path.Root("force"), "Object has another manager",
			text+" Use another name or namespace here to leave the object to its manager, or set force = true to take over its fields.")
		return
	case onboarding.CauseOther:
		t.diagnostics.AddAttributeError(t.targetPath(), "Cluster has the agent of another cluster", text+otherRemedy)
		return
	case onboarding.CauseNoKind:
		t.diagnostics.AddAttributeError(path.Root("install"), "Agent is not installed", text)
		return
	case onboarding.CauseNoSecret, onboarding.CauseUnsuited:
		t.diagnostics.AddAttributeError(path.Root("registration"), "Cluster is not registered at the hub", text+
			" registration.secret names the Secret in the agent's namespace whose data.name is the name of the cluster.")
		return
	case onboarding.CauseRefused:
		if failure.Part == agent.Install {
			at = path.Root("install")
		}
		t.diagnostics.AddAttributeError(at, "Cluster refuses an object", text)
		return
	case onboarding.CauseForbidden:
		t.diagnostics.AddAttributeError(at, "Credentials of the cluster lack permissions", text)
		return
	case onboarding.CauseTime:
		t.diagnostics.AddAttributeError(path.Root("timeouts"), "Timeout", text+" The next apply goes on from there; to allow more, set timeouts.")
		return
	}
	once.Error(t.diagnostics, at, "Cluster cannot be reached", text)
}

// SecretTable describes the attribute credentials.
var SecretTable = &fleet.Table{
	Name:    "Secret of an agent",
	Meaning: "The attribute `credentials` of `flotilla_agent`: an existing Secret that replaces `credentials_wo`.",
	Attributes: []fleet.Attribute{
		{Name: "secret", Meaning: "Name of an existing Secret in the agent's namespace, in the form that the agent reads."},
	},
}

// secretParts complete other attributes.
var secretParts = []fleet.Attribute{
	{Name: "feedback", Type: fleet.ObjectType, Of: agent.FeedbackTable, Meaning: "The `token` or `github_app` of `feedback`."},
	{Name: "registration", Type: fleet.ObjectType, Of: agent.RegistrationTable,
		Meaning: "The `token`, or `client_certificate` and `client_key`, of `registration`."},
}

// SecretsTable describes the attribute credentials_wo.
var SecretsTable = &fleet.Table{
	Name: "secrets of an agent",
	Meaning: "The attribute `credentials_wo` of `flotilla_agent`: credentials with which the agent reads the repository, and " +
		"others. The argument is write-only: no plan and no state contains it.",
	Attributes: slices.Concat(agent.CredentialsTable.Attributes, secretParts),
}
