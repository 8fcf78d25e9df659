package fleet

import (
	"fmt"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// ArtifactInput is the input of flotilla_artifacts.
type ArtifactInput struct {
	Workloads []Workload
	// Sources has the allowed URL prefixes by workspace; nil allows any.
	Sources map[string][]string
	// Environments of all deployment targets are sorted.
	Environments []string
	Known        bool
}

// DecodeArtifactInput decodes one environment, or all if it is "". If workspaces are given, a workload of another one is
// an error.
func DecodeArtifactInput(workloads, workspaces any, environment string) (ArtifactInput, Findings) {
	d := newDecoder()
	d.Fleet.Environment, d.EnvironmentKnown = environment, environment != ""
	fields := map[string]any{"workloads": workloads, "workspaces": workspaces}
	root := &ObjectReader{reader: &d.Reader, table: &fleetTable, fields: fields}
	bounds := readSourceBounds(d, root)
	d.decodeCollection(root, "workloads", decodeWorkload)
	read := ArtifactInput{
		Workloads: d.Fleet.Workloads, Known: IsKnown(workloads) && IsKnown(workspaces), Sources: bounds.sources,
		Environments: slices.Sorted(maps.Keys(d.targetEnvironments)),
	}
	if !bounds.isSet || !read.Known || len(d.Findings) > 0 {
		return read, d.Findings
	}
	for i := range read.Workloads {
		workload := &read.Workloads[i]
		if _, ok := bounds.sources[workload.Workspace]; !ok {
			d.Report(PathOf("workloads", workload.Name).Attribute("workspace"), "%s", bounds.describeMissing(workload.Workspace))
		}
	}
	return read, d.Findings
}

type sourceBounds struct {
	isSet    bool
	sources  map[string][]string // by workspace; nil: any
	pending  map[string]bool     // unknown sources
	complete bool
}

func readSourceBounds(d *decoder, root *ObjectReader) sourceBounds {
	bounds := sourceBounds{isSet: root.Has("workspaces"), sources: map[string][]string{}, pending: map[string]bool{}}
	d.decodeCollection(root, "workspaces", func(d *decoder, o *ObjectReader) belonging {
		belongs := decodeWorkspace(d, o)
		workspace := &d.Fleet.Workspaces[len(d.Fleet.Workspaces)-1]
		bounds.sources[workspace.Name] = workspace.Sources
		if !IsKnown(o.fields["sources"]) {
			bounds.pending[workspace.Name] = true
		}
		return belongs
	})
	bounds.complete = !d.incomplete["workspaces"]
	return bounds
}

func (b sourceBounds) describeMissing(workspace string) string {
	return fmt.Sprintf("is %q, which is not among workspaces%s", workspace, wording.DidYouMean(workspace, slices.Sorted(maps.Keys(b.sources))))
}

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
