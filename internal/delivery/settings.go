package delivery

import (
	"cmp"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// Settings describe how commits reach the branch. The zero value pushes to it.
type Settings struct {
	PullRequest bool
	Forge       forge.Forge // "" derives it from the URL
	APIURL      string
	Head        string // branch of the pull request; "" derives it from the owner
	Request     forge.RequestOptions
}

// selector identifies the owner's pull request. Owners on different branches or paths have different heads.
func (s Settings) selector(owner Owner) forge.Selector {
	mark := strings.TrimPrefix(owner.Location.Path+"/"+owner.Name, "/")
	return forge.Selector{Owner: mark, Base: owner.Location.Branch, Head: cmp.Or(s.Head, "flotilla/"+owner.Location.Branch+"/"+mark)}
}
