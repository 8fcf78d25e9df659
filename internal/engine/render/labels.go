package render

import (
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/naming"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// maxLabel is the largest length of a label value.
const maxLabel = 63

// LabelValue converts a name to a label value: "clusters/a" to "clusters.a". A long or invalid name ends in a hash.
func LabelValue(name string) string {
	value := name
	if cluster, isCluster := strings.CutPrefix(name, "clusters/"); isCluster {
		value = "clusters." + cluster
	}
	if value == "" || fleet.IsPlainLabel(value) {
		return value
	}
	value = strings.Map(func(r rune) rune {
		if r < 0x80 && (isAlphanumeric(byte(r)) || r == '.' || r == '_') {
			return r
		}
		return '-'
	}, value)
	return naming.AddHash(strings.TrimLeft(value, "-._"), name, maxLabel)
}

func isAlphanumeric(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' }

// objectName names the reconciler objects of a deployment target: after the namespace, unless others may share it.
func objectName(target *schedule.Target, host *schedule.Host, namespace, environment string) string {
	known, longest := reconciler.Named(host.ClusterType.Reconciler), maxLabel
	if known != nil && known.LongestName > 0 {
		longest = known.LongestName
	}
	if target.Target.Namespace == "" {
		return naming.Shorten(namespace, longest)
	}
	of := namespace + "/" + target.Name
	if known.OnHub() {
		of = environment + "/" + host.FirstName() + "/" + of
	}
	return naming.AddHash(namespace+"-"+target.Name, of, longest)
}
