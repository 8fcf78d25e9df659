package assignment

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

func (s *rolloutStep) checkEvidence(in rollout.StepInput) {
	if in.Reports != nil {
		s.config.evidence.CheckFleet(s.goal.result.Fleet, s.diagnostics)
	}
	if in.Settings == nil {
		return
	}
	last := s.before.private.Changed
	for _, record := range in.Records {
		if record.Changed.After(last) {
			last = record.Changed
		}
	}
	for i, document := range s.config.evidence.List {
		if at := document.Time(); at.Before(last) {
			tfvalue.AddWarningf(s.diagnostics, s.config.evidence.At[i], "Evidence is older than the deployed content",
				"The evidence is from %s and the last change from %s, so it says nothing about that change. Read it again, and check that the "+
					"clocks are right.", at.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339))
		}
	}
}

// newest returns the newest flotilla_compliance document, if any, and its path.
func (c rolloutConfig) newest() (newest *observe.Evidence, at path.Path) {
	for i, document := range c.evidence.List {
		if of := document.Compliance; of != nil && (newest == nil || of.Time.After(newest.Time)) {
			newest, at = of, c.evidence.At[i]
		}
	}
	return newest, at
}

// reports returns a lookup of a folder on a cluster in all evidence; nil without reports. It returns false if the branch
// lacks the tip of some evidence.
func (s *rolloutStep) reports(ctx context.Context, in rollout.StepInput) (evidence.Lookup, bool) {
	past := map[string]folder.Trees{} // the owner's folders by commit
	private := s.before.private
	switch newest, _ := s.config.newest(); {
	case s.before.isNew && newest != nil:
		past[newest.Tip] = s.before.trees
	case private.Tip != "" && !private.Proposed:
		past[private.Tip] = s.before.trees
	}
	var lookups []evidence.Lookup
	for i, document := range s.config.evidence.List {
		of := document.Compliance
		if of == nil || len(of.Clusters) == 0 {
			continue
		}
		if _, seen := past[of.Tip]; of.Tip != "" && !seen && !s.checkCommit(ctx, of.Tip, s.config.evidence.At[i]) {
			return nil, false
		}
		for _, commit := range append([]string{of.Tip}, commitsOfRemoved(of, in)...) {
			if _, ok := past[commit]; ok || commit == "" {
				continue
			}
			trees, err := s.treesAt(ctx, commit)
			if err != nil {
				repository.AddError(ctx, s.diagnostics, err, false)
				return nil, false
			}
			past[commit] = trees
		}
		lookups = append(lookups, s.withoutRenamed(newLookup(of, past, s.relocations.relocated)))
	}
	return s.config.evidence.Reports(in, lookups...), true
}

// withoutRenamed hides hosts whose folders this plan moves. No commit has their new names, so a cluster there would count
// as having the tip.
func (s *rolloutStep) withoutRenamed(lookup evidence.Lookup) evidence.Lookup {
	if len(s.movedHosts) == 0 {
		return lookup
	}
	return func(cluster string, key folder.Key) rollout.Report {
		if _, renamed := s.movedHosts[key.Host]; renamed {
			return rollout.Report{}
		}
		return lookup(cluster, key)
	}
}

// newLookup returns a lookup in a flotilla_compliance document. past has the owner's folders at its tip and some other
// commits.
func newLookup(of *observe.Evidence, past map[string]folder.Trees, relocate func(key folder.Key, tree string) string) evidence.Lookup {
	return func(cluster string, key folder.Key) rollout.Report {
		content := of.Assignment(cluster, key.String())
		report := rollout.Report{Known: content.Known, Tree: content.Tree, Status: content.Status}
		if content.AtTip {
			report.Tree = past[of.Tip][key.Host][key.DeploymentTarget]
			if trees, ok := past[content.Commit]; ok && report.Tree == "" {
				report.Tree = trees[key.Host][key.DeploymentTarget]
			}
		}
		report.Tree = relocate(key, report.Tree)
		return report
	}
}

// checkCommit refuses evidence gathered at a commit that the branch lacks: it belongs to another repository.
func (s *rolloutStep) checkCommit(ctx context.Context, id string, at path.Path) bool {
	found, err := s.connection.Delivery.FindCommits(ctx, s.formerOwner(), []string{id}, nil)
	if err != nil {
		repository.AddError(ctx, s.diagnostics, err, false)
		return false
	}
	return repository.CheckTip(found[id], s.owner.Location.Branch, at, s.diagnostics)
}

// commitsOfRemoved returns the commits of clusters that may have a folder to be removed: evidence lists only folders that
// existed when it was gathered.
func commitsOfRemoved(of *observe.Evidence, in rollout.StepInput) []string {
	if in.State == nil {
		return nil
	}
	var commits []string
	for target, state := range in.State.Targets {
		for host, ofHost := range state.Hosts {
			info := in.Hosts[host]
			if ofHost.Gone.IsZero() || info == nil {
				continue
			}
			for _, cluster := range info.Clusters {
				content := of.Assignment(cluster, folder.Key{Host: host, DeploymentTarget: target}.String())
				if content.AtTip {
					commits = append(commits, content.Commit)
				}
			}
		}
	}
	return commits
}

func (s *rolloutStep) treesAt(ctx context.Context, commit string) (folder.Trees, error) {
	hosts, err := s.asOf(ctx, commit)
	if errors.Is(err, git.ErrCommit) {
		return folder.Trees{}, nil
	}
	return s.underPresentNames(hosts).Trees(), err
}

const provenLine = "the candidate is proven"

// keepProven returns proven before it is known whether the plan writes anything. It is known only if every outcome has the
// same: Terraform plans again while it applies, and a known value must not change.
func keepProven(r *request, after folder.Trees) types.Dynamic {
	switch {
	case r.model.Candidate.IsNull() || r.before.isNew:
		return types.DynamicNull()
	case r.isCandidateProven(), !r.model.RollbackTo.IsNull(), r.before.isProposed(), hasChanges(after, r.before.trees):
		return r.prior.Proven
	}
	return types.DynamicUnknown()
}

// provenAfter returns the candidate if nothing is left to write or to prove, else the prior value.
func (c *comparison) provenAfter(ctx context.Context, rolledOut types.Bool, isDone bool) types.Dynamic {
	proven := keepProven(&c.request, c.after)
	switch {
	case !proven.IsUnknown() || c.after.Count() != c.after.CountKnown():
		return proven
	case !isDone || !c.before.state.Drift.IsNone() || c.outlook.Identity != delivery.Same:
		return c.prior.Proven
	case !fleet.IsKnown(tfvalue.Plain(c.model.Candidate)) || rolledOut.IsUnknown() || !c.config.evidence.Known:
		return proven
	case rolledOut.ValueBool() && c.isReady(ctx):
		return c.model.Candidate
	}
	return c.prior.Proven
}

func (r *request) isCandidateProven() bool {
	candidate := tfvalue.Plain(r.model.Candidate)
	return fleet.IsKnown(candidate) && !r.prior.Proven.IsNull() && tfvalue.Content(tfvalue.Plain(r.prior.Proven)) == tfvalue.Content(candidate)
}

func hasChanges(after, before folder.Trees) bool {
	for key, tree := range folder.All(after) {
		if tree != "" && tree != before[key.Host][key.DeploymentTarget] {
			return true
		}
	}
	return false
}

// isReady reports whether all clusters are ready, by the evidence of an assignment without a rollout.
func (d *decision) isReady(ctx context.Context) bool {
	if d.config.settings != nil || d.goal == nil || !d.config.evidence.Speaks() {
		return true
	}
	if !d.connection.CanAsk() {
		return false
	}
	in := rollout.StepInput{
		Wanted: d.goal.rendering.Wanted(), Deployed: d.before.state.Trees, Found: d.before.trees, Hosts: d.goal.hosts(),
		Now: d.config.evidence.Time(), Records: map[folder.Key]rollout.Record{},
	}
	for key, tree := range folder.All(in.Wanted) { // without a rollout, no record tells which folders were written last
		in.Records[key] = rollout.Record{Tree: tree, Changed: d.before.private.Changed}
	}
	s := &rolloutStep{d.wanted, d.config}
	var ok bool
	if in.Reports, ok = s.reports(ctx, in); !ok {
		return false
	}
	s.checkEvidence(in)
	return in.IsReady()
}
