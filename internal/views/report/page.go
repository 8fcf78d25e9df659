// Package report writes the page of a fleet as HTML and as Markdown. It knows
// neither Terraform nor Git, and reads no clock: the same page gives the same bytes.
package report

import (
	"cmp"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
)

// Page is all that is shown of one owner's fleet. Lists are shown in the order that
// they have here, so the caller sorts them; the matrix has cluster types before
// clusters. What is not known is the zero value, and is left out. Texts may hold
// anything: HTML, Markdown and terminal codes in them are shown as text.
type Page struct {
	// Title is the name of the owner, and Environment that of its fleet.
	Title, Environment string
	// Recorded says that the page is made of records: it shows what is deployed, and what is wanted is not known.
	Recorded bool
	// Repository is where the owner writes; its URL has no credentials in it.
	Repository folder.Location
	// Commit is the full id of the tip of the branch; "" where there is none.
	Commit string
	// Time is that of the evidence; zero without evidence.
	Time time.Time

	Hosts       []Host
	Targets     []Target
	Assignments []Assignment
	Clusters    []Cluster

	Rollouts   []rollout.Progress
	Promotions []Promotion
	// Comparisons are shown in this order; what of values they have is shown, too.
	Comparisons []Comparison
	// History is of the newest commits, newest first; HistoryCut says that there are older ones.
	History    []Commit
	HistoryCut bool

	Unscheduled  []schedule.Unscheduled
	IdleHosts    []string
	IdlePolicies []schedule.IdlePolicy
	Excluded     []schedule.Excluded

	Rules []constraint.RuleResult

	// Links lead from assignments and clusters to what knows more of them.
	Links Links

	// Health is that of the whole fleet; nil where nothing is known of it.
	Health *health.Score
	// Regions have the health of each region, by name.
	Regions []Region
	// Bounds are those of the grades of scores; the default ones where they are zero.
	Bounds health.Bounds
}

// Host is where deployment targets land.
type Host struct {
	// Name is the host's folder: the name of a cluster type, or "clusters/<cluster>".
	Name string
	// IsCluster says that it is one cluster, and no cluster type.
	IsCluster bool
	Labels    map[string]string
	// Region is what it is grouped by; "" for none.
	Region string
	// Clusters is the number of clusters that follow it: all of the cluster type, or 1.
	Clusters int
	// Health is nil where nothing is known of it.
	Health *health.Score
}

// Target is a deployment target.
type Target struct {
	// Name is the full name, "<workload>-<target>".
	Name, Workload, Workspace string
	Labels                    map[string]string
	// Version is the tag, the ref or the chart's version of its manifests; "" where there is none.
	Version string
}

// State says how what is wanted of an assignment relates to what is deployed.
type State string

// The states of an assignment. "" is not known.
const (
	UpToDate State = "up to date"
	New      State = "new"
	Changed  State = "changed"
	Removed  State = "being removed"
)

// Assignment is one deployment target on one host.
type Assignment struct {
	// Host and Target are names. One that Hosts or Targets do not have, as of a folder that is being removed,
	// is shown by its name alone.
	Host, Target string
	Namespace    string
	// Policies are the target policies that made it; none where it is explicit.
	Policies []string

	// Verdict is the worst that its clusters report, Since from when on, and Message the reason.
	Verdict verdict.Verdict
	Since   time.Time
	Message string
	// Clusters counts the clusters that follow its host, by what they report of it, in the order of verdict.All.
	Clusters [5]int

	State State
	// Tree is the id of the wanted tree, Deployed that of the tree at the tip; "" for none.
	Tree, Deployed string
	// Commit is the one that changed it last, and Changed the time of that commit.
	Commit  string
	Changed time.Time
	// Version is that of the manifests that are deployed, as Target has the one that is wanted; "" where that is not known.
	Version string
	// Running is what its clusters run, first what most of them do; none where they do not say.
	Running []Run
	// Source is where that change came from: a URL and a commit.
	Source string
	// WaitsFor is what a change of it waits for; "" for nothing.
	WaitsFor string
	// Snapshot has its values. Assignments with the same values share one; nil where they are not known.
	Snapshot *Snapshot
}

// Run is what some clusters run of an assignment.
type Run struct {
	reconciler.Running
	// Clusters is how many run it.
	Clusters int
}

// Name is the version, or else the revision, in short.
func (r *Run) Name() string { return cmp.Or(r.Version, short(r.Revision)) }

// Snapshot is the values of assignments. Checked says that there is a schema for them.
type Snapshot struct {
	Version string
	Checked bool
	Values  []Value
}

// Value is one value of a snapshot, and where it comes from.
type Value struct {
	// Pointer is its JSON pointer.
	Pointer string
	// Container is the config container that it comes from, "" for a key that a schema names and nobody gives; Overridden
	// are those whose value it replaced.
	Container  string
	Overridden []string
	// Schemas are those that ask for it.
	Schemas []string
	// Text is the value as JSON, or the reference to a secret as "secret <store>: <key>"; "" where values are not to be shown.
	Text string
}

// Cluster is one physical cluster.
type Cluster struct {
	Name, Type string
	// Verdict is the worst of its assignments, Since from when on, and Message the reason.
	Verdict verdict.Verdict
	Since   time.Time
	Message string
	// Commit is the one that it has applied. Behind is how many commits the tip is ahead of that, and
	// BehindSince from when on; -1 where that is not known.
	Commit      string
	Behind      int
	BehindSince time.Time
}

// Promotion is a value on its way to the next environment.
type Promotion struct {
	Name, Candidate, Promoted string
	// WaitsFor is what the candidate waits for, Since from when on; "" where it is promoted.
	WaitsFor string
	Since    time.Time
}

// Commit is one commit of the branch.
type Commit struct {
	ID, Author, Subject string
	Time                time.Time
	// Source is where its changes came from: a URL and a commit; "" where that is not known.
	Source string
	// Count is how many assignments it changed, Changes the first of them.
	Count   int
	Changes []Change
}

// Change is what a commit did to an assignment.
type Change struct {
	// Action is a word such as "added", "changed" or "removed".
	Action string
	// Assignment is its key.
	Assignment string
}

// Region is the health of the hosts of one region.
type Region struct {
	Name            string
	Hosts, Clusters int
	Health          *health.Score
}
