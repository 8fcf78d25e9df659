package delivery

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Drift is how the repository differs from what was written.
type Drift struct {
	// Trees are the folders with another tree than was written; "" where the folder is gone.
	Trees map[folder.Key]string `json:"trees,omitempty"`
	// Touched are hosts whose marker or record was changed or removed by others.
	Touched []string `json:"touched,omitempty"`
	// Since names the first commit by hand that changed a folder. Folders without such a commit are absent.
	Since map[folder.Key]string `json:"since,omitempty"`
	// Found are folders that the owner's records list and the state does not know, where a record was touched.
	Found folder.Trees `json:"found,omitempty"`
	// Cause explains folders that differ although no commit by hand changed them; "" where there is none.
	Cause DriftCause `json:"cause,omitempty"`
	// Lost is the commit that a branch which was made anew does not have any more.
	Lost string `json:"lost,omitempty"`
	// Into is the branch that the open pull request goes into, where that is another one than the location's.
	Into string `json:"into,omitempty"`
	// Unsigned says of touched records by which commit they were changed, where no allowed key has signed it.
	Unsigned []string `json:"unsigned,omitempty"`
	// OtherHolder names the commit by which another state has taken the records over; "" where none has.
	OtherHolder string `json:"other_holder,omitempty"`
	// Request says why the pull request cannot be merged as it is, and what the next apply does; "" where it can.
	Request string `json:"request,omitempty"`
}

// Equal says whether two are the same.
func (d Drift) Equal(other Drift) bool {
	return maps.Equal(d.Trees, other.Trees) && slices.Equal(d.Touched, other.Touched) && maps.Equal(d.Since, other.Since) && d.Found.Equal(other.Found) &&
		d.Cause == other.Cause && d.Lost == other.Lost && d.Into == other.Into && slices.Equal(d.Unsigned, other.Unsigned) &&
		d.Request == other.Request &&
		d.OtherHolder == other.OtherHolder
}

// IsNone says that everything is as it was written.
func (d Drift) IsNone() bool {
	return len(d.Trees) == 0 && len(d.Touched) == 0 && !d.IsGone() && d.Into == "" && d.Request == ""
}

// Refresher compares repositories with the state.
type Refresher struct {
	reader *Reader
	hosts  *GitHosts
}

// Refresh compares the folders in the repository with what was written, by their trees. It reads no
// file. Where the state does not know what was written, because it was lost or is being imported, the records
// are read first, and what they say is put into known.
func (r *Refresher) Refresh(ctx context.Context, known *OwnerState) error {
	before := known.SavedState
	view, request, err := r.readPending(ctx, known)
	if isGone(err) || err == nil && view.Missing() && known.Trees.Count() > 0 {
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
	if err := r.compareRequest(ctx, known, request); err != nil {
		return err
	}
	if len(known.Drift.Trees) > 0 && !known.Proposed {
		return r.explainDrift(ctx, known, before, request)
	}
	return nil
}

// lose notes that nothing is there any more.
func (k *OwnerState) markLost(cause DriftCause, before SavedState) {
	k.Drift = Drift{Cause: cause, Lost: cmp.Or(before.Tip, before.Drift.Lost), Trees: map[folder.Key]string{}}
	k.Tip = ""
	for _, key := range k.Trees.Keys() {
		k.Drift.Trees[key] = ""
	}
}

// compare sets Drift to how a branch differs from what was written.
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

// touched are the hosts whose marker or record others have changed. A record that lacks folders which another owner has
// taken over, and says nothing else, is as it should be: then only the folders count.
func (k *OwnerState) findTouched(ctx context.Context, view *gitops.OwnerView) ([]string, error) {
	left := make(map[string]string, len(k.Trees))
	for host := range k.Trees {
		left[host] = k.Records[host]
	}
	touched := view.FindTouched(left)
	taken, err := view.FindTakenOver(ctx, touched, k.Trees, k.Holder)
	return slices.DeleteFunc(touched, func(host string) bool { return taken[host] }), err
}

// unsigned says which touched records no allowed key has signed.
func (k *OwnerState) findUnsigned(ctx context.Context, view *gitops.OwnerView) ([]string, error) {
	asked := map[string]string{}
	for _, host := range k.Drift.Touched {
		asked[host] = k.Records[host]
	}
	found, err := view.FindUnsigned(ctx, asked)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return slices.Sorted(maps.Values(found)), nil
}

// otherHolder names the commit by which another state has taken over touched records; "" where none has.
func (k *OwnerState) findOtherHolder(ctx context.Context, view *gitops.OwnerView) (string, error) {
	if len(k.Drift.Touched) == 0 || k.Holder == "" {
		return "", nil
	}
	writer, found, err := view.FindOtherHolder(ctx, k.Holder, k.Records)
	if err != nil || !found {
		return "", err
	}
	return writer.String(), nil
}

// ignoreTaken does not report folders that another owner has taken over as drift. An apply that changes
// something decides about them.
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
	claimed, err := view.FindConflicts(ctx, there, nil, "") // those that our record lists are ours
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
func (k *OwnerState) readRecords(ctx context.Context, view *gitops.OwnerView) error {
	records, err := view.ReadRecords(ctx, "")
	if err != nil {
		return err
	}
	k.Holder = records.Holder
	k.Trees, k.Records = folder.Trees{}, map[string]string{}
	for host := range records.Trees {
		k.Trees[host], k.Records[host] = map[string]string{}, ""
	}
	unsigned, err := view.FindUnsigned(ctx, k.Records)
	if err != nil {
		return err
	}
	writer, found, err := view.FindOtherHolder(ctx, "", nil)
	if err != nil {
		return err
	}
	if found {
		k.Imported = writer.String()
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
	if k.Former = records.Former; len(unsigned) > 0 {
		k.Former = folder.Former{}
	}
	return nil
}
