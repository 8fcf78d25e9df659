package onboarding

import (
	"cmp"
	"context"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
)

const (
	// unidentified is the UID of a cluster of which the credentials may not read what identifies it.
	unidentified = "unknown"
	// byObject is the beginning of the UID of a cluster that is known by the objects that were applied to it.
	byObject = "object/"
)

// markOf is the value of the annotation on the objects that Flotilla creates on a cluster.
func markOf(uid string) string {
	if strings.HasPrefix(uid, byObject) {
		return unidentified
	}
	return uid
}

// identify returns the UID of a cluster, which differs from that of another one that takes its place: the uid of its namespace
// kube-system. Where the credentials may not read that, it is known by the objects of the last apply: as long as one of them is
// there, with its uid, it is the same cluster. known is its UID at that time, "" where there was no apply.
func identify(ctx context.Context, cluster Cluster, known string, records []Record) (uid string, err error) {
	system, err := cluster.Read(ctx, kube.Ref{APIVersion: "v1", Kind: "Namespace", Name: "kube-system"})
	switch {
	case kube.ReasonOf(err) == kube.ReasonForbidden:
	case err != nil:
		return "", err
	case system != nil:
		uid = string(system.GetUID())
	}
	if known != "" && (uid == "" || strings.HasPrefix(known, byObject)) {
		if isSame, err := hasAny(ctx, cluster, records); err != nil || isSame {
			return known, err
		}
	}
	return cmp.Or(uid, unidentified), nil
}

// hasAny says whether any of the objects is there, with its uid. It is true where none of them can be read: then nothing
// says that it is another cluster.
func hasAny(ctx context.Context, cluster Cluster, records []Record) (bool, error) {
	isRead := false
	for i := range records {
		if records[i].UID == "" {
			continue
		}
		live, err := cluster.Read(ctx, records[i].Ref())
		switch {
		case kube.ReasonOf(err) == kube.ReasonForbidden:
			continue
		case err != nil:
			return false, err
		case live != nil && string(live.GetUID()) == records[i].UID:
			return true, nil
		}
		isRead = true
	}
	return !isRead, nil
}

// identifiedBy is the UID of a cluster after an apply: that of an applied object where there is no other.
func identifiedBy(uid string, records []Record) string {
	if uid == unidentified && len(records) > 0 {
		return byObject + records[0].UID
	}
	return uid
}
