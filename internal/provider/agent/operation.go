package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/once"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// lookDeadline bounds reading a cluster during a plan or refresh, so that one cluster does not delay all others.
const lookDeadline = time.Minute

// applied is the state of objects that are as wanted.
const applied = "applied"

// operation is one plan, apply or refresh of an agent.
type operation struct {
	connection  *connection.Connection
	model       *agentModel
	diagnostics *diag.Diagnostics
	counts      bool // among the planned agents, of which no two may have one name
	// formerName is the name of the cluster at the last apply, of the replaced agent, too; "" if there was none.
	formerName string
}

// clusters are the provider's; nil before it is configured.
func (o *operation) clusters() *connection.Clusters {
	if o.connection == nil {
		return nil
	}
	return &o.connection.Clusters
}

// render renders the objects of settings, and reports the problems. It parses equal manifests only once.
func (o *operation) render(settings agent.Settings, diagnostics *diag.Diagnostics) []agent.Object {
	render := agent.Render
	if o.connection != nil {
		render = o.connection.Agents.Render
	}
	objects, problems := render(settings)
	addAgentProblems(diagnostics, problems)
	return objects
}

// target is the cluster that has the objects, or is to have them: the cluster itself, or its hub. It also returns the
// attribute with its name.
func (o *operation) target() (attribute string, name types.String) {
	if o.model.isOnHub() {
		return "hub", o.model.Hub
	}
	return "cluster", o.model.Cluster
}

func (o *operation) targetName() string {
	_, name := o.target()
	return name.ValueString()
}

func (o *operation) targetPath() path.Path {
	attribute, _ := o.target()
	return path.Root(attribute)
}

// access says whether the target can be asked: not where it is not known yet how, nor where the provider's clusters do
// not have it.
func (o *operation) access() (waits, missing bool) {
	settings := o.clusters()
	if _, name := o.target(); settings == nil || name.IsUnknown() {
		return true, false
	}
	return settings.Access(o.targetName())
}

// addMissing reports that the provider does not have a cluster.
func (o *operation) addMissing() {
	o.clusters().AddMissing(o.targetPath(), o.targetName(), o.diagnostics)
}

// plan sets the computed attributes.
func (o *operation) plan(ctx context.Context, prior *agentModel, before *agentPrivate) {
	m := o.model
	waits, missing := o.access()
	if missing {
		o.addMissing()
	}
	secrets := m.secrets(o.diagnostics)
	given, known := m.settings(secrets, o.clusters(), o.diagnostics)
	if o.diagnostics.HasError() {
		return
	}
	if !known {
		// The computed attributes do not depend on whether a credential is known yet.
		shape := placeholders(shapeOf(secrets))
		if known = !hasUnknownObject(secrets); known {
			given, known = m.settings(shape, o.clusters(), o.diagnostics)
		}
		if !known {
			m.Changes, m.Found, m.Objects = types.ListUnknown(
				types.StringType,
			), types.ListUnknown(
				types.StringType,
			), types.MapUnknown(
				types.StringType,
			)
			return
		}
		secrets = shape
	}
	tried := o.render(given, o.diagnostics)
	if o.counts {
		o.checkTwice(tried)
	}
	if o.diagnostics.HasError() {
		return
	}
	after := o.rendered(m, shapeOf(secrets), o.clusters())
	var former []agent.Object
	if before != nil {
		former = o.rendered(prior, before.Shape, before.Reached.clusters(prior.Cluster.ValueString()))
	} else {
		before = &agentPrivate{}
	}
	lines := onboarding.Changes(former, after, before.Drift.Findings, before.Records)
	if seen := before.Drift.UID; seen != "" && before.UID != "" && seen != before.UID {
		lines = []string{fmt.Sprintf("cluster %q was replaced by another one: everything is applied again", o.targetName())}
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
		o.try(ctx, tried, secrets)
	}
}

// plannedRoot is an object that follows a folder, by the address of the cluster that it is on.
type plannedRoot struct {
	address string
	id      agent.ID
}

// address identifies a cluster by how it is reached, or by its name if that is not known yet.
func (o *operation) address() string {
	to, isKnown := o.clusters().Known[o.targetName()]
	switch {
	case !isKnown:
		return o.targetName()
	case to.Kubeconfig != "":
		return to.Kubeconfig + "\n" + to.Context
	}
	return strings.TrimRight(strings.ToLower(to.Host), "/") + " " + to.ProxyURL + " " + to.TLSServerName
}

// checkTwice finds a second agent of this configuration that follows the folders with the objects of the first: each
// would undo what the other applies, and a destroy of one would take the objects of both away.
func (o *operation) checkTwice(objects []agent.Object) {
	if o.connection == nil {
		return
	}
	for i := range objects {
		object := &objects[i]
		if object.Part != agent.Root || object.Shared {
			continue
		}
		id := object.ID()
		other, isPlanned := o.connection.PlannedRoots.LoadOrStore(plannedRoot{o.address(), id}, o.targetName())
		if isPlanned && other != o.targetName() {
			o.diagnostics.AddAttributeError(o.targetPath(), "Two names for one cluster", fmt.Sprintf(
				"The provider's clusters reach cluster %q and cluster %q by the same address, and the agent of each has %s there. "+
					"Correct the address of one, or remove one of the two.", min(o.targetName(), other.(string)), max(o.targetName(), other.(string)), id))
			return
		}
		if isPlanned {
			o.diagnostics.AddAttributeError(path.Root("name"), "Two agents have the same name", fmt.Sprintf(
				"Another flotilla_agent of this configuration has the same cluster, namespace and name, and with them %s on cluster %q. "+
					"Remove one of the two, or give it another name.", id, o.targetName()))
			return
		}
	}
}

// rendered returns the objects of a model, with placeholders for its credentials; nil where they cannot be rendered.
func (o *operation) rendered(m *agentModel, shape []string, clusters *connection.Clusters) []agent.Object {
	var ignored diag.Diagnostics
	settings, known := m.settings(placeholders(shape), clusters, &ignored)
	if !known || ignored.HasError() {
		return nil
	}
	return o.render(settings, &ignored)
}

// objectsValue is the attribute objects.
func objectsValue(objects []agent.Object, findings map[string]onboarding.Finding) types.Map {
	values := make(map[string]attr.Value, len(objects))
	for i := range objects {
		name := objects[i].ID().String()
		values[name] = types.StringValue(applied)
		if finding, found := findings[name]; found {
			values[name] = types.StringValue(finding.String())
		}
	}
	return types.MapValueMust(types.StringType, values)
}

// try tries the objects on the cluster by a dry run, and reports what would be refused. It sets no attribute.
func (o *operation) try(ctx context.Context, objects []agent.Object, secrets map[string]any) {
	options := onboarding.LookOptions{Force: o.model.Force.ValueBool()}
	// The destroy of the former name forgets its objects if the provider does not have it any more.
	if _, missing := o.clusters().Access(o.formerName); !missing && o.formerName != "" {
		options.FormerLabel = render.LabelValue(o.formerName)
	}
	var failures onboarding.Failures
	err := o.connect(ctx, lookDeadline, hiddenIn(secrets, objects), func(ctx context.Context, client *kube.Client) error {
		look, err := onboarding.LookAt(ctx, client, objects, options)
		failures = onboarding.FindFailures(objects, look)
		o.checkConfinement(ctx, client)
		return err
	})
	for _, failure := range append(failures, onboarding.FailuresOf(err)...) {
		switch {
		case failure.Cause == onboarding.CauseNoKind:
			// Something else may install the kind in the same run.
			o.diagnostics.AddAttributeWarning(path.Root("install"), "Agent is not installed",
				o.sentence(failure)+" If something else installs it before this is applied, the apply succeeds; otherwise it fails.")
		case isAway(failure):
			once.Warning(o.diagnostics, o.targetPath(), "Cluster cannot be reached", o.sentence(failure)+" The plan was not tried on the cluster.")
		default:
			o.addFailure(failure)
		}
	}
}

// isAway says whether a cluster cannot be reached now, but may be later.
func isAway(failure *onboarding.Failure) bool {
	switch failure.Reason() {
	case kube.ReasonUnreachable, kube.ReasonTimeout, kube.ReasonServer, kube.ReasonIncomplete:
		return failure.Cause == onboarding.CauseCluster
	}
	return failure.Cause == onboarding.CauseTime
}

// sentence is the text of a failure as a sentence, with the name of the cluster.
func (o *operation) sentence(failure *onboarding.Failure) string {
	return fmt.Sprintf("Cluster %q: %s", o.targetName(), fullStop(failure.Text))
}

func fullStop(text string) string {
	if text == "" || text[len(text)-1] == '.' {
		return text
	}
	return text + "."
}

const otherRemedy = " An apply would have the cluster follow other folders, and prune everything that runs there. Either the provider's " +
	"clusters have exchanged addresses, or they have two names for one cluster: correct them. If the cluster has a new name, set force = true."

// addFailure reports a failure at its attribute.
func (o *operation) addFailure(failure *onboarding.Failure) {
	at, text := o.targetPath(), o.sentence(failure)
	switch failure.Cause {
	case onboarding.CauseForeign:
		o.diagnostics.AddAttributeError(path.Root("force"), "Object has another manager",
			text+" Use another name or namespace here to leave the object to its manager, or set force = true to take over its fields.")
		return
	case onboarding.CauseOther:
		o.diagnostics.AddAttributeError(o.targetPath(), "Cluster has the agent of another cluster", text+otherRemedy)
		return
	case onboarding.CauseNoKind:
		o.diagnostics.AddAttributeError(path.Root("install"), "Agent is not installed", text)
		return
	case onboarding.CauseRefused:
		if failure.Part == agent.Install {
			at = path.Root("install")
		}
		o.diagnostics.AddAttributeError(at, "Cluster refuses an object", text)
		return
	case onboarding.CauseForbidden:
		o.diagnostics.AddAttributeError(at, "Credentials of the cluster lack permissions", text)
		return
	case onboarding.CauseTime:
		o.diagnostics.AddAttributeError(path.Root("timeouts"), "Timeout", text+" The next apply goes on from there; to allow more, set timeouts.")
		return
	}
	once.Error(o.diagnostics, at, "Cluster cannot be reached", text)
}

// connect connects to the target, and removes the hidden texts from all errors.
func (o *operation) connect(
	ctx context.Context,
	deadline time.Duration,
	hidden []string,
	do func(ctx context.Context, client *kube.Client) error,
) error {
	var inner error
	options := kube.Options{Deadline: deadline, UserAgent: connection.UserAgent(o.connection.Release)}
	err := kube.AskOne(ctx, o.connection.Clusters.Known[o.targetName()], options, func(ctx context.Context, client *kube.Client) error {
		client.Hide(hidden...)
		inner = do(ctx, client)
		return nil
	})
	if err != nil {
		return onboarding.NewFailure(err)
	}
	return inner
}

// remaining is the time until a context's deadline.
func remaining(ctx context.Context) time.Duration {
	if end, bounded := ctx.Deadline(); bounded {
		return max(time.Until(end), time.Second)
	}
	return time.Hour
}

// apply applies the objects to the cluster, and sets the computed attributes.
func (o *operation) apply(ctx context.Context, before *agentPrivate) *agentPrivate {
	m := o.model
	secrets := m.secrets(o.diagnostics)
	settings, known := m.settings(secrets, o.clusters(), o.diagnostics)
	waits, missing := o.access()
	switch {
	case missing:
		o.addMissing()
	case waits:
		o.diagnostics.AddAttributeError(
			path.Root("cluster"),
			"Cluster is not known",
			"The connection to the cluster is still not known: the provider's clusters depend on something that this apply has not created before this resource.",
		)
	case !known:
		o.diagnostics.AddAttributeError(path.Root("cluster"), "Cluster is not known", "A part of the configuration is still not known.")
	}
	if o.diagnostics.HasError() {
		return nil
	}
	objects := o.render(settings, o.diagnostics)
	if o.diagnostics.HasError() {
		return nil
	}
	order := onboarding.Wanted{Objects: objects, Force: m.Force.ValueBool()}
	if before != nil {
		order.Records, order.UID = before.Records, before.UID
	}
	if m.Wait.ValueBool() {
		order.Following = o.following(settings)
	}
	var done onboarding.Result
	err := o.connect(ctx, remaining(ctx), hiddenIn(secrets, objects), func(ctx context.Context, client *kube.Client) (err error) {
		done, err = onboarding.Apply(ctx, client, order)
		return err
	})
	if err != nil {
		for _, failure := range onboarding.FailuresOf(err) {
			o.addFailure(withChanges(failure, done.Changes))
		}
		return nil
	}
	o.warnOf(done.Notes)
	after := &agentPrivate{Cluster: m.Cluster.ValueString(), Records: done.Records, UID: done.UID, Shape: shapeOf(secrets)}
	if m.isOnHub() {
		after.Reached = accessOf(o.clusters(), m.Cluster.ValueString())
	}
	m.Found, m.Objects = foundValue(done.Records), objectsValue(objects, nil)
	if m.Changes.IsUnknown() {
		m.Changes = tfvalue.Texts(onboarding.Changes(nil, objects, nil, nil))
	}
	return after
}

// foundValue is the attribute found.
func foundValue(records []onboarding.Record) types.List {
	var found []string
	for i := range records {
		if !records[i].Created {
			found = append(found, records[i].ID().String())
		}
	}
	slices.Sort(found)
	return tfvalue.Texts(found)
}

func (o *operation) warnOf(notes []string) {
	if len(notes) > 0 {
		o.diagnostics.AddAttributeWarning(path.Root("cluster"), "Objects stay on the cluster",
			fmt.Sprintf("Cluster %q: %s.", o.model.Cluster.ValueString(), wording.List(notes, wording.Named)))
	}
}

// tipFor is how long the tip of a branch is kept while waiting for a cluster, before it is read again.
const tipFor = 15 * time.Second

// following returns what the apply waits for; nil for nothing.
func (o *operation) following(settings agent.Settings) *onboarding.Following {
	location := settings.Repository
	if repo, known, findings := fleet.DecodeGitopsRepo(tfvalue.Plain(o.model.GitopsRepo)); known && len(findings) == 0 {
		location = repo
	}
	tip, asked := "", time.Time{}
	return &onboarding.Following{
		Location: location,
		Cluster:  settings.Cluster, ClusterType: settings.ClusterType,
		Tip: func(ctx context.Context) (_ string, err error) {
			if time.Since(asked) > tipFor {
				tip, err = o.connection.Delivery.ReadTip(ctx, location)
				asked = time.Now()
			}
			return tip, err
		},
	}
}

// warnOfAway warns of a cluster that cannot be read, and says what follows.
func (o *operation) warnOfAway(err error, effect string) {
	for _, failure := range onboarding.FailuresOf(err) {
		once.Warning(o.diagnostics, o.targetPath(), "Cluster cannot be reached", o.sentence(failure)+effect)
	}
}

// refresh reads the objects, and sets the computed attributes. For a cluster that cannot be asked, the last result is
// kept.
func (o *operation) refresh(ctx context.Context, before *agentPrivate) *agentPrivate {
	m := o.model
	after := *before
	if waits, missing := o.access(); waits || missing || len(before.Records) == 0 {
		return &after
	}
	objects := o.rendered(m, before.Shape, before.Reached.clusters(m.Cluster.ValueString()))
	if objects == nil {
		return &after
	}
	var drift onboarding.Drift
	err := o.connect(ctx, min(lookDeadline, remaining(ctx)), nil, func(ctx context.Context, client *kube.Client) error {
		look, err := onboarding.LookAt(ctx, client, objects, onboarding.LookOptions{
			Force: m.Force.ValueBool(), SecretsUnknown: true, Known: before.UID, Records: before.Records,
		})
		drift = onboarding.FindDrift(objects, look)
		o.checkConfinement(ctx, client)
		return err
	})
	if err != nil {
		o.warnOfAway(err, " The state keeps what was applied last.")
		return &after
	}
	m.Objects = objectsValue(objects, drift.Findings)
	if drift.UID == before.UID && len(drift.Findings) == 0 {
		drift = onboarding.Drift{} // what is as it was applied is not kept: the state stays what it is, and a refresh reports nothing
	}
	after.Drift = drift
	return &after
}
