package delivery

import (
	"path"
	"strconv"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// OwnerState is an owner as the Terraform state has it.
type OwnerState struct {
	Owner       Owner
	Settings    Settings
	PullRequest string
	SavedState
}

// SavedState is the part of an OwnerState in private state.
type SavedState struct {
	// Label is the owner's name in the labels of rendered objects, if it differs from the present one.
	Label  string        `json:"label,omitempty"`
	Former folder.Former `json:"former,omitzero"`
	// Trees are the folders as written.
	Trees   folder.Trees      `json:"trees,omitempty"`
	Records map[string]string `json:"records,omitempty"`
	// Holder ties the owner's records to this state.
	Holder string `json:"holder,omitempty"`
	// Imported names the commit of imported records, until the first write of this state sets a new holder: another state
	// may have the present one.
	Imported string `json:"imported,omitempty"`
	Drift    Drift  `json:"drift,omitzero"`
	// Replaced has the folders that the pull request changes, with their trees on its base; "" for added ones.
	Replaced map[folder.Key]string `json:"replaced,omitempty"`
	// Proposed reports that the content was in an open pull request.
	Proposed bool `json:"proposed,omitempty"`
	// Incomplete reports that the last apply changed the pull request and then failed. Refresh ignores the request.
	Incomplete bool `json:"incomplete,omitempty"`
	// Tip is the commit that Refresh read; "" if the branch lacks Current.
	Tip string `json:"tip,omitempty"`
}

// seenCommit returns the commit of the last refresh, if it read the location's branch.
func (k *OwnerState) seenCommit() string {
	if k.Proposed {
		return ""
	}
	return k.Tip
}

// Current returns the trees in the repository.
func (k *OwnerState) Current() folder.Trees {
	current := k.Trees.Clone()
	for key, tree := range k.Drift.Trees {
		if tree == "" {
			delete(current[key.Host], key.DeploymentTarget)
			continue
		}
		current[key.Host][key.DeploymentTarget] = tree
	}
	return current
}

// requestNumber returns the number at the end of the pull request's URL; 0 if there is none.
func (k *OwnerState) requestNumber() int {
	if k == nil {
		return 0
	}
	number, _ := strconv.Atoi(path.Base(k.PullRequest))
	return number
}
