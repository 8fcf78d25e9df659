package adopt

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// host is a future cluster type.
type host struct {
	name      string
	labels    map[string]string
	isCluster bool     // objects name it as destination
	cluster   *cluster // Argo CD's destination, or nil
	isNamed   bool     // placeholders stand for its name or server
}

// placer assigns objects to hosts.
type placer struct {
	*kustomizations
	hosts       map[string]*host
	hostFolders map[string]string // names of folders that clusters follow
	isMatched   bool              // the pattern in the options matched a folder
}

// place assigns each object to a host.
func (a *placer) place() {
	a.hostFolders = a.foldersOfHosts()
	for _, one := range a.clusters {
		if !isHub(one.server) {
			a.hostOf(one)
		}
	}
	for _, o := range slices.Concat(a.objects, a.generators) {
		a.put(o, o.file)
	}
}

// put assigns an object to the host that follows its file's folder, or to the cluster that it names.
func (a *placer) put(o *manifestObject, file string) {
	var folder string
	var labels map[string]string
	var found bool
	if a.options.hosts != nil {
		folder, labels, found = a.matchPattern(file)
		a.isMatched = a.isMatched || found
		o.outside = !found
	} else {
		var root string
		if root, found = rootOf(a.hostFolders, file); found {
			folder = a.hostFolders[root]
		}
		o.outside = !found && len(a.hostFolders) > 0 && o.kind.IsOfFolders()
	}
	name := cmp.Or(folder, a.environment)
	switch to := a.destinationOf(o); {
	case to == nil:
		o.host = a.host(name, labels)
	case isHub(to.server):
		if labels == nil {
			labels = to.labelsOfHost()
		}
		o.host = a.host(name, labels)
		o.host.cluster = to
	default:
		o.host = a.hostOf(to)
	}
}

// hostOf returns the host of a single cluster.
func (a *placer) hostOf(to *cluster) *host {
	one := a.host(to.name, to.labelsOfHost())
	one.isCluster, one.cluster = true, to
	return one
}

// host returns the host with a name, which becomes a cluster type's.
func (a *placer) host(name string, labels map[string]string) *host {
	if name = labelName(name); name == "clusters" {
		name = "clusters-1" // clusters/ contains all clusters
	}
	if a.hosts[name] == nil {
		a.hosts[name] = &host{name: name, labels: labels}
	}
	return a.hosts[name]
}

// matchPattern matches a file's folder with the pattern in the options.
func (a *placer) matchPattern(file string) (name string, labels map[string]string, matches bool) {
	segments := strings.Split(path.Dir(file), "/")
	if len(segments) < len(a.options.hosts) {
		return "", nil, false
	}
	labels = map[string]string{}
	for i, segment := range a.options.hosts {
		switch label, isLabel := patternLabel(segment); {
		case isLabel && label == clusterType:
			name = segments[i]
		case isLabel && fleet.CheckLabelValue(segments[i]) == "":
			labels[label] = segments[i]
		case !isLabel && segment != segments[i]:
			return "", nil, false
		}
	}
	return name, labels, name != "" && name != "."
}

// foldersOfHosts returns the folders that clusters follow, with names: paths of Flux' own Kustomizations, folders of
// its installer, or otherwise the children of a folder named clusters.
func (a *placer) foldersOfHosts() map[string]string {
	found := map[string]bool{}
	for _, o := range a.objects {
		if root := path.Clean(textAt(o.fields, "spec.path")); o.own && o.kind.Is(reconciler.Follows) && at(o.fields, "spec.path") != nil &&
			isBelow(o.file, root) {
			found[root] = true
		}
	}
	for _, file := range a.files {
		if folder, is := reconciler.InstallersFolder(file); is {
			found[folder] = true
		}
	}
	delete(found, ".") // then the whole repository is one host
	if len(found) == 0 {
		for _, o := range a.objects {
			for _, folder := range append(a.outermost(o.file), path.Dir(o.file)) {
				segments := strings.Split(folder, "/")
				if i := slices.Index(segments, "clusters"); i >= 0 && i+1 < len(segments) {
					found[path.Join(segments[:i+2]...)] = true
				}
			}
		}
	}
	return namesOf(slices.Sorted(maps.Keys(found)))
}

// namesOf names folders by as few of their last segments as are unique.
func namesOf(folders []string) map[string]string {
	names := map[string]string{}
	for segments := 1; ; segments++ {
		seen := map[string]int{}
		longer := false
		for _, folder := range folders {
			steps := strings.Split(strings.TrimLeft(folder, "./"), "/")
			longer = longer || len(steps) > segments
			names[folder] = strings.Join(steps[max(0, len(steps)-segments):], "-")
			seen[labelName(names[folder])]++
		}
		if len(seen) == len(folders) || !longer {
			return names
		}
	}
}

// rootOf returns the innermost root of a file.
func rootOf(roots map[string]string, file string) (root string, found bool) {
	for folder := path.Dir(file); folder != "." && folder != "/"; folder = path.Dir(folder) {
		if _, found = roots[folder]; found {
			return folder, true
		}
	}
	return "", false
}

// isBelow reports whether a path equals a folder or is in it.
func isBelow(file, folder string) bool {
	return folder == "." || file == folder || strings.HasPrefix(file, folder+"/")
}
