package folder

// Change is one folder that is added, changed or removed.
type Change struct {
	Key
	Action Action
	// Before and After are the config versions that the records say, "" where
	// they say none.
	Before, After string
	// Was is the tree that the folder had; "" for none.
	Was string
}

// Action is what happens to a folder.
type Action string

// The actions.
const (
	Added   Action = "added"
	Changed Action = "changed"
	Removed Action = "removed"
)

// Counts says how many folders are added, changed and removed, in this order.
func Counts(changes []Change) []int {
	counts := map[Action]int{}
	for _, change := range changes {
		counts[change.Action]++
	}
	return []int{counts[Added], counts[Changed], counts[Removed]}
}
