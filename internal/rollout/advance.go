package rollout

import (
	"maps"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Host is what a rollout knows of a host of the fleet.
type Host struct {
	IsCluster bool
	// Labels are the host's own, the reserved ones included; TypeLabels those of its cluster type, or of
	// itself where it is one.
	Labels, TypeLabels fleet.Labels
	// Clusters are the host's clusters; empty where they are not known: then only time counts.
	Clusters []string
}

// HostOf is a cluster type as a host, or, where it is not nil, a cluster of it. clusters are the names of the host's clusters.
func HostOf(environment string, ofType *fleet.ClusterType, cluster *fleet.Cluster, clusters []string) *Host {
	reserved := fleet.Labels{"environment": environment, "cluster-type": ofType.Name}
	host := &Host{TypeLabels: fleet.MergeLabels(ofType.Labels, reserved), Clusters: clusters}
	host.Labels = host.TypeLabels
	if cluster != nil {
		host.IsCluster = true
		host.Labels = fleet.MergeLabels(ofType.Labels, cluster.Labels, reserved, fleet.Labels{"cluster": cluster.Name})
	}
	return host
}

// Report is what is known of one folder on one cluster.
type Report struct {
	// Known says that it is known what the cluster has; Tree is that, "" where it has no such folder.
	Known bool
	Tree  string
	// Status is the verdict. A failure that was said of what follows the folder of the host as a whole halts, and is no
	// reason to take this folder back. What is none of the verdicts is unknown.
	verdict.Status
	// Source is who said so, where that is no agent: the name of a check, or "facts". The message then has what was measured,
	// and begins with the source.
	Source string
}

// Record is what the repository says of a folder.
type Record struct {
	Tree    string
	Before  string    // the tree before; "" where the folder was added
	Changed time.Time // commit time of the last change; zero where it is not known
}

// Input is everything that a decision depends on.
type Input struct {
	// Now is the time of the evidence: no clock is read, so that the same input gives the same decision.
	Now time.Time
	// Wanted is what the fleet wants; "" is a tree that is not known yet.
	Wanted folder.Trees
	// Deployed is what was written, all hosts of the owner included.
	Deployed folder.Trees
	// Found is what is there, as others have changed it since; nil: what was written. What is held stays so.
	Found    folder.Trees
	Hosts    map[string]*Host // of the fleet
	Settings *Settings        // nil: everything goes at once
	Holds    []Hold
	// Reports looks up what is known of a folder on a cluster; nil: there are no reports, and only time
	// counts.
	Reports func(cluster string, key folder.Key) Report
	Records map[folder.Key]Record
	// Requires lists the folders whose content must be proven before that of a folder changes; nil: none.
	Requires func(folder.Key) []folder.Key
	// State is that of the step before; nil where there is none. Lost says that there should be one: it
	// then follows from the records and the reports.
	State *State
	Lost  bool
	// Tip is the commit at which Deployed was there.
	Tip string
	// Back is what the owner had at commits that a step may roll back to.
	Back map[string]folder.Trees
	// Remedy is what to do where content that failed cannot be rolled back; "": what helps an assignment.
	Remedy string
	// Proposed says that what was written last is in a pull request that is still open.
	Proposed bool
}

// Outcome is what happens in this step, and what is to be remembered for the next.
type Outcome struct {
	Decisions Decisions
	State     *State // never nil
	// Progress is of each deployment target that is under way, in order.
	Progress []Progress
	// RolledOut says that everything is as wanted, and proven where a rollout asks for that.
	RolledOut bool
	// Undecided says that the content of some deployment target is not known yet: its folders are not
	// decided, and have no tree in Decisions.
	Undecided bool
	// Closed says that the windows of the rollout are closed, and that nothing at all is written.
	Closed bool
	// Windowed are the windows that have to be open for what is written, each of them: those of the rollout, and of the stages
	// in which something is written.
	Windowed []gate.Windows
	// Missing are commits that Back lacks and the decision needs.
	Missing []string
	// PassedOver says which stages are passed in this step without some of their clusters, in order.
	PassedOver []string
	// Notes are warnings for the user, in order.
	Notes []string
}

// run is one step.
type run struct {
	Input
	state   *State
	open    bool   // the windows of the rollout
	shut    []bool // by stage of the settings: its windows are closed; nil where none are
	targets map[string]*target
	order   []string
	stages  []Stage           // with the last one, of those that no stage names; where there are others, once more, for removals
	ways    int               // how many there are without that
	matches map[string][]bool // by host: which stages select it
	out     *Outcome

	elsewhere []counts // what pass counts by stage, one after the other for all targets, since there may be thousands

	openings map[int]opening // by stage
	written  map[int]bool    // by stage: something is written for which windows have to be open
}

// Advance decides one step: for each folder whether it gets what is wanted, stays what it is at the tip, or
// is rolled back; and how far the rollout is.
func Advance(in Input) *Outcome {
	r := &run{
		Input: in, state: in.State.clone(), open: true, targets: map[string]*target{}, out: &Outcome{Decisions: Decisions{}},
		matches: map[string][]bool{}, openings: map[int]opening{}, written: map[int]bool{},
	}
	if in.Settings == nil {
		r.state = &State{Targets: map[string]*Target{}}
	} else {
		r.stages = append(slices.Clone(in.Settings.Stages), Stage{ReadyPercent: 100})
		if r.ways = len(r.stages); r.ways > 1 {
			r.stages = append(r.stages, r.stages...)
		}
		r.elsewhere = make([]counts, len(r.stages))
		r.look()
		if mark := in.Settings.mark(); r.state.Stages != mark {
			r.state.Stages = mark
			for _, target := range r.state.Targets {
				target.Passed = 0
			}
		}
	}
	r.collect()
	for _, name := range r.order {
		if t := r.targets[name]; in.Settings != nil && !t.undecided {
			r.follow(t)
		}
	}
	for _, name := range r.order {
		r.decide(r.targets[name])
	}
	r.finish()
	return r.out
}

// collect arranges the folders by deployment target.
func (r *run) collect() {
	of := func(name string) *target {
		t := r.targets[name]
		if t == nil {
			t = &target{name: name, byHost: map[string]*member{}}
			r.targets[name] = t
		}
		return t
	}
	for key, tree := range folder.All(r.Wanted) {
		m := of(key.DeploymentTarget).member(key.Host)
		m.want, m.wanted = tree, true
	}
	for key, tree := range folder.All(r.Deployed) {
		m := of(key.DeploymentTarget).member(key.Host)
		m.have, m.deployed = tree, true
	}
	for name, state := range r.state.Targets {
		t := of(name)
		for host := range state.Hosts {
			t.member(host)
		}
	}
	r.order = slices.Sorted(maps.Keys(r.targets))
	for _, name := range r.order {
		t := r.targets[name]
		slices.SortFunc(t.members, byName)
		for _, m := range t.members {
			m.key = folder.Key{Host: m.host, DeploymentTarget: name}
			m.info = r.Hosts[m.host]
			_, m.known = r.Deployed[m.host]
			for i := range r.Holds {
				if m.hold == nil && r.Holds[i].holds(m.key, r.Now) {
					m.hold = &r.Holds[i]
				}
			}
			if r.Found != nil && (m.hold != nil || r.open && r.mayBeShut(m)) {
				m.have, m.deployed = r.Found[m.host][name], r.Found.Has(m.host, name)
			}
			m.done = !m.pending()
			t.undecided = t.undecided || m.wanted && m.want == ""
		}
	}
}

// finish fills in the hosts, and the progress of the whole rollout.
func (r *run) finish() {
	o := r.out
	o.State, o.Closed, o.Windowed = r.state, !r.open, r.windowed()
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
	if !r.open { // hosts stay as they are, too
		hosts = r.Deployed
	}
	for host := range hosts {
		if o.Decisions[host] == nil && !r.mayNotJoin(host) {
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

func (r *run) put(m *member, decision Decision) {
	folder.Put(r.out.Decisions, m.key, decision)
}
