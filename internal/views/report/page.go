// Package report writes the page of a fleet as HTML and as Markdown. It has no Terraform, Git or clock: the same page gives the
// same bytes.
package report

import (
	"cmp"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
)

// Page is the page of one owner's fleet. Lists appear in their order here: callers sort them. The matrix shows cluster types
// before clusters. Unknown parts are zero and do not appear. Texts may have any content: HTML, Markdown and terminal codes appear
// as text.
type Page struct {
	// Title is the name of the owner, and Environment that of its fleet.
	Title, Environment string
	// Recorded reports that the page is made of records: it shows deployed content, and the wanted content is unknown.
	Recorded bool
	// Repository is the location of the owner, without credentials.
	Repository folder.Location
	// Commit is the full id of the tip; "" without a branch.
	Commit string
	// Time is the time of the evidence; zero without evidence.
	Time time.Time

	Hosts       []Host
	Targets     []Target
	Assignments []Assignment
	Clusters    []Cluster

	Rollouts   []rollout.Progress
	Promotions []Promotion
	// Comparisons appear in this order, with their values.
	Comparisons []Comparison
	// History has the newest commits, newest first.
	History gitops.History

	Unscheduled  []schedule.Unscheduled
	IdleHosts    []string
	IdlePolicies []schedule.IdlePolicy
	Excluded     []schedule.Excluded

	// Rules has the results of the constraints, and Expressions their CEL by name.
	Rules       []constraint.RuleResult
	Expressions map[string]string
	// Fleet counts the objects of the fleet.
	Fleet FleetCounts

	// Links lead from assignments and clusters to other pages.
	Links Links

	// Health is the score of the whole fleet; nil if unknown.
	Health *health.Score
	// Regions has the health of each region by name.
	Regions []Region
	// Bounds has the bounds of grades; zero means the default.
	Bounds health.Bounds
}

// Host is a host of deployment targets.
type Host struct {
	// Name is the folder of the host: the name of a cluster type, or "clusters/<cluster>".
	Name string
	// IsCluster reports whether it is a single cluster.
	IsCluster bool
	Labels    map[string]string
	// Region is the group of the host; "" for none.
	Region string
	// Clusters is the number of its clusters: all of the cluster type, or 1.
	Clusters int
	// Health is nil if unknown.
	Health *health.Score
}

// Target is a deployment target.
type Target struct {
	// Name is the full name, "<workload>-<target>".
	Name, Workload, Workspace string
	Labels                    map[string]string
	// Version is the tag, ref or chart version of its manifests; "" if there is none.
	Version string
}

// TargetState compares the wanted content of an assignment with the deployed one.
type TargetState string

// The states of an assignment. "" means unknown.
const (
	UpToDate TargetState = "up to date"
	New      TargetState = "new"
	Changed  TargetState = "changed"
	Removed  TargetState = "being removed"
)

// Assignment is one deployment target on one host.
type Assignment struct {
	// Host and Target are names. If Hosts or Targets lack them, as for a folder that is being removed, only the name appears.
	Host, Target string
	Namespace    string
	// Policies lists the target policies behind it; none if it is explicit.
	Policies []string

	// Status is the worst of its clusters; zero without reports.
	verdict.Status
	// Clusters counts its clusters by verdict, in the order of verdict.All.
	Clusters [5]int

	State TargetState
	// Tree is the id of the wanted tree, and Deployed that of the tree at the tip; "" for none.
	Tree, Deployed string
	// Commit is its last commit, and Changed the time of that commit.
	Commit  string
	Changed time.Time
	// Version is the version of the deployed manifests; "" if unknown. Target has the wanted one.
	Version string
	// Running lists the versions on its clusters, most common first; empty if unknown.
	Running []Run
	// Source is the origin of the last change: a URL and a commit.
	Source string
	// WaitsFor is the condition that a change waits for; "" for none.
	WaitsFor string
	// Snapshot has its values; nil if unknown. Assignments with the same values share one.
	Snapshot *Snapshot
}

// Run is a version of an assignment on some clusters.
type Run struct {
	reconciler.Running
	// Clusters is the number of clusters.
	Clusters int
}

// Name returns the version, or else the short revision.
func (r *Run) Name() string { return cmp.Or(r.Version, short(r.Revision)) }

// Snapshot has the values of assignments. Checked reports whether there is a schema for them.
type Snapshot struct {
	Version string
	Checked bool
	Values  []Value
}

// Value is one value of a snapshot with its origin.
type Value struct {
	// Pointer is the JSON pointer.
	Pointer string
	// Container is the config container of the value, or "" for a key that only a schema names. Overridden lists the containers
	// that it overrides.
	Container  string
	Overridden []string
	// Schemas lists the schemas with the key.
	Schemas []string
	// Text is the value as JSON, or a reference to a secret as "secret <store>: <key>"; "" if values are hidden.
	Text string
}

// Cluster is one physical cluster.
type Cluster struct {
	Name, Type string
	// Status is the worst of its assignments.
	verdict.Status
	// Commit is the commit on the cluster. Behind is the number of newer commits, and BehindSince the time of the first; -1 if
	// unknown.
	Commit      string
	Behind      int
	BehindSince time.Time
}

// Promotion is a promotion to the next environment.
type Promotion struct {
	Name, Candidate, Promoted string
	// WaitsFor is the condition that the candidate waits for, with its time; "" if it is promoted.
	WaitsFor string
	Since    time.Time
}

// Region is the health of the hosts in one region.
type Region struct {
	Name            string
	Hosts, Clusters int
	Health          *health.Score
}
