package assignment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// checkEvidence finds evidence of other clusters, and evidence that is older than what is deployed.
func (o *operation) checkEvidence(in rollout.Input) {
	if in.Reports != nil {
		o.steps.evidence.CheckFleet(o.result.Fleet, o.diagnostics)
	}
	if in.Settings == nil {
		return
	}
	var last time.Time
	if o.private != nil {
		last = o.private.Changed
	}
	for _, record := range in.Records {
		if record.Changed.After(last) {
			last = record.Changed
		}
	}
	for i, document := range o.steps.evidence.List {
		if at := document.Time(); at.Before(last) {
			o.diagnostics.AddAttributeWarning(o.steps.evidence.At[i], "Evidence is older than what is deployed", fmt.Sprintf(
				"The evidence is from %s and the last change from %s, so it says nothing about that change. Read it again, and check that the clocks are right.",
				at.UTC().Format(time.RFC3339),
				last.UTC().Format(time.RFC3339),
			))
		}
	}
}

// newest is the newest document of flotilla_compliance, and where it is; nil where there is none.
func (c rolloutConfig) newest() (newest *observe.Evidence, at path.Path) {
	for i, document := range c.evidence.List {
		if of := document.Compliance; of != nil && (newest == nil || of.Time.After(newest.Time)) {
			newest, at = of, c.evidence.At[i]
		}
	}
	return newest, at
}

// reports returns a function that looks up what all evidence says about a folder on a cluster; nil where none says anything. It
// returns false where the branch does not have the tip of some evidence, or a commit cannot be read.
func (o *operation) reports(ctx context.Context, in rollout.Input) (evidence.Lookup, bool) {
	past := map[string]folder.Trees{} // by commit: what the owner has there
	switch {
	case o.known == nil:
		if newest, _ := o.steps.newest(); newest != nil {
			past[newest.Tip] = o.current
		}
	case o.private != nil && o.private.Tip != "" && !o.private.Proposed:
		past[o.private.Tip] = o.current
	}
	var knowing []evidence.Lookup
	for i, document := range o.steps.evidence.List {
		of := document.Compliance
		if of == nil || len(of.Clusters) == 0 {
			continue
		}
		if _, seen := past[of.Tip]; of.Tip != "" && !seen && !o.hasCommit(ctx, of.Tip, o.steps.evidence.At[i]) {
			return nil, false
		}
		for _, commit := range append([]string{of.Tip}, commitsOfRemoved(of, in)...) {
			if _, ok := past[commit]; ok || commit == "" {
				continue
			}
			trees, err := o.treesAt(ctx, commit)
			if err != nil {
				repository.AddError(ctx, o.diagnostics, err, false)
				return nil, false
			}
			past[commit] = trees
		}
		knowing = append(knowing, o.saysNothingOfRenamed(lookup(of, past, o.relocations.relocated)))
	}
	return o.steps.evidence.Reports(in, knowing...), true
}

// saysNothingOfRenamed returns a lookup that knows nothing of hosts whose folders this plan moves: reports are by the names of
// folders, and neither the tip nor a commit of a cluster has one by the new name yet. Without it, such a cluster would count as
// having what the tip has.
func (o *operation) saysNothingOfRenamed(know evidence.Lookup) evidence.Lookup {
	if len(o.renamedNow) == 0 {
		return know
	}
	return func(cluster string, key folder.Key) rollout.Report {
		if _, renamed := o.renamedNow[key.Host]; renamed {
			return rollout.Report{}
		}
		return know(cluster, key)
	}
}

// lookup looks up a document of flotilla_compliance. Its tip is the tip of the branch when the clusters were asked. past has
// what the owner had there, and at some other commits.
// present returns the tree of a folder at its present place.
func lookup(of *observe.Evidence, past map[string]folder.Trees, present func(key folder.Key, tree string) string) evidence.Lookup {
	return func(cluster string, key folder.Key) rollout.Report {
		content := of.Assignment(cluster, key.String())
		report := rollout.Report{Known: content.Known, Tree: content.Tree, Status: content.Status}
		if content.AtTip {
			report.Tree = past[of.Tip][key.Host][key.DeploymentTarget]
			if trees, ok := past[content.Commit]; ok && report.Tree == "" {
				report.Tree = trees[key.Host][key.DeploymentTarget]
			}
		}
		report.Tree = present(key, report.Tree)
		return report
	}
}

// hasCommit refuses evidence that was gathered at a commit that the branch does not have: it is about another
// repository. at is where the evidence is.
func (o *operation) hasCommit(ctx context.Context, id string, at path.Path) bool {
	found, err := o.connection.Delivery.FindCommits(ctx, o.formerOwner(), []string{id}, nil)
	if err != nil {
		repository.AddError(ctx, o.diagnostics, err, false)
		return false
	}
	return repository.CheckTip(found[id], o.intent.Owner.Location.Branch, at, o.diagnostics)
}

// commitsOfRemoved returns the commits that clusters of hosts have on which a folder is to be removed. Evidence has only
// the folders that existed when it was gathered. Whether a cluster still has an older one follows from its commit.
func commitsOfRemoved(of *observe.Evidence, in rollout.Input) []string {
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

// treesAt returns the owner's trees at a commit of the branch; none where the commit has none of the owner.
func (o *operation) treesAt(ctx context.Context, commit string) (folder.Trees, error) {
	hosts, err := o.asOf(ctx, commit)
	if errors.Is(err, git.ErrCommit) {
		return folder.Trees{}, nil
	}
	return o.underPresentNames(hosts).Trees(), err
}
