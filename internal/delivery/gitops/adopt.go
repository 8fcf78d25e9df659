package gitops

import (
	"fmt"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// ownershipCheck finds folders of an edit that belong to other owners, and takes them over if the edit adopts them.
type ownershipCheck struct{ *staging }

// takeOver takes over conflicts that are a whole folder of another owner, or a folder in no record, and returns the rest.
// It rewrites the former owner's records in the same commit, and nothing else of that owner.
func (s *ownershipCheck) takeOver(found []Conflict) ([]Conflict, error) {
	type ownedHost struct {
		owner Owner
		host  string
	}
	records := map[ownedHost]hostRecord{}
	var left []Conflict
	for _, c := range found {
		if !c.Adoptable() {
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
		s.taken[c.Key] = folder // the former owner's record
	}
	ordered := slices.SortedFunc(maps.Keys(records), func(a, b ownedHost) int {
		return folder.Key.Compare(
			folder.Key{Host: a.owner.recordsPath(), DeploymentTarget: a.host},
			folder.Key{Host: b.owner.recordsPath(), DeploymentTarget: b.host},
		)
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

// readRecordOf reads a record of another owner, which the search for conflicts has fetched.
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

func (c *change) adoptedTexts() []string {
	var texts []string
	for _, a := range c.adopted {
		from := "no owner"
		switch {
		case a.OwnerPath != "":
			from = a.Owner + " at " + a.OwnerPath
		case a.Owner != "":
			from = a.Owner + " at the root"
		}
		texts = append(texts, fmt.Sprintf("%s/%s from %s", a.Host, a.DeploymentTarget, from))
	}
	return texts
}
