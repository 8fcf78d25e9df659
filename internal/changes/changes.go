// Package changes says for people what a plan or an apply changes: equal changes of many folders are one
// line, which names the file, the keys, the hosts, the number of assignments, and the object of the fleet
// that made it. It never says a value. It is pure: the same input gives the same lines.
package changes

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// Folder is one assignment's folder, before and after.
type Folder struct {
	Host, DeploymentTarget string
	// Before and After are its files, sorted by name: those that differ are enough. Before is nil where
	// the folder is added, After where it is removed, and both may be where its content is not known.
	Before, After  []File
	Added, Removed bool
	// Location says where the folder is, when that is a former location, which is cleared.
	Location string
	// WaitsFor is what its content waits for to be known: `config container "east"`.
	WaitsFor string
	// Drift says that the change mends what somebody did in the repository: "by hand, since commit 1a2b3c4d".
	Drift string
}

// File is one file of a folder.
type File struct {
	Name    string
	Content []byte
}

// Version is the fleet as it was or will be, as far as causes need it.
type Version struct {
	Fleet *fleet.Fleet
	// Config is, by config container, the canonical JSON of its data, or what [Digest] made of that, or any
	// text that changes when the data does, which then tells nothing of its keys. A container without an
	// entry is not known.
	Config map[string]string
	// Manifests is the same by deployment target, for what the fleet does not hold itself.
	Manifests   map[string]string
	Assignments []*schedule.Assignment
	GitopsRepo  string // any text that changes when the location of the folders does
	Provider    string // the version of the provider that rendered; empty: not known
}

// Notes are what else a plan does, which no folder shows.
type Notes struct {
	Total      int      // how many assignments the fleet comes to; 0 is not said
	RolledBack string   // the commit whose folders are wanted again: it is the cause of every change
	HandedOver string   // who owned the folders until now, where they go over as they are
	Adopted    []string // folders that others or nobody owned, "<host>/<deployment target>"
	Repaired   []string // hosts whose marker or record is repaired
	Lines      []string // whatever else is to be said, in this order
	// Constraints are lines about rules, in this order.
	Constraints []string
}

// Summarize returns the lines: first how many hosts and assignments change, then what is removed, what is
// added, what changes, what waits, drift, and rules. They are never more than [MaxLines], for any number of
// folders. Causes are what differs between the versions of the fleet and reaches the folder; where the
// version before is not known (nil), no change has a cause, and an added folder only the policies that
// assign it.
func Summarize(before, after *Version, folders []Folder, notes Notes) []string {
	s := newSummary(before, after, folders, notes)
	lines := []string{s.first()}
	lines = append(lines, s.moves("-", s.removedFolders, maxRemoved)...)
	lines = append(lines, s.ownership()...)
	lines = append(lines, s.moves("+", s.addedFolders, maxAdded)...)
	lines = append(lines, s.contents()...)
	lines = append(lines, s.waiting()...)
	lines = append(lines, s.drifted()...)
	lines = append(lines, s.others()...)
	lines = append(lines, LimitLines(notes.Constraints)...)
	if len(lines) == 1 && s.nothing() {
		return nil
	}
	return lines
}

// MaxLines bounds what [Summarize] returns.
const MaxLines = 110

// What of MaxLines each kind of line may take.
const (
	maxRemoved = 25
	maxAdded   = 20
	maxChanged = 25
	maxWaiting = 8
	maxDrift   = 4
	maxOthers  = 12
	maxFew     = 12
)

// LimitLines bounds lines about one thing, their number and their lengths.
func LimitLines(lines []string) []string {
	var few []string
	for i, line := range lines {
		if left := len(lines) - i; i == maxFew-1 && left > 1 {
			return append(few, "and "+counted(left, "more line"))
		}
		few = append(few, oneLine(line))
	}
	return few
}
