package assignment

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
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
