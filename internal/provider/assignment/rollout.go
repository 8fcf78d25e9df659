package assignment

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// rolloutConfig has the attributes rollout, holds and evidence.
type rolloutConfig struct {
	settings *rollout.Settings // nil: everything changes at once
	holds    []rollout.FolderHold
	evidence repository.GivenEvidence
	known    bool // false while a part is unknown
}

func (c rolloutConfig) isEmpty() bool { return c.known && c.settings == nil && len(c.holds) == 0 }

// decodeRollout reads rollout, holds and evidence.
func (m *assignmentModel) decodeRollout(diagnostics *diag.Diagnostics) rolloutConfig {
	c := rolloutConfig{known: true}
	isRollout := tfvalue.Plain(m.Rollout) != nil
	if isRollout {
		settings, known, findings := rollout.Decode(tfvalue.Plain(m.Rollout))
		tfvalue.AddFindings(diagnostics, path.Root("rollout"), "Invalid rollout", tfvalue.Inner(findings))
		c.settings, c.known = settings, known
	}
	if tfvalue.Plain(m.Holds) != nil {
		holds, known, findings := rollout.DecodeHolds(tfvalue.Plain(m.Holds))
		tfvalue.AddFindings(diagnostics, path.Root("holds"), "Invalid holds", tfvalue.Inner(findings))
		c.holds, c.known = holds, c.known && known
	}
	switch c.evidence = repository.DecodeEvidence(m.Evidence, diagnostics); {
	case !c.evidence.Known:
		c.known = c.known && !isRollout && len(c.holds) == 0
	case len(c.evidence.List) == 0:
		if isRollout && c.settings != nil {
			diagnostics.AddAttributeError(path.Root("evidence"), "No evidence", "A rollout needs evidence: "+
				"set evidence = data.flotilla_compliance.….evidence. With feedback = {} no cluster is asked, and only time counts.")
		}
		for _, hold := range c.holds {
			if !hold.Until.IsZero() {
				diagnostics.AddAttributeError(path.Root("holds"), "Invalid holds",
					"until is compared with the time of the evidence: set evidence = data.flotilla_compliance.….evidence, or remove until.")
				break
			}
		}
	}
	return c
}

type rolloutStep struct {
	wanted
	config rolloutConfig
}

// decideFleet decides which folders of the fleet change now. It returns false if that is not known yet, or after an error.
func decideFleet(ctx context.Context, w wanted) (decision, bool) {
	s := &rolloutStep{w, w.model.decodeRollout(w.diagnostics)}
	if s.isLocated {
		for i, document := range s.config.evidence.List {
			repository.CheckAbout(document.Compliance, s.owner, &s.before.state.Owner, s.config.evidence.At[i], s.diagnostics)
		}
	}
	if s.diagnostics.HasError() {
		return decision{}, false
	}
	wanted := w.goal.rendering.Wanted()
	if s.config.isEmpty() || s.before.state.Drift.IsGone() { // folders that wait would be nowhere
		d := decideAll(s.wanted, wanted, rollout.Write)
		d.config = s.config
		return d, true
	}
	if !s.config.known || !s.isLocated || !s.connection.CanAsk() {
		return decision{}, false
	}
	in, ok := s.input(ctx, wanted)
	if !ok {
		return decision{}, false
	}
	ofRollout, ofHolds := rollout.CheckNames(in.Settings, in.Holds, in.Hosts, in.Wanted, in.Deployed)
	tfvalue.AddFindings(s.diagnostics, path.Root("rollout"), "Invalid rollout", tfvalue.Inner(ofRollout))
	for _, finding := range ofHolds { // a held target may leave the fleet before its hold
		s.diagnostics.AddAttributeWarning(path.Root("holds"), "Hold matches nothing", tfvalue.Sentence(finding.String()))
	}
	if s.checkEvidence(in); s.diagnostics.HasError() {
		return decision{}, false
	}
	if newest, _ := s.config.newest(); newest == nil && s.before.isNew && !s.isApply {
		return decision{}, false // the branch at apply decides which changes wait
	}
	outcome, contents := s.advance(ctx, in)
	if s.diagnostics.HasError() {
		return decision{}, false
	}
	for _, note := range outcome.Notes {
		s.diagnostics.AddAttributeWarning(path.Root("rollout"), "Rollout may not do what you expect", tfvalue.Sentence(note.String()))
	}
	d := decision{wanted: s.wanted, config: s.config, isStaged: true, outcome: outcome, formerContents: contents}
	return d, s.checkMove(ctx, outcome)
}

// checkMove refuses to move while changes wait: their folders would be at neither location.
func (s *rolloutStep) checkMove(ctx context.Context, outcome *rollout.Outcome) bool {
	if s.before.isNew || len(outcome.Progress) == 0 {
		return true
	}
	identity, err := s.connection.Delivery.Identify(ctx, s.before.state, s.owner)
	if err != nil {
		repository.AddError(ctx, s.diagnostics, err, false)
		return false
	}
	if identity != delivery.Moved {
		return true
	}
	s.diagnostics.AddAttributeError(path.Root("gitops_repo"), "Cannot move during a rollout", fmt.Sprintf(
		"%s.\n\nAt the new location, folders that wait would be missing until the rollout writes them. Let the rollout finish first, "+
			"expedite it, or move without rollout and holds.", outcome.Lines()[0]))
	return false
}

// input gathers the input of the decision. Equal configuration and state give equal input.
func (s *rolloutStep) input(ctx context.Context, wanted folder.Trees) (in rollout.StepInput, ok bool) {
	in = rollout.StepInput{
		Wanted: wanted, Settings: s.config.settings, Holds: s.config.holds, Hosts: s.goal.hosts(), Requires: s.goal.requires,
		Back: map[string]folder.Trees{}, State: s.before.private.Rollout, Now: s.config.evidence.Time(),
	}
	if s.before.isNew {
		if !s.addWritten(ctx, &in) {
			return in, false
		}
	} else {
		in.Deployed, in.Lost, in.Proposed = s.before.state.Trees, s.before.private.isLost(), s.before.isProposed()
		in.Records, in.Tip = s.before.private.records(wanted), s.before.private.Tip
	}
	in.Found = s.before.trees
	in.Reports, ok = s.reports(ctx, in)
	return in, ok
}

// addWritten adds the folders on the branch for an assignment without a state, at the commit of the evidence, because the
// branch may move on until the apply.
func (s *rolloutStep) addWritten(ctx context.Context, in *rollout.StepInput) bool {
	newest, at := s.config.newest()
	var written gitops.OwnerSnapshot
	var err error
	switch {
	case newest == nil:
		written, err = s.connection.Delivery.ReadOwner(ctx, s.owner, nil)
	case newest.Tip != "":
		written, err = s.connection.Delivery.ReadOwnerAt(ctx, s.owner, newest.Tip)
	}
	if errors.Is(err, git.ErrCommit) {
		s.checkCommit(ctx, newest.Tip, at) // adds the error
		return false
	}
	if err == nil {
		err = s.relocateWritten(ctx, written.Trees)
	}
	if err != nil {
		repository.AddError(ctx, s.diagnostics, err, true)
		return false
	}
	in.Deployed = s.relocations.trees(s.renames.RenameTrees(recordedTrees(written)))
	s.before.trees = s.relocations.trees(s.renames.RenameTrees(written.Trees))
	in.Lost = len(written.Records) > 0
	in.Records, in.Tip = make(map[folder.Key]rollout.Record, len(written.Records)), written.Tip
	for key, record := range folder.RenameKeys(s.renames, written.Records) {
		in.Records[key] = rollout.Record{Tree: s.relocations.relocated(key, record.Tree), Before: record.TreeBefore, Changed: record.Changed}
	}
	return true
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

func (g *fleetGoal) hosts() map[string]*rollout.FleetHost {
	ofType := map[string][]string{}
	for i := range g.result.Fleet.Clusters {
		cluster := &g.result.Fleet.Clusters[i]
		ofType[cluster.ClusterType] = append(ofType[cluster.ClusterType], cluster.Name)
	}
	hosts := make(map[string]*rollout.FleetHost, len(g.result.Schedule.Hosts))
	for _, host := range g.result.Schedule.Hosts {
		clusters := ofType[host.ClusterType.Name]
		if host.Cluster != nil {
			clusters = []string{host.Cluster.Name}
		}
		hosts[host.Name] = rollout.HostOf(g.result.Fleet.Environment, host.ClusterType, host.Cluster, clusters)
	}
	return hosts
}

func (g *fleetGoal) requires(key folder.Key) []folder.Key {
	i, ok := g.result.AssignmentIndex(key.Host, key.DeploymentTarget)
	if !ok {
		return nil
	}
	dependencies := g.result.Schedule.Assignments[i].Dependencies
	keys := make([]folder.Key, len(dependencies))
	for j, dependency := range dependencies {
		keys[j] = folder.Key{Host: dependency.Host.Name, DeploymentTarget: dependency.Target.Name}
	}
	return keys
}

// advance decides, and reads the commits that the rollout rolls back to.
func (s *rolloutStep) advance(ctx context.Context, in rollout.StepInput) (*rollout.Outcome, map[string]gitops.FolderEdits) {
	contents := map[string]gitops.FolderEdits{}
	for {
		outcome := rollout.Advance(in)
		if len(outcome.Missing) == 0 {
			return outcome, contents
		}
		for _, commit := range outcome.Missing {
			hosts, err := s.foldersAt(ctx, commit)
			if errors.Is(err, git.ErrCommit) {
				tfvalue.AddWarningf(s.diagnostics, path.Root("rollout"), "Cannot roll back",
					"the failed content stays, because the content before it is not in the history any more: %s. "+
						"Set rollback_to, or write newer content", err)
				return outcome, contents
			}
			if err != nil {
				repository.AddError(ctx, s.diagnostics, err, false)
				return outcome, contents
			}
			contents[commit], in.Back[commit] = hosts, hosts.Trees()
		}
	}
}
