// Package changes describes the changes of a plan or apply. It groups equal changes of many folders in one line, with
// the causing object of the fleet. Lines never contain values. The package is pure and deterministic.
package changes

import (
	"cmp"
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

// Line is a line of a plan or apply without values. [English] returns its text.
type Line struct {
	Kind        LineKind
	Assignments []folder.Key // sorted
	Files       []string     // files, or final objects; empty while unknown
	Keys        []Key        // changed keys of the files, or fields of the objects
	MoreKeys    int          // omitted keys
	TextLines   int          // most differing lines of a file whose keys are unknown
	How         How          // of final objects: [New], [Removed], or [Changed]
	Location    string       // former location of removed folders
	Causes      []Cause
	Counts      Counts   // of a [CountLine]
	Names       []string // owner, hosts or unknown inputs
	Text        string   // of a [NoteLine]
}

// LineKind is the kind of a line.
type LineKind string

// Kinds of lines, in order.
const (
	CountLine    LineKind = "count"
	RemovalLine  LineKind = "removal"
	HandoverLine LineKind = "handover" // Names has the owner
	AdditionLine LineKind = "addition"
	ObjectLine   LineKind = "object" // final objects
	FileLine     LineKind = "file"
	WaitLine     LineKind = "wait"   // Names has the unknown inputs
	RepairLine   LineKind = "repair" // Names has the hosts
	NoteLine     LineKind = "note"   // a line of another package
	MoreLine     LineKind = "more"   // Counts.Total is the number of omitted notes
)

// Counts has the numbers of a plan.
type Counts struct {
	Hosts                            int // with changes
	Changed, Added, Removed, Unknown int // assignments
	Total                            int // all assignments; 0 hides it
}

// How is the kind of a change.
type How string

// Kinds of changes. The lower ones have no path.
const (
	Changed       How = ""
	New           How = "new"
	Removed       How = "removed"
	NewFile       How = "new_file"
	RemovedFile   How = "removed_file"
	Attributes    How = "attributes" // modes or links
	Whole         How = "whole"
	Further       How = "further"        // omitted or unreadable fields
	NoChange      How = "no_change"      // of final objects
	FormerUnknown How = "former_unknown" // Path has the reason
)

// Key is a changed key. The zero value is a file with unknown keys, or a whole object.
type Key struct {
	Path string // as displayed: "data.DATABASE_URL"
	How  How
}

func (k Key) compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Path, other.Path), cmp.Compare(k.How, other.How))
}

// Objects without a name of their own.
const (
	allObjects   = ""
	otherObjects = "*" // beyond the limit
)

const severalLocations = "*"

// CauseKind is the kind of a cause, mostly of an object of the fleet.
type CauseKind string

// Kinds of causes, in the order of a line.
const (
	ByRollback    CauseKind = "rollback"
	ByEnvironment CauseKind = "environment"
	ByContainer   CauseKind = "config_container"
	ByWorkload    CauseKind = "workload"
	ByPolicy      CauseKind = "target_policy"
	ByPlacement   CauseKind = "placement"
	ByAssignments CauseKind = "assignments"
	ByClusterType CauseKind = "cluster_type"
	ByCluster     CauseKind = "cluster"
	ByWorkspace   CauseKind = "workspace"
	ByTemplate    CauseKind = "template"
	ByHydration   CauseKind = "hydration"
	ByRepo        CauseKind = "gitops_repo"
	ByName        CauseKind = "owner_name"
	ByProvider    CauseKind = "provider"
	ByDrift       CauseKind = "drift"

	ofTarget CauseKind = "deployment_target" // its cause is the workload
)

var kindOrder = []CauseKind{
	ByRollback, ByEnvironment, ByContainer, ByWorkload, ByPolicy, ByPlacement, ByAssignments, ByClusterType,
	ByCluster, ByWorkspace, ByTemplate, ByHydration, ByRepo, ByName, ByProvider, ByDrift,
}

// Cause is an object that was changed, added or removed, or a cause outside the fleet.
type Cause struct {
	Kind  CauseKind
	Name  string
	How   How  // [New], [Removed] or [Changed]
	Moved Move // of a workload's artifact, or of the provider
}

func (c Cause) compare(other Cause) int {
	return cmp.Or(
		cmp.Compare(slices.Index(kindOrder, c.Kind), slices.Index(kindOrder, other.Kind)),
		cmp.Compare(c.Name, other.Name),
		cmp.Compare(c.How, other.How),
		c.Moved.compare(other.Moved),
	)
}

// Move is a change of versions: of a chart, version, commit or digest.
type Move struct{ What, From, To string }

func (m Move) compare(other Move) int {
	return cmp.Or(cmp.Compare(m.What, other.What), cmp.Compare(m.From, other.From), cmp.Compare(m.To, other.To))
}

func noteLines(texts []string) []Line {
	var lines []Line
	for i, text := range texts {
		if left := len(texts) - i; i == maxFew-1 && left > 1 {
			return append(lines, Line{Kind: MoreLine, Counts: Counts{Total: left}})
		}
		lines = append(lines, Line{Kind: NoteLine, Text: text})
	}
	return lines
}
