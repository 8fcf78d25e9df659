package gitops

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// The errors of this package. Every error that it returns matches one of these or
// of package git's, is a context's error, or is a plain sentence about bad input;
// compare with errors.Is and errors.As.
var (
	// ErrConflict: another owner has a folder, or it has files of others.
	ErrConflict = errors.New("folder does not belong to this assignment")
	// ErrUnplanned: the branch has folders of the owner that the edit does not want
	// and may not remove.
	ErrUnplanned = errors.New("folders that the plan did not show")
	// ErrRace: others moved the branch before each push, until the limit was reached.
	ErrRace = errors.New("others kept moving the branch")
)

// toldError is an error that says all that there is to say, and matches another one.
type completeError struct {
	text string
	of   error
}

func (e *completeError) Error() string { return e.text }
func (e *completeError) Unwrap() error { return e.of }

// told is an error that says all that there is to say.
func newCompleteError(err error) error { return &completeError{err.Error(), err} }

// textsOf are the texts of the first few of a list, and how many more there are.
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

// ChangedError is an ErrUnplanned: it names every folder that is to be written or
// removed and is not what the plan saw, in order.
type ChangedError struct {
	Folders []ChangedFolder
}

// ChangedFolder is one folder of a ChangedError.
type ChangedFolder struct {
	folder.Key
	// Folder is its path from the root of the repository.
	Folder string
	// Commit is the one that changed it last; "" where that is not known. Apply
	// does not look for it.
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

// Unwrap makes errors.Is(err, ErrUnplanned) true.
func (e *ChangedError) Unwrap() error { return ErrUnplanned }

// describe returns err in the form in which this package returns errors.
func describeError(remote git.Remote, err error) error {
	if changed, ok := errors.AsType[*ChangedError](err); ok {
		return changed
	}
	if told, ok := errors.AsType[*completeError](err); ok {
		return told
	}
	return remote.Describe(err, ErrRace)
}
