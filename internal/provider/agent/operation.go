package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// lookDeadline bounds reading a cluster during a plan or refresh, so that one cluster does not delay all others.
const lookDeadline = time.Minute

// applied is the state of objects that are as wanted.
const applied = "applied"

// agentTask is one operation on an agent.
type agentTask struct {
	connection  *connection.Connection
	model       *agentModel
	diagnostics *diag.Diagnostics
	counts      bool // among the planned agents, of which no two may have one name
}

func (r *agentResource) task(model *agentModel, diagnostics *diag.Diagnostics) *agentTask {
	return &agentTask{connection: r.connection, model: model, diagnostics: diagnostics}
}

// clusters are the provider's; nil before it is configured.
func (t *agentTask) clusters() *connection.Clusters {
	if t.connection == nil {
		return nil
	}
	return &t.connection.Clusters
}

// render renders objects. It parses equal manifests only once.
func (t *agentTask) render(settings agent.Settings) ([]agent.Object, []agent.Problem) {
	if t.connection == nil {
		return agent.Render(settings)
	}
	return t.connection.Agents.Render(settings)
}

// names returns the names of the cluster and of its hub, with the attributes that have them.
func (t *agentTask) names() []struct {
	where     agent.Where
	attribute string
	name      types.String
} {
	type named = struct {
		where     agent.Where
		attribute string
		name      types.String
	}
	if t.model.isOnHub() {
		return []named{{agent.OnHub, "hub", t.model.Hub}}
	}
	return []named{{agent.OnCluster, "cluster", t.model.Cluster}}
}

// targets returns the clusters. waits is true where one of them cannot be asked yet; missing are the attributes with a
// cluster that the provider does not have.
func (t *agentTask) targets() (targets []target, waits bool, missing []string) {
	settings := t.clusters()
	for _, one := range t.names() {
		name := one.name.ValueString()
		switch {
		case settings == nil || settings.Unknown || one.name.IsUnknown() || settings.Waiting[name]:
			waits = true
		default:
			cluster, known := settings.Known[name]
			if !known {
				missing = append(missing, one.attribute)
				continue
			}
			targets = append(targets, target{one.where, name, cluster})
		}
	}
	return targets, waits, missing
}

// addMissing reports that the provider does not have a cluster.
func (t *agentTask) addMissing(attributes []string) {
	known := slices.Sorted(maps.Keys(t.clusters().Known))
	for _, one := range t.names() {
		if name := one.name.ValueString(); slices.Contains(attributes, one.attribute) {
			t.diagnostics.AddAttributeError(path.Root(one.attribute), "Provider does not know this cluster", fmt.Sprintf(
				"The provider's clusters has no entry %q%s", name, orFullStop(fleet.DidYouMean(name, known))))
		}
	}
}

func orFullStop(text string) string {
	if text == "" {
		return "."
	}
	return text
}

// plan sets the computed attributes.
func (t *agentTask) plan(ctx context.Context, prior *agentModel, before *agentPrivate) {
	m := t.model
	targets, waits, missing := t.targets()
	if len(missing) > 0 && !waits {
		t.addMissing(missing)
	}
	secrets := m.secrets(t.diagnostics)
	given, known := m.settingsWith(secrets, t.clusters(), t.diagnostics)
	if t.diagnostics.HasError() {
		return
	}
	if !known {
		// The computed attributes do not depend on whether a credential is known yet.
		shape := placeholders(shapeOf(secrets))
		if given, known = m.settingsWith(shape, t.clusters(), t.diagnostics); !known {
			m.Changes, m.Found, m.Objects = types.ListUnknown(types.StringType), types.ListUnknown(types.StringType), types.MapUnknown(types.StringType)
			return
		}
		secrets = shape
	}
	tried := renderAgent(t.render, given, t.diagnostics)
	t.checkTwice(tried)
	if t.diagnostics.HasError() {
		return
	}
	after := t.rendered(m, shapeOf(secrets), t.clusters())
	var former []agent.Object
	if before != nil {
		former = t.rendered(prior, before.Shape, before.Reached.clusters(prior.Cluster.ValueString()))
	} else {
		before = &agentPrivate{}
	}
	lines := onboarding.Changes(former, after, before.Drift.Findings, before.Records)
	for _, where := range slices.Sorted(maps.Keys(before.Drift.Clusters)) {
		if known := before.UIDs[where]; known != "" && known != before.Drift.Clusters[where] {
			lines = []string{fmt.Sprintf("cluster %q was replaced by another one: everything is applied again", t.nameOf(where))}
		}
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
		t.try(ctx, targets, tried, secrets)
	}
}

// plannedRoot is an object that follows a folder, by the name of the cluster that it is on.
type plannedRoot struct {
	cluster string
	id      agent.ID
}

// checkTwice finds a second agent of this configuration that follows the folders with the objects of the first: each
// would undo what the other applies, and a destroy of one would take the objects of both away.
func (t *agentTask) checkTwice(objects []agent.Object) {
	if t.connection == nil || !t.counts {
		return
	}
	for i := range objects {
		object := &objects[i]
		if object.Part != agent.Root || object.Shared {
			continue
		}
		id := object.ID()
		if _, isPlanned := t.connection.PlannedRoots.LoadOrStore(plannedRoot{t.nameOf(id.Where), id}, nil); isPlanned {
			t.diagnostics.AddAttributeError(path.Root("name"), "Two agents have the same name", fmt.Sprintf(
				"Another flotilla_agent of this configuration has the same cluster, namespace and name, and with them %s on cluster %q. "+
					"Remove one of the two, or give it another name.", id, t.nameOf(id.Where)))
			return
		}
	}
}

func (t *agentTask) nameOf(where agent.Where) string {
	for _, one := range t.names() {
		if one.where == where {
			return one.name.ValueString()
		}
	}
	return ""
}

// rendered returns the objects of a model, with placeholders for its credentials; nil where they cannot be rendered.
func (t *agentTask) rendered(m *agentModel, shape []string, clusters *connection.Clusters) []agent.Object {
	var ignored diag.Diagnostics
	settings, known := m.settingsWith(placeholders(shape), clusters, &ignored)
	if !known || ignored.HasError() {
		return nil
	}
	objects, _ := t.render(settings)
	return objects
}

// objectsValue is the attribute objects.
func objectsValue(objects []agent.Object, findings map[string]onboarding.Finding) types.Map {
	values := make(map[string]attr.Value, len(objects))
	for _, name := range onboarding.Names(objects) {
		values[name] = types.StringValue(applied)
		if finding, found := findings[name]; found {
			values[name] = types.StringValue(finding.String())
		}
	}
	return types.MapValueMust(types.StringType, values)
}

// try tries the objects on the clusters by a dry run, and reports what would be refused. It sets no attribute.
func (t *agentTask) try(ctx context.Context, targets []target, objects []agent.Object, secrets map[string]any) {
	ctx, cancel := timeouts.Decode(t.model.Timeouts, t.diagnostics).During(ctx, timeouts.Read)
	defer cancel()
	var failures onboarding.Failures
	err := connect(ctx, targets, t.asking(lookDeadline), hiddenIn(secrets, objects), onboarding.Clusters{}, func(ctx context.Context, clusters onboarding.Clusters) error {
		for _, one := range targets {
			look, err := onboarding.LookAt(ctx, clusters[one.where], one.where, objects, onboarding.LookOptions{Force: t.model.Force.ValueBool()})
			if err != nil {
				return err
			}
			failures = append(failures, onboarding.FindFailures(one.where, objects, look)...)
		}
		return nil
	})
	for _, failure := range append(failures, onboarding.FailuresOf(err)...) {
		switch {
		case failure.Cause == onboarding.CauseNoKind:
			// Something else may install the kind in the same run.
			t.diagnostics.AddAttributeWarning(path.Root("install"), "Agent is not installed",
				t.sentence(failure)+" If something else installs it before this is applied, the apply succeeds; otherwise it fails.")
		case isAway(failure):
			t.diagnostics.AddAttributeWarning(path.Root(t.attributeOf(failure)), "Cluster cannot be reached", t.sentence(failure)+" The plan was not tried on the cluster.")
		default:
			t.addFailure(failure)
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

func (t *agentTask) attributeOf(failure *onboarding.Failure) string {
	if failure.Where == agent.OnHub {
		return "hub"
	}
	return "cluster"
}

// sentence is the text of a failure as a sentence, with the name of the cluster.
func (t *agentTask) sentence(failure *onboarding.Failure) string {
	return fmt.Sprintf("Cluster %q: %s", t.nameOf(failure.Where), fullStop(failure.Text))
}

func fullStop(text string) string {
	if text == "" || text[len(text)-1] == '.' {
		return text
	}
	return text + "."
}

// addFailure reports a failure at its attribute.
func (t *agentTask) addFailure(failure *onboarding.Failure) {
	at, text := path.Root(t.attributeOf(failure)), t.sentence(failure)
	switch failure.Cause {
	case onboarding.CauseForeign:
		t.diagnostics.AddAttributeError(path.Root("force"), "Object has another manager",
			text+" Use another name or namespace here to leave the object to its manager, or set force = true to take over its fields.")
		return
	case onboarding.CauseNoKind:
		t.diagnostics.AddAttributeError(path.Root("install"), "Agent is not installed", text)
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
	t.diagnostics.AddAttributeError(at, "Cluster cannot be reached", text)
}

func (t *agentTask) addError(err error) {
	for _, failure := range onboarding.FailuresOf(err) {
		t.addFailure(failure)
	}
}

// asking returns the options for asking clusters within a deadline.
func (t *agentTask) asking(deadline time.Duration) kube.Options {
	options := kube.Options{Deadline: deadline}
	if t.connection != nil {
		options.UserAgent = connection.UserAgent(t.connection.Release)
	}
	return options
}

// connect connects to the clusters, one after the other, and removes the hidden texts from all errors.
func connect(
	ctx context.Context, targets []target, options kube.Options, hidden []string, clusters onboarding.Clusters, do func(ctx context.Context, clusters onboarding.Clusters) error,
) error {
	if len(targets) == 0 {
		return do(ctx, clusters)
	}
	first := targets[0]
	var inner error
	answer := kube.Ask(ctx, map[string]kube.Cluster{first.name: first.cluster}, options,
		func(ctx context.Context, _ string, client *kube.Client) (struct{}, error) {
			client.Hide(hidden...)
			clusters[first.where] = client
			inner = connect(ctx, targets[1:], options, hidden, clusters, do)
			return struct{}{}, nil
		})[first.name]
	if answer.Err != nil {
		return onboarding.NewFailure(first.where, answer.Err)
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

// apply applies the objects to the clusters, and sets the computed attributes.
func (t *agentTask) apply(ctx context.Context, before *agentPrivate) *agentPrivate {
	m := t.model
	secrets := m.secrets(t.diagnostics)
	settings, known := m.settingsWith(secrets, t.clusters(), t.diagnostics)
	targets, waits, missing := t.targets()
	switch {
	case len(missing) > 0:
		t.addMissing(missing)
	case waits:
		t.diagnostics.AddAttributeError(path.Root("cluster"), "Cluster is not known",
			"The connection to the cluster is still not known: the provider's clusters depend on something that this apply has not created before this resource.")
	case !known:
		t.diagnostics.AddAttributeError(path.Root("cluster"), "Cluster is not known", "A part of the configuration is still not known.")
	}
	if t.diagnostics.HasError() {
		return nil
	}
	objects := renderAgent(t.render, settings, t.diagnostics)
	if t.diagnostics.HasError() {
		return nil
	}
	order := onboarding.Wanted{Objects: objects, Force: m.Force.ValueBool()}
	if before != nil {
		order.Records, order.UIDs = before.Records, before.UIDs
	}
	if m.Wait.ValueBool() {
		order.Following = t.following(settings)
	}
	var done onboarding.Result
	err := connect(ctx, targets, t.asking(remaining(ctx)), hiddenIn(secrets, objects), onboarding.Clusters{}, func(ctx context.Context, clusters onboarding.Clusters) (err error) {
		done, err = onboarding.Apply(ctx, clusters, order)
		return err
	})
	if err != nil {
		t.addError(err)
		return nil
	}
	t.warnOf(done.Notes)
	after := &agentPrivate{Records: done.Records, UIDs: done.UIDs, Shape: shapeOf(secrets)}
	if m.isOnHub() {
		after.Reached = accessOf(t.clusters(), m.Cluster.ValueString())
	}
	var found []string
	for i := range done.Records {
		if !done.Records[i].Created {
			found = append(found, done.Records[i].ID().String())
		}
	}
	slices.Sort(found)
	m.Found, m.Objects = tfvalue.Texts(found), objectsValue(objects, nil)
	if m.Changes.IsUnknown() {
		m.Changes = tfvalue.Texts(onboarding.Changes(nil, objects, nil, nil))
	}
	return after
}

func (t *agentTask) warnOf(notes []string) {
	if len(notes) > 0 {
		t.diagnostics.AddAttributeWarning(path.Root("cluster"), "Objects stay on the cluster",
			fmt.Sprintf("Cluster %q: %s.", t.model.Cluster.ValueString(), wording.List(notes, wording.Named)))
	}
}

// tipFor is how long the tip of a branch is kept while waiting for a cluster, before it is read again.
const tipFor = 15 * time.Second

// following returns what the apply waits for; nil for nothing.
func (t *agentTask) following(settings agent.Settings) *onboarding.Following {
	location := delivery.Location{URL: settings.Repository.URL, Branch: settings.Repository.Branch, Path: settings.Repository.Path}
	if repo, known, findings := fleet.DecodeGitopsRepo(tfvalue.Plain(t.model.GitopsRepo)); known && len(findings) == 0 {
		location = delivery.Location(repo)
	}
	tip, asked := "", time.Time{}
	return &onboarding.Following{
		Location: observe.Location{URL: location.URL, Branch: location.Branch, Path: location.Path},
		Cluster:  settings.Cluster, ClusterType: settings.ClusterType,
		Tip: func(ctx context.Context) (_ string, err error) {
			if time.Since(asked) > tipFor {
				tip, err = t.connection.Delivery.Tip(ctx, location)
				asked = time.Now()
			}
			return tip, err
		},
	}
}

// refresh reads the objects, and sets the computed attributes. For a cluster that cannot be asked, the last result is
// kept.
func (t *agentTask) refresh(ctx context.Context, before *agentPrivate) *agentPrivate {
	m := t.model
	after := *before
	targets, waits, missing := t.targets()
	if waits || len(missing) > 0 || len(before.Records) == 0 {
		return &after
	}
	objects := t.rendered(m, before.Shape, before.Reached.clusters(m.Cluster.ValueString()))
	if objects == nil {
		return &after
	}
	var drift onboarding.Drift
	err := connect(ctx, targets, t.asking(min(lookDeadline, remaining(ctx))), nil, onboarding.Clusters{}, func(ctx context.Context, clusters onboarding.Clusters) error {
		for _, one := range targets {
			look, err := onboarding.LookAt(ctx, clusters[one.where], one.where, objects, onboarding.LookOptions{
				Force: m.Force.ValueBool(), SecretsUnknown: true, Known: before.UIDs[one.where], Records: before.Records,
			})
			if err != nil {
				return err
			}
			drift.FindDrift(one.where, objects, look)
		}
		return nil
	})
	if err != nil {
		for _, failure := range onboarding.FailuresOf(err) {
			t.diagnostics.AddAttributeWarning(path.Root(t.attributeOf(failure)), "Cluster cannot be reached",
				t.sentence(failure)+" The state keeps what was applied last.")
		}
		return &after
	}
	// What is as it was applied is not kept: the state stays what it is, and a refresh reports nothing.
	maps.DeleteFunc(drift.Clusters, func(where agent.Where, uid string) bool { return uid == before.UIDs[where] })
	after.Drift = onboarding.Drift{}
	if len(drift.Clusters) > 0 || len(drift.Findings) > 0 {
		after.Drift = drift
	}
	m.Objects = objectsValue(objects, drift.Findings)
	return &after
}
