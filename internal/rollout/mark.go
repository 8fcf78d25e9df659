package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// mark identifies the stages.
func (s *Settings) mark() string {
	stages := make([]markedStage, len(s.Stages))
	for i := range s.Stages {
		stages[i] = s.Stages[i].marked()
	}
	text, err := json.Marshal(stages)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// markedStage is a stage as the mark has it. What has its default is left out, so that a version of the provider that knows more
// of a stage identifies the same stages as this one, and starts no rollout again. For the same reason the order stays.
type markedStage struct {
	Approval            bool            `json:"approval,omitzero"`
	ClusterSelector     *fleet.Selector `json:"cluster_selector,omitzero"`
	ClusterTypeSelector *fleet.Selector `json:"cluster_type_selector,omitzero"`
	Hosts               []string        `json:"hosts,omitzero"`
	MaxConcurrent       int             `json:"max_concurrent,omitzero"`
	MaxFailed           int             `json:"max_failed,omitzero"`
	Name                string          `json:"name,omitzero"`
	Percent             int             `json:"percent,omitzero"`
	ReadyPercent        *int            `json:"ready_percent,omitzero"` // nil: 100
	Soak                string          `json:"soak,omitzero"`          // "": 0s
}

func (s *Stage) marked() markedStage {
	marked := markedStage{
		Approval: s.Approval, ClusterSelector: s.ClusterSelector, ClusterTypeSelector: s.ClusterTypeSelector, Hosts: s.Hosts,
		MaxConcurrent: s.MaxConcurrent, MaxFailed: s.MaxFailed, Name: s.Name, Percent: s.Percent,
	}
	if s.ReadyPercent != 100 {
		marked.ReadyPercent = &s.ReadyPercent
	}
	if s.Soak != 0 {
		marked.Soak = s.Soak.String()
	}
	return marked
}
