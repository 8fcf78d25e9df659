package rollout

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// State is what a step leaves for the next: the deployment targets that are under way, by name.
type State struct {
	Stages  string             `json:"stages,omitempty"` // a hash, to see whether the stages are the same
	Targets map[string]*Target `json:"targets,omitempty"`
}

// Target is a change of a deployment target that is under way.
type Target struct {
	Content string
	Attempt int       // how often it was tried again
	Since   time.Time // when it got to its stage
	Passed  int       // stages that are passed
	// Failed says that the content was rolled back, and is tried again only with an approval.
	Failed bool
	// Stuck says that it was rolled back since it was not ready in time.
	Stuck bool
	// Guessed says that the hosts were reconstructed after a state was lost.
	Guessed bool
	Hosts   map[string]*HostState
}

// HostState is one host that a change reaches.
type HostState struct {
	Want string // the last digits of the tree; "-" where the folder is removed
	hostGroup
}

// hostGroup is what many hosts of a change have in common.
type hostGroup struct {
	Proven  bool      `json:"settled,omitempty"` // it counts as proven, whatever is reported later
	Carried bool      `json:"carried,omitempty"` // it was written before this change, and not proven
	From    string    `json:"from,omitempty"`    // the commit to roll back to; "" where that is not known
	Gone    time.Time `json:"gone,omitzero"`     // when the folder was removed
}

func (s *State) clone() *State {
	made := &State{Targets: map[string]*Target{}}
	if s == nil {
		return made
	}
	made.Stages = s.Stages
	for name, target := range s.Targets {
		copied := *target
		copied.Hosts = make(map[string]*HostState, len(target.Hosts))
		for host, state := range target.Hosts {
			one := *state
			copied.Hosts[host] = &one
		}
		made.Targets[name] = &copied
	}
	return made
}

// written is the form of a target in a state: a fleet may have tens of thousands of hosts under way.
type written struct {
	Content string         `json:"content"`
	Attempt int            `json:"attempt,omitempty"`
	Since   time.Time      `json:"since"`
	Passed  int            `json:"passed,omitempty"`
	Failed  bool           `json:"failed,omitempty"`
	Stuck   bool           `json:"stuck,omitempty"`
	Guessed bool           `json:"guessed,omitempty"`
	Groups  []writtenGroup `json:"groups"`
}

type writtenGroup struct {
	hostGroup
	Hosts map[string]string `json:"hosts"` // what is wanted there
}

// MarshalJSON writes hosts that differ only in their trees as one group.
func (t *Target) MarshalJSON() ([]byte, error) {
	w := written{Content: t.Content, Attempt: t.Attempt, Since: t.Since, Passed: t.Passed, Failed: t.Failed, Stuck: t.Stuck, Guessed: t.Guessed}
	groups := map[hostGroup]map[string]string{}
	for host, state := range t.Hosts {
		if groups[state.hostGroup] == nil {
			groups[state.hostGroup] = map[string]string{}
		}
		groups[state.hostGroup][host] = state.Want
	}
	for group, hosts := range groups {
		w.Groups = append(w.Groups, writtenGroup{group, hosts})
	}
	slices.SortFunc(w.Groups, func(a, b writtenGroup) int {
		return cmp.Or(compareBools(a.Proven, b.Proven), compareBools(a.Carried, b.Carried), strings.Compare(a.From, b.From), a.Gone.Compare(b.Gone))
	})
	return json.Marshal(w)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// UnmarshalJSON reads what MarshalJSON has written.
func (t *Target) UnmarshalJSON(text []byte) error {
	var w written
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	*t = Target{
		Content: w.Content, Attempt: w.Attempt, Since: w.Since, Passed: w.Passed, Failed: w.Failed, Stuck: w.Stuck, Guessed: w.Guessed, Hosts: map[string]*HostState{},
	}
	for _, group := range w.Groups {
		for host, want := range group.Hosts {
			t.Hosts[host] = &HostState{Want: want, hostGroup: group.hostGroup}
		}
	}
	return nil
}
