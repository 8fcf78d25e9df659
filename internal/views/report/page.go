// Package report is the model of the page of a fleet, and writes it as HTML and Markdown. It has no Terraform, Git or clock.
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

// Page is the page of one owner, or of all. Callers sort its lists. Unknown parts are zero. Texts may have any content.
type Page struct {
	// Title is the name of the owner.
	Title, Environment string
	// Recorded: the page is made of records, and the wanted content is unknown.
	Recorded bool
	// Repository has no credentials.
	Repository folder.Location
	// Commit is the full id of the tip.
	Commit string
	// Time is the time of the evidence.
	Time time.Time

	Hosts       []Host
	Targets     []Target
	Assignments []Assignment
	Clusters    []Cluster

	Rollouts    []rollout.Progress
	Promotions  []Promotion
	Comparisons []Comparison
	// History has the newest commits, newest first.
	History gitops.History

	Unscheduled  []schedule.Unscheduled
	IdleHosts    []string
	IdlePolicies []schedule.IdlePolicy
	Excluded     []schedule.Excluded

	// Rules has the results of the constraints, and Expressions their CEL.
	Rules       []constraint.RuleResult
	Expressions map[string]string
	Fleet       FleetCounts

	Links Links

	Health  *health.Score
	Regions []Region
	// Bounds is zero for the default.
	Bounds health.Bounds
}

// Host is a host of deployment targets.
type Host struct {
	// Name is a cluster type, or "clusters/<cluster>".
	Name      string
	IsCluster bool
	Labels    map[string]string
	Region    string
	// Clusters counts all of the cluster type, or 1.
	Clusters int
	Health   *health.Score
}

// Target is a deployment target.
type Target struct {
	// Name is the full name, "<workload>-<target>".
	Name, Workload, Workspace string
	Labels                    map[string]string
	// Version is the tag, ref or chart version; "" for none.
	Version string
}

// TargetState compares wanted and deployed content.
type TargetState string

// The states; "" means unknown.
const (
	UpToDate TargetState = "up to date"
	New      TargetState = "new"
	Changed  TargetState = "changed"
	Removed  TargetState = "being removed"
)

// Assignment is one deployment target on one host.
type Assignment struct {
	// Host and Target are names, also of a removed folder that Hosts or Targets lack.
	Host, Target string
	Namespace    string
	// Policies is empty for an explicit assignment.
	Policies []string

	// Status is the worst of its clusters; zero without reports.
	verdict.Status
	// Clusters counts by verdict, in the order of verdict.All.
	Clusters [5]int

	State TargetState
	// Tree is the id of the wanted tree, and Deployed of that at the tip.
	Tree, Deployed string
	// Commit is its last commit, of the time Changed.
	Commit  string
	Changed time.Time
	// Version is the version of the deployed manifests.
	Version string
	// Running has the most common version first.
	Running []Run
	// Source is the origin of the last change.
	Source   string
	WaitsFor string
	// Snapshot is shared by assignments with the same values; nil if unknown.
	Snapshot *Snapshot
}

// Run is a version of an assignment on some clusters.
type Run struct {
	reconciler.Running
	Clusters int
}

// Name returns the version, or else the short revision.
func (r *Run) Name() string { return cmp.Or(r.Version, short(r.Revision)) }

// Snapshot has values of assignments. Checked: there is a schema.
type Snapshot struct {
	Version string
	Checked bool
	Values  []Value
}

// Value is one value of a snapshot with its origin.
type Value struct {
	Pointer string
	// Container is "" for a key that only a schema names.
	Container  string
	Overridden []string
	Schemas    []string
	// Text is JSON, or "secret <store>: <key>"; "" if values are hidden.
	Text string
}

// Cluster is one physical cluster.
type Cluster struct {
	Name, Type string
	// Status is the worst of its assignments.
	verdict.Status
	// Behind counts newer commits, the first of BehindSince; -1 if unknown.
	Commit      string
	Behind      int
	BehindSince time.Time
}

// Promotion is a promotion to the next environment.
type Promotion struct {
	Name, Candidate, Promoted string
	// WaitsFor is the condition since a time; "" if it is promoted.
	WaitsFor string
	Since    time.Time
}

// Region is the health of the hosts in one region.
type Region struct {
	Name            string
	Hosts, Clusters int
	Health          *health.Score
}
