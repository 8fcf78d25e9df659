package fleet

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
)

// pinManifests makes all manifests unknown while artifacts are.
func pinManifests(d *decoder, root *ObjectReader) {
	value, path := root.Value("artifacts")
	var pins artifact.Resolved
	switch value := value.(type) {
	case nil:
		return
	case Unknown:
		for _, target := range d.Fleet.Targets() {
			target.Manifests, target.ManifestsPending = Manifests{}, true
		}
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
	for workload, target := range d.Fleet.Targets() {
		name := FullName(workload.Name, target.Name)
		entry, isPinned := pins[name]
		switch {
		case !isPinned || target.ManifestsPending:
		case !entry.IsFor(target.Manifests.Manifests):
			d.Report(path, "deployment target %q: its manifests are not those that were resolved: "+
				"give flotilla_artifacts the same workloads as this fleet", name)
		default:
			target.Manifests.Pin = entry.Pin
		}
	}
}
