package rollout

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// stageTable assigns hosts to stages.
type stageTable struct {
	stages  []Stage           // with one for the remaining hosts; then all again for removals
	ways    int               // number of stages without those for removals
	matches map[string][]bool // by host
}

func newStageTable(settings *Settings) stageTable {
	table := stageTable{matches: map[string][]bool{}}
	if settings == nil {
		return table
	}
	table.stages = append(slices.Clone(settings.Stages), Stage{ReadyPercent: 100})
	if table.ways = len(table.stages); table.ways > 1 {
		table.stages = append(table.stages, table.stages...)
	}
	return table
}

// tracker updates the state of changes.
type tracker struct {
	*prover
	state      *StepState
	passedOver []PassedStage
	elsewhere  []counts // buffer of pass: there may be thousands of targets
}

// target is a deployment target in one step.
type target struct {
	name      string
	members   []*member // by name
	byHost    map[string]*member
	undecided bool // some content is unknown
	released  bool // only new hosts lack the content
	expedited bool

	state    *ChangeState // nil if no change is under way
	stages   []int        // with hosts of the change, in order
	counts   counts       // of the current stage
	failing  bool         // too many clusters of failedAt have failed
	failedAt int
	lasting  bool // for long enough to roll back
	stuck    bool // all were only not ready in time
	writes   int
	progress *Progress
}

// member is a deployment target on one host.
type member struct {
	host             string
	key              folder.Key
	want, have       string
	wanted, deployed bool
	known            bool        // the owner has the host already
	info             *FleetHost  // nil if the host has left the fleet
	hold             *FolderHold // nil: no hold
	touched          *HostState
	stage            int
	done             bool // it is as wanted after this step
	spread           string
}

func byName(a, b *member) int { return strings.Compare(a.host, b.host) }

func (t *target) member(host string) *member {
	m := t.byHost[host]
	if m == nil {
		m = &member{host: host}
		t.byHost[host] = m
		t.members = append(t.members, m)
	}
	return m
}

func (m *member) pending() bool { return m.wanted != m.deployed || m.want != m.have }

// counts reports whether the host is in the fleet and not held.
func (m *member) counts() bool { return m.info != nil && m.hold == nil }

func (m *member) mark() string {
	if !m.wanted {
		return "-"
	}
	return markOf(m.want)
}

func markOf(tree string) string { return tree[max(0, len(tree)-6):] }

func (r *tracker) follow(t *target) {
	t.state = r.state.Targets[t.name]
	switch {
	case t.state != nil && !t.isSame():
		t.state = r.beginChange(t, t.state)
	case t.state != nil:
		r.addJoining(t)
	case r.Lost:
		t.state = r.reconstruct(t)
	default:
		if !slices.ContainsFunc(t.members, func(m *member) bool { return m.info != nil && m.pending() }) {
			return
		}
		if t.released = t.isReleased(); t.released {
			return
		}
		t.state = r.beginChange(t, &ChangeState{})
	}
	if t.state == nil || len(t.state.Hosts) == 0 {
		t.state = nil
		delete(r.state.Targets, t.name)
		return
	}
	r.state.Targets[t.name] = t.state
	for _, m := range t.members {
		m.touched = t.state.Hosts[m.host]
	}
	t.retry(r.Settings)
	t.expedited = r.isExpedited(t)
	r.assignStages(t)
	if r.Lost {
		r.passByRecords(t)
		r.assignStages(t)
	}
	for {
		passed := t.state.Passed
		if r.pass(t); passed == t.state.Passed {
			break
		}
		r.assignStages(t) // the share of a passed stage has only hosts that are proven
	}
}

// isSame reports whether the change under way is still wanted. Hosts may join or leave; another placement on the others is
// another change.
func (t *target) isSame() bool {
	joins, some := false, false
	for _, m := range t.members {
		if m.info == nil {
			delete(t.state.Hosts, m.host)
			continue
		}
		if touched := t.state.Hosts[m.host]; touched != nil {
			if touched.Want != m.mark() {
				return false
			}
			some = some || m.wanted
		} else if m.pending() {
			if m.known {
				return false
			}
			joins = true
		} else {
			some = some || m.wanted
		}
	}
	return some || !joins // content that no host has is not released
}

// isReleased reports whether all known hosts have the wanted content.
func (t *target) isReleased() bool {
	some := false
	for _, m := range t.members {
		switch {
		case m.info == nil:
		case !m.pending():
			some = some || m.wanted
		case m.known || m.hold != nil:
			return false
		}
	}
	return some
}

// beginChange begins a change. Wanted content that is proven stays proven.
func (r *tracker) beginChange(t *target, before *ChangeState) *ChangeState {
	made := &ChangeState{Content: t.content(), Since: r.Now, Guessed: before.Guessed, Hosts: map[string]*HostState{}}
	for _, m := range t.members {
		if m.info == nil {
			continue
		}
		was := before.Hosts[m.host]
		pending := m.pending()
		if !pending && (was == nil || !m.wanted && was.Gone.IsZero()) {
			continue
		}
		touched := r.touch(m)
		if was != nil {
			same := was.Want == touched.Want
			if was.Proven && same && !pending {
				continue
			}
			touched.Carried = !pending
			if !was.Proven && was.From != "" {
				touched.From, touched.Added = was.From, was.Added
			}
			if same {
				touched.Gone = was.Gone
			}
		}
		made.Hosts[m.host] = touched
	}
	return made
}

func (r *tracker) touch(m *member) *HostState {
	return &HostState{Want: m.mark(), From: r.Tip, Added: m.wanted && !m.deployed}
}

func (t *target) content() string {
	texts := make([]string, 0, 2*len(t.members))
	for _, m := range t.members {
		if m.info != nil {
			texts = append(texts, m.host, m.want)
		}
	}
	return gate.Content(texts...)
}

// hasContent reports whether an approval is for the content under way or wanted.
func (t *target) hasContent(approved string) bool {
	content := t.content()
	if t.state != nil {
		content = t.state.Content
	}
	return approved == content || strings.HasPrefix(approved, content+"-")
}

func (r *tracker) addJoining(t *target) {
	for _, m := range t.members {
		if m.info != nil && t.state.Hosts[m.host] == nil && m.pending() {
			t.state.Hosts[m.host] = r.touch(m)
		}
	}
}

// reconstruct restores a lost state. All hosts with the wanted content count; the records reveal a rollback.
func (r *tracker) reconstruct(t *target) *ChangeState {
	made := &ChangeState{Content: t.content(), Since: r.Now, Guessed: true, Hosts: map[string]*HostState{}}
	var waits, newest time.Time // of waiting hosts, and of hosts with the wanted content
	for _, m := range t.members {
		switch changed := r.Records[m.key].Changed; {
		case m.info == nil:
		case m.pending():
			waits = verdict.Latest(waits, changed)
		default:
			newest = verdict.Latest(newest, changed)
		}
	}
	for _, m := range t.members {
		if m.info == nil || !m.wanted && !m.deployed {
			continue
		}
		record := r.Records[m.key]
		// Only the hosts written last can belong to a stage with a share of its hosts.
		ofChange := record.Changed.Equal(newest) && newest.After(waits)
		touched := &HostState{Want: m.mark(), Carried: !m.pending() && !ofChange}
		if m.pending() {
			touched.From = r.Tip
		}
		if r.Settings.RollBack && m.wanted && m.deployed && m.pending() && record.Before == m.want {
			made.Failed = true
		}
		made.Hosts[m.host] = touched
	}
	return made
}

// passByRecords passes stages of a lost state whose hosts were all written before a host of a later stage.
func (r *tracker) passByRecords(t *target) {
	for t.state.Passed < len(r.stages)-1 {
		var last, later time.Time
		for _, m := range t.members {
			if m.touched == nil || !m.counts() {
				continue
			}
			changed := r.Records[m.key].Changed
			switch {
			case m.stage <= t.state.Passed && (m.pending() || changed.IsZero()):
				return
			case m.stage <= t.state.Passed && changed.After(last):
				last = changed
			case m.stage > t.state.Passed && !m.pending() && changed.After(later):
				later = changed
			}
		}
		if !later.After(last) {
			return
		}
		t.state.Passed++
	}
}

// id names the content in approvals.
func (t *ChangeState) id() string {
	if t.Attempt == 0 {
		return t.Content
	}
	return fmt.Sprintf("%s-%d", t.Content, t.Attempt+1)
}

// next names the content in an approval that retries it.
func (t *ChangeState) next() string {
	return (&ChangeState{Content: t.Content, Attempt: t.Attempt + 1}).id()
}

func (t *target) retry(s *Settings) {
	if !t.state.Failed {
		return
	}
	mark := gate.Mark(t.name, t.state.next())
	if s.Approvals.For(t.name, t.state.next()) || slices.Contains(s.Expedite, mark) || slices.Contains(s.Expedite, t.name) {
		t.state.Failed, t.state.Stuck, t.state.Passed = false, false, 0
		t.state.Attempt++
		for _, m := range t.members {
			if m.touched != nil && m.pending() {
				m.touched.Proven = false
			}
		}
	}
}

func (r *prover) isExpedited(t *target) bool {
	return slices.ContainsFunc(r.Settings.Expedite, func(text string) bool {
		return text == t.name || text == gate.Mark(t.name, t.state.id())
	})
}

// assignStages assigns the hosts of the change to stages. Removals come after all others: nothing is removed before its
// replacement is proven.
func (r *stageTable) assignStages(t *target) {
	isRemoved := func(m *member) bool { return m.touched != nil && !m.wanted && r.ways > 1 }
	r.assignFrom(t, 0, func(m *member) bool { return m.touched != nil && !isRemoved(m) })
	if slices.ContainsFunc(t.members, isRemoved) {
		r.assignFrom(t, r.ways, isRemoved)
	}
	t.stages = t.stages[:0]
	for _, m := range t.members {
		if m.touched != nil {
			t.stages = append(t.stages, m.stage)
		}
	}
	slices.Sort(t.stages)
	t.stages = slices.Compact(t.stages)
}

// assignFrom assigns hosts to stages, starting at a number.
func (r *stageTable) assignFrom(t *target, first int, names func(*member) bool) {
	left := make([]*member, 0, len(t.members))
	for _, m := range t.members {
		if names(m) {
			left = append(left, m)
		}
	}
	rank := func(m *member) int {
		switch {
		case m.touched.Carried:
			return 4
		case m.touched.Proven:
			return 0
		case !m.pending() && !t.state.Failed: // a rollback leaves all hosts pending
			return 1
		case m.hold == nil:
			return 2
		}
		return 3
	}
	last := r.ways - 1
	for i := range r.ways {
		stage := &r.stages[i]
		var selected []*member
		for _, m := range left {
			if i == last || r.selects(i, m) {
				selected = append(selected, m)
			}
		}
		if i < last && stage.Percent > 0 {
			all := 0
			for _, m := range t.members {
				if names(m) && !m.touched.Carried && r.selects(i, m) {
					all++
				}
			}
			slices.SortFunc(selected, func(a, b *member) int {
				return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.spreadKey(), b.spreadKey()))
			})
			if first+i < t.state.Passed && !t.state.Failed { // no host joins a proven share
				selected = slices.DeleteFunc(selected, func(m *member) bool { return !m.touched.Proven })
			}
			share := (all*stage.Percent + 99) / 100
			selected = selected[:min(len(selected), share)]
		}
		for _, m := range selected {
			m.stage = first + i
		}
		if len(selected) > 0 && i < last {
			taken := make(map[*member]bool, len(selected))
			for _, m := range selected {
				taken[m] = true
			}
			left = slices.DeleteFunc(left, func(m *member) bool { return taken[m] })
		}
	}
}

func (r *stageTable) selects(stage int, m *member) bool {
	matches := r.matches[m.host]
	if matches == nil {
		matches = make([]bool, r.ways)
		for i := range r.ways {
			matches[i] = r.stages[i].matches(m.host, m.info)
		}
		r.matches[m.host] = matches
	}
	return matches[stage]
}

// spreadKey returns a stable sort key that does not follow the names of hosts.
func (m *member) spreadKey() string {
	if m.spread == "" {
		sum := sha256.Sum256([]byte(m.host))
		m.spread = string(sum[:8])
	}
	return m.spread
}
