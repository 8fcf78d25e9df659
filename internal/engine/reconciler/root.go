package reconciler

import (
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Location is where an owner's folders are.
type Location = folder.Location

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
	// Hindered is why the root does not keep the cluster as the branch has it, other than that it has failed: it is suspended,
	// say. It has no verdict where nothing hinders it.
	Hindered verdict.Status
}

// Moment is when a commit was applied.
type Moment struct {
	Commit string
	Time   time.Time
}

// Root is an object that follows a folder.
type Root struct {
	Applied
	// SameRepository says that its repository is certainly that of the location.
	SameRepository bool
	// ToHub says that it applies to the hub itself what says what is deployed to clusters.
	ToHub bool
}

// hindered is why an object that follows a folder does not keep the cluster as the folder is; no verdict where it does.
func (o *Object) hindered() verdict.Status {
	if at := o.time("metadata", "deletionTimestamp"); !at.IsZero() {
		return o.say(verdict.Progressing, at, "is being deleted")
	}
	if o.flag("spec", "suspend") || o.flag("spec", "paused") {
		return o.say(verdict.Progressing, time.Time{}, "is suspended")
	}
	var fields []string
	for _, field := range decisiveOf(o.of.Group, o.Kind).Diverting {
		if value := o.value(field.Steps()...); value != nil && field.Matters(value) {
			fields = append(fields, field.Path)
		}
	}
	if len(fields) > 0 {
		const format = "has %s: this cluster may have something else than the folder"
		return o.say(verdict.Unknown, time.Time{}, format, wording.List(fields, wording.Named))
	}
	return verdict.Status{}
}

// Roots are the objects that follow the folder of a host at a location, in the order of their names.
func (o *Listing) Roots(at Location, host string) []Root {
	var roots []Root
	for _, one := range o.All {
		if one.of.Root != nil {
			if root, follows := one.of.Root(o, one, at, path.Join(at.Path, host)); follows {
				roots = append(roots, root)
			}
		}
	}
	return roots
}

// Choose finds the roots of our repository, or else the only root. Clusters may know the repository by another
// address; if it is a different repository, our branch does not have its commits. Of several roots the first, in the
// order of names, has the others.
func Choose(roots []Root) (Root, bool) {
	var ours []Root
	for _, r := range roots {
		if r.SameRepository {
			ours = append(ours, r)
		}
	}
	if len(ours) == 0 && len(roots) == 1 {
		ours = roots
	}
	if len(ours) == 0 {
		return Root{}, false
	}
	first := ours[0]
	for _, r := range ours[1:] {
		first.Others = append(first.Others, r.Applied)
	}
	return first, true
}

// All are what follows a folder: the root and the others.
func (a *Applied) All() []Applied { return append([]Applied{*a}, a.Others...) }

// SameRepository reports whether two addresses are certainly of one repository, whatever their spelling.
func SameRepository(a, b string) bool {
	a, b = plainURL(a), plainURL(b)
	return a != "" && a == b
}

// plainURL reduces an address to what identifies a repository: server and path.
func plainURL(address string) string {
	address = WithScheme(strings.TrimSpace(address))
	parsed, err := url.Parse(address)
	if err != nil || address == "" {
		return ""
	}
	path := strings.TrimSuffix(strings.Trim(parsed.Path, "/"), ".git")
	return strings.ToLower(parsed.Hostname()) + "/" + path
}

// clean is a path in a repository without "." segments and slashes around it.
func clean(p string) string { return strings.Trim(path.Clean("/"+p), "/") }
