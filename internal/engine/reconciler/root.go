package reconciler

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Applied is the content that a cluster has applied from a folder. Unknown commits are "".
type Applied struct {
	// Root is the object that follows the folder; zero if unknown.
	Root ObjectName
	// Commit is applied. Attempted is being applied, or could not be.
	Commit    string
	Attempted string
	// Compared is the commit that OutOfSync and ToPrune refer to.
	Compared  string
	OutOfSync []ObjectName
	ToPrune   []ObjectName
	// Arrived are the objects already applied from Attempted.
	Arrived []ObjectName
	// Failing are the objects that the root reports as not applied or unhealthy.
	Failing []ObjectName
	// NoFolder reports that the root did not find the folder, which is absent while nothing is assigned.
	NoFolder bool
	// OnHub are the objects that apply the folder to the hub, which must have the wanted content, too.
	OnHub []Applied
	// Makers are the objects of the folder, on a hub, that create Applications.
	Makers []ObjectName
	// Others are further objects that follow the folder. The worst status counts, because users may create such
	// objects.
	Others []Applied
	// History lists previously applied commits, oldest first.
	History []Moment
	verdict.Status
	// Hindered is why the root does not keep the cluster in line with the branch, other than a failure.
	Hindered verdict.Status
}

// Moment is the time when a commit was applied.
type Moment struct {
	Commit string
	Time   time.Time
}

// Root is an object that follows a folder. SameRepository reports that its repository certainly matches, ToHub that
// it applies objects to a hub.
type Root struct {
	Applied
	SameRepository bool
	ToHub          bool
}

func (o *ListedObject) hindered() verdict.Status {
	if stopped := o.stopped(time.Time{}); stopped.Verdict != "" {
		return stopped
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

// ChooseRoot returns the first root of our repository with the others, or the only root, because clusters may know
// the repository by another address.
func ChooseRoot(roots []Root) (Root, bool) {
	ours := slices.DeleteFunc(slices.Clone(roots), func(r Root) bool { return !r.SameRepository })
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

// SameRepository reports whether two URLs certainly identify one repository.
func SameRepository(a, b string) bool {
	a, b = plainURL(a), plainURL(b)
	return a != "" && a == b
}

// WithScheme converts Git's short form user@host:path to ssh://user@host/path, which Flux and Zarf require. See
// https://git-scm.com/docs/git-clone#_git_urls.
func WithScheme(repository string) string {
	if strings.Contains(repository, "://") {
		return repository
	}
	host, path, isShort := strings.Cut(repository, ":")
	if !isShort || len(host) < 2 || strings.ContainsAny(host, `/\`) { // a path, or a Windows drive
		return repository
	}
	return "ssh://" + host + "/" + strings.TrimPrefix(path, "/")
}

// plainURL reduces a URL to server and path.
func plainURL(address string) string {
	address = WithScheme(strings.TrimSpace(address))
	parsed, err := url.Parse(address)
	if err != nil || address == "" {
		return ""
	}
	path := strings.TrimSuffix(strings.Trim(parsed.Path, "/"), ".git")
	return strings.ToLower(parsed.Hostname()) + "/" + path
}

func clean(p string) string { return strings.Trim(path.Clean("/"+p), "/") }

// Refresh is the annotation that makes objects read their branch at once.
type Refresh struct {
	// Kind is the kind of the objects.
	Kind string
	// Annotation is set to Value, or to the current time if Value is "", because any new value triggers a refresh.
	Annotation, Value string
	reads             func(o *ListedObject, at folder.Location) bool
}

// Reads reports whether an object has the kind and reads a branch.
func (r *Refresh) Reads(one *unstructured.Unstructured, at folder.Location) bool {
	of := kindOf(one)
	return of != nil && of.Kind == r.Kind && r.reads(newObject(one), at)
}

func gitRepositoryReads(o *ListedObject, at folder.Location) bool {
	return SameRepository(o.text("spec", "url"), at.URL) && o.text("spec", "ref", "branch") == at.Branch
}

func applicationReads(o *ListedObject, at folder.Location) bool {
	sources, _ := applicationSources(o)
	return slices.ContainsFunc(sources, func(source jsonObject) bool {
		return SameRepository(source.text("repoURL"), at.URL) && readsBranch(source, at.Branch)
	})
}
