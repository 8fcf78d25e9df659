package agent

import (
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
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/once"
)

// agentTarget is the cluster with the objects: the agent's own, or its hub.
type agentTarget struct {
	connection  *connection.Connection
	diagnostics *diag.Diagnostics
	attribute   string // cluster or hub
	name        types.String
}

func newTarget(c *connection.Connection, m *agentModel, diagnostics *diag.Diagnostics) agentTarget {
	if m.isOnHub() {
		return agentTarget{c, diagnostics, "hub", m.Hub}
	}
	return agentTarget{c, diagnostics, "cluster", m.Cluster}
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
	{
		Name:    "registration",
		Type:    fleet.ObjectType,
		Of:      agent.RegistrationTable,
		Meaning: "The `token`, or `client_certificate` and `client_key`, of `registration`.",
	},
}

// SecretsTable describes the attribute credentials_wo.
var SecretsTable = &fleet.Table{
	Name: "secrets of an agent",
	Meaning: "The attribute `credentials_wo` of `flotilla_agent`: credentials with which the agent reads the repository, and " +
		"others. The argument is write-only: no plan and no state contains it.",
	Attributes: slices.Concat(agent.CredentialsTable.Attributes, secretParts),
}
