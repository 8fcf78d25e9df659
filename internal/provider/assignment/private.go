package assignment

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/privatestate"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// assignmentPrivate is the private state: the written folders and their fleet. It may be large, and a change of it does not
// change the resource.
type assignmentPrivate struct {
	delivery.SavedState
	Environment string             `json:"environment,omitempty"`
	Model       string             `json:"model,omitempty"`
	Config      map[string]string  `json:"config,omitempty"`    // digests
	Manifests   map[string]string  `json:"manifests,omitempty"` // hashes
	GitopsRepo  string             `json:"gitops_repo,omitempty"`
	Rollout     *rollout.StepState `json:"rollout,omitempty"`  // nil before the first write
	Provider    string             `json:"provider,omitempty"` // release that rendered
	Rendered    string             `json:"rendered,omitempty"` // fingerprint of the inputs of Trees
	Constraints savedRules         `json:"constraints,omitzero"`
	// Written has the records of folders in an unfinished rollout; of all folders after a lost state.
	Written map[string]map[string]savedRecord `json:"written,omitempty"`
	Changed time.Time                         `json:"changed,omitzero"`
}

type savedRecord struct {
	Changed time.Time `json:"changed,omitzero"`
	Before  string    `json:"before,omitempty"` // after a lost state, the first digits of the tree before
}

const ownerEntry = "owner"

// loadAssignment reads the private state; nil if there is none.
func loadAssignment(ctx context.Context, private privatestate.State, diagnostics *diag.Diagnostics) *assignmentPrivate {
	const instead = "the folders of the assignment are read from the records of the repository instead"
	return privatestate.LoadSealed[assignmentPrivate](ctx, ownerEntry, instead, private, diagnostics)
}

func (m *assignmentPrivate) save(ctx context.Context, private privatestate.State, diagnostics *diag.Diagnostics) {
	privatestate.SaveSealed(ctx, ownerEntry, m, private, diagnostics)
}

// refreshed returns the private state after a refresh. m may be nil.
func (m *assignmentPrivate) refreshed(known *delivery.OwnerState) *assignmentPrivate {
	after := assignmentPrivate{SavedState: known.SavedState}
	switch {
	case m != nil && known.Drift.OtherHolder != "": // the other state's fleet and rollout
		after.Environment = m.Environment
	case m != nil:
		after = *m
		after.SavedState, after.Label = known.SavedState, m.Label
		if known.Proposed {
			after.Tip = m.Tip
		}
	}
	if m == nil || m.Trees == nil { // trees in records may have been changed by hand
		after.Rendered = ""
	}
	return &after
}

// incomplete returns the private state after a failed apply that may have changed the pull request. m may be nil.
func (m *assignmentPrivate) incomplete() *assignmentPrivate {
	after := assignmentPrivate{}
	if m != nil {
		after = *m
	}
	after.Incomplete = true
	return &after
}

// isLost reports whether the state of a rollout may be lost. The records then replace it.
func (m *assignmentPrivate) isLost() bool { return m.Rollout == nil && m.Model == "" }

func (m *assignmentPrivate) needsRecords() bool {
	return !m.Drift.IsGone() && (m.isLost() || m.Rollout != nil && len(m.Rollout.Targets) > 0)
}

// isUnderWay reports whether an unfinished rollout has written a folder with this tree.
func (m *assignmentPrivate) isUnderWay(key folder.Key, tree string) bool {
	if m.Rollout == nil || m.Rollout.Targets[key.DeploymentTarget] == nil {
		return false
	}
	host := m.Rollout.Targets[key.DeploymentTarget].Hosts[key.Host]
	return host != nil && strings.HasSuffix(tree, host.Want)
}

// noteWritten keeps the parts of the records that a rollout needs. A folder with another tree in its record is only
// proposed.
func (m *assignmentPrivate) noteWritten(records map[folder.Key]gitops.FolderRecord) {
	m.Written = nil
	for key, record := range records {
		if record.Changed.After(m.Changed) {
			m.Changed = record.Changed
		}
		tree, written := m.Trees[key.Host][key.DeploymentTarget], savedRecord{Changed: record.Changed}
		switch {
		case m.isLost():
			written.Before = record.TreeBefore[:min(beforeDigits, len(record.TreeBefore))]
		case record.Tree != tree || !m.isUnderWay(key, tree):
			continue
		}
		if m.Written == nil {
			m.Written = map[string]map[string]savedRecord{}
		}
		folder.Put(m.Written, key, written)
	}
}

// beforeDigits recognize a tree: whole ids of 20,000 folders would be half of a state.
const beforeDigits = 8

// records returns the kept records. Package rollout needs only former trees that are wanted again.
func (m *assignmentPrivate) records(wanted folder.Trees) map[folder.Key]rollout.Record {
	records := map[folder.Key]rollout.Record{}
	for _, key := range m.Trees.Keys() {
		tree := m.Trees[key.Host][key.DeploymentTarget]
		if written, ok := m.Written[key.Host][key.DeploymentTarget]; ok {
			record := rollout.Record{Tree: tree, Changed: written.Changed}
			if want := wanted[key.Host][key.DeploymentTarget]; written.Before != "" && strings.HasPrefix(want, written.Before) {
				record.Before = want
			}
			records[key] = record
		} else if m.isUnderWay(key, tree) {
			records[key] = rollout.Record{}
		}
	}
	return records
}

// equal compares the parts that a refresh changes, except Tip, which commits of others change.
func (m *assignmentPrivate) equal(other *assignmentPrivate) bool {
	return m != nil && other != nil &&
		m.Trees.Equal(other.Trees) && maps.Equal(m.Records, other.Records) && m.Holder == other.Holder && m.Imported == other.Imported &&
		m.Drift.Equal(other.Drift) && m.Proposed == other.Proposed && m.Incomplete == other.Incomplete &&
		maps.EqualFunc(m.Written, other.Written, func(one, other map[string]savedRecord) bool {
			return maps.EqualFunc(one, other, func(a, b savedRecord) bool { return a.Before == b.Before && a.Changed.Equal(b.Changed) })
		})
}

func (m *assignmentPrivate) noteFleet(goal *fleetGoal) {
	value := goal.result.Value
	m.Environment, m.Model = value.Environment, value.Model
	m.Config, m.Manifests = changes.Digest(value.Config), changes.Hashes(value.Manifests)
	m.GitopsRepo, m.Provider = goal.gitopsRepo, goal.release
}

func (m *assignmentPrivate) keepFleet(before *assignmentPrivate) {
	m.Model, m.Config, m.Manifests = before.Model, before.Config, before.Manifests
	m.GitopsRepo, m.Provider = before.GitopsRepo, before.Provider
}

// developmentRelease is the release of local builds, which may render differently.
const developmentRelease = "dev"

func (m *assignmentPrivate) noteRendering(rendering *pipeline.Rendering, release string) {
	m.Rendered = ""
	if release != developmentRelease && m.Trees.Equal(rendering.Wanted()) {
		m.Rendered = rendering.Fingerprint(rendering.Destination, release)
	}
}

// rendering returns the trees in the private state if this release rendered them from the same fleet for the same
// destination. Rendering 20,000 assignments takes longer than the rest of a plan without changes.
func (m *assignmentPrivate) rendering(result *pipeline.Computation, to pipeline.Destination, release string) *pipeline.Rendering {
	if m.Rendered == "" || m.Rendered != result.Fingerprint(to, release) {
		return nil
	}
	return result.FromTrees(to, m.Trees)
}

// fleet returns the fleet that was written last; nil if unknown.
func (m *assignmentPrivate) fleet() *fleet.Fleet {
	if m.Model == "" {
		return nil
	}
	f, err := fleet.ParseModel(m.Model)
	if err != nil {
		return nil
	}
	return f
}

// version returns the fleet before the change; nil if unknown.
func (m *assignmentPrivate) version(now *fleet.Fleet) *changes.Version {
	f := m.fleet()
	if f == nil {
		return nil
	}
	if now != nil {
		f.ApplyRenames(now)
	}
	scheduled, findings := schedule.Schedule(f)
	if len(findings) > 0 {
		return nil
	}
	return &changes.Version{
		Fleet: f, Config: m.Config, Manifests: m.Manifests, Schedule: scheduled,
		GitopsRepo: m.GitopsRepo, Provider: m.Provider,
	}
}
