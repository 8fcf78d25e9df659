package fleet

import (
	"fmt"
	"maps"
	"slices"

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
