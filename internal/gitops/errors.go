package gitops

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// What can be wrong beside the errors of package git. Every error that leaves
// this package is one of these or of those, a context's error, or a plain
// sentence about bad input; compare with errors.Is and errors.As.
var (
	// ErrConflict: somebody else owns a folder, or foreign files are in its place.
	ErrConflict = errors.New("folder is not this assignment's")
	// ErrRace: others moved the branch each time, until the bound was reached.
	ErrRace = errors.New("branch kept moving")
)

// OwnershipError is an ErrConflict: it names every folder that is in the way,
// in order.
type OwnershipError struct {
	Conflicts []Conflict
}

// maxNamed is how many conflicts an error's text names; all are in the error.
const maxNamed = 10

func (e *OwnershipError) Error() string {
	var texts []string
	for _, conflict := range e.Conflicts[:min(len(e.Conflicts), maxNamed)] {
		texts = append(texts, conflict.String())
	}
	if more := len(e.Conflicts) - maxNamed; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// Unwrap makes errors.Is(err, ErrConflict) true.
func (e *OwnershipError) Unwrap() error { return ErrConflict }

// describe makes of err what may leave the package.
func describe(remote git.Remote, err error) error {
	var owned *OwnershipError
	if errors.As(err, &owned) {
		return owned
	}
	return remote.Describe(err, ErrRace)
}
