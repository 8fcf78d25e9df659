package gitops

import (
	"errors"
	"fmt"
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
