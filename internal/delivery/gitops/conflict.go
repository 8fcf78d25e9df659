package gitops

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Conflict is one wanted folder that the owner must not write.
type Conflict struct {
	// Key has no DeploymentTarget if the host itself would be inside another owner's folder.
	folder.Key
	// Folder is the path in the repository.
	Folder string
	// Owner and OwnerPath are the owner whose record lists the folder; "" if the folder has files and is in no record.
	Owner     string
	OwnerPath string
	// Record is the owner's own record, if it lists the folder as well.
	Record string
}

func (c Conflict) String() string {
	if c.Owner == "" {
		return fmt.Sprintf("folder %q has files that no assignment's record lists", c.Folder)
	}
	at := fmt.Sprintf("path %q", c.OwnerPath)
	if c.OwnerPath == "" {
		at = "the root of the repository"
	}
	text := fmt.Sprintf("folder %q belongs to the assignment %q at %s", c.Folder, c.Owner, at)
	if c.Record != "" {
		text += fmt.Sprintf(
			", and the record %q lists it, too: repair or remove that record, or set adopt = true to write it again without the "+
				"folder",
			path.Clean(c.Record),
		)
	}
	return text
}

// IsAdoptable reports whether Edit.Adopt takes the folder over: no other owner's folder or path is in or around it.
func (c Conflict) IsAdoptable() bool {
	from := Owner{Name: c.Owner, Path: c.OwnerPath}
	host, target, inside := from.splitFolder(c.Folder)
	return c.Owner == "" || c.DeploymentTarget != "" && inside && target != "" && from.folderPath(host, target) == c.Folder
}

func (o Owner) newConflict(k folder.Key, by Owner) Conflict {
	return Conflict{Key: k, Folder: o.folderPath(k.Host, k.DeploymentTarget), Owner: by.Name, OwnerPath: by.Path}
}

func (w *layout) listOwners(at string) []string {
	var names []string
	w.eachEntry(path.Join(at, recordsFolder), func(e git.Entry) {
		if e.IsTree() && git.CheckSegment(e.Name) == nil {
			names = append(names, e.Name)
		}
	})
	slices.Sort(names)
	return names
}

// splitFolder splits a folder below the owner's path. target is "" on the level of hosts.
func (o Owner) splitFolder(folder string) (host, target string, inside bool) {
	rest := folder
	if o.Path != "" {
		var ok bool
		if rest, ok = strings.CutPrefix(folder, o.Path+"/"); !ok {
			return "", "", false
		}
	}
	host, rest, _ = strings.Cut(rest, "/")
	if host == clustersHost && rest != "" {
		var cluster string
		cluster, rest, _ = strings.Cut(rest, "/")
		host = path.Join(host, cluster)
	}
	target, _, _ = strings.Cut(rest, "/")
	return host, target, true
}
