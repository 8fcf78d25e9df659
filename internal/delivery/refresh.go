package delivery

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// Drift is how the repository differs from what was written.
type Drift struct {
	// Trees are the folders with another tree than was written; "" where the folder is gone.
	Trees map[rollout.Key]string `json:"trees,omitempty"`
	// Touched are hosts whose marker or record was changed or removed by others.
	Touched []string `json:"touched,omitempty"`
	// Since names the first commit by hand that changed a folder. Folders without such a commit are absent.
	Since map[rollout.Key]string `json:"since,omitempty"`
	// Found are folders that the owner's records list and the state does not know, where a record was touched.
	Found rollout.Trees `json:"found,omitempty"`
	// Gone says that the repository does not exist any more.
	Gone bool `json:"gone,omitempty"`
	// Unsigned says of touched records by which commit they were changed, where no allowed key has signed it.
	Unsigned []string `json:"unsigned,omitempty"`
	// Request says why the pull request cannot be merged as it is, and what the next apply does; "" where it can.
	Request string `json:"request,omitempty"`
}

// Equal says whether two are the same.
func (d Drift) Equal(other Drift) bool {
	return maps.Equal(d.Trees, other.Trees) && slices.Equal(d.Touched, other.Touched) && maps.Equal(d.Since, other.Since) && d.Found.Equal(other.Found) &&
		d.Gone == other.Gone && slices.Equal(d.Unsigned, other.Unsigned) && d.Request == other.Request
}

// IsNone says that everything is as it was written.
func (d Drift) IsNone() bool {
	return len(d.Trees) == 0 && len(d.Touched) == 0 && !d.Gone && d.Request == ""
}

// Refresh compares the folders in the repository with what was written, by their trees. It reads no
// file. Where the state does not know what was written, because it was lost or is being imported, the records
// are read first, and what they say is put into known.
func (c *Client) Refresh(ctx context.Context, known *State) error {
	branch, request, err := c.pending(ctx, known)
	if err != nil {
		return err
	}
	known.Proposed = branch != known.Owner.Location.Branch
	at := known.Owner
	at.Location.Branch = branch
	view, err := c.view(ctx, at)
	if isGone(err) || err == nil && view.Missing() && known.Trees.Count() > 0 {
		known.Drift, known.Tip = Drift{Gone: true, Trees: map[rollout.Key]string{}}, ""
		for _, key := range known.Trees.Keys() {
			known.Drift.Trees[key] = ""
		}
		return nil
	}
	if err != nil {
		return err
	}
	known.Tip = view.Tip()
	if known.Trees == nil {
		if err := known.readRecords(ctx, view); err != nil {
			return err
		}
	}
	known.Drift = Drift{Trees: map[rollout.Key]string{}}
	if known.Drift.Touched, err = known.touched(ctx, view); err != nil {
		return err
	}
	if known.Drift.Unsigned, err = known.unsigned(ctx, view); err != nil {
		return err
	}
	seen, err := view.Deployed(ctx, known.Trees)
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
	if len(known.Drift.Touched) > 0 { // others may have written under this name
		records, err := view.Records(ctx, "")
		if err != nil {
			return err
		}
		if found := records.Trees.Without(known.Trees); len(found) > 0 {
			known.Drift.Found = found
		}
	}
	if known.Drift.Request, err = c.stuck(ctx, known, request); err != nil {
		return err
	}
	if len(known.Drift.Trees) > 0 && branch == known.Owner.Location.Branch {
		known.Drift.Since, err = c.since(ctx, known)
	}
	return err
}

// touched are the hosts whose marker or record others have changed. A record that lacks folders which another owner has
// taken over, and says nothing else, is as it should be: then only the folders count.
func (k *State) touched(ctx context.Context, view *gitops.OwnerView) ([]string, error) {
	left := make(map[string]string, len(k.Trees))
	for host := range k.Trees {
		left[host] = k.Records[host]
	}
	touched := view.Touched(left)
	taken, err := view.TakenOver(ctx, touched, k.Trees, k.Holder)
	return slices.DeleteFunc(touched, func(host string) bool { return taken[host] }), err
}

// unsigned says which touched records no allowed key has signed.
func (k *State) unsigned(ctx context.Context, view *gitops.OwnerView) ([]string, error) {
	asked := map[string]string{}
	for _, host := range k.Drift.Touched {
		asked[host] = k.Records[host]
	}
	found, err := view.Unsigned(ctx, asked)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return slices.Sorted(maps.Values(found)), nil
}

// stuck says why the pull request cannot be merged, or is no longer there to be merged; "" where it can be. A folder that
// the request changes, and that was changed on the branch since to something else, is a conflict: it is found here
// and not by what the Git host says, since some Git hosts say that they are still checking for ever.
func (c *Client) stuck(ctx context.Context, known *State, request *forge.PullRequest) (string, error) {
	if request == nil || request.State == forge.Merged || len(known.Replaced) == 0 {
		return "", nil
	}
	at := known.Owner.Location
	if request.State == forge.Closed {
		if len(known.Drift.Trees) == 0 {
			return "", nil
		}
		return fmt.Sprintf("pull request %d was closed and not merged: another one is opened from branch %q, into which branch %q is merged", request.Number, request.Head, at.Branch), nil
	}
	view, err := c.view(ctx, known.Owner)
	if err != nil {
		return "", err
	}
	asked := rollout.Trees{}
	for key := range known.Replaced {
		folder.Put(asked, key, "")
	}
	now, err := view.Deployed(ctx, asked)
	if err != nil {
		return "", err
	}
	var changed []string
	for key, was := range known.Replaced {
		if is := now[key.Host][key.DeploymentTarget]; is != was && is != known.Trees[key.Host][key.DeploymentTarget] {
			changed = append(changed, key.String())
		}
	}
	if len(changed) == 0 {
		return "", nil
	}
	slices.Sort(changed)
	return fmt.Sprintf("pull request %d conflicts with branch %q, where %s changed: that branch is merged into %q",
		request.Number, at.Branch, wording.List(changed, 3), request.Head), nil
}

// ignoreTaken does not report folders that another owner has taken over as drift. An apply that changes
// something decides about them.
func (k *State) ignoreTaken(ctx context.Context, view *gitops.OwnerView) error {
	there := rollout.Trees{}
	for key, tree := range k.Drift.Trees {
		if tree != "" {
			folder.Put(there, key, tree)
		}
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
			delete(k.Drift.Trees, conflict.Key)
		}
	}
	return nil
}

// notBelieved stands in the place of a record's id, so that the record is one that others have changed.
const notBelieved = "not believed"

// readRecords sets what was written to what the owner's records say.
func (k *State) readRecords(ctx context.Context, view *gitops.OwnerView) error {
	records, err := view.Records(ctx, "")
	if err != nil {
		return err
	}
	k.Holder = records.Holder
	k.Trees, k.Records = rollout.Trees{}, map[string]string{}
	for host := range records.Trees {
		k.Trees[host], k.Records[host] = map[string]string{}, ""
	}
	unsigned, err := view.Unsigned(ctx, k.Records)
	if err != nil {
		return err
	}
	if len(unsigned) > 0 {
		k.Holder = "" // any of them may have made it up
	}
	for host := range unsigned {
		k.Records[host] = notBelieved
	}
	for key, record := range records.Records {
		if unsigned[key.Host] == "" {
			k.Trees[key.Host][key.DeploymentTarget] = record.Tree
			k.Label = max(k.Label, record.OwnerLabel)
		}
	}
	return nil
}

// maxSearched is how many commits are searched at most for who changed a folder.
const maxSearched = 200

// since finds the commits by hand with which the drift began. They are only shown; it is no error when they
// cannot be found.
func (c *Client) since(ctx context.Context, known *State) (map[rollout.Key]string, error) {
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
			key := change.Key
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
