package observe

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/verdict"
)

// Report is what is known from one cluster.
type Report struct {
	// Unknown says why nothing is known; "" where something is.
	Unknown string
	// Applied is what the cluster has applied of the folders that it follows, by host; "" is the cluster as a
	// whole.
	Applied map[string]Applied
	// own is what was said of assignments by name, by key. It counts more than what was said of their host.
	own map[string]Applied
	// said has the status of the objects that reconcile assignments; nil where only Applied is known.
	said map[ObjectName]verdict.Status
	// labelled are those of them that have the labels of an owner.
	labelled []labelled
	// makers has the status of objects that make others, each by itself.
	makers map[ObjectName]verdict.Status
	// isHub says that some of them may be on a cluster that was not read.
	isHub bool
	// unserved are kinds that the cluster does not have, by the error or the reason.
	unserved map[string]string
}

// labelled is an object with the labels of an owner and a host.
type labelled struct {
	ObjectName
	owner, host string // labels
}

// The labels of reconciler objects, as internal/render writes them.
const (
	ownerLabel = "flotilla.dev/owner"
	hostLabel  = "flotilla.dev/host"
)

// Listed is a cluster's answer to listing its agent's objects.
type Listed struct {
	// Objects are of the kinds that reconcilers have, in any order.
	Objects []*unstructured.Unstructured
	// Unlisted are kinds that could not be listed, by the reason: not served, or forbidden.
	Unlisted map[string]string
}

// Hosts are the hosts whose folders a cluster follows: its type and itself.
func Hosts(clusterType, cluster string) []string {
	return []string{clusterType, "clusters/" + cluster}
}

// ReadCluster makes a report from a cluster's own answer. It keeps nothing of the answer.
func ReadCluster(at Location, clusterType, cluster string, listed Listed) Report {
	found := index(listed)
	report := newReport(found)
	for _, host := range Hosts(clusterType, cluster) {
		if chosen, ok := choose(slices.Concat(found.argoRoots(at, host), found.fluxRoots(at, host), found.fleetRoots(at, host))); ok {
			report.Applied[host] = chosen.applied
		}
	}
	if len(report.Applied) == 0 {
		report.Unknown = noRoot(at, clusterType, cluster, listed.Unlisted)
	}
	return report
}

// ReadHub makes reports from a hub's answer, for clusters that are given by name with their types: an
// Application is about the cluster in its destination.
func ReadHub(at Location, types map[string]string, listed Listed) map[string]Report {
	byCluster := map[string]*objects{}
	onHub := index(listed)
	for _, one := range onHub.all {
		name := one.text("spec", "destination", "name")
		if _, ours := types[name]; !ours || one.Kind != "Application" {
			continue
		}
		if byCluster[name] == nil {
			byCluster[name] = &objects{byName: onHub.byName, unlisted: listed.Unlisted}
		}
		byCluster[name].all = append(byCluster[name].all, one)
	}
	makers := onHub.makers()
	reports := make(map[string]Report, len(types))
	for name, clusterType := range types {
		found := byCluster[name]
		if found == nil {
			found = &objects{unlisted: listed.Unlisted}
		}
		report := newReport(found)
		report.isHub, report.makers = true, makers
		for _, host := range Hosts(clusterType, name) {
			if chosen, ok := choose(found.argoRoots(at, host)); ok {
				chosen.applied.Besides, chosen.applied.Makers = onHub.besides(at, host, chosen.sameRepository)
				report.Applied[host] = chosen.applied
			}
		}
		if len(report.Applied) == 0 {
			report.Unknown = noRoot(at, clusterType, name, listed.Unlisted)
		}
		reports[name] = report
	}
	return reports
}

// newReport is a report of the status of objects.
func newReport(found *objects) Report {
	report := Report{Applied: map[string]Applied{}, said: map[ObjectName]verdict.Status{}, makers: found.makers(), unserved: found.unlisted}
	for _, one := range found.all {
		if !reconciler.IsReconciled(one.group, one.Kind) || reconciler.IsTemplated(one.Kind) {
			continue
		}
		said := found.statusOf(one)
		name, generated := one.maker()
		if generated {
			said = verdict.Worst(said, found.made(one, name))
		}
		report.said[one.ObjectName] = said
		if generated {
			if other, several := report.said[name]; several {
				said = verdict.Worst(other, said)
			}
			report.said[name] = said
		}
		labels := one.from.GetLabels()
		if owner, host := labels[ownerLabel], labels[hostLabel]; owner != "" && host != "" {
			report.labelled = append(report.labelled, labelled{name, owner, host})
		}
	}
	return report
}

// maker is the ApplicationSet that has made an Application, which is what a folder has; else the object itself.
func (o *object) maker() (name ObjectName, generated bool) {
	for _, owner := range o.from.GetOwnerReferences() {
		if reconciler.IsTemplated(owner.Kind) && slices.Contains(reconciler.KindNamed(owner.Kind).Makes, o.Kind) {
			return ObjectName{owner.Kind, o.Namespace, owner.Name}, true
		}
	}
	return o.ObjectName, false
}

// besides are the Applications that apply a host's folder to the hub itself, where its content says what is deployed
// to the cluster, and the ApplicationSets in that folder.
func (o *objects) besides(at Location, host string, sameRepository bool) (onHub []Applied, makers []ObjectName) {
	for _, one := range o.argoRoots(at, host) {
		directory, _ := one.object.value("spec", "source", "directory").(map[string]any)
		if name := one.object.text("spec", "destination", "name"); name != "" && name != "in-cluster" || entry(directory).text("include") == "" || one.sameRepository != sameRepository {
			continue
		}
		onHub = append(onHub, one.applied)
		for _, resource := range one.object.list("status", "resources") {
			if name := resourceName(resource); reconciler.IsTemplated(name.Kind) {
				makers = append(makers, name)
			}
		}
	}
	return onHub, makers
}

// NotReady lists the objects that reconcile assignments of a host and are not ready. It finds them by the host's
// label, for callers without records. The root itself is not among them.
func (r *Report) NotReady(host, label string) []string {
	var pending []string
	made := map[ObjectName]bool{}
	for _, one := range r.labelled {
		if one.host != label || made[one.ObjectName] {
			continue
		}
		made[one.ObjectName] = true
		if said := r.said[one.ObjectName]; said.Verdict != verdict.Ready {
			pending = append(pending, said.Message)
		}
	}
	for _, maker := range r.Applied[host].Makers {
		if !made[maker] {
			pending = append(pending, r.unmade(maker).Message)
		}
	}
	return pending
}

// noRoot says that nothing follows a cluster's folders.
func noRoot(at Location, clusterType, cluster string, unlisted map[string]string) string {
	for _, kind := range reconciler.Kinds() {
		if reason, ok := unlisted[kind.Kind]; ok && kind.Is(reconciler.Follows) {
			return "it cannot be read what follows the cluster's folders: " + reason
		}
	}
	folder := func(host string) string { return strings.Trim(at.Path+"/"+host, "/") }
	return "nothing on the cluster follows the folder " + folder(clusterType) + " or " + folder("clusters/"+cluster) +
		" of branch " + at.Branch + " of the GitOps repository"
}

// Said is what another source says of a cluster.
type Said struct {
	// Assignment is the key of the assignment that it is about; "" for all that the cluster has.
	Assignment string
	// Commit is the one that the cluster has applied; "" where it is not said. An assignment then has that of the cluster.
	Commit string
	// Verdict is "" where it is not said.
	Verdict verdict.Verdict
	Since   time.Time
	Message string
}

// Given makes a report from what another source says, with at most one entry about each assignment and one about the
// cluster.
func Given(said ...Said) Report {
	report := Report{own: map[string]Applied{}}
	var whole Said
	for _, one := range said {
		if one.Assignment == "" {
			whole = one
		}
	}
	for _, one := range said {
		if one.Commit == "" {
			one.Commit = whole.Commit
		}
		switch {
		case one.Commit == "":
			report.Unknown = cmp.Or(one.Message, "the report names no commit")
		case one.Assignment == "":
			report.Applied = map[string]Applied{"": {Commit: one.Commit, Status: one.status()}}
		default:
			report.own[one.Assignment] = Applied{Commit: one.Commit, Status: one.status()}
		}
	}
	if len(report.Applied)+len(report.own) > 0 {
		report.Unknown = ""
	}
	return report
}

func (s Said) status() verdict.Status {
	status := verdict.Status{Verdict: s.Verdict, Since: s.Since, Message: s.Message}
	if status.Verdict == "" {
		status.Verdict = verdict.Unknown
	}
	if status.Message == "" && status.Verdict != verdict.Ready {
		status.Message = map[verdict.Verdict]string{
			verdict.Unknown: "the report does not say whether it is ready", verdict.Progressing: "the report says that it is not ready", verdict.Failed: "the report says that it has failed",
		}[status.Verdict]
	}
	return status
}

// CommitStatus is a commit status about a cluster.
type CommitStatus struct {
	Commit  string
	Verdict verdict.Verdict // Ready, Progressing or Failed
	Time    time.Time
	Message string
}

// ReadStatuses makes a report from the commit statuses of a cluster, the newest commit first, by the kind of host
// that they are about, "" for all. A folder without a status counts as one that the cluster does not follow.
func ReadStatuses(clusterType, cluster string, told map[string][]CommitStatus) Report {
	report := Report{Applied: map[string]Applied{}}
	hosts := Hosts(clusterType, cluster)
	for kind, host := range map[string]string{"": "", ClusterTypeHost: hosts[0], ClusterHost: hosts[1]} {
		if statuses := told[kind]; len(statuses) > 0 {
			report.Applied[host] = readStatuses(statuses)
		}
	}
	return report
}

// readStatuses is what was applied. A status of a newer commit than the last success means that this commit is
// being applied, or could not be.
func readStatuses(told []CommitStatus) Applied {
	applied := Applied{Status: verdict.Status{Verdict: verdict.Unknown}}
	for _, one := range told {
		switch {
		case one.Verdict == verdict.Ready:
			applied.Commit = one.Commit
			if applied.Attempted == "" {
				applied.Status = verdict.Status{Verdict: verdict.Ready, Since: one.Time, Message: one.Message}
			}
			return applied
		case applied.Attempted == "":
			applied.Attempted, applied.Status = one.Commit, verdict.Status{Verdict: one.Verdict, Since: one.Time, Message: one.Message}
		}
	}
	return applied
}

// Commits are all commits whose trees are needed. Older parts of a history matter only since one of the folders
// has its present content.
func (r *Report) Commits(folders []Folder) []string {
	var oldest time.Time
	for i := range folders {
		if changed := folders[i].Changed; oldest.IsZero() || !changed.IsZero() && changed.Before(oldest) {
			oldest = changed
		}
	}
	var all []string
	for _, applied := range r.own {
		all = append(all, applied.Commit)
	}
	for _, chosen := range r.Applied {
		for _, onHub := range chosen.Besides {
			all = append(all, onHub.Commit, onHub.Attempted)
		}
		for _, applied := range chosen.all() {
			all = append(all, applied.Commit, applied.Attempted, applied.Compared)
			for i, moment := range applied.History {
				if !moment.Time.Before(oldest) || i+1 < len(applied.History) && !applied.History[i+1].Time.Before(oldest) {
					all = append(all, moment.Commit)
				}
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

// find returns the status of an object. A name without a namespace finds the only object of that name.
func (r *Report) find(name ObjectName) (verdict.Status, bool) {
	said, ok := r.said[name]
	if ok || name.Namespace != "" {
		return said, ok
	}
	count := 0
	for other, status := range r.said {
		if other.Kind == name.Kind && other.Name == name.Name {
			said = status
			count++
		}
	}
	return said, count == 1
}

// statusOf is the status of an object, with the objects that belong to it.
func (o *objects) statusOf(one *object) verdict.Status {
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

// StatusOf is the status of a single object, whatever it depends on.
func StatusOf(one *unstructured.Unstructured) verdict.Status {
	found := index(Listed{Objects: []*unstructured.Unstructured{one}})
	found.alone = true
	if len(found.all) == 0 {
		return verdict.Status{Verdict: verdict.Unknown, Message: "the status of objects of this kind cannot be read"}
	}
	return found.statusOf(found.all[0])
}
