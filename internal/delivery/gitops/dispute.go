package gitops

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Anybody with push access can write records. Only the other owner may remove a folder that its record lists.

// FindListedByOthers returns the folders in records of other owners, in order, at a commit in the branch's history. It uses
// the tip if commit is "" or no longer in the history.
//
// Errors: see ReadBranch, or an unreadable record of another owner.
func (v *OwnerView) FindListedByOthers(ctx context.Context, folders folder.Trees, commit string) ([]Conflict, error) {
	return withTip(ctx, v.Branch, func() ([]Conflict, error) {
		work := v.work
		if commit != "" && commit != v.Tip() && len(folders) > 0 {
			switch past, err := v.work.openTree(ctx, commit); {
			case err == nil:
				work = past
			case !errors.Is(err, git.ErrCommit): // the history was rewritten
				return nil, err
			}
		}
		return (&ownership{work, v.owner, []string{v.owner.Name}}).findListedByOthers(ctx, folders.Keys())
	})
}

func (o *ownership) findListedByOthers(ctx context.Context, keys []folder.Key) ([]Conflict, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	listed, err := o.findListings(ctx, keys)
	if err != nil {
		return nil, err
	}
	var found []Conflict
	for _, k := range keys {
		if by, ok := listed[k]; ok {
			found = append(found, o.owner.newConflict(k, by))
		}
	}
	return found, nil
}

// dropDisputed drops folders in records of other owners from those that would be removed, or that only the owner's record
// makes its own. Wanted ones are conflicts, and removed ones are without Adopt and LeaveOthers.
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
		if s.asLeft[k.Host] && !s.edit.Written.Has(k.Host, k.DeploymentTarget) {
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

// FindTakenOver returns the hosts whose record lacks only folders that other owners took over, which rewrote it. It reads
// the records.
//
// Errors: see FindListedByOthers.
func (v *OwnerView) FindTakenOver(ctx context.Context, hosts []string, trees folder.Trees, holder string) (map[string]bool, error) {
	return withTip(ctx, v.Branch, func() (map[string]bool, error) {
		asked := maps.Clone(v.records)
		marker := git.NewHasher().Blob(v.owner.markerText())
		maps.DeleteFunc(asked, func(host string, _ git.Hash) bool {
			return !slices.Contains(hosts, host) || !v.work.hasMarker(v.owner, host, marker)
		})
		records, err := v.work.readRecords(ctx, asked)
		if err != nil {
			return nil, err
		}
		taken := map[string]bool{}
		var missing []folder.Key
		for host, record := range records {
			same := record.Holder == holder
			for target, folder := range record.DeploymentTargets {
				same = same && strings.EqualFold(trees[host][target], folder.Tree)
			}
			for target := range trees[host] {
				if _, ok := record.DeploymentTargets[target]; !ok && same {
					missing = append(missing, folder.Key{Host: host, DeploymentTarget: target})
					taken[host] = true
				}
			}
		}
		listed, err := v.ownership().findListings(ctx, missing)
		for _, k := range missing {
			if _, ok := listed[k]; !ok {
				taken[k.Host] = false
			}
		}
		return taken, err
	})
}
