package values

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/privatestate"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// operation is one plan or one apply, which decide alike.
type operation struct {
	settings
	connection  *connection.Connection
	model       *rolloutModel
	prior       *rolloutModel   // from state; nil if the rollout is new
	memory      *rollout.Memory // nil if there is none
	private     privatestate.State
	replaced    *rollout.Memory // of a replaced rollout; nil if there is none
	at          time.Time       // the clock's at apply; zero in a plan
	diagnostics *diag.Diagnostics

	outcome *rollout.ValuesOutcome // nil before the decision
}

func operationOf(ctx context.Context, c *frame.Call[rolloutModel]) *operation {
	o := &operation{connection: c.Connection, model: c.Model, prior: c.Prior, private: c.Private, diagnostics: c.Diagnostics}
	o.memory = load(ctx, c.Private, c.Diagnostics)
	if c.Prior == nil { // a create does not see the private state of a replaced rollout
		o.replaced, o.memory = o.memory, nil
	}
	return o
}

// decide decides which value each cluster has. It returns false if that is not known yet, or after an error.
func (o *operation) decide() bool {
	o.settings = o.model.decode(o.diagnostics)
	value, known := fleetvalue.Decode(o.model.Fleet, o.diagnostics)
	if !known || !o.known || o.diagnostics.HasError() {
		return false
	}
	of, err := fleet.ParseModel(value.Model)
	if err != nil {
		o.diagnostics.AddAttributeError(path.Root("fleet"), "Invalid fleet", tfvalue.Sentence(err.Error()))
		return false
	}
	hosts := hostsOf(of)
	o.checkNames(o.model.Name.ValueString(), hosts, o.diagnostics)
	o.evidence.CheckFleet(of, o.diagnostics)
	o.checkEnvironment(of.Environment)
	if o.diagnostics.HasError() {
		return false
	}
	out := rollout.AdvanceValues(rollout.Values{
		Name: o.model.Name.ValueString(), Now: o.evidence.Time(), Given: o.at, Wanted: o.wanted, Hosts: hosts,
		Settings: o.rollout, Holds: o.holds,
		Proof: o.isGiven, Reports: o.reports, Released: o.formerly(), Memory: o.memory,
	})
	if o.checkBeginning(out); o.diagnostics.HasError() {
		return false
	}
	o.outcome = out
	return true
}

// checkEnvironment refuses reports from clusters of another environment, which may have the same names.
func (o *operation) checkEnvironment(environment string) {
	for i, document := range o.evidence.List {
		if of := document.Compliance; of != nil && len(of.Clusters) > 0 && of.About.Environment != environment {
			o.diagnostics.AddAttributeError(o.evidence.At[i], "Evidence of another environment", fmt.Sprintf(
				"The evidence is about %s, and this fleet is of %q. Set evidence to that of a flotilla_compliance with the same fleet.",
				of.About,
				environment,
			))
		}
	}
}

// hostsOf returns the clusters of a fleet as hosts.
func hostsOf(of *fleet.Fleet) map[string]*rollout.FleetHost {
	types := make(map[string]*fleet.ClusterType, len(of.ClusterTypes))
	for i := range of.ClusterTypes {
		types[of.ClusterTypes[i].Name] = &of.ClusterTypes[i]
	}
	hosts := make(map[string]*rollout.FleetHost, len(of.Clusters))
	for i := range of.Clusters {
		cluster := &of.Clusters[i]
		if ofType := types[cluster.ClusterType]; ofType != nil {
			hosts[cluster.Name] = rollout.HostOf(of.Environment, ofType, cluster, []string{cluster.Name})
		}
	}
	return hosts
}

// formerly returns the former values of clusters from the state, if only the private state is lost, or after an import.
func (o *operation) formerly() rollout.ByCluster {
	if o.memory != nil || o.prior == nil || o.prior.Values.IsNull() {
		return o.released
	}
	released := rollout.ByCluster{All: o.released.All, Each: maps.Clone(o.released.Each)}
	for cluster, value := range entriesOf(o.prior.Values.UnderlyingValue()) {
		plain := tfvalue.Plain(value)
		if text, err := fleet.CanonicalJSON(plain); err == nil && plain != nil {
			if released.Each == nil {
				released.Each = map[string]string{}
			}
			released.Each[cluster] = text
		}
	}
	return released
}

// checkBeginning refuses to give a value to clusters whose present value is unknown.
func (o *operation) checkBeginning(out *rollout.ValuesOutcome) {
	switch {
	case len(out.Unplaced) > 0:
		o.diagnostics.AddAttributeError(path.Root("released"), "Clusters have another value", fmt.Sprintf(
			"%s there already, and not known to have the wanted value, or what is released: %s. The wanted value would reach all of them at "+
				"once.\n\nSet released to the value that they have, or released = { by_cluster = { %q = … } }. It does no harm later.",
			wording.Count(len(out.Unplaced), "cluster is", "clusters are"),
			listed(out.Unplaced),
			out.Unplaced[0],
		))
	case len(o.forgotten(out)) > 0:
		o.diagnostics.AddAttributeError(path.Root("released"), "A replacement forgets the values of clusters", fmt.Sprintf(
			"%s given another value than a replacement begins with: %s. Set released to what they have, or leave out -replace.",
			wording.Count(len(o.forgotten(out)), "cluster was", "clusters were"), listed(o.forgotten(out))))
	}
}

// forgotten returns the clusters with another value than the first one of a replacement, in order.
func (o *operation) forgotten(out *rollout.ValuesOutcome) (clusters []string) {
	if o.replaced == nil {
		return nil
	}
	for cluster, gift := range o.replaced.Given {
		if _, is := out.Values[cluster]; is && out.Before[cluster] != o.replaced.Contents[gift.Value] {
			clusters = append(clusters, cluster)
		}
	}
	slices.Sort(clusters)
	return clusters
}

func (o *operation) warn() {
	out := o.outcome
	if len(out.AtOnce) > 0 {
		o.diagnostics.AddAttributeWarning(path.Root("wanted"), "The first value reaches clusters at once", fmt.Sprintf(
			"Nothing is known of %s, so that the wanted value is for clusters that are to be made: %s. If they are there already, set released "+
				"to what they have.",
			wording.Count(len(out.AtOnce), "cluster", "clusters"),
			listed(out.AtOnce),
		))
	}
	if len(out.Others) > 0 {
		o.diagnostics.AddAttributeWarning(path.Root("fleet"), "New clusters have another value", fmt.Sprintf(
			"%s new in the fleet and there already, and given what is released at once: %s. The facts say another value: take clusters into "+
				"the fleet one after the other if they shall not change together.",
			wording.Count(len(out.Others), "cluster is", "clusters are"),
			listed(out.Others),
		))
	}
	for _, note := range out.Notes {
		o.diagnostics.AddAttributeWarning(path.Root("stages"), "Rollout may not do what you expect", tfvalue.Sentence(note.String()))
	}
	if o.memory == nil {
		return
	}
	var last time.Time
	for _, gift := range o.memory.Given {
		if at := gift.Since.Add(-time.Second); at.After(last) {
			last = at
		}
	}
	if now := o.evidence.Time(); now.Before(last) {
		o.diagnostics.AddAttributeWarning(path.Root("evidence"), "Evidence is older than the last values", fmt.Sprintf(
			"The evidence is from %s, and a value was given at %s, so it says nothing about that value. Read it again, and check that the "+
				"clocks are right.",
			tfvalue.TimeText(now),
			tfvalue.TimeText(last),
		))
	}
}

// checkWindows refuses to give a value if its windows have closed since the plan.
func (o *operation) checkWindows() bool {
	now, windows := o.connection.Now(), o.outcome.Windowed
	if gate.Open(now, windows...) {
		return true
	}
	o.diagnostics.AddAttributeError(path.Root("windows"), "Windows have closed", fmt.Sprintf(
		"The plan was made while values could be changed; now they wait for %s. Nothing was given: plan again.", gate.Waits(now, windows...)))
	return false
}

func (o *operation) set(ctx context.Context) {
	m := o.model
	prior := o.prior
	if prior == nil {
		prior = &rolloutModel{Proven: types.DynamicNull()}
	}
	m.Values, m.Changes, m.RolledOut = types.DynamicUnknown(), types.ListUnknown(types.StringType), types.BoolUnknown()
	progress := repository.Summary.Type()
	m.RollingOut = types.ObjectUnknown(progress.AttrTypes)
	if m.Proven = types.DynamicUnknown(); o.outcome == nil {
		return
	}
	if m.Values = o.values(ctx); o.outcome.Undecided {
		return
	}
	m.RolledOut, m.RollingOut, m.Proven = types.BoolValue(o.outcome.RolledOut), types.ObjectNull(progress.AttrTypes), prior.Proven
	for _, summary := range o.outcome.RollingOut() {
		m.RollingOut = repository.Summary.Value(summary)
	}
	isProven := o.outcome.RolledOut && len(o.outcome.Values) > 0 &&
		(prior.Proven.IsNull() || tfvalue.Content(tfvalue.Plain(prior.Proven)) != tfvalue.Content(tfvalue.Plain(m.Wanted)))
	if isProven {
		m.Proven = m.Wanted
	}
	lines := changesOf(o.outcome)
	if o.prior != nil && len(lines) == 0 && !isProven && m.RollingOut.Equal(prior.RollingOut) && m.RolledOut.Equal(prior.RolledOut) {
		m.Changes = prior.Changes
		return
	}
	lines = append(lines, o.outcome.Lines()...)
	if isProven {
		lines = append(lines, "what is wanted is proven")
	}
	m.Changes = tfvalue.Texts(lines)
}

// listed names clusters, but only a few of many.
func listed(clusters []string) string { return wording.List(slices.Clone(clusters), wording.Named) }
