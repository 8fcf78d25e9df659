package adopt

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/naming"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
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
		all := to.labelsOfHost()
		maps.Copy(all, o.host.labels) // the host keeps its own
		o.host.labels = all
	default:
		o.host = a.hostOf(to)
	}
}

func (a *placer) hostOf(to *cluster) *host {
	one := a.hostNamed(to.name, to.labelsOfHost())
	one.isCluster, one.cluster = true, to
	return one
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

// cluster is a destination of an Argo CD hub.
type cluster struct {
	name, server, project string
	labels, annotations   map[string]string
	secret                *manifestObject // nil if parameters describe the cluster
}

func (a *documents) readCluster(o *manifestObject, fields map[string]any) (is bool) {
	read := &cluster{
		labels: textsAt(fields, "metadata.labels"), annotations: textsAt(fields, "metadata.annotations"), secret: o,
	}
	if o.kind.Kind != "Secret" || o.kind.Group != "" || read.labels[reconciler.SecretType] != reconciler.SecretCluster {
		return false
	}
	for key, into := range map[string]*string{"name": &read.name, "server": &read.server, "project": &read.project} {
		if decoded, err := base64.StdEncoding.DecodeString(textAt(fields, "data."+key)); err == nil {
			*into = string(decoded)
		}
		*into = cmp.Or(textAt(fields, "stringData."+key), *into)
	}
	switch {
	case read.name == "" || read.server == "":
		a.listed.add(o, false, "is the Secret of a cluster of Argo CD, but has no name and server in data that can be read")
	case slices.ContainsFunc(a.clusters, func(one *cluster) bool { return one.name == read.name }):
		a.listed.add(o, false, "is the Secret of a cluster of Argo CD that another Secret has, too")
	default:
		a.clusters = append(a.clusters, read)
	}
	return true
}

// listClusters lists the Secrets of clusters with the cluster types that have their labels.
func (a *documents) listClusters(hosts []*host) {
	for _, one := range a.clusters {
		if one.secret == nil {
			continue
		}
		var names, lost []string
		for _, h := range hosts {
			if h.cluster != one {
				continue
			}
			names = append(names, h.name)
			for key, value := range one.labels {
				if key != reconciler.SecretType && h.labels[key] != value {
					lost = append(lost, key)
				}
			}
		}
		slices.Sort(lost)
		text := "no cluster type is made of it, because no adopted object is for the cluster"
		switch {
		case len(names) > 0:
			text = fmt.Sprintf("the cluster %s %s %s its labels", wording.OneOrMany(len(names), "type", "types"),
				wording.List(wording.Quoted(names), wording.Named), wording.OneOrMany(len(names), "has", "have"))
		case !isHub(one.server):
			text = "another cluster has the name that its cluster type would have"
		}
		if len(lost) > 0 {
			text += " without " + wording.List(wording.Quoted(slices.Compact(lost)), wording.Named)
		}
		a.listed.add(one.secret, false, "is the Secret of a cluster of Argo CD: "+text+", and it stays where it is")
	}
}

func textsAt(value any, field string) map[string]string {
	object, _ := at(value, field).(map[string]any)
	texts := make(map[string]string, len(object))
	for key, value := range object {
		if text, isText := value.(string); isText {
			texts[key] = text
		}
	}
	return texts
}

// destinationOf returns the cluster that an object names by name or server, or nil.
func (a *placer) destinationOf(o *manifestObject) *cluster {
	if o.kind.Destination == "" {
		return nil
	}
	name, server := textAt(o.fields, o.kind.Destination), textAt(o.fields, strings.TrimSuffix(o.kind.Destination, "name")+"server")
	for _, one := range a.clusters {
		if name != "" && one.name == name || name == "" && server != "" && one.server == server {
			return one
		}
	}
	if name == reconciler.HubName || isHub(server) {
		return &cluster{name: reconciler.HubName, server: reconciler.HubServer}
	}
	if name == "" {
		_, name, _ = strings.Cut(server, "://")
	}
	if name == "" {
		return nil
	}
	return &cluster{name: name, server: server}
}

func isHub(server string) bool {
	_, host, _ := strings.Cut(server, "://")
	host, _, _ = strings.Cut(host, ":")
	return host == "kubernetes.default.svc" || host == "kubernetes.default"
}

// labelsOfHost returns the labels that suit selectors.
func (c *cluster) labelsOfHost() map[string]string {
	kept := map[string]string{}
	for key, value := range c.labels {
		isLabel := fleet.CheckLabelKey(key) == "" && fleet.CheckLabelValue(value) == ""
		if key != reconciler.SecretType && !schedule.IsReserved(key) && value != "" && isLabel {
			kept[key] = value
		}
	}
	return kept
}

// notLabels are parameters that identify a cluster.
var notLabels = []string{"name", "nameNormalized", "server", "url", "project", "cluster", "clusterName", "namespace"}

// learnClusters adds clusters that only the parameters of an ApplicationSet describe, labelled by their common parameters.
func (a *placer) learnClusters(made []*manifestObject, params []map[string]any) {
	found := map[string]*cluster{}
	for i, o := range made {
		to := a.destinationOf(o)
		if to == nil || isHub(to.server) || slices.Contains(a.clusters, to) {
			continue
		}
		key := cmp.Or(to.server, to.name)
		texts := map[string]string{}
		for name, value := range params[i] {
			if text, isText := value.(string); isText && !strings.HasPrefix(name, "path") && !strings.Contains(name, ".") &&
				!slices.Contains(notLabels, name) {
				texts[name] = text
			}
		}
		if one := found[key]; one != nil {
			maps.DeleteFunc(one.labels, func(name, value string) bool { return texts[name] != value })
			continue
		}
		to.labels = texts
		if textAt(o.fields, o.kind.Destination) == "" { // a name says more than a server
			for _, name := range []string{"cluster", "clusterName", "name"} {
				if text, _ := params[i][name].(string); text != "" {
					to.name = text
					break
				}
			}
		}
		found[key] = to
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if !slices.ContainsFunc(a.clusters, func(one *cluster) bool { return one.name == found[key].name }) {
			a.clusters = append(a.clusters, found[key])
		}
	}
}

// longestName is the limit of a DNS label.
const longestName = 63

// labelName converts a text to a DNS label, with a hash if necessary.
func labelName(text string) string {
	if fleet.CheckLabelName(text) == "" {
		return text
	}
	made := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(text))
	if made = strings.Trim(made, "-"); made == "" || len(made) > longestName {
		made = naming.AddHash(made, text, longestName)
	}
	return made
}

// uniqueName marks and returns the first unused name.
func uniqueName(used map[string]bool, names ...string) string {
	for _, name := range names {
		if name = labelName(name); !used[name] {
			used[name] = true
			return name
		}
	}
	name := naming.AddHash(labelName(names[0]), strings.Join(names, "\x00"), longestName)
	used[name] = true
	return name
}
