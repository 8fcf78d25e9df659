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

type placer struct {
	environment string
	pattern     []string          // segments of the folder pattern in the options, or nil
	clusters    []*cluster        // destinations of Argo CD
	folders     map[string]string // names of folders that clusters follow
	hosts       map[string]*host
	isMatched   bool // the pattern matched a folder
}

func newPlacer(d *documents, given options, environment string) *placer {
	p := &placer{
		environment: environment, pattern: given.hosts, clusters: d.clusters, folders: d.foldersOfHosts(), hosts: map[string]*host{},
	}
	for _, one := range p.clusters {
		if !isHub(one.server) {
			p.hostOf(one)
		}
	}
	return p
}

func (a *placer) placeAll(objects []*manifestObject) {
	for _, o := range objects {
		a.placeObject(o, o.file)
	}
}

// placeObject assigns an object to the host that follows a file's folder, or to the cluster that it names.
func (a *placer) placeObject(o *manifestObject, file string) {
	var folder string
	var labels map[string]string
	var found bool
	if a.pattern != nil {
		folder, labels, found = a.matchPattern(file)
		a.isMatched = a.isMatched || found
		o.outside = !found
	} else {
		folder, found = a.followedFolder(file)
		o.outside = !found && len(a.folders) > 0 && o.kind.IsOfFolders()
	}
	name := cmp.Or(folder, a.environment)
	switch to := a.destinationOf(o); {
	case to == nil:
		o.host = a.hostNamed(name, labels)
	case isHub(to.server):
		o.host = a.hostNamed(name, labels)
		o.host.cluster = to
		o.host.addLabels(to.labelsOfHost())
	default:
		o.host = a.hostOf(to)
	}
}

func (a *placer) hostOf(to *cluster) *host {
	one := a.hostNamed(to.name, to.labelsOfHost())
	one.isCluster, one.cluster = true, to
	return one
}

// addLabels keeps the labels that the host has.
func (h *host) addLabels(labels map[string]string) {
	maps.Copy(labels, h.labels)
	h.labels = labels
}

func (a *placer) hostNamed(name string, labels map[string]string) *host {
	if name = labelName(name); name == "clusters" {
		name = "clusters-1" // clusters/ contains all clusters
	}
	if a.hosts[name] == nil {
		a.hosts[name] = &host{name: name, labels: labels}
	}
	return a.hosts[name]
}

func (a *placer) matchPattern(file string) (name string, labels map[string]string, matches bool) {
	segments := strings.Split(path.Dir(file), "/")
	if len(segments) < len(a.pattern) {
		return "", nil, false
	}
	labels = map[string]string{}
	for i, segment := range a.pattern {
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

// foldersOfHosts names the folders that clusters follow: paths of Flux' own Kustomizations, folders of its installer,
// or else the children of a folder named clusters.
func (a *documents) foldersOfHosts() map[string]string {
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

// followedFolder returns the name of the innermost folder of a file that clusters follow.
func (a *placer) followedFolder(file string) (name string, found bool) {
	for folder := path.Dir(file); folder != "." && folder != "/"; folder = path.Dir(folder) {
		if name, found = a.folders[folder]; found {
			return name, true
		}
	}
	return "", false
}

// isBelow includes the folder itself.
func isBelow(file, folder string) bool {
	return folder == "." || file == folder || strings.HasPrefix(file, folder+"/")
}
