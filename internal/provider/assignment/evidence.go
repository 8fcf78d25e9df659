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

// checkAbout refuses evidence of another assignment. Evidence with the name and location that this assignment had before
// is accepted. hasCommit checks the repository, by the tip.
func (o *operation) checkAbout() {
	evidence := o.steps.evidence
	if evidence == nil || !o.locationKnown {
		return
	}
	is := repository.About(o.intent.Owner)
	if evidence.About == is {
		return
	}
	if o.known != nil {
		was := repository.About(o.known.Owner)
		was.Environment = is.Environment
		if evidence.About == was || evidence.About == (observe.About{Owner: was.Owner, Environment: is.Environment, Branch: is.Branch, Path: is.Path}) {
			return
		}
	}
	o.diagnostics.AddAttributeError(path.Root("evidence"), "Evidence of another assignment", fmt.Sprintf(
		"The evidence is about %s. This is %s. Set evidence to that of a flotilla_compliance with the same name, fleet and gitops_repo.", evidence.About, is))
}

// checkEvidence finds evidence of other clusters, and evidence that is older than what is deployed.
func (o *operation) checkEvidence(in rollout.Input) {
	if in.Reports != nil && len(o.result.Fleet.Clusters) > 0 && !o.knowsAnyCluster() {
		o.diagnostics.AddAttributeError(path.Root("evidence"), "Evidence of another fleet",
			"None of the clusters in the evidence is a cluster of this fleet: set evidence to that of a flotilla_compliance with the same fleet.")
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

func (o *operation) knowsAnyCluster() bool {
	for i := range o.result.Fleet.Clusters {
		if _, ok := o.steps.evidence.Clusters[o.result.Fleet.Clusters[i].Name]; ok {
			return true
		}
	}
	return false
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
	if found[id].ID == "" {
		o.diagnostics.AddAttributeError(path.Root("evidence"), "Evidence of another repository", fmt.Sprintf(
			"The evidence was gathered at a commit that branch %q of this repository does not have: %s. "+
				"Set evidence to that of a flotilla_compliance with the same gitops_repo, or read it again if the branch was rewritten.",
			o.intent.Owner.Location.Branch, found[id].Reason))
		return false
	}
	return true
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
