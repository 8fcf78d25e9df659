package delivery

import (
	"context"
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// DriftCause explains differences that no commit by hand has caused.
type DriftCause string

// Causes of drift.
const (
	RepositoryGone  DriftCause = "repository gone"
	BranchGone      DriftCause = "branch gone"      // deleted or renamed
	BranchRewritten DriftCause = "branch rewritten" // created anew, or reset by a forced push
	RequestClosed   DriftCause = "request closed"   // without a merge
	RequestOpen     DriftCause = "request open"     // not merged, with other content than was written
)

// IsGone reports whether the branch or the repository no longer exists.
func (d Drift) IsGone() bool { return d.Cause == RepositoryGone || d.Cause == BranchGone }

// Explain explains why a folder differs. It says "by hand" only with the commit of a person.
func (d Drift) Explain(key folder.Key) string {
	if commit := d.Since[key]; commit != "" {
		return fmt.Sprintf("by hand, since commit %.8s", commit)
	}
	switch d.Cause {
	case RepositoryGone:
		return "the repository is gone"
	case BranchGone:
		return "the branch is gone"
	case BranchRewritten:
		return fmt.Sprintf("the branch was rewritten, without commit %.8s", d.Lost)
	case RequestClosed:
		return "the pull request was closed and not merged"
	case RequestOpen:
		return "the pull request is not merged"
	}
	return "not as it was written"
}

const maxSearched = 200

// explainDrift finds the commits by hand that began the drift, or another cause.
func (r *Refresher) explainDrift(ctx context.Context, known *OwnerState, before SavedState, request *forge.PullRequest) error {
	history, err := r.reader.ReadHistory(ctx, known.Owner, gitops.HistoryFilter{Limit: maxSearched})
	if ctx.Err() != nil {
		return fmt.Errorf("the commits since the last apply were not read in time: %w", err)
	}
	if err == nil {
		known.Drift.Since = commitsByHand(history.Commits, known.Drift.Trees)
	}
	if len(known.Drift.Since) == len(known.Drift.Trees) {
		return nil
	}
	if lost := before.Drift.Lost; lost != "" { // found by the last refresh
		known.Drift.Cause, known.Drift.Lost = BranchRewritten, lost
		return nil
	}
	contains, err := r.reader.hasCommit(ctx, known.Owner, known.Tip, before.Tip)
	switch {
	case ctx.Err() != nil:
		return err
	case err == nil && before.Tip != "" && !contains:
		known.Drift.Cause, known.Drift.Lost = BranchRewritten, before.Tip
	case request != nil && request.State == forge.Closed:
		known.Drift.Cause = RequestClosed
	case request != nil && request.State == forge.Open:
		known.Drift.Cause = RequestOpen
	}
	return nil
}

// commitsByHand returns the first commit by hand after the last one of an assignment, for each folder that drifted. commits
// are newest first.
func commitsByHand(commits []gitops.HistoryCommit, drifted map[folder.Key]string) map[folder.Key]string {
	since := map[folder.Key]string{}
	written := map[folder.Key]bool{}
	for _, commit := range commits {
		for _, change := range commit.Changes {
			key := change.Key
			_, isDrift := drifted[key]
			switch {
			case !isDrift || written[key]:
			case len(commit.Owners) == 0:
				since[key] = commit.Commit
			default:
				written[key] = true
			}
		}
	}
	return since
}
