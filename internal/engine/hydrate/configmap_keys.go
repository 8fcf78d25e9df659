package hydrate

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

const configMapType = "configmap"

// checkConfigMapKeys finds keys that Kubernetes refuses, even before values are known.
func (e *mergeIndex) checkConfigMapKeys(f *fleet.Fleet, assignments []*schedule.Assignment, reached *reach, found *collector) {
	refused := make([]bool, len(e.keys))
	for number, key := range e.keys {
		refused[number] = len(validation.IsConfigMapKey(key)) > 0
	}
	if !slices.Contains(refused, true) ||
		slices.ContainsFunc(f.Templates, func(t fleet.Template) bool { return t.Type == "config" && t.Name == configMapType }) {
		return
	}
	checked := map[int][]ValueFinding{} // by set
	for i, assignment := range assignments {
		if assignment.Target.Target.ManifestsPending {
			continue // and so are its forms of configuration
		}
		_, written := assignment.Target.Target.Manifests.ConfigAs.ConfigMap()
		if assignment.Host.ClusterType.ConfigType != configMapType || !written {
			continue
		}
		findings, known := checked[reached.set[i]]
		if !known {
			findings = e.refusedKeys(reached.sets[reached.set[i]], refused)
			checked[reached.set[i]] = findings
		}
		for _, finding := range findings {
			found.add(assignment.Key(), finding)
		}
	}
}

func (e *mergeIndex) refusedKeys(members []int32, refused []bool) []ValueFinding {
	var findings []ValueFinding
	decided := map[int]bool{}
	for _, member := range slices.Backward(members) {
		one := &e.containers[member]
		for _, entry := range one.entries {
			if !refused[entry.key] || decided[entry.key] {
				continue
			}
			decided[entry.key] = true
			if entry.value.raw != nil {
				findings = append(findings, ValueFinding{
					Container: one.name, Pointer: "/" + escapePointer(e.keys[entry.key]),
					Message: `is not a key that a ConfigMap can have: letters, digits, "-", "_" and ".", ` +
						`at most 253 characters, not "." nor starting with ".."`,
				})
			}
		}
	}
	return findings
}
