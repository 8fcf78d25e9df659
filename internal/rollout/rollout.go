// Package rollout decides whether a commit writes each folder of an owner, keeps it, or rolls it back, and which removals it
// allows. It is pure: no clock, no Terraform, no Git.
//
// A stage is a set of hosts that receive a change together. text.go has the English of all values.
package rollout

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Action is the effect of a commit on a folder.
type Action string

// The actions.
const (
	Write    Action = "write"     // write the wanted tree
	Keep     Action = "keep"      // leave the tree at the tip
	RollBack Action = "roll back" // restore a former tree
)

// Decision is the decision about one folder.
type Decision struct {
	Action Action
	// Tree is the tree after the commit; "" while unknown, and with Keep.
	Tree string
	// From is the commit with the tree, with RollBack.
	From string
}

// Decisions maps hosts and deployment targets to decisions. Missing folders of the owner are removed.
type Decisions map[string]map[string]Decision

// Decide applies one action to all folders, without a rollout.
func Decide(trees folder.Trees, action Action) Decisions {
	decisions := make(Decisions, len(trees))
	for host, targets := range trees {
		decisions[host] = make(map[string]Decision, len(targets))
		for target, tree := range targets {
			decisions[host][target] = Decision{Action: action, Tree: tree}
		}
	}
	return decisions
}

// Trees returns the trees after the decisions. Kept folders retain their deployed tree.
func (d Decisions) Trees(deployed folder.Trees) folder.Trees {
	trees := make(folder.Trees, len(d))
	for host, targets := range d {
		trees[host] = make(map[string]string, len(targets))
		for target, decision := range targets {
			switch {
			case decision.Action != Keep:
				trees[host][target] = decision.Tree
			case deployed.Has(host, target):
				trees[host][target] = deployed[host][target]
			}
		}
	}
	return trees
}

// StepState has the deployment targets under way, by name.
type StepState struct {
	Stages  string                  `json:"stages,omitempty"` // a hash of the stages
	Targets map[string]*ChangeState `json:"targets,omitempty"`
}

// ChangeState is a change under way.
type ChangeState struct {
	Content string    `json:"content"`
	Attempt int       `json:"attempt,omitempty"` // number of retries
	Since   time.Time `json:"since"`             // when it entered its stage
	Passed  int       `json:"passed,omitempty"`  // number of passed stages
	// Failed: the content was rolled back. Only an approval retries it.
	Failed bool `json:"failed,omitempty"`
	// Stuck: it was rolled back because clusters were not ready in time.
	Stuck bool `json:"stuck,omitempty"`
	// Guessed: the hosts were reconstructed after a lost state.
	Guessed bool                  `json:"guessed,omitempty"`
	Hosts   map[string]*HostState `json:"hosts"`
}

// HostState is a host of a change. There may be tens of thousands.
type HostState struct {
	Want    string    `json:"want"`              // the last digits of the tree; "-" if the folder is removed
	Proven  bool      `json:"proven,omitempty"`  // later reports do not change it
	Carried bool      `json:"carried,omitempty"` // written before this change, and not proven
	From    string    `json:"from,omitempty"`    // the commit to roll back to; "" if unknown
	Added   bool      `json:"added,omitempty"`   // the host lacked the folder before the change
	Gone    time.Time `json:"gone,omitzero"`     // when the folder was removed
}

// UnmarshalJSON refuses an edited or damaged state.
func (s *StepState) UnmarshalJSON(text []byte) error {
	type plain StepState
	if err := json.Unmarshal(text, (*plain)(s)); err != nil {
		return err
	}
	for name, target := range s.Targets {
		if target == nil || target.Passed < 0 {
			return fmt.Errorf("it has no state of the rollout of %q", name)
		}
		for host, state := range target.Hosts {
			if state == nil {
				return fmt.Errorf("it has no state of the rollout of %q on %q", name, host)
			}
		}
	}
	return nil
}

// HasAdded reports whether an incomplete rollout added the folder.
func (s *StepState) HasAdded(key folder.Key) bool {
	if s == nil || s.Targets[key.DeploymentTarget] == nil {
		return false
	}
	host := s.Targets[key.DeploymentTarget].Hosts[key.Host]
	return host != nil && host.Added
}

// Relocated returns the state after folders moved. trees has their wanted trees at the former and the present place.
func (s *StepState) Relocated(trees map[folder.Key][2]string) *StepState {
	if s == nil || len(trees) == 0 {
		return s
	}
	relocated := s.clone()
	for key, tree := range trees {
		if target := relocated.Targets[key.DeploymentTarget]; target != nil && target.Hosts[key.Host] != nil {
			if host := target.Hosts[key.Host]; host.Want == markOf(tree[0]) {
				host.Want = markOf(tree[1])
			}
		}
	}
	return relocated
}

func (s *StepState) clone() *StepState {
	made := &StepState{Targets: map[string]*ChangeState{}}
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
