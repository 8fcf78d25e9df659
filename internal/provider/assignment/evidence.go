package assignment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// checkEvidence finds evidence of other clusters, and evidence that is older than what is deployed.
func (o *operation) checkEvidence(in rollout.Input) {
	if in.Reports != nil {
		repository.CheckClusters(o.steps.evidence, o.result.Fleet, o.diagnostics)
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
	if in.Now.Before(last) {
		o.diagnostics.AddAttributeWarning(path.Root("evidence"), "Evidence is older than what is deployed", fmt.Sprintf(
			"The evidence is from %s and the last change from %s, so it says nothing about that change. Read it again, and check that the clocks are right.",
			in.Now.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339)))
	}
}

// reports returns a function that looks up the evidence about a folder on a cluster. The evidence's tip is the tip of
// the branch when the clusters were asked. It returns false where the branch does not have that commit, or the commit
// cannot be read.
func (o *operation) reports(
	ctx context.Context, evidence *observe.Evidence, in rollout.Input,
) (func(string, rollout.Key) rollout.Report, bool) {
	past := map[string]rollout.Trees{}
	switch {
	case o.known == nil:
		past[evidence.Tip] = o.current
	case o.private != nil && o.private.Tip != "" && !o.private.Proposed:
		past[o.private.Tip] = o.current
	}
	if _, seen := past[evidence.Tip]; evidence.Tip != "" && !seen && !o.hasCommit(ctx, evidence.Tip) {
		return nil, false
	}
	for _, commit := range append([]string{evidence.Tip}, commitsOfRemoved(evidence, in)...) {
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
	return func(cluster string, key rollout.Key) rollout.Report {
		content := evidence.Assignment(cluster, key.String())
		report := rollout.Report{Known: content.Known, Tree: content.Tree, Status: content.Status}
		if content.AtTip {
			report.Tree = past[evidence.Tip][key.Host][key.DeploymentTarget]
			if trees, ok := past[content.Commit]; ok && report.Tree == "" {
				report.Tree = trees[key.Host][key.DeploymentTarget]
			}
		}
		return report
	}, true
}

// hasCommit refuses evidence that was gathered at a commit that the branch does not have: it is about another
// repository.
func (o *operation) hasCommit(ctx context.Context, id string) bool {
	found, err := o.connection.Delivery.Commits(ctx, o.formerOwner(), []string{id}, nil)
	if err != nil {
		repository.AddError(ctx, o.diagnostics, err, false)
		return false
	}
	return repository.CheckTip(found[id], o.intent.Owner.Location.Branch, o.diagnostics)
}

// commitsOfRemoved returns the commits that clusters of hosts have on which a folder is to be removed. Evidence has only
// the folders that existed when it was gathered. Whether a cluster still has an older one follows from its commit.
func commitsOfRemoved(evidence *observe.Evidence, in rollout.Input) []string {
	if in.State == nil {
		return nil
	}
	var commits []string
	for target, state := range in.State.Targets {
		for host, of := range state.Hosts {
			info := in.Hosts[host]
			if of.Gone.IsZero() || info == nil {
				continue
			}
			for _, cluster := range info.Clusters {
				content := evidence.Assignment(cluster, rollout.Key{Host: host, DeploymentTarget: target}.String())
				if content.AtTip {
					commits = append(commits, content.Commit)
				}
			}
		}
	}
	return commits
}

// treesAt returns the owner's trees at a commit of the branch; none where the commit has none of the owner.
func (o *operation) treesAt(ctx context.Context, commit string) (rollout.Trees, error) {
	hosts, err := o.connection.Delivery.AsOf(ctx, o.formerOwner(), commit)
	if errors.Is(err, git.ErrCommit) {
		return rollout.Trees{}, nil
	}
	return treesOf(hosts), err
}

func treesOf(hosts map[string]gitops.Host) rollout.Trees {
	trees := rollout.Trees{}
	for host, folders := range hosts {
		trees[host] = map[string]string{}
		for target, folder := range folders.Folders {
			trees[host][target] = folder.Tree
		}
	}
	return trees
}
