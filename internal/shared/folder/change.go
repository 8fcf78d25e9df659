package folder

import "github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"

// Change is one folder that is added, changed, moved or removed.
type Change struct {
	Key
	Action Action
	// From is the name that the host had before, where the folder moves because the host has another name now; else "". A
	// folder that moves and changes is Changed.
	From string
	// Before and After are the config versions that the records say, "" where
	// they say none.
	Before, After string
	// Was is the tree that the folder had, under the name that its host had; "" for none.
	Was string
}

// Action is what happens to a folder.
type Action string

// The actions.
const (
	Added   Action = "added"
	Changed Action = "changed"
	Moved   Action = "moved"
	Removed Action = "removed"
)

// CountChanges says how many folders are added, changed, moved and removed, in this order, without those of which there is none.
// A folder that moves and changes counts twice.
func CountChanges(changes []Change) []string {
	counts := map[Action]int{}
	for _, change := range changes {
		if counts[change.Action]++; change.From != "" && change.Action != Moved {
			counts[Moved]++
		}
	}
	return wording.Counts([]int{counts[Added], counts[Changed], counts[Moved], counts[Removed]}, "added", "changed", "moved", "removed")
}

// Origin is the folder that moves here; k itself where none does.
func (c Change) Origin() Key {
	if c.From == "" {
		return c.Key
	}
	return Key{c.From, c.DeploymentTarget}
}
