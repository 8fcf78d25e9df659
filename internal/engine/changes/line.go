package changes

import (
	"cmp"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
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
