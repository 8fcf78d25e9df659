package observe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Report is what is known from one cluster.
type Report struct {
	// Unknown says why nothing is known; "" where something is.
	Unknown string
	// Applied is what the cluster has applied of the folders that it follows, by host; "" is the cluster as a
	// whole.
	Applied map[string]reconciler.Applied
	// own is what was said of assignments by name, by key. It counts more than what was said of their host.
	own map[string]reconciler.Applied
	// said has what is known of the objects that reconcile assignments; nil where only Applied is known.
	said map[reconciler.ObjectName]object
	// labelled are those of them that have the labels of an owner.
	labelled []labelled
	// makers has the status of objects that make others, each by itself.
	makers map[reconciler.ObjectName]verdict.Status
	// isHub says that some of them may be on a cluster that was not read.
	isHub bool
	// unserved are kinds that the cluster does not have, by the error or the reason.
	unserved map[string]string
}

// object is what is known of an object that reconciles an assignment.
type object struct {
	verdict.Status
	// running is one for all clusters that run the same.
	running unique.Handle[reconciler.Running]
	// followed are what it says of folders of final objects, or what the objects say that it has made.
	followed []reconciler.FinalStatus
}

// labelled is an object with the labels of an owner and a host.
type labelled struct {
	reconciler.ObjectName
	owner, host string // labels
}

// Hosts are the hosts whose folders a cluster follows: its type and itself.
func Hosts(clusterType, cluster string) []string {
	return []string{clusterType, "clusters/" + cluster}
}

// ReadCluster makes a report from a cluster's own answer. It keeps nothing of the answer.
func ReadCluster(at folder.Location, clusterType, cluster string, listed reconciler.Answer) Report {
	found := reconciler.NewListing(listed)
	report := newReport(found, at, listed.Unlisted)
	for _, host := range Hosts(clusterType, cluster) {
		if chosen, ok := reconciler.ChooseRoot(found.Roots(at, host)); ok {
			report.Applied[host] = chosen.Applied
		}
	}
	if len(report.Applied) == 0 {
		report.Unknown = noRoot(at, clusterType, cluster, listed.Unlisted)
	}
	return report
}

// ReadHub makes reports from a hub's answer, for clusters that are given by name with their types: an object is about the
// cluster in its destination.
func ReadHub(at folder.Location, types map[string]string, listed reconciler.Answer) map[string]Report {
	onHub := reconciler.NewListing(listed)
	byCluster, makers := onHub.ByDestination(), onHub.Makers()
	reports := make(map[string]Report, len(types))
	for name, clusterType := range types {
		found := byCluster[name]
		if found == nil {
			found = reconciler.NewListing(reconciler.Answer{})
		}
		report := newReport(found, at, listed.Unlisted)
		report.isHub, report.makers = true, makers
		for _, host := range Hosts(clusterType, name) {
			if chosen, ok := reconciler.ChooseRoot(found.Roots(at, host)); ok {
				for _, root := range onHub.Roots(at, host) {
					if root.ToHub && root.SameRepository == chosen.SameRepository {
						chosen.OnHub = append(chosen.OnHub, root.Applied)
						chosen.Makers = append(chosen.Makers, root.Makers...)
					}
				}
				report.Applied[host] = chosen.Applied
			}
		}
		if len(report.Applied) == 0 {
			report.Unknown = noRoot(at, clusterType, name, listed.Unlisted)
		}
		reports[name] = report
	}
	return reports
}

// newReport is a report of the status of objects, with what those say that follow final objects at a location.
func newReport(found *reconciler.Listing, at folder.Location, unserved map[string]string) Report {
	report := Report{
		Applied:  map[string]reconciler.Applied{},
		said:     map[reconciler.ObjectName]object{},
		makers:   found.Makers(),
		unserved: unserved,
	}
	for _, one := range found.All {
		if !one.IsReconciled() {
			continue
		}
		said := found.Status(one)
		name, generated := one.Maker()
		if generated {
			said = verdict.Worst(said, found.Made(one, name))
		}
		running := found.Running(one)
		var all []reconciler.FinalStatus
		if followed, is := found.FinalStatus(one, at); is {
			if generated {
				followed.Status = verdict.Worst(followed.Status, found.Made(one, name))
			}
			all = append(all, followed)
		}
		report.said[one.ObjectName] = object{said, unique.Make(running), all}
		if generated {
			if other, several := report.said[name]; several {
				said, running = verdict.Worst(other.Status, said), reconciler.MergeRunning(other.running.Value(), running)
				all = append(slices.Clone(other.followed), all...)
			}
			report.said[name] = object{said, unique.Make(running), all}
		}
		labels := one.Labels()
		if owner, host := labels[reconciler.OwnerLabel], labels[reconciler.HostLabel]; owner != "" && host != "" {
			report.labelled = append(report.labelled, labelled{name, owner, host})
		}
	}
	return report
}

// unmade is why there is nothing for the cluster that an object makes by a template.
func (r *Report) unmade(maker reconciler.ObjectName) verdict.Status {
	made := reconciler.KindNamed(maker.Kind).Makes[0]
	status, found := r.makers[maker]
	if reason, unlisted := r.unserved[maker.Kind]; unlisted {
		return verdict.Status{Verdict: verdict.Unknown, Message: fmt.Sprintf("%s cannot be read: %s", maker, reason)}
	}
	if reason, unlisted := r.unserved[made]; unlisted {
		return verdict.Status{Verdict: verdict.Unknown, Message: fmt.Sprintf("what %s makes cannot be read: %s", maker, reason)}
	}
	switch {
	case !found:
		return verdict.Status{Verdict: verdict.Progressing, Message: fmt.Sprintf("%s does not exist", maker)}
	case status.Verdict == verdict.Ready:
		status.Verdict, status.Message = verdict.Progressing, fmt.Sprintf("%s has made no %s for the cluster yet", maker, made)
	}
	return status
}

// NotReady lists the objects that reconcile assignments of a host and are not ready. It finds them by the host's
// label, for callers without records. The root itself is not among them.
func (r *Report) NotReady(host, label string) []string {
	var pending []string
	made := map[reconciler.ObjectName]bool{}
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
func noRoot(at folder.Location, clusterType, cluster string, unlisted map[string]string) string {
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
	Cluster string
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
	report := Report{own: map[string]reconciler.Applied{}}
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
			report.Applied = map[string]reconciler.Applied{"": {Commit: one.Commit, Status: one.status()}}
		default:
			report.own[one.Assignment] = reconciler.Applied{Commit: one.Commit, Status: one.status()}
		}
	}
	if len(report.Applied)+len(report.own) > 0 {
		report.Unknown = ""
	}
	return report
}

// as is what is said, without what follows from what is not.
func (s *Said) as() verdict.Status {
	return verdict.Status{Verdict: s.Verdict, Since: s.Since, Message: s.Message}
}

func (s *Said) status() verdict.Status {
	status := s.as()
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

// ReadStatuses makes a report from the commit statuses of a cluster, the newest commit first, by the kind of host
// that they are about, "" for all. A folder without a status counts as one that the cluster does not follow.
func ReadStatuses(clusterType, cluster string, told map[string][]Said) Report {
	report := Report{Applied: map[string]reconciler.Applied{}}
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
func readStatuses(told []Said) reconciler.Applied {
	applied := reconciler.Applied{Status: verdict.Status{Verdict: verdict.Unknown}}
	for _, one := range told {
		switch {
		case one.Verdict == verdict.Ready:
			applied.Commit = one.Commit
			if applied.Attempted == "" {
				applied.Status = one.as()
			}
			return applied
		case applied.Attempted == "":
			applied.Attempted, applied.Status = one.Commit, one.as()
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
	for _, one := range r.said {
		for i := range one.followed {
			of := &one.followed[i]
			for host := range r.Applied { // else it follows something of another repository
				if strings.HasPrefix(of.Folder, host+"/") {
					all = append(all, of.Commit, of.Applied)
				}
			}
		}
	}
	for _, chosen := range r.Applied {
		for _, onHub := range chosen.OnHub {
			all = append(all, onHub.Commit, onHub.Attempted)
		}
		for _, applied := range chosen.All() {
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
func (r *Report) applied(host string) (reconciler.Applied, bool) {
	if applied, ok := r.Applied[host]; ok {
		return applied, true
	}
	applied, ok := r.Applied[""]
	return applied, ok
}

// find returns what is known of an object. A name without a namespace finds the only object of that name.
func (r *Report) find(name reconciler.ObjectName) (object, bool) {
	said, ok := r.said[name]
	if ok || name.Namespace != "" {
		return said, ok
	}
	count := 0
	for other, one := range r.said {
		if other.Kind == name.Kind && other.Name == name.Name {
			said = one
			count++
		}
	}
	return said, count == 1
}
