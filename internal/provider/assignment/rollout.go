package assignment

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/evidencelist"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// rolloutConfig says how an assignment is rolled out: the configuration, and what clusters have reported.
type rolloutConfig struct {
	settings *rollout.Settings // nil: everything at once
	holds    []rollout.Hold
	evidence evidencelist.Given
	known    bool // false while some of it is not known yet
}

// plain says that there is no rollout and no hold.
func (s rolloutConfig) plain() bool { return s.known && s.settings == nil && len(s.holds) == 0 }

// decodeRollout reads rollout, holds and evidence, strictly.
func (m *model) decodeRollout(diagnostics *diag.Diagnostics) rolloutConfig {
	s := rolloutConfig{known: true}
	isRollout := tfvalue.Plain(m.Rollout) != nil
	if isRollout {
		settings, known, findings := rollout.Decode(tfvalue.Plain(m.Rollout))
		tfvalue.AddFindings(diagnostics, path.Root("rollout"), "Invalid rollout", tfvalue.Inner(findings))
		s.settings, s.known = settings, known
	}
	if tfvalue.Plain(m.Holds) != nil {
		holds, known, findings := rollout.DecodeHolds(tfvalue.Plain(m.Holds))
		tfvalue.AddFindings(diagnostics, path.Root("holds"), "Invalid holds", tfvalue.Inner(findings))
		s.holds, s.known = holds, s.known && known
	}
	switch s.evidence = evidencelist.Decode(m.Evidence, diagnostics); {
	case !s.evidence.Known:
		s.known = s.known && !isRollout && len(s.holds) == 0
	case len(s.evidence.List) == 0:
		if isRollout && s.settings != nil {
			diagnostics.AddAttributeError(
				path.Root("evidence"),
				"No evidence",
				"A rollout needs evidence: set evidence = data.flotilla_compliance.….evidence. With feedback = {} no cluster is asked, and only time counts.",
			)
		}
		for _, hold := range s.holds {
			if !hold.Until.IsZero() {
				diagnostics.AddAttributeError(path.Root("holds"), "Invalid holds",
					"until is compared with the time of the evidence: set evidence = data.flotilla_compliance.….evidence, or remove until.")
				break
			}
		}
	}
	return s
}

// decideRollout decides what happens to each folder now. It returns false while that is not known yet, or after an
// error.
func (o *operation) decideRollout(ctx context.Context) bool {
	wanted := o.rendering.Wanted()
	o.steps = o.model.decodeRollout(o.diagnostics)
	if o.locationKnown {
		var before *delivery.Owner
		if o.known != nil {
			before = &o.known.Owner
		}
		for i, document := range o.steps.evidence.List {
			repository.CheckAbout(document.Compliance, o.intent.Owner, before, o.steps.evidence.At[i], o.diagnostics)
		}
	}
	if o.diagnostics.HasError() {
		return false
	}
	if o.steps.plain() || o.known != nil && o.known.Drift.IsGone() { // what waits would be nowhere
		o.decisions = rollout.Decide(wanted, rollout.Write)
		return true
	}
	if !o.steps.known || !o.locationKnown || !o.connection.CanAsk() {
		return false
	}
	in, ok := o.rolloutInput(ctx, wanted)
	if !ok {
		return false
	}
	ofRollout, ofHolds := rollout.CheckNames(in.Settings, in.Holds, in.Hosts, in.Wanted, in.Deployed)
	tfvalue.AddFindings(o.diagnostics, path.Root("rollout"), "Invalid rollout", tfvalue.Inner(ofRollout))
	for _, finding := range ofHolds { // what is held may leave the fleet before the hold does
		o.diagnostics.AddAttributeWarning(path.Root("holds"), "Hold of what is not there", tfvalue.Sentence(finding.String()))
	}
	if o.checkEvidence(in); o.diagnostics.HasError() {
		return false
	}
	if newest, _ := o.steps.newest(); newest == nil && o.known == nil && !o.applies {
		return false // what waits is what the branch has by then
	}
	out := o.advance(ctx, in)
	if o.diagnostics.HasError() {
		return false
	}
	for _, note := range out.Notes {
		o.diagnostics.AddAttributeWarning(path.Root("rollout"), "Rollout may not do what you expect", tfvalue.Sentence(note))
	}
	o.outcome, o.decisions = out, out.Decisions
	return o.checkMove(ctx)
}

// checkMove refuses a move to another location while changes wait: until they are written, their folders would be at neither location.
func (o *operation) checkMove(ctx context.Context) bool {
	if o.known == nil || len(o.outcome.Progress) == 0 {
		return true
	}
	identity, err := o.connection.Delivery.Identify(ctx, o.known, o.intent.Owner)
	if err != nil {
		repository.AddError(ctx, o.diagnostics, err, false)
		return false
	}
	if identity != delivery.Moved {
		return true
	}
	o.diagnostics.AddAttributeError(path.Root("gitops_repo"), "Cannot move during a rollout", fmt.Sprintf(
		"%s.\n\nAt the new location, folders that wait would be missing until the rollout writes them. Let the rollout finish first, expedite it, or move without rollout and holds.",
		o.outcome.Lines()[0],
	))
	return false
}

// rolloutInput gathers the input of the rollout's decision. The same configuration and state give the same input.
func (o *operation) rolloutInput(ctx context.Context, wanted folder.Trees) (in rollout.Input, ok bool) {
	in = rollout.Input{
		Wanted: wanted, Settings: o.steps.settings, Holds: o.steps.holds, Hosts: o.hosts(), Requires: o.requires, Back: map[string]folder.Trees{},
	}
	if o.private != nil {
		in.State = o.private.Rollout
	}
	if o.known == nil {
		if !o.addWritten(ctx, &in) {
			return in, false
		}
	} else {
		in.Deployed, in.Lost, in.Proposed = o.known.Trees, o.private.isLost(), o.isProposed()
		if in.Records = o.private.records(wanted); o.private != nil {
			in.Tip = o.private.Tip
		}
	}
	in.Found = o.current
	in.Now = o.steps.evidence.Time()
	in.Reports, ok = o.reports(ctx, in)
	return in, ok
}

// addWritten adds what the branch has of an assignment without a state: as of the commit at which the evidence was
// gathered, since the branch may move on until the apply.
func (o *operation) addWritten(ctx context.Context, in *rollout.Input) bool {
	owner := o.formerOwner()
	newest, at := o.steps.newest()
	var written gitops.OwnerSnapshot
	var err error
	switch {
	case newest == nil:
		written, err = o.connection.Delivery.ReadOwner(ctx, owner, nil)
	case newest.Tip != "":
		written, err = o.connection.Delivery.ReadOwnerAt(ctx, owner, newest.Tip)
	}
	if errors.Is(err, git.ErrCommit) {
		o.hasCommit(ctx, newest.Tip, at) // says so
		return false
	}
	if err != nil {
		repository.AddError(ctx, o.diagnostics, err, true)
		return false
	}
	if err := o.followWritten(ctx, written.Trees); err != nil {
		repository.AddError(ctx, o.diagnostics, err, true)
		return false
	}
	in.Deployed = o.relocations.trees(o.intent.Renames.RenameTrees(recordedTrees(written)))
	o.current = o.relocations.trees(o.intent.Renames.RenameTrees(written.Trees))
	in.Lost = len(written.Records) > 0
	in.Records, in.Tip = make(map[folder.Key]rollout.Record, len(written.Records)), written.Tip
	for key, record := range folder.RenameKeys(o.intent.Renames, written.Records) {
		in.Records[key] = rollout.Record{Tree: o.relocations.relocated(key, record.Tree), Before: record.TreeBefore, Changed: record.Changed}
	}
	return true
}

// formerOwner is the owner under the name that the repository has.
func (o *operation) formerOwner() delivery.Owner {
	owner := o.intent.Owner
	if o.known != nil {
		owner.Name = o.known.Owner.Name
	}
	return owner
}

func recordedTrees(written gitops.OwnerSnapshot) folder.Trees {
	trees := folder.Trees{}
	for host := range written.Trees {
		trees[host] = map[string]string{}
	}
	for key, record := range written.Records {
		folder.Put(trees, key, record.Tree)
	}
	return trees
}

// hosts returns the hosts of the fleet, with the clusters that follow them.
func (o *operation) hosts() map[string]*rollout.Host {
	ofType := map[string][]string{}
	for i := range o.result.Fleet.Clusters {
		cluster := &o.result.Fleet.Clusters[i]
		ofType[cluster.ClusterType] = append(ofType[cluster.ClusterType], cluster.Name)
	}
	hosts := make(map[string]*rollout.Host, len(o.result.Schedule.Hosts))
	for _, host := range o.result.Schedule.Hosts {
		clusters := ofType[host.ClusterType.Name]
		if host.Cluster != nil {
			clusters = []string{host.Cluster.Name}
		}
		hosts[host.Name] = rollout.HostOf(o.result.Fleet.Environment, host.ClusterType, host.Cluster, clusters)
	}
	return hosts
}

// requires lists the folders that must be proven before another one changes.
func (o *operation) requires(key folder.Key) []folder.Key {
	i, ok := o.result.AssignmentIndex(key.Host, key.DeploymentTarget)
	if !ok {
		return nil
	}
	dependencies := o.result.Schedule.Assignments[i].Dependencies
	keys := make([]folder.Key, len(dependencies))
	for j, dependency := range dependencies {
		keys[j] = folder.Key{Host: dependency.Host.Name, DeploymentTarget: dependency.Target.Name}
	}
	return keys
}

// advance decides, and reads the commits that the rollout rolls back to.
func (o *operation) advance(ctx context.Context, in rollout.Input) *rollout.Outcome {
	out := rollout.Advance(in)
	if len(out.Missing) == 0 {
		return out
	}
	o.rollbackContents = map[string]gitops.FolderEdits{}
	for len(out.Missing) > 0 {
		for _, commit := range out.Missing {
			hosts, err := o.goBack(ctx, commit)
			if errors.Is(err, git.ErrCommit) {
				o.diagnostics.AddAttributeWarning(path.Root("rollout"), "Cannot roll back", tfvalue.Sentence(fmt.Sprintf(
					"the failed content stays, because the content before it is not in the history any more: %s. Set rollback_to, or write newer content",
					err,
				)))
				return out
			}
			if err != nil {
				repository.AddError(ctx, o.diagnostics, err, false)
				return out
			}
			o.rollbackContents[commit], in.Back[commit] = hosts, hosts.Trees()
		}
		out = rollout.Advance(in)
	}
	return out
}

// setProgress sets the attributes rolling_out and rolled_out.
func (o *operation) setProgress() {
	switch {
	case o.outcome == nil:
		o.model.RollingOut = types.MapValueMust(types.StringType, nil)
		o.model.RolledOut = types.BoolValue(o.backTo == nil)
	case o.outcome.Undecided:
		o.model.RollingOut, o.model.RolledOut = types.MapUnknown(types.StringType), types.BoolUnknown()
	default:
		texts := map[string]attr.Value{}
		for target, text := range o.outcome.RollingOut() {
			texts[target] = types.StringValue(text)
		}
		o.model.RollingOut = types.MapValueMust(types.StringType, texts)
		o.model.RolledOut = types.BoolValue(o.outcome.RolledOut)
	}
}

// isProgressInState says whether rolling_out and rolled_out are the same in the state.
func (o *operation) isProgressInState() bool {
	return o.model.RollingOut.Equal(o.prior.RollingOut) && o.model.RolledOut.Equal(o.prior.RolledOut)
}

// warnOfFailure says on every plan what has failed: the plan that halts is soon forgotten.
func (o *operation) warnOfFailure() {
	if o.outcome == nil {
		return
	}
	if failed, _ := o.outcome.Split(); len(failed.Progress) > 0 {
		o.diagnostics.AddAttributeWarning(path.Root("rollout"), "Rollout has failed", wording.Lines(failed.Lines(), changes.MaxLines))
	}
}

// state is what private state keeps of the rollout. It is never nil, since nil means that the state was lost.
func (o *operation) state() *rollout.State {
	if o.outcome == nil {
		return &rollout.State{}
	}
	return o.outcome.State
}

// isUnderWay says whether changes wait. Then the causes of what later stages change are found by comparison with the
// fleet that was rolled out last.
func (o *operation) isUnderWay() bool { return o.outcome != nil && len(o.outcome.Progress) > 0 }

// isClosed says that no window is open, so that nothing changes.
func (o *operation) isClosed() bool { return o.outcome != nil && o.outcome.Closed }

// checkWindows refuses to write where the windows for what is written have closed since the plan: those of the rollout, and of
// the stages in which something is written. It is the only part of a rollout that reads a clock.
func (o *operation) checkWindows() bool {
	if o.outcome == nil || gate.Open(o.connection.Now(), o.outcome.Windowed...) {
		return true
	}
	o.diagnostics.AddAttributeError(path.Root("rollout"), "Windows have closed", fmt.Sprintf(
		"The plan was made while changes could be written; now they wait for %s. Nothing was written: plan again.",
		gate.Waits(o.connection.Now(), o.outcome.Windowed...)))
	return false
}
