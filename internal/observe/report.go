package observe

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Report is what is known from one cluster.
type Report struct {
	// Unknown says why nothing is known; "" where something is.
	Unknown string
	// Applied is what the cluster has applied of the folders that it follows, by host. What is said of the
	// cluster as a whole stands under "".
	Applied map[string]Applied
	// objects are those that say what became of the assignments; nil where only Applied is known.
	objects *objects
	// judged is what they say.
	judged map[ObjectName]Status
	// unserved are kinds that the cluster does not have, by the error or the reason.
	unserved map[string]string
}

// Listed is what a cluster answered when it was asked for its agent's objects.
type Listed struct {
	// Objects are of the [Kinds], in any order.
	Objects []*unstructured.Unstructured
	// Unlisted are kinds that could not be listed, by the reason: not served, or forbidden.
	Unlisted map[string]string
}

// Hosts are what a cluster follows: its type's folder, and its own.
func Hosts(clusterType, cluster string) []string {
	return []string{clusterType, "clusters/" + cluster}
}

// ReadCluster makes a report of what a cluster itself answered.
func ReadCluster(at Place, clusterType, cluster string, listed Listed) Report {
	return read(at, clusterType, cluster, listed, "")
}

// ReadHub makes a report of what a hub has for a cluster: the Applications whose destination has its name.
func ReadHub(at Place, clusterType, cluster string, listed Listed) Report {
	return read(at, clusterType, cluster, listed, cluster)
}

func read(at Place, clusterType, cluster string, listed Listed, destination string) Report {
	found := index(listed.Objects)
	report := Report{Applied: map[string]Applied{}, objects: found, judged: map[ObjectName]Status{}, unserved: listed.Unlisted}
	for _, host := range Hosts(clusterType, cluster) {
		roots := found.argoRoots(at, host, destination)
		if destination == "" {
			roots = append(roots, found.fluxRoots(at, host)...)
			roots = append(roots, found.fleetRoots(at, host)...)
		}
		if chosen, ok := choose(roots); ok {
			report.Applied[host] = chosen.applied
		}
	}
	if destination != "" {
		report.objects = found.deployingTo(destination)
	}
	if len(report.Applied) == 0 {
		report.Unknown = noRoot(at, clusterType, cluster, listed.Unlisted)
	}
	return report
}

// noRoot says that nothing follows a cluster's folders.
func noRoot(at Place, clusterType, cluster string, unlisted map[string]string) string {
	for _, kind := range []string{"Kustomization", "Application", "GitRepo"} {
		if reason, ok := unlisted[kind]; ok {
			return "the cluster shows nothing that could follow its folders: " + reason
		}
	}
	folder := func(host string) string { return strings.Trim(at.Path+"/"+host, "/") }
	return "nothing on the cluster follows the folder " + folder(clusterType) + " or " + folder("clusters/"+cluster) +
		" of branch " + at.Branch + " of the GitOps repository"
}

// deployingTo are the objects of a hub that are for one cluster.
func (o *objects) deployingTo(cluster string) *objects {
	some := &objects{byName: map[ObjectName]*object{}}
	for _, one := range o.all {
		if one.Kind == "Application" && one.deploysTo(cluster) {
			some.all = append(some.all, one)
			some.byName[one.ObjectName] = one
		}
	}
	return some
}

// Said makes a report of what somebody else said about a cluster as a whole. ready is nil where that is not
// said.
func Said(commit string, ready *bool, since time.Time, message string) Report {
	said := Status{Progressing, since, message}
	switch {
	case ready == nil:
		said.Verdict = Unknown
		if message == "" {
			said.Message = "the report does not say whether it is ready"
		}
	case *ready:
		said.Verdict = Ready
	case message == "":
		said.Message = "the report says that it is not ready"
	}
	return Report{Applied: map[string]Applied{"": {Commit: commit, Status: said}}}
}

// Told is what a Git host was told about a cluster and a commit.
type Told struct {
	Commit  string
	Verdict Verdict // Ready, Progressing or Failed
	Time    time.Time
	Message string
}

// ReadTold makes a report of what a Git host was told about a cluster, the newest commit first. What came to
// a newer commit than the last success is being applied, or could not be.
func ReadTold(told []Told) Report {
	applied := Applied{Status: Status{Verdict: Unknown}}
	for _, one := range told {
		switch {
		case one.Verdict == Ready:
			applied.Commit = one.Commit
			if applied.Attempted == "" {
				applied.Status = Status{Ready, one.Time, one.Message}
			}
			return Report{Applied: map[string]Applied{"": applied}}
		case applied.Attempted == "":
			applied.Attempted, applied.Status = one.Commit, Status{one.Verdict, one.Time, one.Message}
		}
	}
	return Report{Applied: map[string]Applied{"": applied}}
}

// Commits are all commits of which the trees have to be known: what a history says is of use only from when
// on one of the folders has been what it is.
func (r *Report) Commits(folders []Folder) []string {
	var oldest time.Time
	for i := range folders {
		if changed := folders[i].Changed; oldest.IsZero() || !changed.IsZero() && changed.Before(oldest) {
			oldest = changed
		}
	}
	var all []string
	for _, applied := range r.Applied {
		all = append(all, applied.Commit, applied.Attempted, applied.Compared)
		for i, moment := range applied.History {
			if !moment.Time.Before(oldest) || i+1 < len(applied.History) && !applied.History[i+1].Time.Before(oldest) {
				all = append(all, moment.Commit)
			}
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(commit string) bool { return commit == "" })
}

// applied is what the cluster has applied of a host's folder.
func (r *Report) applied(host string) (Applied, bool) {
	if applied, ok := r.Applied[host]; ok {
		return applied, true
	}
	applied, ok := r.Applied[""]
	return applied, ok
}

// judge says what an object says of itself, with what belongs to it.
func (r *Report) judge(one *object) Status {
	if said, ok := r.judged[one.ObjectName]; ok {
		return said
	}
	said := r.objects.judge(one)
	r.judged[one.ObjectName] = said
	return said
}

func (o *objects) judge(one *object) Status {
	switch {
	case one.group == groupKustomize:
		return o.kustomization(one)
	case one.group == groupHelm:
		return o.helmRelease(one)
	case one.group == groupArgo:
		return o.application(one)
	case one.Kind == "GitRepo" || one.Kind == "HelmOp":
		return o.gitRepo(one)
	case one.Kind == "Bundle":
		return o.bundle(one)
	case one.Kind == "BundleDeployment":
		return o.bundleDeployment(one)
	}
	return one.ready(nil)
}

// Judge says what an object says of itself, alone.
func Judge(one *unstructured.Unstructured) Status {
	found := index([]*unstructured.Unstructured{one})
	if len(found.all) == 0 {
		return Status{Verdict: Unknown, Message: "objects of this kind say nothing that is understood"}
	}
	return found.judge(found.all[0])
}
