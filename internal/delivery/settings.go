package delivery

import (
	"cmp"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// Settings are how commits reach the branch. The zero value pushes to it.
type Settings struct {
	PullRequest bool
	Forge       forge.Forge // "": by the Git host's name
	APIURL      string
	Head        string // branch of the pull request; "": by the owner's name
	Title       string
	Labels      []string
	Reviewers   []string
	Merge       forge.MergeMode // "": it is not merged by the apply
}

// request names the owner's pull request. Its branch differs for owners of one name on different branches or
// paths.
func (s Settings) selector(owner Owner) forge.Selector {
	mark := strings.TrimPrefix(owner.Location.Path+"/"+owner.Name, "/")
	return forge.Selector{Owner: mark, Base: owner.Location.Branch, Head: cmp.Or(s.Head, "flotilla/"+owner.Location.Branch+"/"+mark)}
}
