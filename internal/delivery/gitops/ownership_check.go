package gitops

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// ownershipCheck finds folders of an edit that belong to other owners, or takes them over.
type ownershipCheck struct{ *staging }

// checkFolders checks the folders outside the owner's records: wanted ones must not belong to another owner, and those only
// in the state are left to the owner whose record lists them. Then it finds folders that the plan did not show.
func (s *ownershipCheck) checkFolders(ctx context.Context) error {
	known := map[folder.Key]bool{}
	var lost, wanted []folder.Key
	for k := range folder.All(s.edit.Written) {
		if s.skipped[k.Host] {
			continue
		}
		known[k] = true
		if !s.want.Has(k.Host, k.DeploymentTarget) && !s.owned[k] {
			lost = append(lost, k)
		}
	}
	for k := range folder.All(s.want) {
		if !s.skipped[k.Host] && !s.owned[k] {
			wanted = append(wanted, k)
		}
	}
	found, err := s.ownership().findConflicts(ctx, wanted, s.want, known)
	if err != nil {
		return err
	}
	disputed, err := s.dropDisputed(ctx)
	if err != nil {
		return err
	}
	found = append(found, disputed...)
	if s.edit.Adopt {
		if found, err = s.takeOver(found); err != nil {
			return err
		}
	}
	listed, err := s.ownership().findListings(ctx, lost)
	if err != nil {
		return err
	}
	for _, k := range lost {
		if _, ok := listed[k]; !ok {
			s.owned[k] = true
		}
	}
	unplanned := s.findUnplanned()
	inside, err := s.findOthersInside(ctx)
	if err != nil {
		return err
	}
	hosts, err := s.ownership().findHostConflicts(ctx, s.want, s.atTip, s.formerAtTip)
	if err != nil {
		return err
	}
	if found = slices.Concat(found, inside, hosts); len(found) > 0 {
		return &completeError{joinTexts(found, Conflict.String), ErrConflict}
	}
	if len(unplanned) > 0 {
		return &completeError{fmt.Sprintf("the branch has folders of the assignment %q that the plan did not show: %s",
			s.edit.Owner.Name, wording.List(folder.KeyTexts(unplanned), wording.Named)), ErrUnplanned}
	}
	return nil
}

// takeOver takes over whole folders of other owners and folders in no record, and returns the other conflicts. Of the
// former owner, it rewrites the records in the same commit, and nothing else.
func (s *ownershipCheck) takeOver(found []Conflict) ([]Conflict, error) {
	records := map[ownedHost]hostRecord{}
	var left []Conflict
	for _, c := range found {
		if !c.IsAdoptable() {
			left = append(left, c)
			continue
		}
		if c.Owner == "" {
			s.change.adopted = append(s.change.adopted, c)
			continue
		}
		from := Owner{Name: c.Owner, Path: c.OwnerPath}
		host, target, _ := from.splitFolder(c.Folder)
		at := ownedHost{from, host}
		record, ok := records[at]
		if !ok {
			var err error
			if record, err = s.readRecordOf(from, host); err != nil {
				return nil, err
			}
			records[at] = record
		}
		folder, ok := record.DeploymentTargets[target]
		if !ok {
			left = append(left, c)
			continue
		}
		delete(record.DeploymentTargets, target)
		s.change.adopted = append(s.change.adopted, c)
		s.taken[c.Key] = folder
	}
	ordered := slices.SortedFunc(maps.Keys(records), func(a, b ownedHost) int {
		return folder.Key.Compare(folder.Key{Host: a.owner.recordsPath(), DeploymentTarget: a.host},
			folder.Key{Host: b.owner.recordsPath(), DeploymentTarget: b.host})
	})
	h := git.NewHasher()
	for _, at := range ordered {
		content := records[at].encode()
		s.change.put = append(s.change.put, putFile{
			path: at.owner.RecordPath(at.host), id: h.Blob(content), content: content,
		})
	}
	return left, nil
}

func (s *ownershipCheck) readRecordOf(owner Owner, host string) (hostRecord, error) {
	e, ok := s.Lookup(owner.RecordPath(host))
	if !ok {
		return hostRecord{}, fmt.Errorf("the record %q is gone", owner.RecordPath(host))
	}
	content, err := s.Blob(e.ID)
	if err != nil {
		return hostRecord{}, err
	}
	return parseRecord(content)
}

// dropDisputed drops folders that another owner's record lists, too. Wanted ones are conflicts, and removed ones are
// without Adopt and LeaveOthers.
func (s *ownershipCheck) dropDisputed(ctx context.Context) ([]Conflict, error) {
	var keys []folder.Key
	for k := range s.owned {
		_, wanted := s.want[k.Host][k.DeploymentTarget]
		_, known := s.edit.Written[k.Host][k.DeploymentTarget]
		_, there := s.treeOf(k)
		_, keeps := s.edit.Hosts[k.Host][k.DeploymentTarget]
		if there && (wanted && !known || !wanted && !keeps) {
			keys = append(keys, k)
		}
	}
	for k := range folder.All(s.want) {
		if s.skipped[k.Host] && !s.edit.Written.Has(k.Host, k.DeploymentTarget) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, folder.Key.Compare)
	listed, err := s.ownership().findListedByOthers(ctx, keys)
	if err != nil {
		return nil, err
	}
	var found []Conflict
	for _, c := range listed {
		k := c.Key
		delete(s.owned, k)
		if _, wanted := s.want[k.Host][k.DeploymentTarget]; wanted {
			found = append(found, c)
			continue
		}
		if _, recorded := s.priorRecord(k); recorded && !s.edit.Adopt && !s.edit.LeaveOthers {
			c.Record = s.edit.Owner.RecordPath(k.Host)
			found = append(found, c)
		}
	}
	return found, nil
}

// findOthersInside finds folders to be changed in which another owner has written since.
func (s *ownershipCheck) findOthersInside(ctx context.Context) ([]Conflict, error) {
	var drifted []folder.Key
	var folders []string
	for k := range s.owned {
		at, ok := s.treeOf(k)
		if !ok || s.staying[k] || s.edit.Hosts[k.Host][k.DeploymentTarget].Action == Keep {
			continue
		}
		left, _ := s.priorRecord(k)
		if !git.IsID(s.want[k.Host][k.DeploymentTarget], at) && !git.IsID(left.Tree, at) {
			drifted = append(drifted, k)
			folders = append(folders, s.edit.Owner.folderPath(k.Host, k.DeploymentTarget))
		}
	}
	inside, err := s.ownership().findOwnersInside(ctx, folders)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(drifted, folder.Key.Compare)
	var found []Conflict
	for _, k := range drifted {
		if by, ok := inside[s.edit.Owner.folderPath(k.Host, k.DeploymentTarget)]; ok {
			found = append(found, s.edit.Owner.newConflict(k, by))
		}
	}
	return found, nil
}
