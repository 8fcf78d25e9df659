// Package changes writes what a plan or an apply changes, for people: equal changes of many folders are one
// line, with the file or the final object, the keys, the hosts, the number of assignments, and the object of the fleet that
// caused it. It never writes a value. It is pure: the same input gives the same lines.
package changes

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// FolderChange is one assignment's folder, before and after.
type FolderChange struct {
	folder.Key
	// Before and After are its files, sorted by name. Files that are equal in both may be left out. Before is
	// nil where the folder is added, After where it is removed; both may be nil where the content is not known.
	Before, After  []folder.File
	Added, Removed bool
	// Location is the former location of a folder that is removed from there; "" for the current location.
	Location string
	// WaitsFor is what is not known yet and decides its content: `config container "east"`; "" where all is known.
	WaitsFor string
	// Drift says that the change repairs a change in the repository: "by hand, since commit 1a2b3c4d".
	Drift string
	// Back is the commit to which the folder goes back by itself, which is then the cause of the change; or "".
	Back string
	// Finals are its final objects; nil where there are none, or nothing is said of them.
	Finals *Finals
}

// Version is the fleet before or after the change, as far as causes need it.
type Version struct {
	Fleet *fleet.Fleet
	// Config has, for each config container, the canonical JSON of its data, or its [Digest]. Any other text that
	// changes when the data does is possible, too, but then the changed keys are not known. The data of a container
	// without an entry is not known.
	Config map[string]string
	// Manifests has the manifests of deployment targets that Fleet does not have, in the same form.
	Manifests  map[string]string
	Schedule   *schedule.Decisions
	GitopsRepo string // any text that changes when the location of the folders does
	Provider   string // the version of the provider that rendered; empty: not known
}

// Notes say what a plan does besides changing folders.
type Notes struct {
	Total      int      // number of all assignments of the fleet; 0: not shown
	RolledBack string   // the commit that the owner rolls back to, which is then the cause of every change; or ""
	HandedOver string   // the owner whose folders are taken over unchanged; or ""
	Repaired   []string // hosts whose marker or record is repaired
	Lines      []string // other lines, in this order
	// Constraints are lines about rules, in this order.
	Constraints []string
}

// Summarize returns the lines: first how many hosts and assignments change, then what is removed, what is
// added, what changes, what waits, drift, and rules. There are at most [MaxLines], for any number of folders.
// The causes of a change are the objects that differ between the versions of the fleet and reach the folder: of a value the
// config containers that have it, else all from which such a file is rendered.
// Where the version before is not known (nil), changes have no cause, and the causes of an added folder are
// the policies that assign it.
func Summarize(before, after *Version, folders []FolderChange, notes Notes) []string {
	if len(folders) == 0 && notes.HandedOver == "" && len(notes.Repaired)+len(notes.Lines)+len(notes.Constraints) == 0 {
		return nil
	}
	s := newSummary(before, after, folders, notes)
	contents, drift := s.contents()
	lines := []string{s.first()}
	lines = append(lines, s.moves("- ", s.removed, maxRemoved)...)
	if notes.HandedOver != "" {
		lines = append(lines, "owner "+quoted(notes.HandedOver)+" hands over its folders unchanged: nothing is removed")
	}
	lines = append(lines, s.moves("+ ", s.added, maxAdded)...)
	lines = append(lines, contents...)
	lines = append(lines, s.waiting()...)
	lines = append(lines, drift...)
	if len(notes.Repaired) > 0 {
		lines = append(lines, "marker or record repaired, on "+names(slices.Sorted(slices.Values(notes.Repaired)), "host"))
	}
	lines = append(lines, LimitLines(notes.Lines)...)
	return append(lines, LimitLines(notes.Constraints)...)
}

// Removals returns only the lines about what is removed, at most twelve of them.
func Removals(before, after *Version, removed []FolderChange, notes Notes) []string {
	s := newSummary(before, after, removed, notes)
	return s.moves("- ", s.removed, maxFew)
}

// MaxLines bounds what [Summarize] returns.
const MaxLines = 140

// How many of MaxLines there may be of each kind.
const (
	maxRemoved = 25
	maxAdded   = 20
	maxChanged = 25
	maxWaiting = 8
	maxDrift   = 4
	maxFew     = 12
)

// LimitLines returns at most 12 lines, each of at most 500 characters. The last one counts the lines that are left out.
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
