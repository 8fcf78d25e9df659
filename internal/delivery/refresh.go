package delivery

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Drift is the difference between the repository and the state.
type Drift struct {
	// Trees has the present trees of changed folders; "" for missing ones.
	Trees map[folder.Key]string `json:"trees,omitempty"`
	// Touched are hosts with a marker or record of others.
	Touched []string `json:"touched,omitempty"`
	// Since has the first commit by hand that changed a folder.
	Since map[folder.Key]string `json:"since,omitempty"`
	// Found are folders in touched records that the state does not have.
	Found folder.Trees `json:"found,omitempty"`
	// Cause explains folders without a commit in Since.
	Cause DriftCause `json:"cause,omitempty"`
	// Lost is the commit that a branch lost when it was created anew.
	Lost string `json:"lost,omitempty"`
	// Into is the base of the open pull request, if not the location's branch.
	Into string `json:"into,omitempty"`
	// Unsigned names the last commits of touched records that no allowed key has signed.
	Unsigned []string `json:"unsigned,omitempty"`
	// OtherHolder names the commit of another state that took the records over.
	OtherHolder string `json:"other_holder,omitempty"`
	// Request explains why the pull request cannot be merged, and the remedy of the next apply.
	Request string `json:"request,omitempty"`
}

// Equal compares two drifts.
func (d Drift) Equal(other Drift) bool {
	return maps.Equal(d.Trees, other.Trees) && maps.Equal(d.Since, other.Since) && d.Found.Equal(other.Found) &&
		slices.Equal(d.Touched, other.Touched) && slices.Equal(d.Unsigned, other.Unsigned) &&
		d.Cause == other.Cause && d.Lost == other.Lost && d.Into == other.Into && d.Request == other.Request &&
		d.OtherHolder == other.OtherHolder
}

// IsNone reports whether the repository is as written.
func (d Drift) IsNone() bool {
	return len(d.Trees) == 0 && len(d.Touched) == 0 && !d.IsGone() && d.Into == "" && d.Request == ""
}

// Refresher compares repositories with the state.
type Refresher struct {
	reader *Reader
	hosts  *GitHosts
}

// Refresh compares the trees of folders in the repository with the state, and reads no file. A lost or imported state gets
// its content from the records first.
func (r *Refresher) Refresh(ctx context.Context, known *OwnerState) error {
	before := known.SavedState
	view, request, err := r.readPending(ctx, known)
	if isGone(err) || err == nil && view.IsMissing() && known.Trees.Count() > 0 {
		known.markLost(RepositoryGone, before)
		return nil
	}
	if err != nil {
		return err
	}
	if view.Tip() == "" && len(known.Trees) > 0 {
		known.markLost(BranchGone, before)
		known.Drift.Into = otherBase(known, request)
		return nil
	}
	known.Tip = view.Tip()
	if known.Trees == nil {
		if err := known.readRecords(ctx, view); err != nil {
			return err
		}
	}
	if err := known.compare(ctx, view); err != nil {
		return err
	}
	if known.Drift.OtherHolder != "" {
		if err := known.followRecords(ctx, view); err != nil {
			return err
		}
	}
	if err := r.compareRequest(ctx, known, request); err != nil {
		return err
	}
	if len(known.Drift.Trees) > 0 && !known.Proposed {
		return r.explainDrift(ctx, known, before, request)
	}
	return nil
}

func (k *OwnerState) markLost(cause DriftCause, before SavedState) {
	k.Drift = Drift{Cause: cause, Lost: cmp.Or(before.Tip, before.Drift.Lost), Trees: map[folder.Key]string{}}
	k.Tip = ""
	for _, key := range k.Trees.Keys() {
		k.Drift.Trees[key] = ""
	}
}

func (k *OwnerState) compare(ctx context.Context, view *gitops.OwnerView) (err error) {
	k.Drift = Drift{Trees: map[folder.Key]string{}}
	if k.Drift.Touched, err = k.findTouched(ctx, view); err != nil {
		return err
	}
	if k.Drift.Unsigned, err = k.findUnsigned(ctx, view); err != nil {
		return err
	}
	if k.Drift.OtherHolder, err = k.findOtherHolder(ctx, view); err != nil {
		return err
	}
	seen, err := view.ReadTrees(ctx, k.Trees)
	if err != nil {
		return err
	}
	for _, key := range k.Trees.Keys() {
		if tree := seen[key.Host][key.DeploymentTarget]; tree != k.Trees[key.Host][key.DeploymentTarget] {
			k.Drift.Trees[key] = tree
		}
	}
	if err := k.ignoreTaken(ctx, view); err != nil || len(k.Drift.Touched) == 0 {
		return err
	}
	records, err := view.ReadRecords(ctx, "") // others may have written under this name
	if err != nil {
		return err
	}
	if found := records.Trees.Without(k.Trees); len(found) > 0 {
		k.Drift.Found = found
	}
	return nil
}

// followRecords replaces the folders of a state whose records another state has taken over and may have renamed. Unsigned
// records are not followed. The holder and the ids of the records stay, so that each refresh finds the takeover again.
func (k *OwnerState) followRecords(ctx context.Context, view *gitops.OwnerView) error {
	if len(k.Drift.Unsigned) > 0 {
		return nil
	}
	records, err := view.ReadRecords(ctx, "")
	if err != nil {
		return err
	}
	k.setWritten(records, nil)
	touched, holder := k.Drift.Touched, k.Drift.OtherHolder
	if err := k.compare(ctx, view); err != nil {
		return err
	}
	k.Drift.Touched, k.Drift.OtherHolder = touched, holder // as this state wrote them
	return nil
}

// findTouched returns the hosts whose marker or record others changed, except by taking folders over.
func (k *OwnerState) findTouched(ctx context.Context, view *gitops.OwnerView) ([]string, error) {
	left := make(map[string]string, len(k.Trees))
	for host := range k.Trees {
		left[host] = k.Records[host]
	}
	touched := view.FindTouched(left)
	taken, err := view.FindTakenOver(ctx, touched, k.Trees, k.Holder)
	return slices.DeleteFunc(touched, func(host string) bool { return taken[host] }), err
}

func (k *OwnerState) findUnsigned(ctx context.Context, view *gitops.OwnerView) ([]string, error) {
	asked := map[string]string{}
	for _, host := range k.Drift.Touched {
		asked[host] = k.Records[host]
	}
	found, err := view.FindUnsigned(ctx, asked)
	return slices.Sorted(maps.Values(found)), err
}

func (k *OwnerState) findOtherHolder(ctx context.Context, view *gitops.OwnerView) (string, error) {
	if len(k.Drift.Touched) == 0 || k.Holder == "" {
		return "", nil
	}
	writer, err := view.FindOtherHolder(ctx, k.Holder, k.Records)
	if err != nil || writer == nil {
		return "", err
	}
	return writer.String(), nil
}

// ignoreTaken removes folders from the drift that another owner took over. The next apply with changes decides about them.
func (k *OwnerState) ignoreTaken(ctx context.Context, view *gitops.OwnerView) error {
	there := folder.Trees{}
	for key, tree := range k.Drift.Trees {
		if tree != "" {
			folder.Put(there, key, tree)
		}
	}
	if len(there) == 0 {
		return nil
	}
	claimed, err := view.FindConflicts(ctx, there, nil, "") // folders in our own record are ours
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

// notBelieved replaces the id of an unsigned record, which then counts as changed by others.
const notBelieved = "not believed"

func (k *OwnerState) readRecords(ctx context.Context, view *gitops.OwnerView) error {
	records, err := view.ReadRecords(ctx, "")
	if err != nil {
		return err
	}
	k.Holder = records.Holder
	k.Records = map[string]string{}
	for host := range records.Trees {
		k.Records[host] = ""
	}
	unsigned, err := view.FindUnsigned(ctx, k.Records)
	if err != nil {
		return err
	}
	writer, err := view.FindOtherHolder(ctx, "", nil)
	if err != nil {
		return err
	}
	if writer != nil {
		k.Imported = writer.String()
	}
	if len(unsigned) > 0 {
		k.Holder = "" // anybody may have written it
	}
	for host := range unsigned {
		k.Records[host] = notBelieved
	}
	if k.setWritten(records, unsigned); len(unsigned) > 0 {
		k.Former = folder.Former{}
	}
	return nil
}

// setWritten takes the folders in records as written, except on some hosts.
func (k *OwnerState) setWritten(records gitops.OwnerSnapshot, except map[string]string) {
	k.Trees, k.Former = folder.Trees{}, records.Former
	for host := range records.Trees {
		k.Trees[host] = map[string]string{}
	}
	for key, record := range records.Records {
		if except[key.Host] == "" {
			k.Trees[key.Host][key.DeploymentTarget] = record.Tree
			k.Label = max(k.Label, record.OwnerLabel)
		}
	}
}

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
