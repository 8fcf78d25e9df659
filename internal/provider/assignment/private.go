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

// assignmentPrivate is the private state of an assignment: what it wrote, and the fleet from which that was rendered. It
// may be large and is not for people, and a change of it is no change of the resource.
type assignmentPrivate struct {
	delivery.SavedState
	Environment string            `json:"environment,omitempty"`
	Model       string            `json:"model,omitempty"`
	Config      map[string]string `json:"config,omitempty"`    // digests of the containers' data
	Manifests   map[string]string `json:"manifests,omitempty"` // hashes of the targets' manifests
	GitopsRepo  string            `json:"gitops_repo,omitempty"`
	Rollout     *rollout.State    `json:"rollout,omitempty"`  // nil where nothing has been written yet
	Provider    string            `json:"provider,omitempty"` // version that rendered
	Rendered    string            `json:"rendered,omitempty"` // fingerprint of what Trees were rendered from
	Constraints savedRules        `json:"constraints,omitzero"`
	// Written is what the records say of folders that are under way in a rollout, by host and deployment target; of all,
	// where the state was lost.
	Written map[string]map[string]savedRecord `json:"written,omitempty"`
	// Changed is when the owner changed a folder last, as far as the state knows.
	Changed time.Time `json:"changed,omitzero"`
}

// savedRecord is what a rollout needs of a folder's record.
type savedRecord struct {
	Changed time.Time `json:"changed,omitzero"`
	Before  string    `json:"before,omitempty"` // the first digits of the tree before, where the state was lost
}

const ownerEntry = "owner"

// loadAssignment reads the private state; nil where there is none.
func loadAssignment(ctx context.Context, private privatestate.State, diagnostics *diag.Diagnostics) *assignmentPrivate {
	const instead = "what the assignment wrote is taken from the repository's records instead"
	return privatestate.LoadSealed[assignmentPrivate](ctx, ownerEntry, instead, private, diagnostics)
}

func (m *assignmentPrivate) save(ctx context.Context, private privatestate.State, diagnostics *diag.Diagnostics) {
	privatestate.SaveSealed(ctx, ownerEntry, m, private, diagnostics)
}

// refreshed is the private state with what a refresh has found. m may be nil.
func (m *assignmentPrivate) refreshed(known *delivery.OwnerState) *assignmentPrivate {
	after := assignmentPrivate{SavedState: known.SavedState}
	if m != nil {
		after = *m
		after.SavedState, after.Label = known.SavedState, m.Label
		if known.Proposed {
			after.Tip = m.Tip
		}
	}
	if m == nil || m.Trees == nil { // the trees in the records may have been changed by hand
		after.Rendered = ""
	}
	return &after
}

// incomplete is the private state after an apply that may have opened or updated the pull request before it failed. m may be nil.
func (m *assignmentPrivate) incomplete() *assignmentPrivate {
	after := assignmentPrivate{}
	if m != nil {
		after = *m
	}
	after.Incomplete = true
	return &after
}

// isLost reports whether the records have to tell about a rollout, because the state of one that may have been under way is lost.
func (m *assignmentPrivate) isLost() bool { return m.Rollout == nil && m.Model == "" }

// needsRecords says whether the records have to be read, for a rollout that is under way or was lost.
func (m *assignmentPrivate) needsRecords() bool {
	return !m.Drift.IsGone() && (m.isLost() || m.Rollout != nil && len(m.Rollout.Targets) > 0)
}

// isUnderWay says whether a folder with this tree has been written by a rollout that is under way.
func (m *assignmentPrivate) isUnderWay(key folder.Key, tree string) bool {
	if m.Rollout == nil || m.Rollout.Targets[key.DeploymentTarget] == nil {
		return false
	}
	host := m.Rollout.Targets[key.DeploymentTarget].Hosts[key.Host]
	return host != nil && strings.HasSuffix(tree, host.Want)
}

// noteWritten keeps what a rollout needs of the records. A folder whose record has another tree is not written yet: a
// pull request proposes it.
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

// beforeDigits are enough to tell whether a tree is the one before: whole ids of 20,000 folders would be half of a state.
const beforeDigits = 8

// records is what noteWritten has kept, in the form of package rollout. Of the trees before, it has those that are wanted
// again: nothing else is asked of them.
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

// equal says whether two private states are equal in the parts that a refresh changes. Tip is none of them: a branch on which
// others commit has changed nothing here.
func (m *assignmentPrivate) equal(other *assignmentPrivate) bool {
	return m != nil && other != nil &&
		m.Trees.Equal(other.Trees) && maps.Equal(m.Records, other.Records) && m.Holder == other.Holder && m.Imported == other.Imported &&
		m.Drift.Equal(other.Drift) && m.Proposed == other.Proposed && m.Incomplete == other.Incomplete &&
		maps.EqualFunc(m.Written, other.Written, func(one, other map[string]savedRecord) bool {
			return maps.EqualFunc(one, other, func(a, b savedRecord) bool { return a.Before == b.Before && a.Changed.Equal(b.Changed) })
		})
}

// noteFleet notes the fleet that was written.
func (m *assignmentPrivate) noteFleet(goal *fleetGoal) {
	value := goal.result.Value
	m.Environment, m.Model = value.Environment, value.Model
	m.Config, m.Manifests = changes.Digest(value.Config), changes.Hashes(value.Manifests)
	m.GitopsRepo, m.Provider = goal.gitopsRepo, goal.release
}

// keepFleet keeps the fleet that was rolled out last.
func (m *assignmentPrivate) keepFleet(before *assignmentPrivate) {
	m.Model, m.Config, m.Manifests = before.Model, before.Config, before.Manifests
	m.GitopsRepo, m.Provider = before.GitopsRepo, before.Provider
}

// developmentRelease is the release of local builds, which may render differently from each other.
const developmentRelease = "dev"

// noteRendering notes the fingerprint of a rendering, where the written trees are all trees of the rendering.
func (m *assignmentPrivate) noteRendering(rendering *pipeline.Rendering, release string) {
	m.Rendered = ""
	if release != developmentRelease && m.Trees.Equal(rendering.Wanted()) {
		m.Rendered = rendering.Computation.Fingerprint(rendering.Destination, release)
	}
}

// rendering returns the trees in the private state as a rendering, if this release has rendered and checked them from the same
// fleet for the same destination; else nil. Rendering 20,000 assignments takes longer than the rest of a plan that changes nothing.
func (m *assignmentPrivate) rendering(result *pipeline.Computation, to pipeline.Destination, release string) *pipeline.Rendering {
	if m.Rendered == "" || release == "" || m.Rendered != result.Fingerprint(to, release) {
		return nil
	}
	return result.FromTrees(to, m.Trees)
}

// fleet returns the fleet that was written last; nil if it is not known.
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

// version returns the fleet before the change, for the causes of changes; nil where it is not known.
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
