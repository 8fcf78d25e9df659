package fleet

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/artifact"
)

// pins reads the attribute "artifacts", and pins the manifests of the deployment targets that it has. While it is not known,
// no manifests are.
func (d *decoder) pins(root *Object) {
	value, path := root.Value("artifacts")
	var pins artifact.Resolved
	switch value := value.(type) {
	case nil:
		return
	case Unknown:
		d.eachTarget(func(_ string, target *DeploymentTarget) {
			target.Manifests, target.ManifestsPending = Manifests{}, true
		})
		return
	case string:
		var err error
		if pins, err = artifact.Decode(value); err != nil {
			d.Report(path, "%s", err)
			return
		}
	default:
		d.Report(path, "must be the text that flotilla_artifacts has as artifacts, not %s", kindOf(value))
		return
	}
	d.eachTarget(func(name string, target *DeploymentTarget) {
		entry, isPinned := pins[name]
		switch {
		case !isPinned || target.ManifestsPending:
		case !entry.IsFor(target.Manifests.Manifests):
			d.Report(path, "deployment target %q: its manifests are not those that were resolved: give flotilla_artifacts the same workloads as this fleet", name)
		default:
			target.Manifests.Pin = entry.Pin
		}
	})
}

// eachTarget calls do with each deployment target of the fleet and its full name.
func (d *decoder) eachTarget(do func(name string, target *DeploymentTarget)) {
	for i := range d.Fleet.Workloads {
		workload := &d.Fleet.Workloads[i]
		for j := range workload.DeploymentTargets {
			do(FullName(workload.Name, workload.DeploymentTargets[j].Name), &workload.DeploymentTargets[j])
		}
	}
}
