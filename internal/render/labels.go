package render

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// Labels of the objects that tell a reconciler what to do. Their values are what [LabelValue] makes of the
// names.
const (
	OwnerLabel  = "flotilla.dev/owner"
	HostLabel   = "flotilla.dev/host"
	TargetLabel = "flotilla.dev/deployment-target"
)

// maxLabel is the longest value of a label, and the longest name of an object that becomes one.
const maxLabel = 63

// LabelValue returns the form in which a name stands in labels: itself wherever it can, the host
// "clusters/a" as "clusters.a". What is too long, or holds what a label cannot, is cut and ended by a hash
// of the whole.
func LabelValue(name string) string {
	value := name
	if cluster, isCluster := strings.CutPrefix(name, "clusters/"); isCluster {
		value = "clusters." + cluster
	}
	if isLabelValue(value) {
		return value
	}
	value = strings.Map(func(r rune) rune {
		if r < 0x80 && (isAlphanumeric(byte(r)) || r == '.' || r == '_') {
			return r
		}
		return '-'
	}, value)
	return withHash(strings.TrimLeft(value, "-._"), name)
}

// isLabelValue is quicker than the library, which is asked for each assignment.
func isLabelValue(text string) bool {
	for i := range len(text) {
		if c := text[i]; !isAlphanumeric(c) && (i == 0 || i == len(text)-1 || c != '-' && c != '_' && c != '.') {
			return false
		}
	}
	return len(text) <= maxLabel
}

func isAlphanumeric(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' }

// objectName is what the reconciler's objects of an assignment are called: as its namespace, unless others
// may share that.
func objectName(target *schedule.Target, namespace string) string {
	if target.Target.Namespace == "" {
		return namespace
	}
	return withHash(namespace+"-"+target.Name, namespace+"/"+target.Name)
}

// withHash ends a name by a hash, and cuts it to what a label takes.
func withHash(name, of string) string {
	sum := sha256.Sum256([]byte(of))
	suffix := "-" + hex.EncodeToString(sum[:4])
	return strings.TrimLeft(strings.TrimRight(name[:min(len(name), maxLabel-len(suffix))], "-._")+suffix, "-")
}
