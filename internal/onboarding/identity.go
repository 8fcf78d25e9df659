package onboarding

import (
	"cmp"
	"context"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/kube"
)

// Identity says which cluster it is.
type Identity struct {
	// UID differs from that of another cluster that takes its place.
	UID string
	// Mark is the value of the annotation on the objects that Flotilla creates there.
	Mark string
}

const (
	// unidentified is the identity of a cluster of which the credentials may not read what identifies it.
	unidentified = "unknown"
	// byObject is the beginning of the UID of a cluster that is known by the objects that were applied to it.
	byObject = "object/"
)

// Identify returns the identity of a cluster: the uid of its namespace kube-system. Where the credentials may not read
// that, it is known by the objects of the last apply: as long as one of them is there, with its uid, it is the same
// cluster. known is its UID at that time, "" where there was no apply.
func Identify(ctx context.Context, cluster Cluster, known string, records []Record) (Identity, error) {
	isByObject := strings.HasPrefix(known, byObject)
	identity, err := identifyBySystem(ctx, cluster)
	if err != nil || identity.UID != "" && !isByObject {
		return identity, err
	}
	if known != "" {
		isSame, err := hasAny(ctx, cluster, records)
		switch {
		case err != nil:
			return Identity{}, err
		case isSame && isByObject:
			return Identity{UID: known, Mark: unidentified}, nil
		case isSame:
			return Identity{UID: known, Mark: known}, nil
		}
	}
	return cmp.Or(identity, Identity{UID: unidentified, Mark: unidentified}), nil
}

// identifyBySystem is the identity by kube-system; the zero value where that cannot be read.
func identifyBySystem(ctx context.Context, cluster Cluster) (Identity, error) {
	live, err := cluster.Read(ctx, kube.Ref{APIVersion: "v1", Kind: "Namespace", Name: "kube-system"})
	switch {
	case kube.ReasonOf(err) == kube.ReasonForbidden, err == nil && live == nil:
		return Identity{}, nil
	case err != nil:
		return Identity{}, err
	}
	return Identity{UID: string(live.GetUID()), Mark: string(live.GetUID())}, nil
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
