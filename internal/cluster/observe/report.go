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

// ClusterReport is the state reported by one cluster.
type ClusterReport struct {
	Unknown string                        // why nothing is known
	Applied map[string]reconciler.Applied // from the followed folders, by host; "" is the cluster as a whole
	own     map[string]reconciler.Applied // by key of an assignment; precedes its host
	// objects reconcile assignments; nil if only Applied is known.
	objects  map[reconciler.ObjectName]observedObject
	labelled []labelled
	makers   map[reconciler.ObjectName]verdict.Status
	isHub    bool              // some objects may be on a cluster that was not read
	unserved map[string]string // why the cluster does not have a kind
}

type observedObject struct {
	verdict.Status
	running  unique.Handle[reconciler.Running] // shared by all clusters with the same content
	followed []reconciler.FinalStatus
}

type labelled struct {
	reconciler.ObjectName
	owner, host string // values of labels
}

// FollowedHosts returns the hosts whose folders a cluster follows.
func FollowedHosts(clusterType, cluster string) []string {
	return []string{clusterType, "clusters/" + cluster}
}

// ReadCluster makes a report from a cluster's own answer and retains no part of it.
func ReadCluster(at folder.Location, clusterType, cluster string, listed reconciler.Answer) ClusterReport {
	found := reconciler.NewListing(listed)
	report := newReport(found, at, listed.Unlisted)
	for _, host := range FollowedHosts(clusterType, cluster) {
		if chosen, ok := reconciler.ChooseRoot(found.Roots(at, host)); ok {
			report.Applied[host] = chosen.Applied
		}
	}
	if len(report.Applied) == 0 {
		report.Unknown = noRoot(at, clusterType, cluster, listed.Unlisted)
	}
	return report
}

// ReadHub makes reports from a hub's answer for clusters, given as names with types. An object is about its
// destination.
func ReadHub(at folder.Location, types map[string]string, listed reconciler.Answer) map[string]ClusterReport {
	onHub := reconciler.NewListing(listed)
	byCluster, byHost := onHub.ByDestination()
	makers := onHub.Makers()
	reports := make(map[string]ClusterReport, len(types))
	for name, clusterType := range types {
		found := cmp.Or(byCluster[name], &reconciler.Listing{})
		if byServer := byHost[clusterType]; byServer != nil {
			both := *byServer
			both.All = slices.Concat(found.All, byServer.All)
			found = &both
		}
		report := newReport(found, at, listed.Unlisted)
		report.isHub, report.makers = true, makers
		for _, host := range FollowedHosts(clusterType, name) {
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

func newReport(found *reconciler.Listing, at folder.Location, unserved map[string]string) ClusterReport {
	report := ClusterReport{
		Applied:  map[string]reconciler.Applied{},
		objects:  map[reconciler.ObjectName]observedObject{},
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
		report.objects[one.ObjectName] = observedObject{said, unique.Make(running), all}
		if generated {
			if other, several := report.objects[name]; several {
				said, running = verdict.Worst(other.Status, said), reconciler.MergeRunning(other.running.Value(), running)
				all = append(slices.Clone(other.followed), all...)
			}
			report.objects[name] = observedObject{said, unique.Make(running), all}
		}
		labels := one.Labels()
		if owner, host := labels[reconciler.OwnerLabel], labels[reconciler.HostLabel]; owner != "" && host != "" {
			report.labelled = append(report.labelled, labelled{name, owner, host})
		}
	}
	return report
}

// explainMissing returns why a template has created nothing for the cluster.
func (r *ClusterReport) explainMissing(maker reconciler.ObjectName) verdict.Status {
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

// UnreadyObjects lists the objects of a host that are not ready, except the root. It finds them by the host's label,
// for callers without records.
func (r *ClusterReport) UnreadyObjects(host, label string) []string {
	var pending []string
	made := map[reconciler.ObjectName]bool{}
	for _, one := range r.labelled {
		if one.host != label || made[one.ObjectName] {
			continue
		}
		made[one.ObjectName] = true
		if said := r.objects[one.ObjectName]; said.Verdict != verdict.Ready {
			pending = append(pending, said.Message)
		}
	}
	for _, maker := range r.Applied[host].Makers {
		if !made[maker] {
			pending = append(pending, r.explainMissing(maker).Message)
		}
	}
	return pending
}

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

// ExternalReport is a report about a cluster from another source.
type ExternalReport struct {
	Cluster    string
	Assignment string // key; "" for everything on the cluster
	Commit     string // applied; "" is the cluster's
	Verdict    verdict.Verdict
	Since      time.Time
	Message    string
}

// ReadExternal makes a report from another source: at most one entry for each assignment and one for the cluster.
func ReadExternal(said ...ExternalReport) ClusterReport {
	report := ClusterReport{own: map[string]reconciler.Applied{}}
	var whole ExternalReport
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

func (s *ExternalReport) givenStatus() verdict.Status {
	return verdict.Status{Verdict: s.Verdict, Since: s.Since, Message: s.Message}
}

func (s *ExternalReport) status() verdict.Status {
	status := s.givenStatus()
	if status.Verdict == "" {
		status.Verdict = verdict.Unknown
	}
	if status.Message == "" && status.Verdict != verdict.Ready {
		status.Message = map[verdict.Verdict]string{
			verdict.Unknown:     "the report does not say whether it is ready",
			verdict.Progressing: "the report says that it is not ready",
			verdict.Failed:      "the report says that it has failed",
		}[status.Verdict]
	}
	return status
}

// ReadStatuses makes a report from a cluster's commit statuses, newest commit first, by kind of host. A cluster does
// not follow a folder without a status.
func ReadStatuses(clusterType, cluster string, told map[string][]ExternalReport) ClusterReport {
	report := ClusterReport{Applied: map[string]reconciler.Applied{}}
	hosts := FollowedHosts(clusterType, cluster)
	for kind, host := range map[string]string{"": "", ClusterTypeHost: hosts[0], ClusterHost: hosts[1]} {
		if statuses := told[kind]; len(statuses) > 0 {
			report.Applied[host] = readStatuses(statuses)
		}
	}
	return report
}

// readStatuses returns the applied content. A commit newer than the last success is being applied, or could not be.
func readStatuses(told []ExternalReport) reconciler.Applied {
	applied := reconciler.Applied{Status: verdict.Status{Verdict: verdict.Unknown}}
	for _, one := range told {
		switch {
		case one.Verdict == verdict.Ready:
			applied.Commit = one.Commit
			if applied.Attempted == "" {
				applied.Status = one.givenStatus()
			}
			return applied
		case applied.Attempted == "":
			applied.Attempted, applied.Status = one.Commit, one.givenStatus()
		}
	}
	return applied
}

// Commits returns all commits whose trees are needed: history from the time when the oldest folder got its content.
func (r *ClusterReport) Commits(folders []WrittenFolder) []string {
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
	for _, one := range r.objects {
		for i := range one.followed {
			of := &one.followed[i]
			for host := range r.Applied { // otherwise it follows another repository
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

func (r *ClusterReport) applied(host string) (reconciler.Applied, bool) {
	if applied, ok := r.Applied[host]; ok {
		return applied, true
	}
	applied, ok := r.Applied[""]
	return applied, ok
}

// find returns an object. Without a namespace, the name must be unique.
func (r *ClusterReport) find(name reconciler.ObjectName) (observedObject, bool) {
	said, ok := r.objects[name]
	if ok || name.Namespace != "" {
		return said, ok
	}
	count := 0
	for other, one := range r.objects {
		if other.Kind == name.Kind && other.Name == name.Name {
			said = one
			count++
		}
	}
	return said, count == 1
}
