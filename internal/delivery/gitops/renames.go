package gitops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// ErrHostNotEmpty reports files of others in the folder of a renamed host. It would stay, and its agents would remove the
// moved content.
var ErrHostNotEmpty = errors.New("others have something in the folder of a host that has another name now")

func (s *hostStaging) removeMarker(host string, own bool) {
	e, ok := s.hostDirectory(s.edit.Owner, host).Look(s.edit.Owner.Name + markerSuffix)
	if ok && e.IsFile() && (own || e.ID == s.marker) {
		s.change.remove = append(s.change.remove, s.edit.Owner.markerPath(host))
	}
}

func (s *staging) checkVanishes() error {
	for _, host := range slices.Sorted(maps.Keys(s.edit.Renames)) {
		_, recorded := s.atTip[host]
		if !s.isRenamed(host) || !recorded && len(s.edit.Written[host]) == 0 {
			continue
		}
		at := path.Join(s.edit.Owner.Path, host)
		var left []string
		if d := s.Directory(at); d != nil {
			d.Each(func(e git.Entry) {
				if in := path.Join(at, e.Name); !slices.Contains(s.change.remove, in) {
					left = append(left, in)
				}
			})
		}
		if len(left) > 0 {
			slices.SortFunc(left, strings.Compare)
			return fmt.Errorf("%w: %s", ErrHostNotEmpty, wording.List(wording.Quoted(left), wording.Named))
		}
	}
	return nil
}

// FindForeignEntries returns the paths in the hosts' folders that are neither folders nor markers of the owner.
func (v *OwnerView) FindForeignEntries(ctx context.Context, own folder.Trees) ([]string, error) {
	return withTip(ctx, v.Branch, func() (found []string, err error) {
		hosts := slices.Sorted(maps.Keys(own))
		if _, err := v.work.openOwner(ctx, v.owner, hosts); err != nil {
			return nil, err
		}
		for _, host := range hosts {
			v.work.hostDirectory(v.owner, host).Each(func(e git.Entry) {
				if in := path.Join(v.owner.Path, host, e.Name); !own.Has(host, e.Name) && in != v.owner.markerPath(host) {
					found = append(found, in)
				}
			})
		}
		return found, nil
	})
}
