package delivery

import (
	"context"
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// Drift is how the repository differs from what was written.
type Drift struct {
	// Trees are the folders with another tree than was written; "" where the folder is gone.
	Trees map[rollout.Key]string
	// Touched are hosts whose marker or record was changed or removed by others.
	Touched []string
	// Since names the first commit by hand that changed a folder. Folders without such a commit are absent.
	Since map[rollout.Key]string
	// Gone says that the repository does not exist any more.
	Gone bool
}

// IsNone says that everything is as it was written.
func (d Drift) IsNone() bool { return len(d.Trees) == 0 && len(d.Touched) == 0 && !d.Gone }

// Refresh compares the folders in the repository with what was written, by their trees. It reads no
// file. Where the state does not know what was written, because it was lost, or made by an import or by an
// older version, the records are read first, and what they say is put into known.
func (c *Client) Refresh(ctx context.Context, known *Known) error {
	branch, err := c.pending(ctx, known)
	if err != nil {
		return err
	}
	view, err := c.view(ctx, known.Owner, branch)
	if isGone(err) || err == nil && view.Missing && known.Trees.Count() > 0 {
		known.Drift = Drift{Gone: true, Trees: map[rollout.Key]string{}}
		for _, key := range known.Trees.Keys() {
			known.Drift.Trees[key] = ""
		}
		return nil
	}
	if err != nil {
		return err
	}
	known.Tip = view.Commit
	if known.Trees == nil {
		if err := known.readRecords(ctx, view); err != nil {
			return err
		}
	}
	// Another owner may have taken a folder over, and its record may have changed. Only the folder counts.
	there := make(map[string]string, len(known.Trees))
	for host := range known.Trees {
		there[host] = ""
	}
	known.Drift = Drift{Trees: map[rollout.Key]string{}, Touched: view.Touched(there)}
	seen, err := view.Deployed(ctx, gitops.Deployed(known.Trees))
	if err != nil {
		return err
	}
	for _, key := range known.Trees.Keys() {
		if tree := seen[key.Host][key.DeploymentTarget]; tree != known.Trees[key.Host][key.DeploymentTarget] {
			known.Drift.Trees[key] = tree
		}
	}
	if err := known.ignoreTaken(ctx, view); err != nil {
		return err
	}
	if len(known.Drift.Trees) > 0 && branch == known.Owner.Location.Branch {
		known.Drift.Since, err = c.since(ctx, known)
	}
	return err
}

// ignoreTaken does not report folders that another owner has taken over as drift. An apply that changes
// something decides about them.
func (k *Known) ignoreTaken(ctx context.Context, view *gitops.View) error {
	there := gitops.Deployed{}
	for key, tree := range k.Drift.Trees {
		if tree == "" {
			continue
		}
		if there[key.Host] == nil {
			there[key.Host] = map[string]string{}
		}
		there[key.Host][key.DeploymentTarget] = tree
	}
	if len(there) == 0 {
		return nil
	}
	claimed, err := view.Conflicts(ctx, there, nil, "") // those that our record lists are ours
	if err != nil {
		return err
	}
	for _, conflict := range claimed {
		if conflict.Owner != "" {
			delete(k.Drift.Trees, rollout.Key{Host: conflict.Host, DeploymentTarget: conflict.DeploymentTarget})
		}
	}
	return nil
}

// readRecords sets what was written to what the owner's records say.
func (k *Known) readRecords(ctx context.Context, view *gitops.View) error {
	records, err := view.Records(ctx)
	if err != nil {
		return err
	}
	k.Trees, k.Records = rollout.Trees{}, map[string]string{}
	for host, targets := range records {
		k.Trees[host], k.Records[host] = make(map[string]string, len(targets)), ""
		for target, record := range targets {
			k.Trees[host][target] = record.Tree
			k.Label = max(k.Label, record.OwnerLabel)
		}
	}
	return nil
}

// Label returns the name that an owner has in the labels of what is rendered, where its records at the
// location have another one than its present name; "" where they have none.
func (c *Client) Label(ctx context.Context, owner Owner) (string, error) {
	view, err := c.view(ctx, owner, owner.Location.Branch)
	if err != nil {
		return "", err
	}
	records, err := view.Records(ctx)
	if err != nil {
		return "", err
	}
	label := ""
	for _, targets := range records {
		for _, record := range targets {
			label = max(label, record.OwnerLabel)
		}
	}
	return label, nil
}

// maxSearched is how many commits are searched at most for who changed a folder.
const maxSearched = 200

// since finds the commits by hand with which the drift began. They are only shown; it is no error when they
// cannot be found.
func (c *Client) since(ctx context.Context, known *Known) (map[rollout.Key]string, error) {
	history, err := c.History(ctx, known.Owner, gitops.HistoryFilter{Limit: maxSearched})
	if ctx.Err() != nil {
		return nil, fmt.Errorf("the commits since the last apply were not read in time: %w", err)
	}
	since := map[rollout.Key]string{}
	if err != nil {
		return since, nil //nolint:nilerr // see above
	}
	ours := map[rollout.Key]bool{}           // our own last commit of the folder was reached
	for _, commit := range history.Commits { // newest first
		for _, change := range commit.Changes {
			key := rollout.Key{Host: change.Host, DeploymentTarget: change.DeploymentTarget}
			_, drifted := known.Drift.Trees[key]
			switch {
			case !drifted || ours[key]:
			case len(commit.Owners) == 0:
				since[key] = commit.Commit
			default:
				ours[key] = true
			}
		}
	}
	return since, nil
}
