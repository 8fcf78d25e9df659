// Package changes describes the changes of a plan or apply. It groups equal changes of many folders in one line, with
// the causing object of the fleet. Lines never contain values. The package is pure and deterministic.
package changes

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// FolderChange is an assignment's folder before and after a change.
type FolderChange struct {
	folder.Key
	// Before and After are sorted by name and may omit equal files. They may be nil if unknown.
	Before, After  []folder.File
	Added, Removed bool
	// Location is the former location of a removed folder, or "" for the current one.
	Location string
	// WaitsFor names the unknown input, such as `config container "east"`, or is "".
	WaitsFor string
	// Drift describes a change in the repository that this one repairs: "by hand, since commit 1a2b3c4d".
	Drift string
	// Edit is Drift beside other changes. Written has the files of the last apply.
	Edit    string
	Written []folder.File
	// Back is the target commit of the rollback that causes the change, or "".
	Back   string
	Finals *Finals
}

// Version is a fleet before or after a change.
type Version struct {
	Fleet *fleet.Fleet
	// Config maps config containers to canonical JSON, or to its [Digest]. With other texts, lines lack the changed
	// keys. Missing entries are unknown.
	Config map[string]string
	// Manifests maps deployment targets to their manifests, if Fleet lacks them.
	Manifests  map[string]string
	Schedule   *schedule.Decisions
	GitopsRepo string // changes with the location of the folders
	Provider   string // rendering version of the provider, or ""
}

// Notes describes changes outside the folders.
type Notes struct {
	Total       int      // assignments of the fleet; 0 hides it
	RolledBack  string   // commit of rollback_to, the cause of each change, or ""
	HandedOver  string   // owner that hands over its folders unchanged, or ""
	Repaired    []string // hosts with a repaired marker or record
	Lines       []string // further lines, in order
	Constraints []string
}

// Summarize describes the changes in at most [MaxLines] lines. Causes are the objects that differ between the versions
// and reach the folder: for a value its config containers, otherwise all inputs of the file. Without a version before,
// only additions have causes: their policies.
func Summarize(before, after *Version, folders []FolderChange, given Notes) []Line {
	if len(folders) == 0 && given.HandedOver == "" && len(given.Repaired)+len(given.Lines)+len(given.Constraints) == 0 {
		return nil
	}
	s := newSummary(before, after, folders, given)
	contents, drift := s.contents()
	lines := []Line{{Kind: CountLine, Counts: s.counts()}}
	lines = append(lines, s.moves(RemovalLine, s.removed, maxRemoved)...)
	if given.HandedOver != "" {
		lines = append(lines, Line{Kind: HandoverLine, Names: []string{given.HandedOver}})
	}
	lines = append(lines, s.moves(AdditionLine, s.added, maxAdded)...)
	lines = append(lines, contents...)
	lines = append(lines, s.waiting()...)
	lines = append(lines, drift...)
	if len(given.Repaired) > 0 {
		lines = append(lines, Line{Kind: RepairLine, Names: slices.Sorted(slices.Values(given.Repaired))})
	}
	return slices.Concat(lines, noteLines(given.Lines), noteLines(given.Constraints))
}

// Removals describes only removals, in at most 12 lines.
func Removals(before, after *Version, removed []FolderChange, given Notes) []Line {
	s := newSummary(before, after, removed, given)
	return s.moves(RemovalLine, s.removed, maxFew)
}

// MaxLines limits the result of [Summarize].
const MaxLines = 140

// Limits of each kind of line.
const (
	maxRemoved = 25
	maxAdded   = 20
	maxChanged = 25
	maxWaiting = 8
	maxDrift   = 4
	maxFew     = 12
)
