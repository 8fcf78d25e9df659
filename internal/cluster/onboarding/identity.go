package onboarding

import (
	"cmp"
	"context"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
)

const (
	// unidentified stands for a uid that the credentials may not read.
	unidentified = "unknown"
	// byObject is the prefix of a UID that stands for applied objects.
	byObject = "object/"
)

// markOf returns the value of the annotation on created objects.
func markOf(uid string) string {
	if strings.HasPrefix(uid, byObject) {
		return unidentified
	}
	return uid
}

// identify returns the uid of the namespace kube-system or, if the credentials may not read it, known while an object
// of the last apply has its uid.
func identify(ctx context.Context, cluster ClusterAPI, known string, records []Record) (uid string, err error) {
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

// hasAny reports whether one of the objects exists with its uid, or none can be read: nothing then shows another
// cluster.
func hasAny(ctx context.Context, cluster ClusterAPI, records []Record) (bool, error) {
	isRead := false
	for i := range records {
		if records[i].UID == "" {
			continue
		}
		live, err := cluster.Read(ctx, records[i].Ref)
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

// uidAfterApply returns the UID of a cluster, if need be by an applied object.
func uidAfterApply(uid string, records []Record) string {
	if uid == unidentified && len(records) > 0 {
		return byObject + records[0].UID
	}
	return uid
}
