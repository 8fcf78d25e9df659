package gitops

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// The errors of this package. Others are errors of package git, context errors, or sentences about invalid input.
var (
	// ErrConflict reports a folder of another owner, or with files of others.
	ErrConflict = errors.New("folder does not belong to this assignment")
	// ErrUnplanned reports folders of the owner that the edit neither wants nor may remove.
	ErrUnplanned = errors.New("folders that the plan did not show")
	// ErrRace reports that others moved the branch before each push, up to the limit.
	ErrRace = errors.New("others kept moving the branch")
)

// completeError has a complete text, and matches another error.
type completeError struct {
	text string
	of   error
}

func (e *completeError) Error() string { return e.text }
func (e *completeError) Unwrap() error { return e.of }

func newCompleteError(err error) error { return &completeError{err.Error(), err} }

func joinTexts[T any](all []T, text func(T) string) string {
	var texts []string
	for _, one := range all[:min(len(all), wording.Named)] {
		texts = append(texts, text(one))
	}
	if more := len(all) - wording.Named; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// ChangedError is an ErrUnplanned with the changed folders.
type ChangedError struct {
	Folders []ChangedFolder
}

// ChangedFolder is one folder of a ChangedError.
type ChangedFolder struct {
	folder.Key
	// Folder is the path in the repository.
	Folder string
	// Commit is the last commit that changed the folder, if known. Apply does not set it.
	Commit string
}

func (e *ChangedError) Error() string { return joinTexts(e.Folders, ChangedFolder.String) }

func (f ChangedFolder) String() string {
	text := fmt.Sprintf("folder %q has changed since the plan", f.Folder)
	if f.Commit != "" {
		text += ", by commit " + f.Commit
	}
	return text
}

func (e *ChangedError) Unwrap() error { return ErrUnplanned }

// describeError adds the remote to an error, unless its text is complete.
func describeError(remote git.Remote, err error) error {
	if changed, ok := errors.AsType[*ChangedError](err); ok {
		return changed
	}
	if told, ok := errors.AsType[*completeError](err); ok {
		return told
	}
	return remote.Describe(err, ErrRace)
}

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
