package observe

import (
	"net/url"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/verdict"
)

// Location is where an owner's folders are.
type Location struct{ URL, Branch, Path string }

// Applied is what a cluster has applied of a folder.
type Applied struct {
	// Root is the object that follows the folder; zero where that is not known.
	Root ObjectName
	// Commit is the commit whose content is there; "" for none.
	Commit string
	// Attempted is the commit that is being applied, or could not be; "" for none.
	Attempted string
	// Compared is the commit with which the cluster was compared to find OutOfSync; "" for none.
	Compared string
	// OutOfSync are objects that differ from that commit.
	OutOfSync []ObjectName
	// ToPrune are objects that the commit does not have any more, and the cluster still has.
	ToPrune []ObjectName
	// Arrived are the objects that have come with Attempted already.
	Arrived []ObjectName
	// Failing are objects that the root names as what could not be applied, or is not healthy.
	Failing []ObjectName
	// NoFolder says that the root has not found the folder. A cluster may have no folder of its own while nothing
	// is assigned to it.
	NoFolder bool
	// Besides must have the wanted content, too: on a hub, what applies the folder to the hub itself.
	Besides []Applied
	// Makers are, on a hub, the objects of the folder that make Applications for clusters.
	Makers []ObjectName
	// Others are further objects that follow the folder. An assignment is as the worst of all says it is, so that nobody
	// who may make such an object can speak for the others.
	Others []Applied
	// History are commits whose content was there, each with the time from which on it was, the oldest first.
	History []Moment
	// Status is that of the root: of all that is in the folder and of what follows from it.
	verdict.Status
}

// Moment is when a commit was applied.
type Moment struct {
	Commit string
	Time   time.Time
}

// root is an object that follows a folder.
type root struct {
	object         *object
	applied        Applied
	sameRepository bool
}

// The messages of agents about a folder that does not exist.
const (
	NoFolderFlux = "kustomization path not found"
	noFolderArgo = "app path does not exist"
)

// choose finds the roots of our repository, or else the only root. Clusters may know the repository by another
// address; if it is a different repository, our branch does not have its commits. Of several roots the first, in the
// order of names, has the others.
func choose(roots []root) (root, bool) {
	var ours []root
	for _, r := range roots {
		if r.sameRepository {
			ours = append(ours, r)
		}
	}
	if len(ours) == 0 && len(roots) == 1 {
		ours = roots
	}
	if len(ours) == 0 {
		return root{}, false
	}
	first := ours[0]
	for _, r := range ours[1:] {
		first.applied.Others = append(first.applied.Others, r.applied)
	}
	return first, true
}

// all are what follows a folder: the root and the others.
func (a *Applied) all() []Applied { return append([]Applied{*a}, a.Others...) }

// sameRepository reports whether two addresses are certainly of one repository, whatever their spelling.
func sameRepository(a, b string) bool {
	a, b = plainURL(a), plainURL(b)
	return a != "" && a == b
}

// plainURL reduces an address to what identifies a repository: server and path.
func plainURL(address string) string {
	address = strings.TrimSpace(address)
	if at, path, ok := strings.Cut(address, ":"); ok && !strings.Contains(address, "://") && !strings.Contains(at, "/") {
		address = "ssh://" + at + "/" + path // as in git@host:path
	}
	parsed, err := url.Parse(address)
	if err != nil || address == "" {
		return ""
	}
	path := strings.TrimSuffix(strings.Trim(parsed.Path, "/"), ".git")
	return strings.ToLower(parsed.Hostname()) + "/" + path
}
