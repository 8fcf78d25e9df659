package rollout

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// FleetHost describes a host of the fleet.
type FleetHost struct {
	IsCluster bool
	// TypeLabels has the labels of the cluster type, also if the host is a cluster. Both include reserved labels.
	Labels, TypeLabels fleet.Labels
	// Clusters lists the clusters of the host. Without any, only time counts.
	Clusters []string
}

// HostOf returns a cluster type as a host, or one of its clusters.
func HostOf(environment string, ofType *fleet.ClusterType, cluster *fleet.Cluster, clusters []string) *FleetHost {
	reserved := fleet.Labels{"environment": environment, "cluster-type": ofType.Name}
	host := &FleetHost{TypeLabels: fleet.MergeLabels(ofType.Labels, reserved), Clusters: clusters}
	host.Labels = host.TypeLabels
	if cluster != nil {
		host.IsCluster = true
		host.Labels = fleet.MergeLabels(ofType.Labels, cluster.Labels, reserved, fleet.Labels{"cluster": cluster.Name})
	}
	return host
}

// Report is the report of a cluster about a folder.
type Report struct {
	// Tree is the content on the cluster, if Known; "" if the cluster lacks the folder.
	Known bool
	Tree  string
	// Status has the verdict. A failure of the root halts a change, but never takes this folder back.
	verdict.Status
	// Source names the check, or is "facts"; "" for agents. Message begins with it and has the measured figure.
	Source string
}

// Record is the record of a folder.
type Record struct {
	Tree    string
	Before  string    // the tree before; "" if the folder was added
	Changed time.Time // commit time of the last change; zero if unknown
}

// StepInput has everything that a decision depends on.
type StepInput struct {
	// Now is the time of the evidence. No clock is read.
	Now time.Time
	// Wanted has the trees of the fleet, "" while unknown.
	Wanted folder.Trees
	// Deployed has the trees that the owner wrote last, with all of its hosts.
	Deployed folder.Trees
	// Found has the trees on the branch, if others changed them. Held folders keep these trees.
	Found    folder.Trees
	Hosts    map[string]*FleetHost // of the fleet
	Settings *Settings             // nil: everything is written at once
	Holds    []FolderHold
	// Reports returns the report of a cluster about a folder; nil: only time counts.
	Reports func(cluster string, key folder.Key) Report
	Records map[folder.Key]Record
	// Requires lists the folders that must be proven before a folder changes; nil: none.
	Requires func(folder.Key) []folder.Key
	// State is the result of the step before; nil for none. A Lost state is reconstructed from records and reports.
	State *StepState
	Lost  bool
	// Tip is the commit with the trees of Deployed.
	Tip string
	// Back has the trees at commits that a step may roll back to.
	Back map[string]folder.Trees
	// Remedy is the advice for failed content that cannot be rolled back; "": that for assignments.
	Remedy string
	// Proposed reports whether the pull request of the last step is open.
	Proposed bool
}

// Outcome has the decisions of a step and its state.
type Outcome struct {
	Decisions Decisions
	State     *StepState // never nil
	// Progress has the deployment targets under way, by name.
	Progress []Progress
	// RolledOut reports whether everything is as wanted and proven.
	RolledOut bool
	// Undecided reports whether content is unknown: its folders have no tree in Decisions.
	Undecided bool
	// Closed reports that closed windows of the rollout prevented all writes.
	Closed bool
	// Windowed lists the windows that must be open for the writes.
	Windowed []gate.Windows
	// Missing lists the commits that Back lacks.
	Missing []string
	// PassedOver lists the stages that passed now without some of their clusters.
	PassedOver []PassedStage
	Notes      []Note
}

// Advance decides one step.
func Advance(in StepInput) *Outcome {
	p := &prover{StepInput: in, stageTable: newStageTable(in.Settings)}
	windows, state := newWindowCheck(p), in.State.clone()
	if in.Settings == nil {
		state = &StepState{Targets: map[string]*ChangeState{}}
	} else if mark := in.Settings.mark(); state.Stages != mark {
		state.Stages = mark
		for _, target := range state.Targets {
			target.Passed = 0
		}
	}
	targets := collectTargets(p, state, windows)
	order := slices.Sorted(maps.Keys(targets))
	tracker := &tracker{prover: p, state: state, elsewhere: make([]counts, len(p.stages))}
	for _, name := range order {
		if t := targets[name]; in.Settings != nil && !t.undecided {
			tracker.follow(t)
		}
	}
	r := &decider{
		prover: p, state: state, windows: windows, targets: targets, order: order,
		out: &Outcome{Decisions: Decisions{}, State: state, PassedOver: tracker.passedOver},
	}
	for _, name := range order {
		r.decide(targets[name])
	}
	r.finish()
	return r.out
}

func collectTargets(p *prover, state *StepState, windows *windowCheck) map[string]*target {
	targets := map[string]*target{}
	of := func(name string) *target {
		t := targets[name]
		if t == nil {
			t = &target{name: name, byHost: map[string]*member{}}
			targets[name] = t
		}
		return t
	}
	for key, tree := range folder.All(p.Wanted) {
		m := of(key.DeploymentTarget).member(key.Host)
		m.want, m.wanted = tree, true
	}
	for key, tree := range folder.All(p.Deployed) {
		m := of(key.DeploymentTarget).member(key.Host)
		m.have, m.deployed = tree, true
	}
	for name, state := range state.Targets {
		t := of(name)
		for host := range state.Hosts {
			t.member(host)
		}
	}
	for name, t := range targets {
		slices.SortFunc(t.members, byName)
		for _, m := range t.members {
			m.key = folder.Key{Host: m.host, DeploymentTarget: name}
			m.info = p.Hosts[m.host]
			_, m.known = p.Deployed[m.host]
			for i := range p.Holds {
				if m.hold == nil && p.Holds[i].holds(m.key, p.Now) {
					m.hold = &p.Holds[i]
				}
			}
			if p.Found != nil && (m.hold != nil || windows.open && windows.mayBeShut(m)) {
				m.have, m.deployed = p.Found[m.host][name], p.Found.Has(m.host, name)
			}
			m.done = !m.pending()
			t.undecided = t.undecided || m.wanted && m.want == ""
		}
	}
	return targets
}

func (r *decider) finish() {
	o := r.out
	o.Closed, o.Windowed = !r.windows.open, r.windows.windowed()
	written := false
	for _, name := range r.order {
		t := r.targets[name]
		o.Undecided = o.Undecided || t.undecided
		written = written || t.writes > 0
		if p := t.progress; p != nil {
			o.Progress = append(o.Progress, *p)
		}
	}
	o.Closed = o.Closed && !written && !o.Undecided
	hosts := r.Wanted
	if !r.windows.open { // new hosts wait, too
		hosts = r.Deployed
	}
	for host := range hosts {
		if o.Decisions[host] == nil && !r.windows.mayNotJoin(host) {
			o.Decisions[host] = map[string]Decision{}
		}
	}
	slices.Sort(o.Missing)
	o.Missing = slices.Compact(o.Missing)
	o.RolledOut = !o.Undecided && len(o.Progress) == 0 && len(r.state.Targets) == 0
	if r.Settings != nil {
		o.Notes = r.notes()
	}
}

func (r *decider) put(m *member, decision Decision) {
	folder.Put(r.out.Decisions, m.key, decision)
}

// Note is a warning to the user.
type Note struct {
	Kind NoteKind
	// Subject is the approval, the entry of expedite, the content or the stage.
	Subject string
	// Other is the content under way, or the remedy.
	Other string
	Hosts []string // of TimeProves
}

// NoteKind is the kind of a note.
type NoteKind string

// The kinds of notes.
const (
	NoWayBack       NoteKind = "no_way_back"      // failed content cannot be rolled back
	ApprovesNothing NoteKind = "approves_nothing" // an approval without an assignment
	ApprovesOld     NoteKind = "approves_old"     // an approval of unwanted content
	ExpeditesOld    NoteKind = "expedites_old"    // an entry of expedite for unwanted content
	ExpeditesLater  NoteKind = "expedites_later"  // an entry of expedite without content, during a change
	ExpeditesNext   NoteKind = "expedites_next"   // the same, before any change
	TimeProves      NoteKind = "time_proves"      // hosts without clusters
	StageIsEmpty    NoteKind = "stage_is_empty"   // a stage that selects no host of the fleet
)

// PassedStage is a stage that passes without some of its clusters.
type PassedStage struct {
	Approval                         string // of the content
	Stage                            StagePlace
	Failed, Stuck, NotReady, Unknown int
}

func (r *decider) notes() []Note {
	slices.SortFunc(r.out.Notes, func(a, b Note) int { return strings.Compare(a.Subject, b.Subject) })
	notes := r.out.Notes
	for _, approval := range r.Settings.Approvals {
		name, content, _ := strings.Cut(approval, "@")
		if t := r.targets[name]; t == nil {
			notes = append(notes, Note{Kind: ApprovesNothing, Subject: approval})
		} else if !t.undecided && !t.hasContent(content) { // else it may be for content that the plan cannot know
			notes = append(notes, Note{Kind: ApprovesOld, Subject: approval})
		}
	}
	for _, text := range r.Settings.Expedite {
		name, content, isContent := strings.Cut(text, "@")
		t := r.targets[name]
		isUnderWay := t != nil && t.state != nil
		switch {
		case isContent && isUnderWay && !t.undecided && content != t.state.id():
			notes = append(notes, Note{Kind: ExpeditesOld, Subject: text, Other: gate.Mark(name, t.state.id())})
		case isContent:
		case isUnderWay:
			notes = append(notes, Note{Kind: ExpeditesLater, Subject: text, Other: gate.Mark(text, t.state.id())})
		default:
			notes = append(notes, Note{Kind: ExpeditesNext, Subject: text})
		}
	}
	if hosts := r.withoutClusters(); len(hosts) > 0 {
		notes = append(notes, Note{Kind: TimeProves, Hosts: hosts})
	}
	for i := range r.Settings.Stages {
		if stage := &r.Settings.Stages[i]; stage.selects() && !stage.matchesAny(r.Hosts) {
			notes = append(notes, Note{Kind: StageIsEmpty, Subject: stage.Name})
		}
	}
	return notes
}

// withoutClusters returns the hosts under way without clusters, if others report.
func (r *decider) withoutClusters() []string {
	if r.Reports == nil {
		return nil
	}
	found := map[string]bool{}
	for _, t := range r.targets {
		for _, m := range t.members {
			if m.touched != nil && m.counts() && len(m.info.Clusters) == 0 {
				found[m.host] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func (s *Stage) matchesAny(hosts map[string]*FleetHost) bool {
	for name, host := range hosts {
		if s.matches(name, host) {
			return true
		}
	}
	return false
}
