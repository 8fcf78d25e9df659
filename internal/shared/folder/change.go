package folder

import "github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"

// Change is a folder that is added, changed, moved or removed.
type Change struct {
	Key
	Action Action
	// From is the former name of a renamed host. A folder that moves and changes is Changed.
	From          string
	Before, After string
	// Was is the earlier tree; "" for none.
	Was string
}

// Action is the change of a folder.
type Action string

// The actions.
const (
	Added   Action = "added"
	Changed Action = "changed"
	Moved   Action = "moved"
	Removed Action = "removed"
)

// CountChanges counts added, changed, moved and removed folders in words. A folder that moves and changes counts twice.
func CountChanges(changes []Change) []string {
	counts := map[Action]int{}
	for _, change := range changes {
		if counts[change.Action]++; change.From != "" && change.Action != Moved {
			counts[Moved]++
		}
	}
	return wording.Counts([]int{counts[Added], counts[Changed], counts[Moved], counts[Removed]}, "added", "changed", "moved", "removed")
}

// Origin returns the key before the change.
func (c Change) Origin() Key {
	if c.From == "" {
		return c.Key
	}
	return Key{c.From, c.DeploymentTarget}
}
