package rollout

import (
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
)

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
