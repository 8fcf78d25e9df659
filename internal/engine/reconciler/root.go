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

// Applied is the content that a cluster has applied from a folder.
type Applied struct {
	// Root is the object that follows the folder; zero if unknown.
	Root ObjectName
	// Commit is the commit whose content is applied; "" if none.
	Commit string
	// Attempted is the commit that is being applied or could not be; "" if none.
	Attempted string
	// Compared is the commit that OutOfSync refers to; "" if none.
	Compared string
	// OutOfSync are the objects that differ from that commit.
	OutOfSync []ObjectName
	// ToPrune are the objects on the cluster that the commit no longer has.
	ToPrune []ObjectName
	// Arrived are the objects already applied from Attempted.
	Arrived []ObjectName
	// Failing are the objects that the root reports as not applied or unhealthy.
	Failing []ObjectName
	// NoFolder reports that the root did not find the folder. A cluster may have no folder of its own while nothing
	// is assigned to it.
	NoFolder bool
	// OnHub are the objects that apply the folder to the hub itself. They must have the wanted content, too.
	OnHub []Applied
	// Makers are the objects of the folder, on a hub, that create Applications for clusters.
	Makers []ObjectName
	// Others are further objects that follow the folder. The worst of all statuses counts, so no user who may create
	// such an object can hide the others.
	Others []Applied
	// History lists previously applied commits with their start time, oldest first.
	History []Moment
	// Status is the status of the root: of everything in the folder and its results.
	verdict.Status
	// Hindered is why the root does not keep the cluster in line with the branch, other than a failure; for example,
	// it is suspended. The verdict is empty if nothing hinders it.
	Hindered verdict.Status
}

// Moment is the time when a commit was applied.
type Moment struct {
	Commit string
	Time   time.Time
}

// Root is an object that follows a folder.
type Root struct {
	Applied
	// SameRepository reports that its repository is certainly that of the location.
	SameRepository bool
	// ToHub reports that it applies to the hub the objects that deploy to clusters.
	ToHub bool
}

// hindered returns why an object does not keep the cluster in line with the folder it follows; the verdict is empty
// if it does.
func (o *ListedObject) hindered() verdict.Status {
	if at := o.time("metadata", "deletionTimestamp"); !at.IsZero() {
		return o.say(verdict.Progressing, at, "is being deleted")
	}
	if o.flag("spec", "suspend") || o.flag("spec", "paused") {
		return o.say(verdict.Progressing, time.Time{}, "is suspended")
	}
	var fields []string
	for _, field := range decisiveOf(o.of.Group, o.Kind).Diverting {
		if value := o.value(field.Steps()...); value != nil && field.IsDecisive(value) {
			fields = append(fields, field.Path)
		}
	}
	if len(fields) > 0 {
		const format = "has %s: this cluster may have something else than the folder"
		return o.say(verdict.Unknown, time.Time{}, format, wording.List(fields, wording.Named))
	}
	return verdict.Status{}
}

// Roots returns the objects that follow the folder of a host at a location, sorted by name.
func (l *Listing) Roots(at folder.Location, host string) []Root {
	var roots []Root
	for _, one := range l.All {
		if one.of.Root != nil {
			if root, follows := one.of.Root(l, one, at, path.Join(at.Path, host)); follows {
				roots = append(roots, root)
			}
		}
	}
	return roots
}

// ChooseRoot returns the roots of our repository, else the only root. Clusters may know the repository by another
// address. If it is a different repository, our branch does not have its commits. The first root by name has the
// others in Others.
func ChooseRoot(roots []Root) (Root, bool) {
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

// All returns the root and the others.
func (a *Applied) All() []Applied { return append([]Applied{*a}, a.Others...) }

// SameRepository reports whether two URLs certainly identify one repository, regardless of spelling.
func SameRepository(a, b string) bool {
	a, b = plainURL(a), plainURL(b)
	return a != "" && a == b
}

// plainURL reduces a URL to server and path, which identify a repository.
func plainURL(address string) string {
	address = WithScheme(strings.TrimSpace(address))
	parsed, err := url.Parse(address)
	if err != nil || address == "" {
		return ""
	}
	path := strings.TrimSuffix(strings.Trim(parsed.Path, "/"), ".git")
	return strings.ToLower(parsed.Hostname()) + "/" + path
}

// clean normalizes a path in a repository: no "." segments, no surrounding slashes.
func clean(p string) string { return strings.Trim(path.Clean("/"+p), "/") }
